"""Writers of a log that are interrupted, and others who act, at any of their operations."""

import threading
from collections.abc import Callable

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import (
    LedgerClosedError,
    OutcomeUnknownError,
)
from bkspark.log.log_handle import LogHandle
from bkspark.log.log_writer import LogWriter
from tests.integration.log_scenes import (
    NAME,
    SENT,
    SILENT,
    assert_sound,
    tell_story,
    values,
)
from tests.integration.rig import Rig
from tests.kit.faulty import Fault, Moment, Operation, fail_at
from tests.thorough import always

STEP = 9
"""A test of operations takes every third one, and another run of it the next."""


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


# --- a writer that is interrupted at any operation -------------------------------------------


def cut_off_at(number: int, moment: Moment) -> Callable[[int, Operation], Fault | None]:
    """As good as a crash: from one operation on, nothing reaches any storage."""

    def decide(now: int, _operation: Operation) -> Fault | None:
        if now < number:
            return None
        return Fault(moment if now == number else Moment.BEFORE)

    return decide


@pytest.mark.parametrize("first", always([0], range(STEP)))
@pytest.mark.parametrize(
    "moment", always([Moment.HALF], list(Moment)), ids=lambda moment: moment.name
)
def test_a_writer_cut_off_at_any_operation_loses_nothing_acknowledged(
    rig: Rig, keeper: BookKeeper, moment: Moment, first: int
) -> None:
    number, most = first, 0
    while True:
        name = f"log-{number}"
        log = keeper.create_log(name)
        with rig.faults.installed():
            mine = BookKeeper(rig.uri).open_log(name)
            rig.faults.forget()
            rig.faults.decide = cut_off_at(number, moment)
            acknowledged = tell_story(mine)
            is_over = len(rig.faults.trace) <= number
            rig.faults.forget()
        with log.writer() as writer:
            writer.append(b"last")
        found = values(log)
        most = max(most, len(acknowledged))
        assert found == [*SENT[: len(found) - 1], b"last"]
        assert all(found[offset] == value for offset, value in acknowledged.items())
        assert log.record.tail == ()
        if is_over:
            break
        number += STEP
    assert (most, len(acknowledged)) == (len(SENT), len(SENT))
    assert number > 60


@pytest.mark.thorough
@pytest.mark.parametrize(
    "moment", always([Moment.AFTER], [Moment.BEFORE, Moment.AFTER]), ids=lambda moment: moment.name
)
def test_a_writer_that_loses_one_answer_of_the_metadata_store_loses_nothing(
    rig: Rig, keeper: BookKeeper, moment: Moment
) -> None:
    number, whole = 0, 0
    while True:
        name = f"log-{number}"
        log = keeper.create_log(name)
        with rig.faults.installed():
            mine = BookKeeper(rig.uri).open_log(name)
            rig.faults.forget()
            rig.faults.decide = fail_at(number, moment)
            acknowledged = tell_story(mine)
            is_over = len(rig.faults.trace) <= number
            rig.faults.forget()
        with log.writer() as writer:
            writer.append(b"last")
        found = values(log)
        assert found == [*SENT[: len(found) - 1], b"last"]
        assert all(found[offset] == value for offset, value in acknowledged.items())
        whole += len(acknowledged) == len(SENT)
        if is_over:
            break
        number += 1
    assert whole > number // 4


# --- others who act at any operation ------------------------------------------------------------


class Others:
    """Would-be writers who come while a story is told: each opens the log and adds one entry.

    Attributes:
        acknowledged: what they were told, by offset.
    """

    def __init__(self, rig: Rig, log: LogHandle, at: dict[int, str]) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self._rig, self._log, self._at = rig, log, at
        self._writers: list[LogWriter] = []
        self._is_acting, self._is_over = threading.Lock(), False

    def decide(self, number: int, _operation: Operation) -> None:
        action = self._at.get(number)
        if action is not None and self._is_acting.acquire(blocking=False):
            try:
                if not self._is_over:
                    self._act(action)
            finally:
                self._is_acting.release()

    def _act(self, action: str) -> None:
        if action == "truncate":
            self._log.truncate(self._log.record.end_offset)
            return
        writer = self._log.writer(settings=SILENT)
        self._writers.append(writer)
        value = f"other {len(self._writers)}".encode()
        self.acknowledged[writer.append(value)] = value
        if action == "roll":
            writer.roll()

    def end(self) -> None:
        """Wait for an action that a lane of the story's writer still does; none begins after it."""
        with self._is_acting:
            self._is_over = True
        for writer in self._writers:
            writer.release()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "actions",
    always(
        [("open",)],
        [("open",), ("roll",), ("open", "open"), ("roll", "truncate"), ("truncate", "open")],
    ),
    ids="-".join,
)
def test_others_who_open_at_any_operation_break_no_promise(
    rig: Rig, keeper: BookKeeper, actions: tuple[str, ...]
) -> None:
    """Two and three leaders: after each story I8 holds, and every acknowledged entry is there.

    Every operation would take a minute or two; every second or third one is enough to be noticed.
    """
    number, displaced = 0, 0
    while True:
        name = f"log-{number}"
        log = keeper.create_log(name)
        with rig.faults.installed():
            mine = BookKeeper(rig.uri).open_log(name)
            rig.faults.forget()
            steps = {number + 7 * k: action for k, action in enumerate(actions)}
            others = Others(rig, log, steps)
            rig.faults.decide = others.decide
            acknowledged = tell_story(mine)
            is_over = len(rig.faults.trace) <= number
            rig.faults.forget()
        others.end()
        with log.writer() as writer:
            writer.append(b"last")
        first, found = log.first_offset, values(log)
        told = {**others.acknowledged, **acknowledged}
        assert len(told) == len(others.acknowledged) + len(acknowledged)
        assert len(set(found)) == len(found)
        for offset, value in told.items():
            assert offset < first or found[offset - first] == value
        assert_sound(log)
        displaced += len(acknowledged) < len(SENT)
        if is_over:
            break
        number += len(actions) + 1
    assert displaced or actions[0] == "truncate"
    assert number > 60


# --- races -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3])
def test_would_be_writers_who_race_never_share_an_offset(
    make_rig: Callable[..., Rig], count: int
) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    acknowledged: list[dict[int, bytes]] = [{} for _ in range(count)]
    with BookKeeper(rig.uri) as keeper:
        keeper.create_log(NAME)

    def compete(number: int) -> None:
        with BookKeeper(rig.uri) as own:
            log = own.open_log(NAME)
            for turn in range(6):
                try:
                    with log.writer(roll_entries=4) as writer:
                        for step in range(10):
                            value = f"{number}-{turn}-{step}".encode()
                            acknowledged[number][writer.append(value)] = value
                except (OutcomeUnknownError, LedgerClosedError):
                    continue

    threads = [threading.Thread(target=compete, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    with BookKeeper(rig.uri) as keeper:
        log = keeper.open_log(NAME)
        with log.writer():
            pass
        found = values(log)
        assert len(set(found)) == len(found)
        told = [pair for one in acknowledged for pair in one.items()]
        assert len({offset for offset, _ in told}) == len(told)
        assert all(found[offset] == value for offset, value in told)
        assert len(told) > 10
        assert log.record.tail == ()
        assert_sound(log)
