"""A bookie that can be read and not be written to cannot be fenced: what it shows counts, what it
lacks does not, and an operator may declare it lost where it is."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bkspark.admin.absent_bookies import declare_lost
from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from tests.integration.hand_writer import HandWriter, one_by_one, violations
from tests.integration.rig import Rig
from tests.kit.faulty import Fault, Operation

WRITES = {"put_new", "create", "open_journal", "append", "delete"}


@contextmanager
def read_only(rig: Rig, names: Collection[str]) -> Iterator[None]:
    def decide(_number: int, operation: Operation) -> Fault | None:
        is_refused = operation.place in names and operation.call in WRITES
        return Fault() if is_refused else None

    with rig.faults.installed():
        rig.faults.decide = decide
        yield
        rig.faults.forget()


@contextmanager
def taking_no_fence(rig: Rig, name: str, times: int = 99) -> Iterator[list[str]]:
    """Bookie ``name`` takes everything else; what it refused."""
    refused: list[str] = []

    def decide(_number: int, operation: Operation) -> Fault | None:
        is_fence = operation.call == "put_new" and "/terms/" in operation.name
        if operation.place != name or not is_fence or len(refused) == times:
            return None
        refused.append(operation.name)
        return Fault()

    with rig.faults.installed():
        rig.faults.decide = decide
        yield refused
        rig.faults.forget()


def stuck(writer: HandWriter, **options: Any) -> NotEnoughBookiesError:
    with pytest.raises(NotEnoughBookiesError) as caught:
        writer.recover(**options)
    return caught.value


def test_what_it_shows_counts(memory_rig: Rig) -> None:
    """Entry 0 has its ack from bookies 0 and 1; 1 is away, 0 shows it and takes no copy."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    with read_only(memory_rig, writer.names[:1]):
        error = stuck(writer, run=one_by_one(lost=writer.names[1:2]))
        assert "entry 1 is in doubt" in str(error)
        assert writer.recover().last_entry_id == 0
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_what_it_lacks_is_no_absence_while_its_writer_may_still_write_there(
    memory_rig: Rig,
) -> None:
    writer = HandWriter(memory_rig, looks=False)
    writer.add(0)
    with read_only(memory_rig, writer.names[1:2]):
        error = stuck(writer, run=one_by_one(lost=writer.names[:1]), accepts_loss=lambda _: True)
    assert f"bookie {writer.names[1]} cannot be fenced" in str(error)
    writer.put(0, 1)
    writer.acknowledge()
    assert writer.acked == [0]
    assert writer.recover().last_entry_id == 0
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


@pytest.mark.parametrize("times", [1, 99])
def test_who_takes_copies_and_no_fence_holds_up_nobody(memory_rig: Rig, times: int) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    with taking_no_fence(memory_rig, writer.names[2], times) as refused:
        assert writer.recover().last_entry_id == 0
    assert refused
    assert memory_rig.ledger(writer.ledger_id).term == 2
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_it_can_be_declared_lost_where_it_is(memory_rig: Rig) -> None:
    """Beside it one is gone for good, so that nobody else can tell what came behind entry 0."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    first, second = writer.names[:2]
    with pytest.raises(InvalidRequestError, match="is not lost: it answers"):
        declare_lost(writer.cluster, first)
    before = memory_rig.names(first)
    memory_rig.lose(second)
    declare_lost(writer.cluster, second)
    with read_only(memory_rig, [first]):
        error = stuck(writer, accepts_loss=lambda _: True)
        assert f"make {first} writable again" in error.hint
        assert f"`bkspark bookie lost {first}`" in error.hint
        declare_lost(writer.cluster, first)
        assert "--accept-loss" in stuck(writer).hint
        report = writer.recover(accepts_loss=lambda _: True)
    assert memory_rig.names(first) == before
    assert (report.last_entry_id, report.kept, report.lost_from) == (0, 1, 1)
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_it_can_be_declared_lost_before_anybody_recovers(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    with read_only(memory_rig, writer.names[:1]):
        declare_lost(writer.cluster, writer.names[0])
    assert [member.bookie_id for member in writer.cluster.lost_members()] == writer.names[:1]


def test_one_that_takes_everything_but_a_fence_can_be_declared_lost_too(memory_rig: Rig) -> None:
    """It answers, and only in the ledger that waits for it shows what it refuses."""
    writer, other = HandWriter(memory_rig), HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    other.add(0, 1, 2, acknowledges=True)
    first, second = writer.names[:2]
    memory_rig.lose(second)
    with taking_no_fence(memory_rig, first):
        with pytest.raises(InvalidRequestError, match="is not lost: it answers"):
            declare_lost(writer.cluster, first)
        hint = stuck(writer).hint
        assert f"`bkspark bookie lost {second}`; or make {first} writable again" in hint
        declare_lost(writer.cluster, second)
        assert f"`bkspark bookie lost {first}`" in stuck(writer).hint
        declare_lost(writer.cluster, first)
        report = writer.recover(accepts_loss=lambda _: True)
    assert (report.last_entry_id, report.kept, report.lost_from) == (0, 1, 1)
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_to_ask_whether_one_is_lost_leaves_nothing_behind(rig: Rig) -> None:
    writer = HandWriter(rig)
    before = rig.names(writer.names[0])
    with pytest.raises(InvalidRequestError):
        declare_lost(writer.cluster, writer.names[0])
    assert rig.names(writer.names[0]) == before
