"""The cluster that operations work on, and what can be seen of it afterwards."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any

import pyarrow as pa

from bkspark import verbs
from bkspark.admin.bookies import closing
from bkspark.bookie import memory as disks
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.errors import NoSuchLedgerError
from bkspark.format import layout
from bkspark.ledger.creating import log_of
from bkspark.log.recovering import close_tail
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.log.contents import Retention

from .acts import batch
from .names import BOOKIES, CHAINED, IDLE, ROWS, SILENT, UNBOUNDED
from .world import HOUR_MS, Contents, World

NAME = "closures"

Seen = dict[str, Any]
NOTHING_LEFT = (False, Retention(), {})
"""What the record of a deleted log, or of one whose first write failed, need not tell."""


@cache
def scene() -> tuple[World, Contents]:
    """A world with three logs, each with something in it that its writer has left open."""
    world = World(NAME, BOOKIES)
    with world.outside():
        init_cluster(world.uri, list(world.urls.values()), accepts_risk=True)

    def steps() -> Any:
        with BookKeeper(world.uri) as keeper:
            with Cluster(world.uri) as cluster:
                closing.set_read_only(cluster, IDLE)
            for name in (CHAINED, UNBOUNDED):
                log = keeper.create_log(name, unbounded=name == UNBOUNDED)
                writer = log.writer(settings=SILENT)
                for number in range(4):
                    if number:
                        writer.roll()
                    world.wait_for(writer.append_async(f"{name} {number}".encode()))
                writer.release()
                log.cursor("reader", 1)
            for number in range(3):
                batch(world, 10 * number)
            keeper.open_log(ROWS).cursor("reader", 1)
            with keeper.create_ledger(settings=SILENT) as closed:
                world.wait_for(closed.append_async(b"closed"))
            left = keeper.create_ledger(settings=SILENT)
            world.wait_for(left.append_async(b"left"))
            left.release()
            with keeper.create_ledger(settings=SILENT) as deleted:
                world.wait_for(deleted.append_async(b"deleted"))
            keeper.delete_ledger(deleted.ledger_id)
            world.closed, world.left = closed.ledger_id, left.ledger_id
            yield

    outcome = world.run("maker", steps())
    assert outcome.error is None, outcome.error
    return world, world.contents()


# --- what is seen ---------------------------------------------------------------------------------


def require_sound(world: World) -> None:
    """What holds of the records at any time."""
    with world.outside(), Cluster(world.uri) as cluster:
        ledgers = {i: cluster.ledgers.get(str(i)) for i in cluster.ledger_ids()}
        for name in cluster.log_names():
            seen = cluster.logs.get(name)
            assert seen is not None
            log = seen.value
            for ledger_id in [*log.listed_ids, *log.tail]:
                found = ledgers[ledger_id]
                assert found is not None, f"log {name} lists {ledger_id}, which is gone"
                state = found.value.state
                assert state is not LedgerState.DELETING, f"log {name} lists {ledger_id}: {state}"
                assert not log.has_dropped(ledger_id), f"log {name} has {ledger_id} twice"
            for place in log.ledgers_in(log.first_offset, log.end_offset):
                ledger = ledgers[place.ledger_id].value  # type: ignore[union-attr]
                assert ledger.state is LedgerState.CLOSED, (name, place, ledger.state)
                assert ledger.last_entry_id == place.entry_count - 1, (name, place)
        _require_members(cluster)


def _require_members(cluster: Cluster) -> None:
    """No closed ledger with entries names a bookie that was removed."""
    known = cluster.bookies().keys()
    for ledger_id in cluster.ledger_ids():
        seen = cluster.ledgers.get(str(ledger_id))
        if seen and seen.value.state is LedgerState.CLOSED and seen.value.last_entry_id != -1:
            named = {m.bookie_id for f in seen.value.fragments for m in f.ensemble}
            assert named <= known, f"ledger {ledger_id} names {named - known}, which are removed"


def see(world: World) -> Seen:
    """All that users can see once whoever was at work has ended, and tails were closed."""
    found: Seen = {}
    contents = world.contents()
    with world.outside(), BookKeeper(world.uri) as keeper:
        cluster = keeper._cluster
        records = cluster.bookies()
        lost = sorted(cluster.lost_members(), key=str)
        around = (tuple(sorted(records.items())), tuple(lost))
        alone = {*map(str, cluster.ledger_ids())}
        for name in cluster.log_names():
            seen = cluster.logs.get(name)
            assert seen is not None
            ids = {str(i) for i in (*seen.value.listed_ids, *seen.value.tail)}
            alone -= ids
            if seen.value.is_tombstone:
                left = (seen.value.is_sealed, seen.value.retention, seen.value.transactions)
                if left != NOTHING_LEFT:
                    found[f"gone {name}"] = left
            else:
                key = (name, around, _about(contents, f"/{name}", ids))
                found[f"log {name}"] = _once(key, partial(_log, keeper, name))
        key = ("ledgers", around, _about(contents, "", alone))
        found["ledgers"] = _once(key, lambda: sorted(_alone(keeper, map(int, sorted(alone)))))
        for bookie_id, record in records.items():
            flags = (record.is_read_only, record.is_leaving, record.is_full, record.marks)
            found[f"bookie {bookie_id}"] = (record.url, record.incarnation, *flags)
        found["lost"] = lost
    return found


_known: dict[object, Any] = {}


def _once(key: object, look: Callable[[], Any]) -> Any:
    """What a look has shown before where all bytes were the same: most of them are, mostly."""
    if key not in _known:
        _known[key] = look()
    return _known[key]


def _about(contents: Contents, name: str, ledger_ids: set[str]) -> tuple[object, ...]:
    """All that is stored of these ledgers, and of a log."""
    records, places, _planned = contents
    folders = {layout.ledger_folder(int(ledger_id)) for ledger_id in ledger_ids}
    keys = {layout.ledger_key(int(ledger_id)) for ledger_id in ledger_ids}
    own = [(k, v) for k, v in records.items() if k in keys or (name and name in k)]
    files = [
        (url, file, data)
        for url, (_, disk) in places.items()
        for file, data in disk.items()
        if file.startswith(tuple(f"{folder}/" for folder in folders))
    ]
    return tuple(sorted(own, key=lambda one: one[0])), tuple(sorted(files))


def _log(keeper: BookKeeper, name: str) -> Seen:
    log = close_tail(keeper._cluster, name, Password()).value
    handle = keeper.open_log(name)
    table: pa.Table = handle.read_arrow()
    rows = [tuple(row.values()) for row in table.to_pylist()]
    offsets = [row[-1] for row in rows]
    assert offsets == list(range(log.first_offset, log.end_offset)), (log.name, offsets)
    return {
        "rows": rows,
        "first": log.first_offset,
        "generation": log.generation,
        "sealed": log.is_sealed,
        "unbounded": log.is_unbounded,
        "columns": table.column_names,
        "retention": log.retention,
        "transactions": dict(log.transactions),
        "streams": {query: runs[-1] for query, runs in log.committed.streams.items()},
        "cursors": {c.name: (c.generation, c.offset) for c in handle.cursors},
    }


def _alone(keeper: BookKeeper, ledger_ids: Iterable[int]) -> Iterator[list[bytes]]:
    """What is in ledgers of no log."""
    for ledger_id in ledger_ids:
        seen = keeper._cluster.ledgers.get(str(ledger_id))
        is_there = seen is not None and seen.value.state is not LedgerState.DELETING
        if seen is not None and is_there and log_of(seen.value) is None:
            yield [entry.value for entry in keeper.open_ledger(ledger_id).read()]


def tidy_up(world: World) -> None:
    """Free all that nothing names, and see that nothing else is left to do."""
    world.clients.skew_ms += 48 * HOUR_MS
    with world.outside():
        with Cluster(world.uri) as cluster:
            for bookie_id in cluster.bookies():
                closing.set_read_only(cluster, bookie_id, off=True)
        verbs.recover(world.uri, open_grace=0, no_lease=True)
        verbs.repair(world.uri, open_grace=0, no_lease=True)
        for _ in range(2):
            report = verbs.collect(world.uri, abandoned_after=0, no_lease=True)
        assert not report.left, report.left
        report = verbs.audit(world.uri)
        assert not report.left, report.left
        with Cluster(world.uri) as cluster:
            _require_no_leftovers(world, cluster)


def _require_no_leftovers(world: World, cluster: Cluster) -> None:
    """No bookie has anything of a ledger without a record, no ledger of a log is named by none."""
    ids = set(cluster.ledger_ids())
    for record in cluster.bookies().values():
        disk = disks.find_disk(record.url)
        for name in () if disk is None else disk.files:
            if name.startswith(f"{layout.LEDGERS_PREFIX}/"):
                assert layout.parse_ledger_key(name.split("/")[2]) in ids, name
    for ledger_id in ids:
        try:
            ledger = cluster.ledger(ledger_id).value
        except NoSuchLedgerError:
            continue
        own_log = log_of(ledger)
        seen = None if own_log is None else cluster.logs.get(own_log)
        assert own_log is None or (seen and seen.value.lists(ledger_id)), (ledger_id, own_log)
