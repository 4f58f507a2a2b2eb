"""What was decided last about the protocol on passive storage, each as a script on the real code.

A record that names entry logs, and windows; whole groups or none; a bookie's root that is moved
away under an open journal; a tail reader while terms change. Torn ends on all bookies are in
``test_recovery``, and the look for the next version before the own one, with pruning, in every
interleaving, in ``tests/unit/metadata/test_versions_interleaved.py``.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.bookie import posix
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.ledger.recovery import recoverer
from bkspark.ledger.recovery.recover import recover
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.target import BatchTarget
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.hand_writer import HandWriter, one_by_one, stop_at, violations
from tests.integration.rig import Rig, partitions_of
from tests.integration.waiting import wait_for_all_copies
from tests.kit.faulty import METADATA, Crash, Fault, Operation

Rigs = Callable[..., Rig]
FIVE = (5, 3, 2)


def names_of(target: BatchTarget) -> list[str]:
    return [address.bookie_id for address in target.ensemble]


def recovered_end(rig: Rig, ledger_id: int, *, lost: list[str]) -> int:
    with Cluster(rig.uri) as cluster:
        return recover(cluster, ledger_id, Password(), run=one_by_one(lost=lost)).last_entry_id


# --- a record that names entry logs: windows, and no rotation in a look-up ----------------------


def write_and_die_before_closing(rig: Rig) -> BatchTarget:
    """Three tasks of one row each: all three rows lie on the window of stripe 0."""
    target = rig.target(FIVE)
    reports = rig.tasks(target, partitions_of(1, 1, 1))
    seen: list[str] = []

    def decide(_number: int, operation: Operation) -> Fault | None:
        if operation.place == METADATA:
            seen.append(operation.call)
        is_close = operation.call == "put" and "is_current" in seen
        return Fault(error=Crash) if is_close else None

    rig.faults.decide = decide
    with rig.faults.installed(), pytest.raises(Crash):
        batch_commit.commit(target, reports)
    rig.faults.forget()
    assert "is_current" in seen, "it died before its record was acknowledged"
    return target


@pytest.mark.parametrize("index", range(5))
def test_rotation_a_record_of_entry_logs_is_found_whichever_bookie_is_silent(
    index: int, memory_rig: Rig
) -> None:
    """Rows 1 and 2 lie where row 0 does; to look for their record elsewhere would lose them."""
    target = write_and_die_before_closing(memory_rig)
    silent = [names_of(target)[index]]
    assert recovered_end(memory_rig, target.ledger_id, lost=silent) == 2
    copies = memory_rig.good_copies(target.ledger_id)
    assert len(copies) == 3
    assert all(len(holders) >= 2 for holders in copies.values())


def test_rotation_a_record_of_entry_logs_counts_only_with_qa_copies_in_every_window(
    make_rig: Rigs,
) -> None:
    """The rows and their record are on bookies 0, 1, 2; the window of 2, 3 and 4 has one copy."""
    rig = make_rig(bookie_count=5)
    target = rig.target(FIVE)
    reports = rig.tasks(target, partitions_of(1))
    rig.faults.down = set(names_of(target)[3:])
    with rig.faults.installed(), pytest.raises(BookKeeperError):
        batch_commit.commit(target, reports)
    rig.faults.forget()
    log = rig.log()
    assert log is None or not log.ledgers
    assert rig.ledger(target.ledger_id).state is LedgerState.OPEN
    assert recovered_end(rig, target.ledger_id, lost=[]) in (-1, 0)


# --- whole groups or none ------------------------------------------------------------------------

GROUP = [b"%d" % number for number in range(4)]


def partly_written(rig: Rig, live: tuple[int, ...]) -> tuple[int, list[str]]:
    """A group of four entries in a ledger of 4/3/2, of which only some bookies got their parts."""
    with BookKeeper(rig.uri) as keeper, rig.faults.installed():
        handle = keeper.create_ledger(ensemble_size=4)
        names = [m.bookie_id for m in handle.metadata.last_fragment.ensemble]
        rig.faults.down = {name for index, name in enumerate(names) if index not in live}
        with pytest.raises(NotEnoughBookiesError):
            handle.append_many(GROUP)
        handle.release()
    rig.faults.forget()
    return handle.ledger_id, names


@pytest.mark.parametrize(
    ("live", "silent", "end"),
    [
        ((0,), (), -1),  # nobody has entry 1
        ((0, 1), (), 3),  # every entry is somewhere
        ((0, 1), (1,), -1),  # 2 and 3 prove that entry 1 had no ack quorum
        ((0, 1), (2,), 3),
        ((0,), (1, 2), None),  # of the write set of entry 1 only bookie 3 has answered
    ],
)
def test_a_partly_written_group_is_kept_or_dropped_as_a_whole(
    live: tuple[int, ...], silent: tuple[int, ...], end: int | None, make_rig: Rigs
) -> None:
    rig = make_rig(bookie_count=4)
    ledger_id, names = partly_written(rig, live)
    lost = [names[index] for index in silent]
    if end is None:
        with pytest.raises(NotEnoughBookiesError):
            recovered_end(rig, ledger_id, lost=lost)
        assert rig.ledger(ledger_id).state is LedgerState.IN_RECOVERY
        end, lost = -1, []
    assert recovered_end(rig, ledger_id, lost=lost) == end
    assert not violations(rig, ledger_id, dict(enumerate(GROUP)), [])


# --- a bookie's root, moved away and made again ---------------------------------------------------


def move_away(rig: Rig, bookie_id: str, *, is_copied: bool) -> Path:
    """Another folder stands under the bookie's path: with its cookie, or with all its files."""
    path = Path(posix.path_of(rig.urls[bookie_id]))
    away = path.with_suffix(".away")
    path.rename(away)
    if is_copied:
        shutil.copytree(away, path)
    else:
        path.mkdir(mode=0o700)
        shutil.copy(away / "COOKIE", path / "COOKIE")
    return away


