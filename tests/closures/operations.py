"""All that changes a cluster, a row each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bkspark import verbs
from bkspark.admin import bookies
from bkspark.admin.absent_bookies import declare_lost
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerExistsError,
    MetadataVersionError,
    NoSuchEntryError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.protocol.ledger.record import Transaction
from tests.integration.rig import SCHEMA

from .acts import (
    Errors,
    InTheWayError,
    Steps,
    abort_planned,
    append,
    append_while_one_fails,
    by_cluster,
    by_keeper,
    by_verb,
    by_whole_verb,
    commit_planned,
    delete_planned,
    move_cursor,
    seal,
    seal_tail,
    stream,
    write,
    write_in_vain,
    write_ledger,
)
from .names import CHAINED, CLOSED_ONE, GONE, IDLE, LOGS, ROWS, UNBOUNDED
from .set_ups import (
    with_bookie_to_drain,
    with_carried_disk,
    with_closed_bookie,
    with_damage,
    with_full_disk,
    with_left_copies,
    with_new_bookie,
    with_overwritten_log,
    with_planned_write,
    with_retention,
    with_small_ledger,
    with_spent_pages,
    with_stream,
    with_wiped_disk,
)
from .world import World

NO_LOG: Errors = (NoSuchLedgerError,)
ANEW: Errors = (NoSuchLedgerError, MetadataVersionError)
TAKEN: Errors = (*ANEW, OutcomeUnknownError, LedgerClosedError, NotEnoughBookiesError)
"""Of who writes: somebody else has taken the log, ended it or made it anew."""


@dataclass(frozen=True)
class Operation:
    """Something that a client does.

    Attributes:
        steps: each ``next`` does one thing, which is done as a whole or not at all.
        may: errors with which a step may end: because somebody else is, or was, at work.
        set_up: what was done before.
        is_idempotent: whether two that do it at once may both say that it is done.
        key: of the log's record that it is about.
        begins: with which read of that; 0 if it does not mean the contents that it saw then.
        registers: log, query and run of a streaming query. A run is registered before its batch
            is written, and stays registered if the batch is refused.
    """

    name: str
    steps: Steps
    may: Errors = ()
    set_up: Steps | None = None
    is_idempotent: bool = False
    key: str = ""
    begins: int = 0
    registers: tuple[str, str, str] | None = None


LOG_CHANGES: tuple[tuple[str, Callable[[BookKeeper, str], object], Errors], ...] = (
    ("truncate", lambda k, n: k.open_log(n).truncate(4 if n == ROWS else 2), ANEW),
    ("retain", lambda k, n: k.open_log(n).retain(), NO_LOG),
    ("keep", lambda k, n: k.open_log(n).keep(max_bytes=1), NO_LOG),
    ("delete", lambda k, n: k.delete_log(n), ANEW),
    ("seal", seal, ANEW),
    (
        "convert",
        lambda k, n: k.open_log(n).convert(unbounded=n != UNBOUNDED),
        (*ANEW, LedgerClosedError),
    ),
    ("make a cursor of", lambda k, n: k.open_log(n).cursor("other"), (*ANEW, NoSuchEntryError)),
    ("delete the cursor of", lambda k, n: k.open_log(n).cursor("reader").delete(), ANEW),
)


def _of_logs() -> Iterator[Operation]:
    for name in LOGS:
        for what, act, may in LOG_CHANGES:
            set_up = with_retention(name) if what == "retain" else None
            steps = by_keeper(lambda k, n=name, act=act: act(k, n))
            is_idempotent = what == "delete"
            begins = {"truncate": 2, "delete": 1, "seal": 2, "convert": 2}.get(what, 0)
            about = (set_up, is_idempotent, f"logs/{name}", begins)
            yield Operation(f"{what} {name}", steps, may, *about)
        yield Operation(f"compact {name}", by_verb(verbs.compact, log=name), NO_LOG)
        yield Operation(
            f"move the cursor of {name}",
            move_cursor(name, 3),
            (*ANEW, NoSuchEntryError, InvalidRequestError),
        )
    yield Operation("append while a bookie fails", append_while_one_fails, TAKEN)
    for name in (CHAINED, UNBOUNDED):
        yield Operation(f"append to {name}", append(name), TAKEN)
        yield Operation(
            f"seal the tail of {name}",
            by_keeper(lambda k, n=name: seal_tail(k, n)),
            NO_LOG,
        )
        yield Operation(f"roll {name}", append(name, rolls=True), TAKEN)


def _of_rows() -> Iterator[Operation]:
    transaction = Transaction("app", 7)
    gone_back: Errors = (*TAKEN, InvalidRequestError)  # its batches are not the log's next
    yield Operation("write rows", write(100), TAKEN)
    yield Operation("overwrite rows", write(200, is_overwrite=True), TAKEN)
    yield Operation(
        "write rows of a transaction", write(100, transaction=transaction), TAKEN, None, True
    )
    yield Operation("abort rows", write_in_vain)
    yield Operation("commit rows", commit_planned, TAKEN, with_planned_write, True)
    yield Operation("abort a commit", abort_planned, (), with_planned_write, True)
    yield Operation(
        "delete the ledger of a commit",
        delete_planned,
        (*NO_LOG, InvalidRequestError),
        with_planned_write,
        is_idempotent=True,
    )
    yield _streaming("stream on", "run-2", 2, may=gone_back, set_up=with_stream)
    yield Operation("write rows of a new log", write(400, GONE), TAKEN)
    yield _streaming("stream", "run-1", 0, 1, may=gone_back)
    yield _streaming("stream again", "run-3", 0, 1, may=gone_back)
    yield _streaming("stream to a new log", "run-1", 0, may=gone_back, log=GONE)
    yield Operation(
        "create a log", by_keeper(lambda k: k.create_log(GONE, schema=SCHEMA)), (LedgerExistsError,)
    )
    yield Operation(
        "create a deleted log", by_keeper(lambda k: k.create_log(CHAINED)), (LedgerExistsError,)
    )


def _streaming(
    name: str,
    run: str,
    *batch_ids: int,
    may: Errors,
    set_up: Steps | None = None,
    log: str = ROWS,
) -> Operation:
    steps = stream("query", run, *batch_ids, name=log)
    return Operation(name, steps, may, set_up, registers=(log, "query", run))


def _of_ledgers() -> Iterator[Operation]:
    def delete(world: World) -> Iterator[object]:
        yield from by_keeper(lambda keeper: keeper.delete_ledger(world.closed))(world)

    def delete_left(world: World) -> Iterator[object]:
        yield from by_keeper(lambda keeper: keeper.delete_ledger(world.left))(world)

    def recover(world: World) -> Iterator[object]:
        yield from by_keeper(lambda keeper: keeper.recover_ledger(world.left))(world)

    full: Errors = (NotEnoughBookiesError,)
    yield Operation("write a ledger", write_ledger, full)
    yield Operation("write a ledger on a new bookie", write_ledger, full, with_new_bookie)
    yield Operation("write a ledger beside a full bookie", write_ledger, full, with_full_disk)
    yield Operation("delete a ledger", delete, NO_LOG, is_idempotent=True)
    yield Operation("delete a left ledger", delete_left, NO_LOG, is_idempotent=True)
    yield Operation("recover a ledger", recover, NO_LOG)


def _of_upkeep() -> Iterator[Operation]:
    now: dict[str, Any] = {"open_grace": 0, "no_lease": True}
    yield Operation("recover", by_verb(verbs.recover, **now))
    yield Operation("repair", by_verb(verbs.repair, **now))
    yield Operation("collect", by_verb(verbs.collect, abandoned_after=0, no_lease=True))
    yield Operation("repair damage", by_verb(verbs.repair, **now), set_up=with_damage)
    yield Operation("widen a ledger", by_verb(verbs.repair, **now), set_up=with_small_ledger)
    yield Operation(
        "collect copies",
        by_verb(verbs.collect, abandoned_after=0, no_lease=True),
        set_up=with_left_copies,
    )
    yield Operation(
        "collect what logs had",
        by_verb(verbs.collect, abandoned_after=0, no_lease=True),
        set_up=with_overwritten_log,
    )
    yield Operation(
        "collect pages",
        by_verb(verbs.collect, abandoned_after=0, no_lease=True),
        set_up=with_spent_pages,
    )
    yield Operation("scrub", by_verb(verbs.scrub), set_up=with_damage)
    yield Operation("rebalance", by_verb(verbs.rebalance, threshold=0.01, no_lease=True))
    yield Operation(
        "decommission",
        by_whole_verb(verbs.decommission, bookies=[CLOSED_ONE]),
        (InTheWayError,),
        with_closed_bookie,
    )
    yield Operation(
        "decommission all",
        by_whole_verb(verbs.decommission, bookies=[CLOSED_ONE]),
        (InTheWayError,),
        with_bookie_to_drain,
    )


def _of_bookies() -> Iterator[Operation]:
    changed: Errors = (InvalidRequestError,)
    yield Operation("close a bookie", by_verb(bookies.readonly, bookie_id=CLOSED_ONE))
    yield Operation("open a bookie", by_verb(bookies.readonly, bookie_id=IDLE, off=True), changed)
    yield Operation(
        "mark a bookie", by_verb(bookies.marks, bookie_id=IDLE, high=0.5, low=0.4), changed
    )
    yield Operation(
        "remove a bookie", by_whole_verb(bookies.remove, bookie_id=IDLE), (*changed, InTheWayError)
    )
    yield Operation(
        "remove a new bookie",
        by_whole_verb(bookies.remove, bookie_id=IDLE),
        (*changed, InTheWayError),
        with_new_bookie,
    )
    yield Operation(
        "begin a bookie anew",
        by_verb(bookies.reinit, bookie_id=IDLE, accepts_risk=True),
        changed,
        with_wiped_disk,
    )
    yield Operation(
        "lose a bookie",
        by_cluster(lambda cluster: declare_lost(cluster, IDLE)),
        changed,
        with_wiped_disk,
    )

    def move(world: World) -> Iterator[object]:
        yield bookies.move(world.uri, IDLE, f"{world.urls[IDLE]}-new", accepts_risk=True)

    yield Operation("move a bookie", move, changed, with_carried_disk)

    def add(world: World) -> Iterator[object]:
        with Cluster(world.uri) as cluster:
            yield cluster.add_bookie("", f"{world.urls[IDLE]}-more", accepts_risk=True)

    yield Operation("add a bookie", add, (LedgerExistsError, *changed))


OPERATIONS = (*_of_logs(), *_of_rows(), *_of_ledgers(), *_of_upkeep(), *_of_bookies())
