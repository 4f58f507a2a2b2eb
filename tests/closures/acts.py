"""What clients do: each ``next`` is one thing, done as a whole or not at all."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from bkspark.admin.maintenance import Report
from bkspark.bookie import memory as disks
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
)
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch import preparing as batch_plan
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.target import WriteRequest
from bkspark.protocol.ledger.quorum import Quorum
from tests.integration.rig import BLOCKS, SCHEMA, rows_from
from tests.integration.stream_driver import Driver

from .names import CHAINED, ROWS, SILENT
from .world import Told, World

QUORUM = Quorum(3, 3, 2)
Errors = tuple[type[BookKeeperError], ...]
Steps = Callable[[World], Iterator[object]]


class InTheWayError(BookKeeperError):
    """A report says that it is left, and why."""


def batch(world: World, first: int = 0, name: str = ROWS, **options: Any) -> object:
    """A DataFrame of three rows, written by a driver and one task."""
    values = {"is_overwrite": False, "transaction": None} | options
    request = WriteRequest(world.uri, name, SCHEMA, QUORUM, None, Password(), BLOCKS, **values)
    target = batch_plan.prepare(request)
    if target.is_done:
        return target
    rows = rows_from(first, 6 if request.is_overwrite else 3)
    return batch_commit.commit(target, [AttemptWriter(target, 0).write([rows])])


def write(first: int, name: str = ROWS, **options: Any) -> Steps:
    def steps(world: World) -> Iterator[object]:
        yield batch(world, first, name, **options)

    return steps


def write_in_vain(world: World) -> Iterator[object]:
    """A write whose job fails behind its tasks."""
    request = WriteRequest(world.uri, ROWS, SCHEMA, QUORUM, None, Password(), BLOCKS)
    target = batch_plan.prepare(request)
    AttemptWriter(target, 0).write([rows_from(300, 3)])
    batch_commit.abort(target)
    yield None


def stream(query: str, run: str, *batch_ids: int, name: str = ROWS) -> Steps:
    def steps(world: World) -> Iterator[object]:
        def request(quorum: object, **options: Any) -> WriteRequest:
            return WriteRequest(world.uri, name, SCHEMA, QUORUM, None, Password(), BLOCKS)

        driver = Driver(SimpleNamespace(request=request), query, run_id=run)  # type: ignore[arg-type]
        for batch_id in batch_ids:
            yield driver.run(batch_id)
        driver.held.rest()

    return steps


def append(name: str, *, rolls: bool = False) -> Steps:
    def steps(world: World) -> Iterator[object]:
        with BookKeeper(world.uri) as keeper:
            writer = keeper.open_log(name).writer(settings=SILENT)
            try:
                yield writer
                yield world.wait_for(writer.append_async(b"appended"))
                if rolls:
                    writer.roll()
                    yield None
                    yield world.wait_for(writer.append_async(b"behind the roll"))
                writer.close()
                yield None
            finally:
                writer.release()

    return steps


def write_ledger(world: World) -> Iterator[object]:
    with BookKeeper(world.uri) as keeper:
        handle = keeper.create_ledger(settings=SILENT)
        try:
            yield world.wait_for(handle.append_async(b"new"))
            handle.close()
            yield None
        finally:
            handle.release()


def by_keeper(act: Callable[[BookKeeper], object]) -> Steps:
    def steps(world: World) -> Iterator[object]:
        with BookKeeper(world.uri) as keeper:
            yield act(keeper)

    return steps


def by_cluster(act: Callable[[Cluster], object]) -> Steps:
    def steps(world: World) -> Iterator[object]:
        with Cluster(world.uri) as cluster:
            yield act(cluster)

    return steps


def by_verb(verb: Callable[..., Report], **options: Any) -> Steps:
    def steps(world: World) -> Iterator[object]:
        yield verb(world.uri, **options)

    return steps


def by_whole_verb(verb: Callable[..., Report], **options: Any) -> Steps:
    """A verb that does all that it is asked for, or nothing; what is in its way is an error."""

    def steps(world: World) -> Iterator[object]:
        report = verb(world.uri, **options)
        if report.left:
            raise InTheWayError("; ".join(left.reason for left in report.left))
        yield report

    return steps


def move_cursor(name: str, offset: int) -> Steps:
    def steps(world: World) -> Iterator[object]:
        with BookKeeper(world.uri) as keeper:
            cursor = keeper.open_log(name).cursor("reader")
            yield None
            cursor.advance(offset)
            yield None

    return steps


def seal(keeper: BookKeeper, name: str) -> Told:
    log = keeper.open_log(name)
    log.seal()
    return Told((f"log {name}", log.end_offset))


def seal_tail(keeper: BookKeeper, name: str) -> None:
    """Close the last ledger of a log, unless the log ends in a closed one by now."""
    for ledger_id in keeper.open_log(name).record.tail[-1:]:
        keeper.recover_ledger(ledger_id, seal=True)


def commit_planned(world: World) -> Iterator[object]:
    yield batch_commit.commit(*world.planned)


def abort_planned(world: World) -> Iterator[object]:
    batch_commit.abort(world.planned[0])
    yield None


def delete_planned(world: World) -> Iterator[object]:
    with BookKeeper(world.uri) as keeper:
        keeper.delete_ledger(world.planned[0].ledger_id)
        yield None


def disk_of(world: World, bookie_id: str) -> disks.MemoryDisk:
    disk = disks.find_disk(world.urls[bookie_id])
    assert disk is not None
    return disk


def append_while_one_fails(world: World) -> Iterator[object]:
    """A bookie of the ensemble is away from the second entry on."""
    with BookKeeper(world.uri) as keeper:
        writer = keeper.open_log(CHAINED).writer(settings=SILENT)
        first = writer._segment.handle.metadata.last_fragment.ensemble[0].bookie_id
        away = None
        try:
            yield world.wait_for(writer.append_async(b"on three"))
            away = disks.place_disk(world.urls[first], None)
            yield world.wait_for(writer.append_async(b"on others"))
            disks.place_disk(world.urls[first], away)
            writer.close()
            yield None
        finally:
            if away is not None:
                disks.place_disk(world.urls[first], away)
            writer.release()
