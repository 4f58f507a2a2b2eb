"""Bookies that die at any moment of a write: a spare steps in, or Qa holds, or nothing is seen."""

import errno
from collections.abc import Callable

import pytest

from bkspark.bookie import posix
from bkspark.errors import BookieUnavailableError, NotEnoughBookiesError
from bkspark.format import layout
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.storage import posix_calls
from tests.integration.rig import Rig, flat, partitions_of, rows_from
from tests.kit.faulty import METADATA, Fault, FaultyOs, Moment, Operation
from tests.thorough import always

Rigs = Callable[..., Rig]

QUORUMS = [(2, 2, 1), (3, 3, 2), (3, 2, 1), (4, 3, 2), (5, 3, 2), (6, 6, 4)]
PARTITIONS = partitions_of(9, 0, 14, 1)

MOMENTS = {
    "before the tasks": "tasks",
    "between tasks and commit": "commit",
    "at the first write": "write",
    "at the last write": "finish",
    "at the look at what was finished": "size",
    "when the journal is opened": "open_journal",
    "in the append": "append",
    "before the post-check": "has_journal",
}


class Death:
    """From a moment on one bookie does not answer."""

    def __init__(self, rig: Rig, victim: str, call: str, after: int = 0) -> None:
        self.rig, self.victim, self.call, self.left = rig, victim, call, after

    def __call__(self, _number: int, operation: Operation) -> Fault | None:
        if operation.place == self.victim and operation.call == self.call:
            self.left -= 1
            if self.left < 0:
                self.rig.faults.down.add(self.victim)
                return Fault(Moment.HALF)
        return None


def write_while_dying(rig: Rig, quorum: tuple[int, int, int], moment: str, index: int = 0):
    """A write during which the ensemble's member at ``index`` dies; its result, and the target."""
    with rig.faults.installed():
        target = rig.target(quorum)
        victim = target.ensemble[index].bookie_id
        rig.faults.trace.clear()
        if moment in ("tasks", "commit"):
            rig.faults.down |= {victim} if moment == "tasks" else set()
        else:
            rig.faults.decide = Death(rig, victim, moment)
        reports = rig.tasks(target, PARTITIONS)
        if moment == "commit":
            rig.faults.down.add(victim)
        result = batch_commit.commit(target, reports)
    assert rig.faults.down == {victim}
    return target, victim, result


def assert_spare_was_in_the_metadata_before_its_acks(trace: list[Operation], spare: str) -> None:
    """CAS of the ensemble, then record and post-check on the spare, then the metadata check."""
    changes = [
        n
        for n, op in enumerate(trace)
        if (op.place, op.call) == (METADATA, "put") and op.name.startswith("ledgers/")
    ]
    checks = [n for n, op in enumerate(trace) if (op.place, op.call) == (METADATA, "is_current")]
    on_spare = {op.call: n for n, op in enumerate(trace) if op.place == spare}
    marker = next(n for n, op in enumerate(trace) if (op.place, op.call) == (spare, "put_new"))
    change, close = changes[-2], changes[-1]
    assert marker < change < on_spare["append"] < on_spare["has_journal"] < checks[-1] < close


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "quorum",
    always([(2, 2, 1), (5, 3, 2)], QUORUMS),
    ids=lambda sizes: "/".join(map(str, sizes)),
)
def test_a_spare_steps_in(make_rig: Rigs, quorum: tuple[int, int, int], moment: str) -> None:
    rig = make_rig(bookie_count=quorum[0] + 2)
    if quorum[2] == 1 and moment == "between tasks and commit":
        quorum = (quorum[0], quorum[1], 2)  # what only one bookie held may be gone with it
    target, victim, result = write_while_dying(rig, quorum, MOMENTS[moment])
    assert victim in result.failures
    lost = rig.lose(victim)
    assert rig.rows() == flat(PARTITIONS)
    ledger = rig.ledger(result.ledger_id)
    members = {member.bookie_id for member in ledger.last_fragment.ensemble}
    assert victim not in members
    (spare,) = members - {address.bookie_id for address in target.ensemble}
    assert_spare_was_in_the_metadata_before_its_acks(rig.faults.trace, spare)
    copies = rig.good_copies(result.ledger_id)
    assert all(len(holders) == quorum[1] for holders in copies.values())
    rig.assert_survives_losses(flat(PARTITIONS), quorum[2] - 1, members)
    rig.bring_back(victim, lost)
    assert rig.rows() == flat(PARTITIONS)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("quorum", always([(4, 3, 2)], [(3, 3, 2), (4, 3, 2), (6, 6, 4)]))
