"""A commit that dies, loses answers, hangs or is fenced, at every one of its storage operations.

Whatever happens: all rows are visible once, or none; and running the write again with the same
transaction leaves exactly one copy.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bkspark.bookie.uri import open_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.errors import (
    BookKeeperError,
    LedgerFencedError,
    OutcomeUnknownError,
)
from bkspark.format import layout
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.target import BatchTarget
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log.batch import AttemptReport
from tests.integration.rig import Rig, flat, partitions_of
from tests.kit.faulty import METADATA, Crash, Fault, Moment, Operation, crash_at, fail_at
from tests.thorough import always

PARTITIONS = partitions_of(3, 5)
ROWS = flat(PARTITIONS)
TRANSACTION = Transaction("app", 1)


@dataclass
class Scene:
    """One write after the other into new logs of one cluster, each interrupted elsewhere.

    Attributes:
        loses_a_bookie: a member dies between tasks and commit, so that a spare steps in.
        before: rows that are in the log already.
    """

    rig: Rig
    loses_a_bookie: bool = False
    is_created: bool = False
    number: int = 0

    @property
    def before(self) -> list[tuple[object, ...]]:
        return flat(partitions_of(2, first=100)) if self.is_created else []

    def begin(self) -> tuple[BatchTarget, list[AttemptReport | None]]:
        """A new log, and in it a write that is ready to be committed."""
        self.rig.faults.forget()
        self.number += 1
        self.rig.log_name = f"log-{self.number}"
        if self.is_created:
            self.rig.write(partitions_of(2, first=100))
        target = self.rig.target((3, 3, 2), transaction=TRANSACTION)
        reports = self.rig.tasks(target, PARTITIONS)
        if self.loses_a_bookie:
            self.rig.faults.down = {target.ensemble[1].bookie_id}
        return target, reports

    def trace(self) -> list[Operation]:
        """The operations of a commit that nothing interrupts."""
        target, reports = self.begin()
        with self.rig.faults.installed():
            batch_commit.commit(target, reports)
        assert self.rig.rows() == self.before + ROWS
        return list(self.rig.faults.trace)

    def is_visible(self) -> bool:
        """Whether all rows are there; False if none is; anything else fails."""
        rows = self.rig.rows()
        assert rows in (self.before, self.before + ROWS)
        return rows != self.before

    def write_again(self) -> None:
        self.rig.faults.forget()
        self.rig.write(PARTITIONS, transaction=TRANSACTION)
        assert self.rig.rows() == self.before + ROWS
        self.rig.write(PARTITIONS, transaction=TRANSACTION)
        assert self.rig.rows() == self.before + ROWS


@pytest.fixture(params=always(["plain"], ["plain", "created", "spare"]))
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    rig = Rig(tmp_path / "cluster", bookie_count=4)
    return Scene(rig, request.param == "spare", request.param == "created")


@pytest.mark.parametrize(
    "moment", always([Moment.AFTER], list(Moment)), ids=lambda moment: moment.name
)
def test_a_commit_that_dies_at_any_operation_is_all_or_nothing(
    scene: Scene, moment: Moment
) -> None:
    points = len(scene.trace())
    seen = [0, 0]
    for number in range(points):
        target, reports = scene.begin()
        scene.rig.faults.decide = crash_at(number, moment)
        with scene.rig.faults.installed(), pytest.raises(Crash):
            batch_commit.commit(target, reports)
        scene.rig.faults.forget()
        is_visible = scene.is_visible()
        seen[is_visible] += 1
        if number % 2:
            batch_commit.abort(target)
            assert scene.is_visible() == is_visible
        scene.write_again()
    print(f"{points} points, {moment.name}: {seen[0]} times nothing, {seen[1]} times all")
    assert points > 25
    assert seen[0]
    assert seen[1] or moment is not Moment.AFTER


@pytest.mark.parametrize(
    "moment", always([Moment.AFTER], [Moment.BEFORE, Moment.AFTER]), ids=lambda m: m.name
)
def test_one_lost_operation_or_answer_is_all_or_nothing(scene: Scene, moment: Moment) -> None:
    """Of the fault nothing is known but that there was no answer; the commit goes on or raises."""
    points = len(scene.trace())
    done = 0
    for number in range(points):
        target, reports = scene.begin()
        scene.rig.faults.decide = fail_at(number, moment)
        raised = None
        with scene.rig.faults.installed():
            try:
                batch_commit.commit(target, reports)
                done += 1
            except BookKeeperError as error:
                raised = error
        scene.rig.faults.forget()
        if raised is None:
            assert scene.is_visible()
        elif moment is Moment.BEFORE:
            assert not scene.is_visible()
        is_visible = scene.is_visible()
        batch_commit.abort(target)
        assert scene.is_visible() == is_visible
        scene.write_again()
    print(f"{points} points, {moment.name}: {done} commits went on")
    assert done > points // 3


def test_abort_after_a_lost_answer_deletes_nothing(scene: Scene) -> None:
    """H5: the splice is done, its answer and the read-back are lost, Spark calls abort."""
    trace = scene.trace()
    splice = max(n for n, op in enumerate(trace) if op.call == "put" and "logs/" in op.name)
    target, reports = scene.begin()
    files = {bookie_id: scene.rig.names(bookie_id) for bookie_id in scene.rig.urls}

    def decide(number: int, _operation: Operation) -> Fault | None:
        return Fault(Moment.AFTER) if number in (splice, splice + 1) else None

    scene.rig.faults.decide = decide
    with scene.rig.faults.installed():
        with pytest.raises(OutcomeUnknownError):
            batch_commit.commit(target, reports)
        scene.rig.faults.decide = lambda _number, _operation: None
        batch_commit.abort(target)
    deletions = [op for op in scene.rig.faults.trace if op.call == "delete"]
    assert deletions == []
    for bookie_id, names in files.items():
        assert set(names) <= set(scene.rig.names(bookie_id))
    assert scene.is_visible()


def interrupted(
    scene: Scene, action: Callable[[BatchTarget], None]
) -> Iterator[tuple[Operation, int, BookKeeperError | None, BatchTarget]]:
    """A commit for each of its operations, with ``action`` by somebody else just before it."""
    for number, operation in enumerate(scene.trace()):
        target, reports = scene.begin()

        def act(
            now: int, _operation: Operation, at: int = number, on: BatchTarget = target
        ) -> None:
            if now == at:
                scene.rig.faults.decide = lambda _number, _operation: None
                action(on)

        scene.rig.faults.decide = act
        raised = None
        with scene.rig.faults.installed():
            try:
                batch_commit.commit(target, reports)
            except BookKeeperError as error:
                raised = error
        scene.rig.faults.forget()
        yield operation, number, raised, target


def last(trace: list[Operation], call: str, *words: str) -> int:
    return max(
        n for n, op in enumerate(trace) if op.call == call and all(w in op.name for w in words)
    )


def test_a_commit_that_hung_and_wakes_after_abort_changes_nothing(scene: Scene) -> None:
    splice = last(scene.trace(), "put", "logs/")
    for _operation, number, raised, target in interrupted(scene, batch_commit.abort):
        if number <= splice:
            assert isinstance(raised, OutcomeUnknownError)
            assert not scene.is_visible()
            with Cluster(scene.rig.uri) as cluster:
                record = cluster.logs.get(scene.rig.log_name)
            assert record is not None
            assert target.ledger_id in record.value.dropped.ids
        else:
            assert raised is None
            assert scene.is_visible()
        with pytest.raises(OutcomeUnknownError) if raised else _nothing():
            batch_commit._splice(Cluster(scene.rig.uri), target)
        assert scene.is_visible() == (raised is None)
        scene.write_again()


class _nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def change_ledger(
    rig: Rig, target: BatchTarget, change: Callable[[LedgerMetadata], LedgerMetadata]
) -> None:
    with Cluster(rig.uri) as cluster:
        name = str(target.ledger_id)
        seen = cluster.ledgers.get(name)
        assert seen is not None
        cluster.ledgers.replace(name, change(seen.value), seen)


def to_recovery(metadata: LedgerMetadata) -> LedgerMetadata:
    if metadata.state is LedgerState.CLOSED:
        settings = replace(metadata.settings, custom_metadata={"late": "1"})
        return replace(metadata, settings=settings)
    return replace(metadata, state=LedgerState.IN_RECOVERY, term=2, token="f" * 32)


def fence(target: BatchTarget) -> None:
    """The marker of the next term on every bookie that answers."""
    for address in (*target.ensemble, *target.spares):
        try:
            with open_bookie(address).open_root() as root:
                root.put_new(layout.term_marker(target.ledger_id, target.term + 1), b"")
        except BookKeeperError:
            continue


def test_a_marker_of_the_next_term_stops_the_commit(scene: Scene) -> None:
    """Found by the post-check, which looks after the record is durable (RB-03)."""
    look = last(scene.trace(), "size", "terms/00000002")
    for _operation, number, raised, _target in interrupted(scene, fence):
        if number <= look:
            assert isinstance(raised, LedgerFencedError)
            assert not scene.is_visible()
        else:
            assert raised is None
            assert scene.is_visible()


def test_a_missing_marker_of_the_own_term_is_a_fence(scene: Scene) -> None:
    """The directory of the ledger was deleted, and the cookie is right (RB-46)."""
    trace = scene.trace()
    look = min(
        n for n, op in enumerate(trace) if op.call == "size" and "terms/00000001-" in op.name
    )

    def forget(target: BatchTarget) -> None:
        for address in (*target.ensemble, *target.spares):
            name = layout.permission(target.ledger_id, 1, target.token)
            if name in scene.rig.names(address.bookie_id):
                scene.rig.replace_file(address.bookie_id, name, None)

    for _operation, number, raised, _target in interrupted(scene, forget):
        if number <= look:
            assert raised is not None
        if raised is not None:
            assert isinstance(raised, LedgerFencedError)
        assert scene.is_visible() == (raised is None)


def test_a_takeover_in_the_metadata_stops_the_commit(scene: Scene) -> None:
    """Even if none of its fences arrived: every bookie would still count."""
    close = last(scene.trace(), "put", "ledgers/")
    for _operation, number, raised, target in interrupted(
        scene, lambda target: change_ledger(scene.rig, target, to_recovery)
    ):
        if number <= close:
            assert isinstance(raised, LedgerFencedError)
            assert not scene.is_visible()
            assert scene.rig.ledger(target.ledger_id).state is LedgerState.IN_RECOVERY
        else:
            assert raised is None
            assert scene.is_visible()


def test_a_deleted_ledger_stops_the_commit(scene: Scene) -> None:
    splice_reads = last(scene.trace(), "get", "ledgers/")
    for _operation, number, raised, _target in interrupted(
        scene, lambda target: change_ledger(scene.rig, target, LedgerMetadata.deleting)
    ):
        if number <= splice_reads:
            assert isinstance(raised, BookKeeperError)
            assert scene.rig.rows() == scene.before


def test_a_change_that_leaves_the_writer_alone_is_adopted(scene: Scene) -> None:
    def note(metadata: LedgerMetadata) -> LedgerMetadata:
        custom = {**metadata.settings.custom_metadata, "note": "hello"}
        return replace(metadata, settings=replace(metadata.settings, custom_metadata=custom))

    for _operation, _number, raised, target in interrupted(
        scene, lambda target: change_ledger(scene.rig, target, note)
    ):
        assert raised is None
        assert scene.is_visible()
        assert scene.rig.ledger(target.ledger_id).settings.custom_metadata["note"] == "hello"


def test_the_order_of_a_commit(scene: Scene) -> None:
    """R1: per bookie record then post-check, in its order; then metadata check; then the rest."""
    trace = scene.trace()
    places = {op.place for op in trace if op.call == "append"}
    assert len(places) == 3
    checked = []
    for place in places:
        own = [(op.call, op.name, n) for n, op in enumerate(trace) if op.place == place]
        begin = next(i for i, (call, _, _) in enumerate(own) if call == "append")
        after = own[begin + 1 : begin + 5]
        assert [call for call, _, _ in after] == ["open_root", "has_journal", "size", "size"]
        assert after[2][1].endswith("terms/00000002")
        assert "terms/00000001-" in after[3][1]
        checked.append(after[3][2])
    in_metadata = [(op.call, op.name, n) for n, op in enumerate(trace) if op.place == METADATA]
    checks = [n for call, _, n in in_metadata if call == "is_current"]
    puts = [(name.split("/")[0], n) for call, name, n in in_metadata if call == "put"]
    assert [kind for kind, _ in puts][-2:] == ["ledgers", "logs"]
    assert max(checked) < checks[-1] < puts[-2][1] < puts[-1][1]


def test_a_record_that_is_not_seen_under_its_name_is_not_counted(scene: Scene) -> None:
    """The place that shows under the bookie's path is not the one that was written to."""
    target, reports = scene.begin()
    victim = target.ensemble[0].bookie_id

    def swap(_number: int, operation: Operation) -> None:
        if operation.place == victim and operation.call == "has_journal":
            data = scene.rig.file_bytes(victim, operation.name)
            scene.rig.replace_file(victim, operation.name, data)

    scene.rig.faults.decide = swap
    with scene.rig.faults.installed():
        try:
            result = batch_commit.commit(target, reports)
        except BookKeeperError:
            assert scene.loses_a_bookie
            return
    assert "does not show" in result.failures[victim]
    members = scene.rig.ledger(target.ledger_id).last_fragment.ensemble
    assert victim not in {member.bookie_id for member in members}
