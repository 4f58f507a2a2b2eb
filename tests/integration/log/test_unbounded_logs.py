"""Logs that are one ledger, which changes hands."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Any

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    InvalidTermError,
    LedgerExistsError,
    NotEnoughBookiesError,
    UnauthorizedError,
)
from bkspark.format import layout
from bkspark.ledger.creating import CreatedLedger
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log import tail
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch import preparing as batch_plan
from bkspark.log.log_handle import LogEntry, LogHandle
from bkspark.log.log_writer import LogWriter
from bkspark.log.streams import micro_batch as stream_plan
from tests.integration.log_scenes import (
    NAME,
    SILENT,
    one_ledger,
    open_ledgers,
    unbounded,
    values,
)
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import Driver, the_log
from tests.integration.waiting import wait_until


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


# --- made unbounded ------------------------------------------------------------------------------


def test_a_data_frame_makes_it_where_there_is_none(memory_rig: Rig) -> None:
    memory_rig.write(partitions_of(3), is_unbounded=True)
    memory_rig.write(partitions_of(3))
    memory_rig.write(partitions_of(3), is_unbounded=True, is_overwrite=True)
    assert the_log(memory_rig).is_unbounded
    with pytest.raises(InvalidRequestError, match="not chained"):
        memory_rig.target(is_unbounded=False)


def test_a_stream_makes_it_where_there_is_none(memory_rig: Rig) -> None:
    driver = Driver(memory_rig, options={"is_unbounded": True})
    assert driver.commit(driver.planned(0))
    assert the_log(memory_rig).is_unbounded


def test_a_log_that_is_there_stays_what_it_is(memory_rig: Rig) -> None:
    """It is refused before a row is written; and at the end, if it was made in between."""
    late = memory_rig.target(is_unbounded=True)
    memory_rig.write(partitions_of(3))
    before = the_log(memory_rig)
    for prepare in (batch_plan.prepare, stream_plan.prepare):
        with pytest.raises(InvalidRequestError, match="not unbounded") as refused:
            prepare(memory_rig.request(is_unbounded=True))
        assert "bkspark log convert" in refused.value.hint
    with pytest.raises(InvalidRequestError, match="not unbounded"):
        batch_commit.commit(late, memory_rig.tasks(late, partitions_of(3)))
    assert the_log(memory_rig) == before


def test_who_creates_one_where_a_chained_one_is_is_told_how_to_convert(keeper: BookKeeper) -> None:
    before = keeper.create_log(NAME).record
    with pytest.raises(LedgerExistsError, match=f"bkspark log convert {NAME} --unbounded"):
        unbounded(keeper)
    assert keeper.open_log(NAME).record == before
    keeper.create_log("other", unbounded=True)
    for is_unbounded in (False, True):
        with pytest.raises(LedgerExistsError) as refused:
            keeper.create_log("other", unbounded=is_unbounded)
        assert "convert" not in refused.value.hint


# --- writers -------------------------------------------------------------------------------------


def test_writers_take_turns_in_one_ledger(keeper: BookKeeper) -> None:
    log = unbounded(keeper)
    for number in range(4):
        with log.writer(settings=SILENT) as writer:
            assert writer.append(b"%d" % (2 * number)) == 2 * number
            assert writer.append(b"%d" % (2 * number + 1)) == writer.end_offset - 1
        assert values(log) == [b"%d" % n for n in range(2 * number + 2)]
        one_ledger(log)
    assert len(one_ledger(log).fragments) == 4
    assert open_ledgers(keeper._cluster.uri) == set(log.record.tail)


def test_readers_see_all_that_is_acknowledged_once_its_writer_is_closed(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """Nobody closes the ledger then, and perhaps nobody ever writes again."""
    log = unbounded(keeper)
    with log.writer(settings=SILENT) as writer:
        writer.append(b"a")
        assert log.end_offset == 0
    assert values(log) == [b"a"]


def test_a_writer_that_never_added_anything_leaves_nothing(keeper: BookKeeper) -> None:
    log = unbounded(keeper)
    for _ in range(3):
        log.writer().close()
    with log.writer() as writer:
        assert writer.append(b"a") == 0
    assert [one.first_entry_id for one in one_ledger(log).fragments] == [0]


def test_limits_are_those_of_a_fragment_and_the_log_stays_one_ledger(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    log = unbounded(keeper)
    with log.writer(roll_entries=2) as writer:
        for number in range(6):
            assert writer.append(b"%d" % number) == number
            if number == 2:
                writer.roll()
            if writer._roll_task is not None:
                writer._roll_task.join()
    fragments = one_ledger(log).fragments
    assert {one.owner for one in fragments} == {1}
    assert [one.first_entry_id for one in fragments] == [0, 2, 3, 5]
    assert writer.roll_error is None


@pytest.mark.parametrize("is_unbounded", [True, False])
def test_a_roll_that_is_due_is_spared_where_one_was_asked_for_meanwhile(
    memory_rig: Rig, keeper: BookKeeper, is_unbounded: bool
) -> None:
    log = keeper.create_log("wal", unbounded=is_unbounded)
    with log.writer(roll_bytes=10) as writer:
        with writer._rolling:
            writer.append(b"x" * 10)  # the roll is due, and waits
            writer.roll()
            writer.append(b"y")
        assert writer._roll_task is not None
        writer._roll_task.join()
        writer.append(b"z")
    assert len(log.fragments if is_unbounded else log.ledgers) == 2


def test_a_fragment_that_finds_no_bookies_leaves_the_writer_at_work(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(bookie_count=3)
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        log = unbounded(keeper, strict=True)
        with log.writer(settings=WriterSettings(is_change_delayed=True)) as writer:
            writer.append(b"a")
            rig.faults.down = {"bookie-3"}
            writer.append(b"b")
            wait_until(lambda: writer.faults)
            with pytest.raises(NotEnoughBookiesError, match="no new fragment was begun"):
                writer.roll()
            assert writer.append(b"c") == 2
            assert len(one_ledger(log).fragments) == 1
            rig.faults.forget()
        assert (log.record.tail, values(log)) == ((), [b"a", b"b", b"c"])  # closed, to be repaired


def test_a_fenced_writer_begins_no_fragment(keeper: BookKeeper) -> None:
    log = unbounded(keeper)
    first = log.writer(settings=SILENT)
    first.append(b"a")
    with log.writer(settings=SILENT) as second:
        second.append(b"b")
        before = one_ledger(log)
        with pytest.raises(InvalidTermError):
            first.roll()
        assert one_ledger(log) == before
        second.append(b"c")
    first.release()


def test_a_wrong_password_fences_nobody(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME, unbounded=True, digest_type="MAC", password="sesame")
    with log.writer() as writer:
        writer.append(b"a")
        before = one_ledger(log)
        with pytest.raises(UnauthorizedError):
            LogHandle(log._cluster, NAME, Password(literal="wrong")).writer()
        assert one_ledger(log) == before
        writer.append(b"b")


@pytest.mark.parametrize("password", ["wrong", ""])
def test_a_wrong_password_takes_over_nothing_that_rests(
    memory_rig: Rig, keeper: BookKeeper, password: str
) -> None:
    """Neither records and their versions are others afterwards, nor a bookie's files."""
    log = keeper.create_log(NAME, unbounded=True, digest_type="MAC", password="sesame")
    other = LogHandle(log._cluster, NAME, Password(literal=password))

    def seen() -> list[object]:
        ids = log.record.tail
        records = [log._cluster.log(layout.log_name(NAME)), *map(log._cluster.ledger, ids)]
        return [*records, [memory_rig.names(one) for one in memory_rig.urls]]

    for _ in range(2):  # before it has a ledger, and with one
        before = seen()
        with pytest.raises(UnauthorizedError):
            other.writer()
        assert seen() == before
        with log.writer() as writer:
            writer.append(b"a")
        assert seen() != before


