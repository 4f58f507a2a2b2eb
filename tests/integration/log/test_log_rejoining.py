"""A ledger that others have settled, dropped and deleted does not come back to a log's list.

Its maker may not know whether it was ever on the list: the answer of its compare-and-set was lost,
and it could not look. When it can, nothing of the ledger is left on the list (RB-20b, RB-27).
"""

from collections.abc import Callable

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.format import layout
from tests.integration.log_scenes import NAME, SILENT, assert_sound, fill, values
from tests.integration.rig import Rig
from tests.kit.faulty import METADATA, DecideOperation, Fault, Moment, Operation, no_fault


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


def once(rig: Rig, call: str, then: Callable[[], Fault | None]) -> DecideOperation:
    """At the next ``call`` of the list, whoever makes it, no more faults but what ``then`` says."""

    def decide(_number: int, operation: Operation) -> Fault | None:
        if operation != Operation(METADATA, call, layout.log_key(NAME)):
            return None
        rig.faults.decide = no_fault
        return then()

    return decide


def lose_sight_of_the_list(rig: Rig, meanwhile: Callable[[], None]) -> DecideOperation:
    """The answer of a compare-and-set is lost, the look at it fails, then there is time."""

    def lose_answer() -> Fault:
        rig.faults.decide = once(rig, "get", lose_look)
        return Fault(Moment.AFTER)

    def lose_look() -> Fault:
        rig.faults.decide = once(rig, "get", meanwhile)  # type: ignore[arg-type]
        return Fault()

    return once(rig, "put", lose_answer)


@pytest.mark.parametrize("is_deleted", [True, False])
def test_rb_20b_a_ledger_that_others_have_dropped_does_not_join_again(
    rig: Rig, keeper: BookKeeper, is_deleted: bool
) -> None:
    log = keeper.create_log(NAME)
    written = fill(log, 2, 2)

    def another_opens() -> None:
        with log.writer(settings=SILENT):
            """It settles the ledger, which is empty, so it is dropped."""

    def others() -> None:
        if is_deleted:  # by a truncation that has seen it on the list
            rig.faults.decide = once(rig, "put", another_opens)
            BookKeeper(rig.uri).open_log(NAME).truncate(2)
        else:
            another_opens()

    with rig.faults.installed():
        mine = BookKeeper(rig.uri).open_log(NAME)
        rig.faults.decide = lose_sight_of_the_list(rig, others)
        with mine.writer(settings=SILENT) as writer:
            assert writer.append(b"mine") == 4
            assert_sound(log)
    with log.writer(settings=SILENT) as writer:
        assert writer.append(b"next") == 5
    assert values(log) == [*written[2 if is_deleted else 0 :], b"mine", b"next"]
    assert_sound(log)
