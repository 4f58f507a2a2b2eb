"""Several would-be writers of one log: whatever happens, one history, and nothing acked is lost.

The cases are those of logs of ledgers in the list of bugs that other systems had: RB-20, 20b, 21,
35, 39 and 44. After each of them the whole log is looked at (I8).
"""

import threading
import time
from collections.abc import Callable

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import (
    BookKeeperError,
    InvalidTermError,
    LedgerClosedError,
    LedgerFencedError,
    OutcomeUnknownError,
)
from bkspark.format import layout
from bkspark.log import tail
from bkspark.log.log_writer import LogWriter
from tests.integration.log_scenes import (
    NAME,
    SILENT,
    assert_sound,
    held_writer,
    journal_of,
    open_ledgers,
    values,
)
from tests.integration.rig import Rig
from tests.kit.faulty import METADATA, Fault, Moment, Operation


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


# --- RB-20: the last two are fenced ----------------------------------------------------------


def test_rb_20_a_writer_that_rolls_cannot_acknowledge_in_the_ledger_before(
    rig: Rig, keeper: BookKeeper
) -> None:
    with held_writer(rig) as (writer, held):
        assert writer.append(b"a") == 0
        held.hold()
        late = writer.append_async(b"late")
        held.wait_for(3)
        rolled: list[BookKeeperError] = []

        def roll() -> None:
            try:
                writer.roll()
            except BookKeeperError as error:
                rolled.append(error)

        thread = threading.Thread(target=roll)
        thread.start()
        log = keeper.open_log(NAME)
        while len(log.record.tail) < 2 or writer._waiting is None:
            pass
        following = writer.append_async(b"following")
        with log.writer() as other:
            held.let_go()
            assert isinstance(late.exception(60), LedgerFencedError)
            assert isinstance(following.exception(60), LedgerClosedError)  # surely not written
            thread.join(60)
            assert isinstance(rolled[0], LedgerFencedError)
            with pytest.raises(LedgerFencedError, match="so this call sent nothing"):
                writer.append(b"later")
            assert other.append(b"b") == 1
        assert values(log) == [b"a", b"b"]
        assert_sound(log)


def test_rb_20_a_roll_lists_the_next_before_it_closes_the_last(
    rig: Rig, keeper: BookKeeper
) -> None:
    with rig.faults.installed():
        log = BookKeeper(rig.uri).create_log(NAME)
        writer = log.writer(settings=SILENT)
        writer.append(b"a")
        old = writer.ledger_id
        rig.faults.forget()
        writer.roll()
        puts = [op.name for op in rig.faults.trace if op.call == "put"]
    new = writer.ledger_id
    keys = [layout.ledger_key(new), layout.log_key(NAME), layout.ledger_key(old)]
    assert puts[-4:] == [*keys, layout.log_key(NAME)]
    writer.close()


def test_rb_20_nobody_writes_before_the_list_names_the_ledger(rig: Rig) -> None:
    with rig.faults.installed():
        log = BookKeeper(rig.uri).create_log(NAME)
        rig.faults.forget()
        with log.writer(settings=SILENT) as writer:
            writer.append(b"a")
        trace = list(rig.faults.trace)
    listed = min(n for n, op in enumerate(trace) if (op.call, op.name) == ("put", f"logs/{NAME}"))
    assert listed < min(n for n, op in enumerate(trace) if op.call == "append")


def test_a_writer_that_was_overtaken_puts_no_ledger_behind_its_successors(
    rig: Rig, keeper: BookKeeper
) -> None:
    """The two go on in one ledger, so the list is the same to both."""
    log = keeper.create_log(NAME, unbounded=True)
    old = log.writer(settings=SILENT)
    old.append(b"a")
    new = log.writer(settings=SILENT)
    before = log.record.tail
    with pytest.raises(InvalidTermError):
        old._tail.roll(old._segment.handle.metadata)
    assert log.record.tail == before
    new.append(b"b")
    new.close()
    old.release()
    assert values(log) == [b"a", b"b"]


# --- RB-20b: the list has changed ------------------------------------------------------------


