"""Reading a log whose tail is open: what is seen, and who has to answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Joining, enlist
from bkspark.cluster.password import make_digester
from bkspark.errors import (
    BookieUnavailableError,
    NoSuchEntryError,
    NoSuchLedgerError,
)
from bkspark.format import layout
from bkspark.ledger.handles import how_far
from bkspark.ledger.recovery.recover import recover
from bkspark.log.creating import create_log_ledger
from bkspark.log.reading.ledger_files import OpenBookies
from bkspark.log.reading.log_view import LogWatch, look_at, view_of
from bkspark.log.reading.ordered_read import read_view_in_order
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from bkspark.log.recovering import close_tail
from tests.integration.open_tails import (
    NO_PASSWORD,
    PROMPT,
    by_hand,
    create_log,
    look,
    numbers,
    opened,
    table,
)
from tests.integration.rig import LOG, SCHEMA, Rig, partitions_of
from tests.integration.waiting import wait_for_all_copies, wait_until
from tests.kit.faulty import METADATA


@pytest.fixture
def cluster(memory_rig: Rig) -> Iterator[Cluster]:
    with Cluster(memory_rig.uri) as found:
        yield found


# --- what is seen --------------------------------------------------------------------------------


def test_of_an_open_ledger_what_is_confirmed_is_read(cluster: Cluster) -> None:
    create_log(cluster)
    writer = opened(cluster)
    for first, count in ((0, 5), (5, 4), (9, 3)):
        writer.append_many(table(first, count))
    view = look(cluster)
    assert (view.first_offset, view.end_offset, view.has_open_end) == (0, 9, True)
    assert numbers(cluster, view, 0, 9) == list(range(9))
    assert numbers(cluster, view, 4, 7) == [4, 5, 6]
    with pytest.raises(NoSuchEntryError, match="ends at offset 9, before 10"):
        numbers(cluster, view, 0, 10)
    writer.append_many(table(12, 1))  # the writer was not disturbed
    writer.close()
    view = look(cluster)
    assert (view.end_offset, view.has_open_end) == (13, False)
    assert numbers(cluster, view, 0, 13) == list(range(13))


def test_a_further_look_reads_no_metadata_that_it_knows(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(how_far, "LAST_SEEN_SECONDS", 600.0)
    with memory_rig.faults.installed(), Cluster(memory_rig.uri) as cluster:
        create_log(cluster)
        writer = opened(cluster)
        writer.append_many(table(0, 2))
        watch = LogWatch(cluster, LOG, NO_PASSWORD)
        ledger = cluster.ledgers.key(str(next(iter(watch.look().metadata))))
        writer.append_many(table(2, 2))
        before = len(memory_rig.faults.trace)
        assert watch.look().end_offset == 2
        calls = [one.call for one in memory_rig.faults.trace[before:] if one.name == ledger]
        assert calls == ["is_current"]
        writer.release()


def test_a_ledger_that_was_closed_is_asked_about_once(memory_rig: Rig) -> None:
    """However long the log's record still lists it as open."""
    with memory_rig.faults.installed(), Cluster(memory_rig.uri) as cluster:
        create_log(cluster)
        writer = opened(cluster)
        writer.append_many(table(0, 2))
        watch = LogWatch(cluster, LOG, NO_PASSWORD)
        assert watch.look().has_open_end
        writer._segment.handle.close()
        for asked in (True, False, False):
            before = len(memory_rig.faults.trace)
            view = watch.look()
            assert (view.end_offset, view.has_open_end) == (2, False)
            places = {one.place for one in memory_rig.faults.trace[before:]}
            assert (places > {METADATA}) == asked
        writer.release()


def test_the_last_entry_of_an_idle_writer_is_seen(cluster: Cluster) -> None:
    create_log(cluster)
    writer = opened(cluster, PROMPT)
    writer.append_many(table(0, 4))
    watch = LogWatch(cluster, LOG, NO_PASSWORD)
    for _ in range(2000):
        if watch.look().end_offset == 4:
            break
    assert watch.look().end_offset == 4
    writer.release()


