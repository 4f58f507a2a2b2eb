"""Ledgers that were made on too few bookies are found, and get the copies that were wanted."""

from collections.abc import Callable
from typing import Any

import pytest

from bkspark import verbs
from bkspark.admin import views
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.protocol.ledger.quorum import Quorum
from tests.integration.log.test_smaller_ledgers import away
from tests.integration.rig import Rig, flat, partitions_of

from .scenes import ENTRIES, PARTITIONS, audited, copies, members, take, written
from .test_repair import VALUES, assert_whole, repaired, values

FULL, SMALL = Quorum(3, 3, 2), Quorum(2, 2, 2)
SHORT = "NUM_LEDGERS_ON_FEWER_BOOKIES_THAN_WANTED"
MakeRig = Callable[..., Rig]


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


@pytest.fixture
def wide_rig(make_rig: MakeRig) -> Rig:
    """With two bookies more than the two that ``small`` leaves."""
    return make_rig(kind="memory", metadata="memory", bookie_count=4)


def small(rig: Rig, sizes: tuple[int, int, int] = (3, 3, 2), **options: Any) -> int:
    """A closed ledger that was made on two bookies; its id."""
    names = sorted(rig.urls)
    with away(rig, *names[2:]):
        ledger_id = written(rig, sizes, **options)
    assert members(rig, ledger_id) in (names[:2], names[1::-1])
    return ledger_id


def shorts(report: Report) -> list[int]:
    assert report.counters[SHORT] == len(report.details["short"])
    return [row["ledger_id"] for row in report.details["short"]]


# --- what is said of them ------------------------------------------------------------------------


def test_an_audit_counts_them_and_ends_with_1(rig: Rig) -> None:
    written(rig)
    ledger_id = small(rig)
    report = audited(rig)
    assert (shorts(report), copies(report), report.exit_status) == ([ledger_id], [], 1)
    [left] = report.left
    assert left.subject == f"ledger {ledger_id}"
    assert "2 copies of each entry, and 3 are wanted" in left.reason
    assert report.summary == "1 ledger on fewer bookies than wanted"


def test_one_that_is_open_is_counted_and_left_until_it_is_closed(rig: Rig) -> None:
    with away(rig, "bookie-3"), BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"one")
    assert shorts(audited(rig)) == [handle.ledger_id]
    report = repaired(rig)
    assert report.plan["steps"] == []
    assert ["once the ledger is closed" in left.reason for left in report.left] == [True]
    assert rig.ledger(handle.ledger_id).quorum == SMALL
    handle.append(b"two")
    handle.close()
    assert repaired(rig).exit_status == 0
    assert rig.ledger(handle.ledger_id).quorum == FULL


def test_fewer_stripes_are_no_fewer_copies_and_empty_ledgers_need_none(make_rig: MakeRig) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    with away(rig, "bookie-5"):
        rig.write(PARTITIONS, (5, 3, 2))
    with away(rig, "bookie-5", "bookie-4", "bookie-3"), BookKeeper(rig.uri) as keeper:
        keeper.create_ledger().close()
    before = {i: rig.ledger(i) for i in (0, 1)}
    assert (shorts(audited(rig)), repaired(rig).exit_status) == ([], 0)
    assert before == {i: rig.ledger(i) for i in (0, 1)}


def test_the_view_of_what_lacks_copies_has_them(rig: Rig) -> None:
    ledger_id = small(rig)
    with Cluster(rig.uri) as cluster:
        [row] = views.underreplicated(cluster, None)
    found = {key: row[key] for key in ("ledger_id", "first_entry_id", "last_entry_id", "bookie_id")}
    expected = (ledger_id, 0, ENTRIES - 1, None)
    assert tuple(found.values()) == expected
    assert row["copies"] == "below write quorum"


# --- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("digest", ["CRC32C", "MAC"])
def test_a_ledger_gets_a_further_member_that_has_everything(
    rig: Rig, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "secret")
    secret = {"digest_type": digest, "password": "secret"} if digest == "MAC" else {}
    key = {"password": "secret"} if secret else {}
    ledger_id = small(rig, **secret)
    before = members(rig, ledger_id)
    report = repaired(rig, **({"password_env": "WORD"} if secret else {}))
    assert (report.exit_status, report.done["ledgers"], report.done["places"]) == (0, 1, 1)
    [row] = report.details["repaired"]
    assert (row["ledger_id"], row["way"]) == (ledger_id, "widen")
    assert members(rig, ledger_id) == [*before, "bookie-3"]
    assert rig.ledger(ledger_id).quorum == FULL
    assert shorts(audited(rig)) == []
    assert_whole(rig)
    with away(rig, *before):
        assert values(rig, ledger_id, **key) == VALUES


def test_rows_of_data_frames_are_copied_too(rig: Rig) -> None:
    with away(rig, "bookie-3"):
        rig.write(PARTITIONS)
    assert repaired(rig).exit_status == 0
    assert_whole(rig)
    assert rig.assert_survives_losses(flat(PARTITIONS), 2, set(rig.urls)) == 3
    assert all(holders == set(rig.urls) for holders in rig.good_copies(0).values())