def at_list_cas(rig: Rig, act: Callable[[], None]) -> None:
    """Once, just before the next compare-and-set of the list, somebody else does something."""

    def decide(_number: int, operation: Operation) -> None:
        if (operation.call, operation.name) == ("put", layout.log_key(NAME)):
            rig.faults.decide = lambda _number, _operation: None
            act()

    rig.faults.decide = decide


def test_rb_20b_who_loses_the_list_starts_again_and_leaves_no_orphan(
    rig: Rig, keeper: BookKeeper
) -> None:
    log = keeper.create_log(NAME)
    others: list[LogWriter] = []

    def other_opens() -> None:
        others.append(log.writer(settings=SILENT))
        assert others[0].append(b"other") == 0

    with rig.faults.installed():
        mine = BookKeeper(rig.uri).open_log(NAME)
        at_list_cas(rig, other_opens)
        writer = mine.writer(settings=SILENT)
        with pytest.raises(LedgerFencedError, match="undecided"):
            others[0].append(b"lost")
        assert writer.append(b"mine") == 1
    assert_sound(log)
    assert log.record.tail == (writer.ledger_id,)
    writer.close()
    others[0].release()
    assert values(log) == [b"other", b"mine"]


def test_rb_20b_who_gives_up_leaves_no_orphan_either(rig: Rig, keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    with rig.faults.installed():
        at_list_cas(rig, log.seal)
        with pytest.raises(LedgerClosedError, match="sealed"):
            BookKeeper(rig.uri).open_log(NAME).writer()
    assert open_ledgers(rig.uri) == set()
    assert (log.record.tail, log.record.dropped.ids, log.record.dropped.to_delete) == ((), (), ())


def test_rb_20b_duelling_openers_end_by_an_error(
    rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = keeper.create_log(NAME)
    monkeypatch.setattr(tail, "TRIES_MAX", 3)

    changes = iter(range(1, 4))

    def decide(_number: int, operation: Operation) -> None:
        if (operation.call, operation.name) == ("put", layout.log_key(NAME)):
            for number in changes:
                log.keep(max_bytes=number)
                break

    with rig.faults.installed():
        mine = BookKeeper(rig.uri).open_log(NAME)
        rig.faults.decide = decide
        with pytest.raises(BookKeeperError, match="in each attempt"):
            mine.writer()
        rig.faults.forget()
    assert open_ledgers(rig.uri) == set()


def test_rb_27_a_lost_answer_of_the_list_does_not_fence_oneself(
    rig: Rig, keeper: BookKeeper
) -> None:
    """The put is done, its answer and the read-back are lost: the next look finds the ledger."""
    keeper.create_log(NAME)
    with rig.faults.installed():
        mine = BookKeeper(rig.uri).open_log(NAME)
        lost = 0

        def decide(_number: int, operation: Operation) -> Fault | None:
            nonlocal lost
            if operation.name == layout.log_key(NAME) and operation.call == "put":
                lost = 2
            if operation.name == layout.log_key(NAME) and lost:
                lost -= 1
                return Fault(Moment.AFTER)
            return None

        rig.faults.decide = decide
        writer = mine.writer(settings=SILENT)
        assert [op.call for op in rig.faults.trace].count("put") == 3  # id, ledger, list
        rig.faults.forget()
        assert writer.append(b"a") == 0
        writer.close()
    assert values(mine) == [b"a"]
    assert_sound(mine)


# --- RB-21, RB-39, RB-44 ---------------------------------------------------------------------


def test_rb_21_a_writer_that_dies_before_its_first_entry_stops_nobody(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    for _ in range(3):
        log.writer().release()
    with log.writer() as writer:
        assert writer.append(b"a") == 0
    assert len(log.record.ledgers) == 1
    assert values(log) == [b"a"]
    assert_sound(log)


def test_rb_39_a_reader_skips_nothing_at_any_moment_of_a_roll(rig: Rig, keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    seen: list[list[bytes]] = [[]]
    looks = [False]

    def look(_number: int, operation: Operation) -> None:
        name = threading.current_thread().name  # not a bookie's, nor that of who acknowledges
        is_own = operation.place == METADATA and name == "ask-metadata-store"
        if is_own and not looks[0]:
            looks[0] = True
            seen.append(values(log))
            looks[0] = False

    with rig.faults.installed():
        writer = BookKeeper(rig.uri).open_log(NAME).writer(settings=SILENT)
        rig.faults.decide = look
        for number in range(6):
            writer.append(str(number).encode())
            if number % 2:
                writer.roll()
        writer.close()
        rig.faults.forget()
    for before, after in zip(seen, seen[1:]):
        assert after[: len(before)] == before
    assert seen[-1] == values(log) == [str(number).encode() for number in range(6)]
    assert len(seen) > 20


def test_rb_44_reading_does_not_fence_ones_own_writer(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    with log.writer() as writer:
        for number in range(5):
            assert writer.append(b"x") == number
            list(log.read())
            assert len(log.ledgers) == 1


def test_rb_44_the_tail_of_the_one_before_is_recovered_whole(rig: Rig, keeper: BookKeeper) -> None:
    """Entries acknowledged in both ledgers of a roll that was never finished are all there."""
    log = keeper.create_log(NAME)
    with rig.faults.installed():
        cut_off = BookKeeper(rig.uri).open_log(NAME)
        writer = cut_off.writer(settings=SILENT)
        for number in range(4):
            writer.append(str(number).encode())
        closing = layout.ledger_key(writer.ledger_id)
        rig.faults.decide = lambda _number, op: (
            Fault() if (op.call, op.name) == ("put", closing) else None
        )
        with pytest.raises(OutcomeUnknownError):
            writer.roll()
        rig.faults.forget()
    assert len(log.record.tail) == 2
    with log.writer() as other:
        assert other.append(b"4") == 4
    assert values(log) == [str(number).encode() for number in range(5)]
    assert_sound(log)


# --- RB-35: fenced is not "not written" ------------------------------------------------------


@pytest.mark.parametrize("copies", [0, 1, 2])
def test_rb_35_what_is_undecided_is_said_and_resolved(
    rig: Rig, keeper: BookKeeper, copies: int
) -> None:
    with held_writer(rig) as (writer, held):
        assert writer.append(b"a") == 0
        held.hold(*sorted(rig.urls)[:copies])
        late = writer.append_async(b"late")
        if copies < 2:
            held.wait_for(3 - copies)
            _wait_for_copies(rig, writer, copies)
            log = keeper.open_log(NAME)
            with log.writer() as other:
                held.let_go()
                error = late.exception(60)
                assert isinstance(error, LedgerFencedError)
                assert "offset 1 is undecided" in str(error)
                undecided = writer.undecided
                assert undecided is not None
                assert (undecided.first_offset, undecided.entry_count) == (1, 1)
                found = log.resolve_outcome(undecided)
                assert found == (range(1, 2) if copies else range(1, 1))
                assert other.append(b"b") == 1 + copies
            assert values(log) == [b"a", *[b"late"] * copies, b"b"]
        else:
            assert late.result(60) == 1
            assert writer.undecided is None


def _wait_for_copies(rig: Rig, writer: LogWriter, copies: int) -> None:
    """Until the bookies that are not held have the second record."""
    name = journal_of(writer)
    for bookie in sorted(rig.urls)[:copies]:
        while b"late" not in _bytes_so_far(rig, bookie, name):
            time.sleep(0.005)


def _bytes_so_far(rig: Rig, bookie: str, name: str) -> bytes:
    try:
        return rig.file_bytes(bookie, name)
    except (KeyError, FileNotFoundError):  # the first record was acknowledged without this bookie
        return b""


def test_a_displaced_writer_ends_for_good(rig: Rig, keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    first = log.writer(settings=SILENT)
    first.append(b"a")
    second = log.writer(settings=SILENT)
    with pytest.raises(LedgerFencedError):
        first.append(b"b")
    for again in (lambda: first.append(b"c"), first.roll, first.close):
        with pytest.raises((LedgerFencedError, LedgerClosedError)):
            again()
    assert second.append(b"d") == 1
    second.close()
    assert values(log) == [b"a", b"d"]