def test_without_a_spare_qa_is_enough(
    make_rig: Rigs, quorum: tuple[int, int, int], moment: str
) -> None:
    rig = make_rig(bookie_count=quorum[0])
    _, victim, result = write_while_dying(rig, quorum, MOMENTS[moment], index=1)
    rig.lose(victim)
    assert rig.rows() == flat(PARTITIONS)
    copies = rig.good_copies(result.ledger_id)
    assert all(len(holders) >= quorum[2] for holders in copies.values())
    rig.assert_survives_losses(flat(PARTITIONS), quorum[2] - 1, set(rig.urls) - {victim})


@pytest.mark.parametrize("moment", MOMENTS)
def test_with_fewer_than_qa_left_nothing_is_seen(make_rig: Rigs, moment: str) -> None:
    rig = make_rig(bookie_count=3)
    with pytest.raises(NotEnoughBookiesError):
        write_while_dying(rig, (3, 3, 3), MOMENTS[moment])
    assert rig.log() is None
    assert rig.rows() == []


@pytest.mark.parametrize("writes", range(6))
def test_a_bookie_that_dies_after_some_writes_leaves_no_half_file(
    make_rig: Rigs, writes: int
) -> None:
    rig = make_rig(bookie_count=5)
    with rig.faults.installed():
        target = rig.target((3, 3, 2))
        victim = target.ensemble[2].bookie_id
        rig.faults.decide = Death(rig, victim, "write", writes)
        report = AttemptWriter(target, 0).write([rows_from(n, 4) for n in range(0, 24, 4)])
        assert rig.faults.down == {victim}
        assert all(victim not in written.bookie_ids for written in report.logs)
        assert dict(report.failures).keys() == {victim}
        batch_commit.commit(target, [report])
    assert not [name for name in rig.names(victim) if ".arrow" in name]
    assert rig.rows() == flat([[rows_from(0, 24)]])


def test_tasks_that_used_different_spares_end_on_one_ensemble(make_rig: Rigs) -> None:
    """H13: two tasks lose the same member, and each has another spare at hand."""
    rig = make_rig(bookie_count=6)
    with rig.faults.installed():
        target = rig.target((3, 3, 2))
        victim = target.ensemble[1].bookie_id
        first_spare = target.spares[0].bookie_id
        rig.faults.down = {victim}
        reports = [AttemptWriter(target, 0).write([rows_from(0, 8)])]
        rig.faults.down = {victim, first_spare}
        reports.append(AttemptWriter(target, 1).write([rows_from(8, 9)]))
        rig.faults.down = {victim}
        used = [set(written.bookie_ids) for report in reports for written in report.logs]
        assert used[0] != used[1]
        rig.faults.trace.clear()
        result = batch_commit.commit(target, reports)
    calls = [op.call for op in rig.faults.trace]
    copies_done = len(calls) - calls[::-1].index("finish")
    assert copies_done < calls.index("append"), "the record was written before the copies"
    rig.lose(victim)
    copies = rig.good_copies(result.ledger_id)
    assert {len(holders) for holders in copies.values()} == {3}
    rig.assert_survives_losses(flat([[rows_from(0, 17)]]), 1, set(rig.urls) - {victim})


