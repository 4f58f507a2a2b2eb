"""A scrub finds every byte that is not what it was, and nothing else."""

from typing import Any

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies
from tests.thorough import always

from .flipping import SECRET, SECRETS, flip, frames_of, journal_of, marks, places, read, scrubbed
from .scenes import PARTITIONS, members, take, written

# --- finding --------------------------------------------------------------------------------------


def test_nothing_is_damaged_of_what_nobody_touched(rig: Rig) -> None:
    for sizes in ((3, 3, 2), (4, 2, 2), (5, 3, 2)):
        rig.write(PARTITIONS, sizes, log_name=f"log{sizes[0]}")
        written(rig, sizes)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(ensemble_size=5)
        for number in range(7):
            handle.append(b"%d" % number)
        wait_for_all_copies(handle)
        handle.release()
        keeper.recover_ledger(handle.ledger_id)
        with keeper.create_ledger() as open_one:
            open_one.append(b"0")
            report = scrubbed(rig)
    assert (report.left, report.exit_status) == ([], 0)
    assert report.details == {"damage": [], "tables": []}
    assert report.done["ledgers"] == 8
    files = sum("/journal/" in n or "/entries/" in n for i in rig.urls for n in rig.names(i))
    assert report.done["files"] == files
    assert report.summary == "all that was read is good"
    assert marks(rig) == {}


@pytest.mark.parametrize("options", [{}, SECRETS], ids=["CRC32C", "MAC"])
@pytest.mark.parametrize("sizes", always([(5, 3, 2)], [(3, 3, 2), (5, 3, 2)]))
@pytest.mark.parametrize("step", always([37], [37, 5]))
def test_every_byte_of_a_journal_that_is_flipped_is_found(
    memory_rig: Rig, sizes: tuple[int, int, int], options: dict[str, Any], step: int
) -> None:
    """In the very frame that it is in; what an entry costs is left, a header or trace is not."""
    ledger_id = written(memory_rig, sizes, **options)
    one = members(memory_rig, ledger_id)[0]
    name = journal_of(memory_rig, one, ledger_id)
    begins, data = frames_of(memory_rig, one, name), memory_rig.file_bytes(one, name)
    costs = set()
    for at in range(0, len(data), step):
        flip(memory_rig, one, name, at)
        found = read(memory_rig, ledger_id, one, password=SECRET if options else Password())
        frame = max(begin for begin in begins if begin <= at)
        bad = found.bad[ledger_id]
        assert bad.unknown == ""
        assert [(d.name, d.offset) for d in bad.damages] == [(name, frame)], at
        costs.add(bad.is_left)
        memory_rig.replace_file(one, name, data)
    assert True in costs
    assert read(memory_rig, ledger_id, one).bad == {}


@pytest.mark.parametrize("step", always([41], [41, 3]))
def test_every_byte_of_an_entry_log_that_is_flipped_is_found(memory_rig: Rig, step: int) -> None:
    ledger_id = memory_rig.write(PARTITIONS, (5, 3, 2)).ledger_id
    one = members(memory_rig, ledger_id)[0]
    name = next(name for name in memory_rig.names(one) if "/entries/" in name)
    data, blocks = memory_rig.file_bytes(one, name), set()
    for at in range(0, len(data), step):
        flip(memory_rig, one, name, at)
        bad = read(memory_rig, ledger_id, one).bad[ledger_id]
        [damage] = bad.damages
        assert (damage.name, bad.is_left) == (name, True)
        assert bad.mark is not None
        assert (bad.mark.entry_logs, bad.mark.entries) == ((name,), ())
        blocks.add(damage.block)
        assert ("of block" in damage.reason) == (damage.block is not None)
        memory_rig.replace_file(one, name, data)
    assert blocks >= {None, 0}


def test_damage_in_several_places_is_named_in_each(rig: Rig) -> None:
    ledger_id = written(rig)
    one, other, _ = members(rig, ledger_id)
    name = journal_of(rig, one, ledger_id)
    begins = frames_of(rig, one, name)
    for frame in (3, 7, 8):
        flip(rig, one, name, begins[frame])  # its prefix: nothing leads over it
    name_there = journal_of(rig, other, ledger_id)
    flip(rig, other, name_there, begins[5] - 1)  # a trailer
    report = scrubbed(rig)
    rows = [(row["bookie_id"], row["offset"]) for row in report.details["damage"]]
    expected = [*((one, begins[frame]) for frame in (3, 7, 8)), (other, begins[4])]
    assert sorted(rows) == sorted(expected)
    assert report.exit_status == 1
    assert {left.subject for left in report.left} == {
        f"ledger {ledger_id} on {one}",
        f"ledger {ledger_id} on {other}",
    }
    assert report.summary == "2 damaged files: 2 copies of 1 ledger to be made again"


