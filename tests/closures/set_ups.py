"""What is done to the scene before an operation that needs it."""

from collections.abc import Iterator

from bkspark import verbs
from bkspark.admin import bookies
from bkspark.bookie import memory as disks
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.format import layout
from bkspark.log.batch import preparing as batch_plan
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.target import WriteRequest
from bkspark.log.recovering import close_tail
from tests.integration.rig import BLOCKS, SCHEMA, rows_from

from .acts import QUORUM, Steps, batch, by_keeper, disk_of, stream, write_ledger
from .names import CHAINED, CLOSED_ONE, IDLE, LOGS, ROWS
from .world import World


def with_retention(name: str) -> Steps:
    return by_keeper(lambda keeper: keeper.open_log(name).keep(max_bytes=1))


def with_new_bookie(world: World) -> Iterator[object]:
    """New ledgers can be on three bookies, one of which has nothing yet."""
    for bookie_id in ("bookie-1", "bookie-2", "bookie-3"):
        yield bookies.readonly(world.uri, bookie_id)
    yield bookies.readonly(world.uri, IDLE, off=True)


def with_closed_bookie(world: World) -> Iterator[object]:
    yield bookies.readonly(world.uri, CLOSED_ONE)


def with_full_disk(world: World) -> Iterator[object]:
    """A disk has passed its mark."""
    disk_of(world, CLOSED_ONE).free_bytes = 2**20
    yield None


def with_damage(world: World) -> Iterator[object]:
    """One bookie has lost what it had of a closed ledger, and another one shows other bytes."""
    with Cluster(world.uri) as cluster:
        place = cluster.log(CHAINED).value.ledgers_in(0, 1)
        ledger = cluster.ledger(next(iter(place)).ledger_id).value
    gone, bad = (member.bookie_id for member in ledger.last_fragment.ensemble[:2])
    folder = layout.ledger_folder(ledger.ledger_id)
    for name in [name for name in disk_of(world, gone).files if name.startswith(f"{folder}/")]:
        yield disk_of(world, gone).files.pop(name)
    for name, file in disk_of(world, bad).files.items():
        if name.startswith(f"{folder}/journal/"):
            file.data[-20] ^= 1
    yield None


def with_bookie_to_drain(world: World) -> Iterator[object]:
    """All that the bookie has is of closed ledgers, and a new bookie takes it."""
    yield from with_all_closed(world)
    yield from with_new_bookie(world)
    yield bookies.readonly(world.uri, CLOSED_ONE)


def with_left_copies(world: World) -> Iterator[object]:
    """A bookie has left what it had; its copies are there still."""
    yield bookies.readonly(world.uri, CLOSED_ONE)
    with Cluster(world.uri) as cluster:
        yield verbs.decommission(world.uri, bookies=[CLOSED_ONE])
        yield cluster


def with_all_closed(world: World) -> Iterator[object]:
    """All ledgers are closed."""
    with BookKeeper(world.uri) as keeper:
        for name in LOGS:
            yield close_tail(keeper._cluster, name, Password())
        yield keeper.recover_ledger(world.left)


def with_overwritten_log(world: World) -> Iterator[object]:
    """A log has let go of ledgers, and of a page."""
    for first in (30, 40):
        yield batch(world, first)
    yield batch(world, 600, is_overwrite=True)


def with_spent_pages(world: World) -> Iterator[object]:
    """Nothing is left of the ledgers of that page."""
    yield from with_overwritten_log(world)
    yield verbs.collect(world.uri, abandoned_after=0, no_lease=True)


def with_stream(world: World) -> Iterator[object]:
    yield from stream("query", "run-1", 0)(world)


def with_planned_write(world: World) -> Iterator[object]:
    """A write whose tasks have ended, and that is not committed yet."""
    request = WriteRequest(world.uri, ROWS, SCHEMA, QUORUM, None, Password(), BLOCKS)
    target = batch_plan.prepare(request)
    world.planned = target, [AttemptWriter(target, 0).write([rows_from(500, 3)])]
    yield None


def with_wiped_disk(world: World) -> Iterator[object]:
    disk = disks.find_disk(world.urls[IDLE]) or disks.find_disk(f"{world.urls[IDLE]}-new")
    if disk is not None:
        disk.wipe()
    yield None


def with_carried_disk(world: World) -> Iterator[object]:
    disk = disks.place_disk(world.urls[IDLE], None)
    yield disks.place_disk(f"{world.urls[IDLE]}-new", disk)


def with_small_ledger(world: World) -> Iterator[object]:
    """A ledger was made where two bookies could be used; now there is a third one."""
    for bookie_id in ("bookie-1", "bookie-2", "bookie-3", IDLE):
        yield bookies.readonly(world.uri, bookie_id)
    yield from write_ledger(world)
    yield bookies.readonly(world.uri, IDLE, off=True)