def test_two_members_and_then_a_spare_fail(make_rig: Rigs) -> None:
    rig = make_rig(bookie_count=7)
    with rig.faults.installed():
        target = rig.target((4, 3, 2))
        reports = rig.tasks(target, PARTITIONS)
        victims = {target.ensemble[0].bookie_id, target.spares[0].bookie_id}
        rig.faults.down = set(victims)
        rig.faults.decide = Death(rig, target.ensemble[2].bookie_id, "append")
        result = batch_commit.commit(target, reports)
    assert set(result.failures) == victims | {target.ensemble[2].bookie_id}
    for bookie_id in result.failures:
        rig.lose(bookie_id)
    assert rig.rows() == flat(PARTITIONS)
    assert {len(x) for x in rig.good_copies(result.ledger_id).values()} == {3}


def test_the_reason_of_a_failure_is_the_first_one(make_rig: Rigs) -> None:
    rig = make_rig(bookie_count=4)
    with rig.faults.installed():
        target = rig.target((3, 3, 2))
        victim = target.ensemble[0].bookie_id
        rig.faults.decide = lambda _number, op: (
            Fault() if (op.place, op.call) == (victim, "write") else None
        )
        report = AttemptWriter(target, 0).write([rows_from(n, 4) for n in range(0, 40, 4)])
    assert "operation" in dict(report.failures)[victim]
    writes = [op for op in rig.faults.trace if (op.place, op.call) == (victim, "write")]
    assert len(writes) == 1


def test_a_copy_that_cannot_be_made_does_not_stop_a_commit_with_qa_copies(make_rig: Rigs) -> None:
    """The member that came back takes journals again, but no new files."""
    rig = make_rig(bookie_count=3)
    with rig.faults.installed():
        target = rig.target((3, 3, 2))
        victim = target.ensemble[0].bookie_id
        rig.faults.down = {victim}
        reports = rig.tasks(target, PARTITIONS)
        rig.faults.down = set()
        refused: list[str] = []

        def refuse(_number: int, operation: Operation) -> Fault | None:
            if (operation.place, operation.call) != (victim, "create"):
                return None
            refused.append(operation.name)
            return Fault()

        rig.faults.decide = refuse
        batch_commit.commit(target, reports)
    assert refused
    rig.lose(victim)
    rig.assert_survives_losses(flat(PARTITIONS), 1, set(rig.urls) - {victim})


@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_copy_is_made_from_a_good_replica_only(make_rig: Rigs, damage: str) -> None:
    rig = make_rig(bookie_count=4)
    with rig.faults.installed():
        target = rig.target((3, 3, 2))
        away, bad, _good = (address.bookie_id for address in target.ensemble)
        rig.faults.down = {away} | {spare.bookie_id for spare in target.spares}
        reports = rig.tasks(target, PARTITIONS)
        rig.faults.down = set()
    for name in [name for name in rig.names(bad) if ".arrow" in name]:
        data = bytearray(rig.file_bytes(bad, name))
        data[len(data) // 2] ^= 4
        changed = {"flip": bytes(data), "cut": bytes(data[:-1]), "gone": None}[damage]
        rig.replace_file(bad, name, changed)
    result = batch_commit.commit(target, reports)
    members = {member.bookie_id for member in rig.ledger(result.ledger_id).last_fragment.ensemble}
    copies = rig.good_copies(result.ledger_id)
    assert all(holders == members - {bad} for holders in copies.values())
    assert rig.rows() == flat(PARTITIONS)


@pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["open", "write", "writev", "link", "fsync", "fdatasync", "mkdir"])
def test_an_error_of_the_system_on_one_disk_is_a_failed_bookie(
    make_rig: Rigs, monkeypatch: pytest.MonkeyPatch, call: str, error: int
) -> None:
    """The first such call of the commit that has to do with a journal or a marker fails."""
    rig = make_rig(kind="file", bookie_count=4, metadata="memory")
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, partitions_of(5))
    faulty = FaultyOs()
    for module in (posix, posix_calls, posix):
        monkeypatch.setattr(module, "os", faulty)
    is_done = False

    def fault(_now: int, _effect: object, _arguments: object) -> None:
        nonlocal is_done
        if faulty.trace[-1][0] == call and not is_done:
            is_done = True
            raise OSError(error, "injected")

    faulty._fault = fault
    result = batch_commit.commit(target, reports)
    monkeypatch.undo()
    assert rig.rows() == flat(partitions_of(5))
    assert bool(result.failures) == is_done
    assert is_done or call in ("write", "link", "mkdir")