def test_batches_and_a_tail_make_one_log(memory_rig: Rig, cluster: Cluster) -> None:
    memory_rig.write(partitions_of(3, 4))
    writer = opened(cluster)
    writer.append_many(table(7, 2))
    writer.append_many(table(9, 1))
    view = look(cluster)
    assert view.end_offset == 9
    assert numbers(cluster, view, 2, 9) == list(range(2, 9))
    log = cluster.log(LOG).value
    in_order = pa.concat_tables(read_view_in_order(cluster, view, 5, None, NO_PASSWORD))
    assert in_order["n"].to_pylist() == [5, 6, 7, 8]
    tasks = plan_log(cluster, log, OffsetRange(0, 9), NO_PASSWORD, 1)
    assert sum(piece.length_bytes > 0 for task in tasks for piece in task.slices) > 1
    writer.release()


def test_rb_44_nothing_of_the_second_ledger_is_seen_before_the_first_is_closed(
    cluster: Cluster,
) -> None:
    """The order of a roll: create, list, then close the one before."""
    create_log(cluster)
    writer = opened(cluster)
    writer.append_many(table(0, 3))
    log = cluster.log(LOG).value
    following = create_log_ledger(cluster, log, NO_PASSWORD)
    cluster.logs.update(
        LOG,
        lambda record: log.with_tail(following.seen.value, own=log.tail[0]),
    )
    second = by_hand(cluster, following)
    second.append_many(table(9, 2))
    second.append_many(table(11, 2))
    view = look(cluster)
    assert (view.end_offset, len(view.metadata)) == (0, 1)
    writer.append_many(table(3, 6))
    assert look(cluster).end_offset == 3
    writer._segment.handle.close()
    view = look(cluster)
    assert [ledger.entry_count for ledger in view.every_ledger()] == [9, 2]
    assert numbers(cluster, view, 2, 11) == list(range(2, 11))
    second.release()


def test_rb_39_an_old_version_of_the_log_still_gives_all_of_what_it_lists(
    cluster: Cluster,
) -> None:
    create_log(cluster)
    writer = opened(cluster)
    writer.append_many(table(0, 3))
    old = cluster.log(LOG).value
    writer.roll()
    writer.append_many(table(3, 3))
    writer.close()
    view = view_of(cluster, old, NO_PASSWORD)
    assert (view.end_offset, view.has_open_end) == (3, False)
    assert numbers(cluster, view, 0, 3) == [0, 1, 2]


