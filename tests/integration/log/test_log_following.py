"""What a reader is given of a log when it knows more, or less, than it did a moment before.

Both were found by the simulation of logs.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.log.rolling import RollPolicy
from tests.integration.log_scenes import NAME, SILENT
from tests.integration.rig import Rig
from tests.integration.stream_driver import Driver, expected, settled_rows
from tests.integration.waiting import wait_for_all_copies
from tests.kit.faulty import METADATA, Fault, Moment, Operation, no_fault


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


@pytest.fixture
def keeper(rig: Rig) -> Iterator[BookKeeper]:
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        yield keeper


def test_rb_39_a_follower_skips_nothing_when_who_knew_the_end_is_away(
    rig: Rig, keeper: BookKeeper
) -> None:
    log = keeper.create_log(NAME)
    looks: Counter[str] = Counter()

    def away_after_a_look(_number: int, operation: Operation) -> Fault | None:
        if operation.call == "list" and operation.place != METADATA:
            looks[operation.place] += 1
            if looks[operation.place] > 1:
                rig.faults.down = {"bookie-1", "bookie-2"}
        return None

    with log.writer(settings=SILENT) as writer:
        assert [writer.append(value) for value in (b"a", b"b")] == [0, 1]
        wait_for_all_copies(writer._segment.handle)
        rig.faults.down = {"bookie-3"}
        assert writer.append(b"c") == 2  # says on two bookies that b is confirmed
        wait_for_all_copies(writer._segment.handle)
        rig.faults.down = set()
        rig.faults.decide = away_after_a_look
        entries = log.follow(timeout=1)
        given = [next(entries), next(entries)]
        rig.faults.forget()
    given += entries
    assert [(entry.offset, entry.value) for entry in given] == list(enumerate([b"a", b"b", b"c"]))


def test_a_record_that_is_torn_behind_the_end_hides_nothing_in_front_of_it(rig: Rig) -> None:
    appends: Counter[str] = Counter()

    def torn_confirmation(_number: int, operation: Operation) -> Fault | None:
        if operation.call != "append":
            return None
        appends[operation.place] += 1
        return Fault(Moment.HALF) if appends[operation.place] == 2 else None

    with rig.faults.installed():
        driver = Driver(rig, limits=RollPolicy(max_records=1))
        rig.faults.decide = torn_confirmation
        assert driver.run(0) == [True]
        rig.faults.decide = no_fault
    assert set(appends.values()) == {2}
    assert settled_rows(rig) == expected(0)