def test_a_wiped_bookie_is_neither_counted_nor_believed(rig: Rig) -> None:
    """It has the right cookie of another incarnation, and lacks everything."""
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, PARTITIONS)
    victim = target.ensemble[0].bookie_id
    rig.wipe(victim)
    result = batch_commit.commit(target, reports)
    assert "cookie" in result.failures[victim]
    members = rig.ledger(result.ledger_id).last_fragment.ensemble
    assert victim not in {member.bookie_id for member in members}
    assert rig.names(victim) == []
    assert rig.rows() == flat(PARTITIONS)


def test_a_bookie_made_again_under_its_name_is_another_one(rig: Rig) -> None:
    from bkspark.bookie.uri import storage
    from bkspark.format import cluster as cluster_format

    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, PARTITIONS)
    victim = target.ensemble[0]
    rig.wipe(victim.bookie_id)
    again = cluster_format.Cookie(victim.cluster_id, victim.bookie_id, "9" * 32)
    storage(victim.url).format(cluster_format.encode_cookie(again))
    result = batch_commit.commit(target, reports)
    assert "initialised again" in result.failures[victim.bookie_id]
    assert rig.names(victim.bookie_id) == []
    assert rig.rows() == flat(PARTITIONS)


def test_a_place_without_a_cookie_is_no_bookie(rig: Rig) -> None:
    target = rig.target((3, 3, 2))
    victim = target.ensemble[0].bookie_id
    rig.replace_file(victim, "COOKIE", None)
    result = batch_commit.commit(target, rig.tasks(target, PARTITIONS))
    assert "no cookie" in result.failures[victim]
    rig.assert_survives_losses(flat(PARTITIONS), 1, set(rig.urls) - {victim})


def test_a_spare_that_takes_no_marker_is_passed_over(make_rig: Rigs) -> None:
    rig = make_rig(bookie_count=5)
    with rig.faults.installed():
        target = rig.target((3, 3, 2))
        reports = rig.tasks(target, PARTITIONS)
        victim, bad = target.ensemble[0].bookie_id, target.spares[0].bookie_id
        rig.faults.down = {victim}
        rig.faults.decide = lambda _number, op: (
            Fault() if (op.place, op.call) == (bad, "put_new") else None
        )
        result = batch_commit.commit(target, reports)
    members = {member.bookie_id for member in rig.ledger(result.ledger_id).last_fragment.ensemble}
    assert members.isdisjoint({victim, bad})
    for bookie_id in members:
        assert layout.permission(result.ledger_id, 1, target.token) in rig.names(bookie_id)


def test_a_bookie_that_hides_what_was_written_is_not_counted_in_a_task(make_rig: Rigs) -> None:
    """H19: what is found under the path at the end is another place than was written to."""
    rig = make_rig(bookie_count=4)
    with rig.faults.installed():
        target = rig.target((3, 3, 2))
        victim = target.ensemble[0].bookie_id

        def hide(_number: int, operation: Operation) -> Fault | None:
            if operation.place == victim and operation.call == "size":
                rig.replace_file(victim, operation.name, None)
            return None

        rig.faults.decide = hide
        report = AttemptWriter(target, 0).write([rows_from(0, 5)])
    assert "does not show" in dict(report.failures)[victim]
    assert all(victim not in written.bookie_ids for written in report.logs)


def test_no_bookie_at_all(rig: Rig) -> None:
    target = rig.target((3, 3, 2))
    for bookie_id in rig.urls:
        rig.lose(bookie_id)
    with pytest.raises(NotEnoughBookiesError):
        AttemptWriter(target, 0).write([rows_from(0, 5)])
    with pytest.raises((NotEnoughBookiesError, BookieUnavailableError)):
        rig.target((3, 3, 2))