@pytest.mark.parametrize("limit", [0, -1, math.nan, -math.inf, True, "9"])
@pytest.mark.parametrize("name", ["roll_bytes", "roll_entries", "roll_seconds"])
def test_a_fragment_s_limit_that_is_impossible_takes_over_nothing(
    keeper: BookKeeper, name: str, limit: Any
) -> None:
    log = unbounded(keeper)
    log.writer().close()
    before = one_ledger(log)
    with pytest.raises(InvalidRequestError, match=name):
        log.writer(**{name: limit})
    assert one_ledger(log) == before


@pytest.mark.parametrize("first_add", [False, True])
def test_several_at_once_make_one_ledger(keeper: BookKeeper, first_add: bool) -> None:
    """Also where there is none yet: who comes second goes on in the first one's."""
    log, errors = unbounded(keeper), list[BookKeeperError]()
    if first_add:
        with log.writer() as writer:
            writer.append(b"-1")
    together = threading.Barrier(3)

    def write(number: int) -> None:
        together.wait()
        try:
            with log.writer(settings=SILENT) as writer:
                writer.append(b"%d" % number)
        except BookKeeperError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(isinstance(error, InvalidTermError) for error in errors)
    with log.writer() as last:
        last.append(b"last")
    found = values(log)
    one_ledger(log)
    assert len(found) == len(set(found)) >= 4 + first_add - len(errors)
    assert open_ledgers(keeper._cluster.uri) == set(log.record.tail)