def test_every_fragment_gets_one(wide_rig: Rig) -> None:
    """Each has others: the new member of one is an old member of the next."""
    rig = wide_rig
    with BookKeeper(rig.uri) as keeper:
        with away(rig, "bookie-3", "bookie-4"):
            handle = keeper.create_ledger()
            handle.append(b"0")
        disk = rig.lose("bookie-2")
        handle.append(b"1")
        handle.close()
        rig.bring_back("bookie-2", disk)
        first, second = (set(f.ensemble) for f in rig.ledger(handle.ledger_id).fragments)
        assert first != second
        assert repaired(rig).exit_status == 0
        fragments = rig.ledger(handle.ledger_id).fragments
        assert first < set(fragments[0].ensemble)
        assert second < set(fragments[1].ensemble)
        assert [len(fragment.ensemble) for fragment in fragments] == [3, 3]
        assert_whole(rig)
        assert values(rig, handle.ledger_id) == [b"0", b"1"]


def test_one_that_lacks_several_gets_all_that_there_are(make_rig: MakeRig) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    ledger_id = small(rig, (5, 4, 2))
    with away(rig, "bookie-5", "bookie-4"):
        report = repaired(rig)
        assert ["no other bookie can take" in left.reason for left in report.left] == [True]
    assert rig.ledger(ledger_id).quorum == Quorum(3, 3, 2)
    assert repaired(rig).exit_status == 0
    assert rig.ledger(ledger_id).quorum == Quorum(4, 4, 2)  # as many copies as wanted, and no more
    assert_whole(rig)
    assert values(rig, ledger_id) == VALUES


def test_without_another_bookie_it_stays_and_that_is_told(rig: Rig) -> None:
    ledger_id = small(rig)
    before = rig.ledger(ledger_id)
    with away(rig, "bookie-3"):
        report = repaired(rig)
    assert report.exit_status == 1
    [left] = report.left
    assert "2 copies of each entry, and 3 are wanted" in left.reason
    assert "bookie add URL" in left.reason
    assert rig.ledger(ledger_id) == before


def test_a_plan_names_them_and_changes_nothing(rig: Rig) -> None:
    ledger_id = small(rig)
    before = rig.ledger(ledger_id), {name: rig.names(name) for name in rig.urls}
    report = repaired(rig, dry_run=True)
    assert [(row["ledger_id"], row["way"]) for row in report.plan["steps"]] == [
        (ledger_id, "widen")
    ]
    assert (rig.ledger(ledger_id), {name: rig.names(name) for name in rig.urls}) == before


def test_its_password_is_needed(rig: Rig) -> None:
    ledger_id = small(rig, digest_type="MAC", password="secret")
    [left] = repaired(rig).left
    assert "the records cannot be copied" in left.reason
    assert rig.ledger(ledger_id).quorum == SMALL


def test_what_no_bookie_gives_keeps_it_as_it_is(rig: Rig) -> None:
    """A member that lacks an entry would be one place more to repair, for nothing."""
    ledger_id = small(rig)
    for name in members(rig, ledger_id):
        [journal] = [n for n in rig.names(name) if "/journal/" in n]
        data = rig.file_bytes(name, journal)
        rig.replace_file(name, journal, data[: len(data) // 2])
    report = repaired(rig)
    assert any("no bookie has a good copy" in left.reason for left in report.left)
    assert rig.ledger(ledger_id).quorum == SMALL


def test_a_wider_ledger_is_moved_and_repaired_as_any_other(wide_rig: Rig) -> None:
    """Its records name the sizes that it was made with, on every member."""
    rig = wide_rig
    ledger_id = small(rig)
    assert repaired(rig).exit_status == 0
    for name in members(rig, ledger_id):
        take(rig, name, "/journal/", ledger_id)
        assert copies(audited(rig)) != []
        assert repaired(rig).exit_status == 0
        assert_whole(rig)
    gone = members(rig, ledger_id)[2]
    assert verbs.decommission(rig.uri, bookies=[gone]).exit_status == 0
    assert gone not in members(rig, ledger_id)
    assert_whole(rig)
    assert values(rig, ledger_id) == VALUES
    assert verbs.scrub(rig.uri, no_lease=True).exit_status == 0
    with BookKeeper(rig.uri) as keeper:
        keeper.delete_ledger(ledger_id)
    assert verbs.collect(rig.uri, no_lease=True).exit_status == 0
    assert [rig.names(name) for name in rig.urls if name != gone] == [[], [], []]


def test_a_log_is_read_and_compacted_behind_it(rig: Rig) -> None:
    rows = [partitions_of(7, 4, first=20 * n) for n in range(3)]
    with away(rig, "bookie-3"):
        for part in rows:
            rig.write(part)
    expected = flat([batches for part in rows for batches in part])
    assert repaired(rig).exit_status == 0
    assert rig.rows() == expected
    assert verbs.compact(rig.uri, log=rig.log_name).exit_status == 0
    assert rig.rows() == expected
    log = rig.log()
    assert log is not None
    assert [rig.ledger(i).quorum for i in log.listed_ids] == [FULL]


def test_a_reader_that_knows_the_smaller_ledger_reads_on(rig: Rig) -> None:
    """And finds the new member where the old ones fail it."""
    ledger_id = small(rig)
    with BookKeeper(rig.uri) as keeper:
        reader = keeper.open_ledger(ledger_id)
        assert repaired(rig).exit_status == 0
        assert [entry.value for entry in reader.read()] == VALUES
        with away(rig, *members(rig, ledger_id)[:2]):
            assert [entry.value for entry in reader.read()] == VALUES