def move_back(rig: Rig, bookie_id: str, away: Path) -> None:
    path = Path(posix.path_of(rig.urls[bookie_id]))
    shutil.rmtree(path)
    away.rename(path)


@pytest.mark.parametrize("is_copied", [False, True])
def test_a_root_moved_away_under_an_open_journal_is_not_counted(
    is_copied: bool, make_rig: Rigs
) -> None:
    """What is written to the open file is in no folder that anybody will look into."""
    rig = make_rig(kind="file", bookie_count=3)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        names = [m.bookie_id for m in handle.metadata.last_fragment.ensemble]
        sent = {handle.append(b"0"): b"0"}
        wait_for_all_copies(handle)
        first = move_away(rig, names[0], is_copied=is_copied)
        sent[handle.append(b"1")] = b"1"  # two are left, which are enough
        second = move_away(rig, names[1], is_copied=is_copied)
        with pytest.raises(NotEnoughBookiesError):
            handle.append(b"2")
        assert handle.last_add_confirmed == 1
        handle.release()
        move_back(rig, names[0], first)
        move_back(rig, names[1], second)
        sent[2] = b"2"
        keeper.recover_ledger(handle.ledger_id)
    assert not violations(rig, handle.ledger_id, sent, [0, 1])


# --- a tail reader while terms change -------------------------------------------------------------


def test_a_tail_reader_across_a_change_of_term_never_goes_back_nor_too_far(
    memory_rig: Rig,
) -> None:
    """Term 2 dies amid its copies; term 3 closes. A copy confirms nothing by itself (H32)."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.add(0, 1, acknowledges=True)
    writer.add(0)
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(writer.ledger_id, recovery=False)
        seen = [reader.read_last_add_confirmed()]
        with pytest.raises(OutcomeUnknownError):
            writer.recover(run=one_by_one(before=stop_at(recoverer.WriteCopies)))
        assert memory_rig.ledger(writer.ledger_id).term == 2
        seen.append(reader.read_last_add_confirmed())
        assert not reader.is_closed
        writer.recover(run=one_by_one(lost=writer.names[:1]))
        assert memory_rig.ledger(writer.ledger_id).term == 3
        seen.append(reader.read_last_add_confirmed())
        assert reader.is_closed
        values = [entry.value for entry in reader.read()]
    # Bookie 0 alone had entry 2, and was silent when it was decided. It alone said that entry 1 is
    # confirmed, and nobody else would have been shown it.
    assert seen == [0, 0, 1]
    assert values == [b"entry 0", b"entry 1"]
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