def test_each_damaged_file_is_counted_whatever_it_costs(memory_rig: Rig) -> None:
    ids = [written(memory_rig) for _ in range(3)]
    for ledger_id, frame in zip(ids, (0, 4, 5), strict=True):  # the first is a header
        one = members(memory_rig, ledger_id)[0]
        name = journal_of(memory_rig, one, ledger_id)
        flip(memory_rig, one, name, frames_of(memory_rig, one, name)[frame + 1] - 1)
    report = scrubbed(memory_rig)
    assert {row["ledger_id"] for row in report.details["damage"]} == set(ids)
    assert report.summary == "3 damaged files: 2 copies of 2 ledgers to be made again"
    counted = [report.counters[f"NUM_{what}"] for what in ("DAMAGED_FILES", "DAMAGED_COPIES")]
    assert (counted, len(report.left)) == ([3, 2], 2)
    report = scrubbed(memory_rig, ledgers=[ids[0]])
    assert report.summary == "1 damaged file, and good copies of all of them"
    assert report.exit_status == 0


def test_good_records_behind_damage_are_not_marked(memory_rig: Rig) -> None:
    ledger_id = written(memory_rig)
    one = members(memory_rig, ledger_id)[0]
    name = journal_of(memory_rig, one, ledger_id)
    flip(memory_rig, one, name, frames_of(memory_rig, one, name)[5])
    bad = read(memory_rig, ledger_id, one).bad[ledger_id]
    assert bad.mark is not None
    assert (bad.count, bad.mark.entries, bad.is_left) == (1, ((4, 4),), True)


def test_one_entry_of_a_striped_ledger_is_marked_alone(memory_rig: Rig) -> None:
    ledger_id = written(memory_rig, (5, 3, 2))
    one = members(memory_rig, ledger_id)[1]
    name = journal_of(memory_rig, one, ledger_id)
    flip(memory_rig, one, name, frames_of(memory_rig, one, name)[4] - 1)
    bad = read(memory_rig, ledger_id, one).bad[ledger_id]
    assert bad.mark is not None
    [(first, last)] = bad.mark.entries
    assert first == last


def test_what_is_missing_or_torn_is_no_damage(rig: Rig) -> None:
    """That is for an audit to tell; a torn end is what a killed writer leaves."""
    for _ in range(3):
        written(rig)
    one = members(rig, 0)[0]
    take(rig, one, "/journal/", 0)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        wait_for_all_copies(handle)
        handle.release()
    for ledger_id, end in ((1, bytes(5000)), (handle.ledger_id, b"BKAR" + bytes(10))):
        who = members(rig, ledger_id)[0]
        name = journal_of(rig, who, ledger_id)
        rig.replace_file(who, name, rig.file_bytes(who, name) + end)
    report = scrubbed(rig)
    assert (report.left, report.details["damage"]) == ([], [])


def test_of_an_open_ledger_damage_in_front_of_its_end_is_found(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        for _ in range(3):
            handle.append(b"0")
        wait_for_all_copies(handle)
        handle.release()
    ledger_id = handle.ledger_id
    one, other, _ = members(rig, ledger_id)
    name = journal_of(rig, one, ledger_id)
    begins = frames_of(rig, one, name)
    flip(rig, one, name, begins[2] - 1)
    name_there = journal_of(rig, other, ledger_id)
    flip(rig, other, name_there, begins[-1] - 1)  # the last record: torn, for all that is known
    report = scrubbed(rig)
    assert places(report) == [(one, name)]
    assert [left.subject for left in report.left] == [f"ledger {ledger_id} on {one}"]


# --- passwords ------------------------------------------------------------------------------------


@pytest.mark.parametrize("password", ["", "wrong"])
def test_without_its_password_what_needs_none_is_checked_and_the_report_says_so(
    rig: Rig, password: str
) -> None:
    ledger_id = written(rig, **SECRETS)
    written(rig)
    one, other, third = members(rig, ledger_id)
    name = journal_of(rig, one, ledger_id)
    begins = frames_of(rig, one, name)
    flip(rig, one, name, begins[2])
    flip(rig, other, journal_of(rig, other, ledger_id), begins[2] - 1)
    flip(rig, third, journal_of(rig, third, ledger_id), begins[3] - 20)  # its rows
    report = scrubbed(rig, password=password)
    assert {bookie_id for bookie_id, _ in places(report)} == {one, other}
    assert "digests of 1 ledger were not checked" in report.summary
    assert report.counters["NUM_LEDGERS_WITHOUT_CHECKED_DIGESTS"] == 1
    report = scrubbed(rig, password="secret")
    assert {bookie_id for bookie_id, _ in places(report)} == {one, other, third}
    assert report.counters["NUM_LEDGERS_WITHOUT_CHECKED_DIGESTS"] == 0


def test_entry_logs_with_a_password_are_opened_without_it(memory_rig: Rig) -> None:
    ledger_id = memory_rig.write(
        PARTITIONS, (3, 3, 2), digest_type="MAC", password=SECRET
    ).ledger_id
    one = members(memory_rig, ledger_id)[0]
    name = next(name for name in memory_rig.names(one) if "/entries/" in name)
    assert scrubbed(memory_rig).left == []
    flip(memory_rig, one, name, 600)
    assert scrubbed(memory_rig).left == []
    assert places(scrubbed(memory_rig, password="secret")) == [(one, name)]
