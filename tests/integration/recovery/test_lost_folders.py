"""A bookie that lost what it had of a ledger, its cookie intact, is no proof of any absence.

Every member took the writer's marker before the metadata named it, so one without it has lost data
of this ledger: for this recovery, and for each that comes later.
"""

from typing import Any

import pytest

from bkspark.bookie.memory import MemoryRoot
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import LedgerFencedError, NotEnoughBookiesError, OutcomeUnknownError
from bkspark.format import layout
from bkspark.ledger.recovery.fencing import FenceAndRead
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.hand_writer import HandWriter, one_by_one, stop_behind
from tests.integration.rig import Rig, partitions_of
from tests.kit.faulty import Fault, Moment, Operation

SIZES = [(3, 3, 3), (3, 3, 2)]


def written(rig: Rig, sizes: tuple[int, int, int], *indexes: int) -> HandWriter:
    """A writer whose entries 0 to 2 were acknowledged by the bookies at ``indexes``."""
    writer = HandWriter(rig, sizes)
    for _ in range(3):
        writer.add(*indexes, acknowledges=True)
    assert writer.acked == [0, 1, 2]
    return writer


def lose_folder(rig: Rig, writer: HandWriter, index: int, part: str = "") -> None:
    """Take what one bookie has of the ledger away, all or what lies in one folder."""
    folder = f"{layout.ledger_folder(writer.ledger_id)}/{part}"
    name = writer.names[index]
    found = [one for one in rig.names(name) if one.startswith(folder)]
    assert found
    for one in found:
        rig.replace_file(name, one, None)


def read(rig: Rig, writer: HandWriter) -> list[bytes]:
    with BookKeeper(rig.uri) as keeper:
        return [entry.value for entry in keeper.open_ledger(writer.ledger_id).read()]


def stuck(writer: HandWriter, **options: Any) -> NotEnoughBookiesError:
    with pytest.raises(NotEnoughBookiesError) as caught:
        writer.recover(**options)
    return caught.value


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_lost_folder_is_no_absence_however_often_it_is_asked(
    sizes: tuple[int, int, int], times: int, rig: Rig
) -> None:
    """3/3/2: the bookie that is left beside it is the one that never got the entries."""
    writer = written(rig, sizes, *range(sizes[2]))
    lose_folder(rig, writer, 0)
    away = writer.names[1:2] if sizes[2] == 2 else writer.names[1:]
    for _ in range(times):
        error = stuck(writer, run=one_by_one(lost=away), accepts_loss=lambda _loss: True)
        assert "entry 0 is in doubt" in str(error)
    assert rig.ledger(writer.ledger_id).state is LedgerState.IN_RECOVERY
    assert writer.recover().last_entry_id == 2
    assert read(rig, writer) == list(writer.sent.values())


def test_where_nobody_else_can_tell_it_takes_the_word(memory_rig: Rig) -> None:
    writer = written(memory_rig, (3, 3, 2), 0, 1)
    for index in (0, 1):
        lose_folder(memory_rig, writer, index)
    error = stuck(writer)
    assert f"{writer.names[0]} has lost data of ledger {writer.ledger_id}" in str(error)
    assert "--accept-loss" in str(error)
    report = writer.recover(accepts_loss=lambda _loss: True)
    assert (report.last_entry_id, report.lost_from) == (-1, 0)


def test_copies_that_it_gets_do_not_make_it_whole(memory_rig: Rig) -> None:
    """The first recovery dies behind them; the second one makes nothing of what is not there."""
    writer = written(memory_rig, (3, 3, 2), 0, 1)
    lose_folder(memory_rig, writer, 0)
    writer.add(2)
    with pytest.raises(OutcomeUnknownError):
        writer.recover(run=one_by_one(before=stop_behind(1)))
    names = memory_rig.names(writer.names[0])
    assert layout.term_marker(writer.ledger_id, 2) in names
    assert writer.permission not in names
    assert any("/journal/" in name for name in names)
    error = stuck(writer, run=one_by_one(lost=writer.names[1:2]))
    assert f"{writer.names[0]} has lost data of ledger {writer.ledger_id}" in str(error)


def test_copies_for_one_that_was_silent_do_not_make_it_whole(memory_rig: Rig) -> None:
    writer = written(memory_rig, (3, 3, 2), 0, 1)
    lose_folder(memory_rig, writer, 0)
    writer.add(1)

    def silent_at_first(instructions: Any) -> list[Any]:
        is_first = isinstance(instructions[0], FenceAndRead)
        lost = writer.names[:1] if is_first else []
        return one_by_one(lost=lost, before=stop_behind(1))(instructions)

    with pytest.raises(OutcomeUnknownError):
        writer.recover(run=silent_at_first)
    names = memory_rig.names(writer.names[0])
    assert layout.term_marker(writer.ledger_id, 2) in names
    assert writer.permission not in names