def test_who_finds_the_first_ones_ledger_on_the_list_goes_on_in_it(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He has made one of his own by then, and drops it."""
    log, real = unbounded(keeper), tail.create_log_ledger
    rivals: list[LogWriter] = []

    def made(*args: Any, **kwargs: Any) -> CreatedLedger:
        created = real(*args, **kwargs)
        if not rivals:
            rivals.append(None)  # type: ignore[arg-type]
            rivals[0] = log.writer(settings=SILENT)
            rivals[0].append(b"rival")
        return created

    monkeypatch.setattr(tail, "create_log_ledger", made)
    with log.writer() as writer:
        assert open_ledgers(keeper._cluster.uri) == {one_ledger(log).ledger_id}
        assert writer.append(b"mine") == 1
    assert writer.ledger_id == rivals[0].ledger_id
    rivals[0].release()


def test_a_takeover_that_finds_too_few_bookies_is_gone_on_with_later(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    log = unbounded(keeper, ack_quorum_size=1)
    with log.writer() as writer:
        writer.append(b"a")
    memory_rig.faults.down = set(sorted(memory_rig.urls)[2:])
    with pytest.raises(NotEnoughBookiesError):
        log.writer()
    memory_rig.faults.forget()
    with log.writer() as writer:
        assert writer.append(b"b") == 1
    assert values(log) == [b"a", b"b"]
    one_ledger(log)


# --- fragments, and reading over takeovers -------------------------------------------------------


def test_fragments_say_whose_entries_lie_where(memory_rig: Rig, keeper: BookKeeper) -> None:
    log = unbounded(keeper)
    assert log.fragments == []
    for number in range(3):
        with log.writer() as writer:
            writer.append_many([b"%d" % number] * 2)
            if number == 1:
                writer.roll()
                writer.append(b"rolled")
    found = log.fragments
    stored = one_ledger(log).fragments
    assert [one.first_offset for one in found] == [0, 2, 4, 5]
    assert (
        [one.term for one in found] == [f.owner for f in stored] == sorted(f.term for f in stored)
    )
    assert found[1].term == found[2].term
    ids = [tuple(m.bookie_id for m in f.ensemble) for f in stored]
    assert [one.ensemble for one in found] == ids
    log.seal()
    assert log.fragments == found


def test_a_fragment_that_a_recovery_moved_keeps_its_term(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """Its entries are of the writer who died, on bookies that the recovery has chosen."""
    log = keeper.create_log(NAME, unbounded=True, guarantees_write_quorum=True)
    log.writer().close()
    with log.writer(settings=SILENT) as other:
        other.append(b"b")
        gone = log.fragments[-1].ensemble[0]
        memory_rig.faults.down = {gone}
        log.seal()
    memory_rig.faults.forget()
    [moved] = log.fragments
    assert moved.term == other._segment.handle.metadata.term
    assert gone not in moved.ensemble


def test_fragments_of_a_log_of_several_ledgers_begin_at_their_offsets(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    with log.writer() as writer:
        for _ in range(3):
            writer.append_many([b"a", b"b"])
            writer.roll()
    log.truncate(3)
    assert [one.first_offset for one in log.fragments] == [2, 4]
    with log.writer() as writer:
        assert [one.first_offset for one in log.fragments] == [2, 4, 6]
        assert log.fragments[-1].ledger_id == writer.ledger_id


def test_who_follows_it_is_given_each_entry_once_over_takeovers_and_rolls(
    keeper: BookKeeper,
) -> None:
    log, count = unbounded(keeper), 24
    given: list[LogEntry] = []

    def follow() -> None:
        given.extend(islice(log.follow(), count))

    reader = threading.Thread(target=follow)
    reader.start()
    with ExitStack() as abandoned:
        for number in range(count // 4):
            writer = log.writer(settings=SILENT)
            for inner in range(4):
                writer.append(b"%d" % (4 * number + inner))
                if inner == number % 4:
                    writer.roll()
            abandoned.callback(writer.release)
    reader.join(60)
    assert given == [LogEntry(n, b"%d" % n) for n in range(count)]


def test_a_cursor_keeps_its_place_over_takeovers(keeper: BookKeeper) -> None:
    log = unbounded(keeper)
    with log.writer() as writer:
        writer.append_many([b"a", b"b"])
    cursor = log.cursor("reader")
    cursor.advance(1)
    with log.writer() as writer:
        writer.append(b"c")
    again = log.cursor("reader")
    assert again.offset == 1
    assert [entry.value for entry in log.read(again.offset)] == [b"b", b"c"]