def test_a_tail_that_is_deleted_between_two_look_ups_is_looked_up_anew(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_log(cluster)
    opened(cluster).release()
    watch = LogWatch(cluster, LOG, NO_PASSWORD)
    stale = cluster.log(LOG).value
    close_tail(cluster, LOG, NO_PASSWORD)  # drops the ledger, which is empty
    [gone] = stale.tail
    cluster.ledgers.update(str(gone), lambda ledger: ledger.deleting())  # type: ignore[union-attr]
    with pytest.raises(NoSuchLedgerError):
        view_of(cluster, stale, NO_PASSWORD)
    records = iter([stale])
    current = LogWatch._record
    monkeypatch.setattr(LogWatch, "_record", lambda self: next(records, None) or current(self))
    assert watch.look().record == cluster.log(LOG).value


def test_the_metadata_used_is_read_after_the_lac(
    memory_rig: Rig, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ensemble changes while a reader looks: new entries are not in the old one."""
    create_log(cluster, (3, 1, 1))
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        writer = opened(keeper._cluster)
        writer.append_many(table(0, 3))
        [ledger_id] = cluster.log(LOG).value.tail
        old = cluster.ledger(ledger_id).value.last_fragment.ensemble
        look_for = OpenBookies.ask

        def changing(*arguments: Any) -> Any:
            monkeypatch.setattr(OpenBookies, "ask", look_for)
            memory_rig.faults.down = {old[0].bookie_id}
            writer.append_many(table(3, 3))
            memory_rig.faults.forget()
            return look_for(*arguments)

        monkeypatch.setattr(OpenBookies, "ask", changing)
        found = look(cluster)
        monkeypatch.undo()
        writer.release()
    assert found.metadata[ledger_id].last_fragment.ensemble != old
    assert numbers(cluster, found, 0, found.end_offset) == list(range(found.end_offset))
    assert found.end_offset >= 3


def test_entries_in_front_of_the_last_fragment_are_confirmed_by_it(
    memory_rig: Rig, cluster: Cluster
) -> None:
    """Also if none of its members has a record yet."""
    create_log(cluster)
    writer = opened(cluster)
    writer.append_many(table(0, 4))
    [ledger_id] = cluster.log(LOG).value.tail
    writer.release()
    taken = {member.bookie_id for member in cluster.ledger(ledger_id).value.last_fragment.ensemble}
    others = [c.member for c in cluster.refresh_candidates() if c.member.bookie_id not in taken]

    def moved(ledger: Any) -> Any:
        return ledger.with_ensemble(4, tuple(others[:3]), term=ledger.term, token=ledger.token)

    addresses = cluster.addresses()
    ledger = cluster.ledger(ledger_id).value
    joining = Joining.last_writer(ledger, make_digester(ledger.settings.digest, NO_PASSWORD))
    places = {index: addresses[member] for index, member in enumerate(others[:3])}
    assert len(enlist(places, joining).bookie_ids) == 3
    cluster.ledgers.update(str(ledger_id), moved)
    assert look(cluster).end_offset == 4


# --- who answers ---------------------------------------------------------------------------------


def lagging(memory_rig: Rig, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An open tail of which two bookies have entries 0 to 3, and the first one only 0 and 1."""
    monkeypatch.setattr(how_far, "PAUSES", (0.0, 0.0))
    create_log(cluster)
    writer = opened(cluster)
    writer.append_many(table(0, 2))
    [ledger_id] = cluster.log(LOG).value.tail
    ledger = cluster.ledger(ledger_id).value
    members = [member.bookie_id for member in ledger.last_fragment.ensemble]
    name = layout.journal(ledger_id, ledger.term, ledger.token)
    wait_for_all_copies(writer._segment.handle)
    behind = memory_rig.file_bytes(members[0], name)
    writer.append_many(table(2, 2))
    wait_for_all_copies(writer._segment.handle)
    writer.release()
    memory_rig.replace_file(members[0], name, behind)
    return members


def test_a_tail_is_never_shown_shorter_by_a_bookie_that_lags(
    memory_rig: Rig, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one client was shown, the next one is shown too, or told that it is not known."""
    members = lagging(memory_rig, cluster, monkeypatch)
    assert look(cluster).end_offset == 2
    with away(memory_rig, members[0]):
        assert look(cluster).end_offset == 2
    for missing in (members[1:], members[2:]):
        with away(memory_rig, *missing), pytest.raises(BookieUnavailableError) as error:
            look(cluster)
        assert "the last confirmed entry of ledger 0 is not known" in str(error.value)
        assert f"bookie {members[0]} says that nothing is confirmed" in str(error.value)
        assert all(f"bookie {name}: cannot open" in str(error.value) for name in missing)
    assert look(cluster).end_offset == 2


@pytest.mark.parametrize("unbounded", [False, True])
def test_where_the_end_is_not_known_it_says_what_a_recovery_does(
    unbounded: bool, memory_rig: Rig
) -> None:
    with BookKeeper(memory_rig.uri) as keeper:
        log = keeper.create_log(LOG, unbounded=unbounded)
        writer = log.writer()
        writer.append(b"a")
        writer.release()
        [ledger_id] = keeper._cluster.log(LOG).value.tail
        ensemble = memory_rig.ledger(ledger_id).last_fragment.ensemble
        with (
            away(memory_rig, *(member.bookie_id for member in ensemble[1:])),
            pytest.raises(BookieUnavailableError, match="is not known") as error,
        ):
            look(keeper._cluster)
        closes = (
            f"`bkspark ledger recover {ledger_id} --seal` also closes it"
            if unbounded
            else "a recovery fences its writer and closes it"
        )
        assert closes in str(error.value.hint)
        keeper.recover_ledger(ledger_id)
        assert look(keeper._cluster).has_open_end == unbounded
        keeper.recover_ledger(ledger_id, seal=True)
        assert not look(keeper._cluster).has_open_end


def test_what_is_known_to_be_confirmed_is_read_whoever_is_away(
    memory_rig: Rig, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = lagging(memory_rig, cluster, monkeypatch)
    with away(memory_rig, *members[:2]):
        view = look_at(cluster, LOG, NO_PASSWORD, enough=2)
        assert numbers(cluster, view, 0, 2) == [0, 1]
        with pytest.raises(BookieUnavailableError, match="is not known"):
            look_at(cluster, LOG, NO_PASSWORD, enough=3)


@contextmanager
def away(rig: Rig, *names: str) -> Iterator[None]:
    disks = {name: rig.lose(name) for name in names}
    yield
    for name, disk in disks.items():
        rig.bring_back(name, disk)


def test_if_no_bookie_answers_the_end_is_unknown_and_the_closed_part_is_read(
    memory_rig: Rig, cluster: Cluster
) -> None:
    memory_rig.write(partitions_of(6), (1, 1, 1))
    writer = opened(cluster)
    writer.append_many(table(6, 2))
    writer.release()
    log = cluster.log(LOG).value
    [place] = cluster.ledger(log.ledgers[0].ledger_id).value.last_fragment.ensemble
    [tail_ledger] = log.tail
    others = [c.member for c in cluster.refresh_candidates() if c.member != place]

    def moved(ledger: Any) -> Any:
        return ledger.with_ensemble(0, (others[0],), term=ledger.term, token=ledger.token)

    cluster.ledgers.update(str(tail_ledger), moved)
    memory_rig.lose(others[0].bookie_id)
    with pytest.raises(
        BookieUnavailableError, match="the last confirmed entry of ledger 1 is not known"
    ):
        look(cluster)
    reader = SliceReader(SCHEMA)
    tasks = plan_log(cluster, log, OffsetRange(0, 6), NO_PASSWORD, None)
    assert sum(batch.num_rows for task in tasks for batch in reader.read(task)) == 6


@pytest.mark.parametrize("closes", ["recovered", "open"])
def test_records_are_put_together_from_several_journals(
    closes: str, memory_rig: Rig, cluster: Cluster
) -> None:
    create_log(cluster)
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        writer = opened(keeper._cluster)
        writer.append_many(table(0, 4))
        [ledger_id] = cluster.log(LOG).value.tail
        failing = cluster.ledger(ledger_id).value.last_fragment.ensemble[1].bookie_id
        memory_rig.faults.down = {failing}
        for first in (4, 6, 8):
            writer.append_many(table(first, 2))
            handle = writer._segment.handle
            wait_until(lambda handle=handle: len(handle.metadata.fragments) > 1)
            wait_for_all_copies(handle)  # it is replaced before the last ones
        memory_rig.faults.forget()
        writer.release()
    if closes == "recovered":
        recover(cluster, ledger_id, NO_PASSWORD)
    view = look(cluster)
    assert view.end_offset == (10 if closes == "recovered" else 8)
    assert numbers(cluster, view, 0, view.end_offset) == list(range(view.end_offset))


# --- arithmetic ----------------------------------------------------------------------------------


def test_bytes_and_offsets(memory_rig: Rig, cluster: Cluster) -> None:
    memory_rig.write(partitions_of(10))
    memory_rig.write(partitions_of(20, first=10))
    view = look(cluster)
    total = view.bytes_in(0, 30)
    assert total == view.record.length_bytes
    assert view.bytes_in(0, 10) == next(view.every_ledger()).length_bytes
    assert view.bytes_in(5, 5) == view.bytes_in(30, 40) == 0
    assert 0 < view.bytes_in(9, 11) < view.bytes_in(5, 15) < total
    assert view.offset_after(0, total) == view.offset_after(29, 1) == 30
    assert view.offset_after(0, 1) == 1
    assert view.offset_after(12, view.bytes_in(12, 20)) in (19, 20)
    assert view.offset_after(4, view.bytes_in(4, 18)) in (17, 18)
    assert list(view.ledgers_in(10, 11)) == list(view.every_ledger())[1:2]
    assert list(view.ledgers_in(9, 10)) == list(view.every_ledger())[:1]


def test_an_end_that_is_known_from_elsewhere_reaches_only_into_the_open_ledger(
    memory_rig: Rig, cluster: Cluster
) -> None:
    memory_rig.write(partitions_of(6))
    closed = look(cluster)
    assert closed.confirmed_to(9) is closed
    writer = opened(cluster)
    writer.append_many(table(6, 4))
    view = look(cluster)
    assert view.end_offset == 6
    assert numbers(cluster, view.confirmed_to(10), 0, 10) == list(range(10))
    writer.append_many(table(10, 1))
    view = look(cluster)
    assert view.confirmed_to(9) is view
    assert numbers(cluster, view.confirmed_to(11), 5, 11) == list(range(5, 11))
    writer.release()