def test_its_writer_is_refused_there_and_never_makes_the_marker_again(memory_rig: Rig) -> None:
    writer = written(memory_rig, (3, 3, 2), 0, 1)
    lose_folder(memory_rig, writer, 0, "terms/")
    with pytest.raises(LedgerFencedError):
        writer.add(0)
    assert not [n for n in memory_rig.names(writer.names[0]) if "/terms/" in n]


def test_a_folder_that_is_lost_behind_the_fence_is_seen(memory_rig: Rig) -> None:
    """What shows the loss is looked for behind the last read that counts, not in front of it."""
    writer = written(memory_rig, (3, 3, 2), 0, 1)
    done: list[str] = []

    def lose(root: Any, name: str) -> list[str]:
        if not done and name == layout.journal_folder(writer.ledger_id):
            done.append(name)
            lose_folder(memory_rig, writer, 0)
        return list(real(root, name))

    real = MemoryRoot.list
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryRoot, "list", lose)
        stuck(writer, run=one_by_one(lost=[writer.names[1]]))
    assert done
    assert writer.recover().last_entry_id == 2


@pytest.mark.parametrize("count", [1, 20])
def test_a_recovery_makes_one_marker_however_many_came_before(count: int, memory_rig: Rig) -> None:
    writer = written(memory_rig, (3, 3, 2), 0, 1)
    for _ in range(count):
        stuck(writer, run=one_by_one(lost=[writer.names[1], writer.names[2]]))
    assert memory_rig.ledger(writer.ledger_id).term == count + 1
    markers = [n for n in memory_rig.names(writer.names[0]) if "/terms/" in n]
    assert len(markers) == 2
    assert writer.recover().last_entry_id == 2


# --- who holds which marker ----------------------------------------------------------------------


def test_a_bookie_that_did_not_surely_join_is_not_asked_again(memory_rig: Rig) -> None:
    """What it was sent may still come, and make the marker anew where it was lost."""
    target = memory_rig.target((3, 3, 2))
    spare = target.spares[0].bookie_id
    asked: list[str] = []

    def decide(_number: int, operation: Operation) -> Fault | None:
        if (operation.place, operation.call) != (spare, "put_new"):
            return Fault() if operation.place == target.ensemble[0].bookie_id else None
        asked.append(operation.name)
        return Fault(Moment.AFTER)

    with memory_rig.faults.installed(), Cluster(memory_rig.uri) as cluster:
        seen, digester = cluster.ledger(target.ledger_id), target.digester()
        with RecordWriter(
            cluster, seen, digester, target.ensemble, term=target.term, token=target.token
        ) as writer:
            memory_rig.faults.decide = decide
            for first in (0, 4):
                reports = memory_rig.tasks(target, partitions_of(4, first=first))
                writer.write(reports, spares=target.spares[:1], transaction=None)
        memory_rig.faults.forget()
    assert asked == [layout.permission(target.ledger_id, 1, target.token)]
    assert writer.last_add_confirmed == 7


def test_who_did_not_surely_join_a_new_ledger_can_join_it_as_anybody(memory_rig: Rig) -> None:
    """What it was sent is nobody's marker: it may come at any time, also where that was lost."""
    asked: list[Operation] = []

    def decide(_number: int, operation: Operation) -> Fault | None:
        if operation.call != "put_new":
            return None
        asked.append(operation)
        return Fault(Moment.AFTER) if operation is asked[0] else None

    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        memory_rig.faults.decide = decide
        ledger = memory_rig.ledger(keeper.create_ledger().ledger_id)
    late = asked[0]
    assert late.place not in {m.bookie_id for m in ledger.last_fragment.ensemble}
    assert late.name in memory_rig.names(late.place)
    assert late.name != layout.permission(ledger.ledger_id, 1, ledger.token)
    in_its_name = [operation.place for operation in asked if operation.name == late.name]
    assert len(in_its_name) == ledger.quorum.ensemble_size, "nobody is asked once it came late"


def test_what_is_lost_beyond_the_promise_is_told(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig, (5, 3, 2))
    for members in ((0, 1), (2, 3), (2, 3, 4)):
        writer.add(*members, acknowledges=True)
    for index in (0, 1):
        lose_folder(memory_rig, writer, index)
    report = writer.recover()
    assert report.last_entry_id == 2
    assert report.losses
    for loss in report.losses:
        assert loss.startswith("of entries 0 to 1, the entries stored on")
        assert "are damaged or missing" in loss
