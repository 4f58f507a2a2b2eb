"""Ledgers that go on in later terms: their writers, one behind the other, and what they have."""

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.format import arrow_schema
from bkspark.format.digest import Digester
from bkspark.ledger.creating import create_ledger
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.ledger.recovery.recover import take_over
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.quorum import Quorum
from tests.integration.waiting import wait_for_all_copies

SECONDS = 60
DIGESTER = Digester(DigestSpec(), None)


def begun(cluster: Cluster) -> WriteHandle:
    """A writer of a ledger that goes on."""
    created = create_ledger(
        cluster,
        quorum=Quorum(3, 3, 2),
        digest=DigestSpec(),
        schema=arrow_schema.encode(VALUE_SCHEMA),
        custom_metadata={},
        digester=DIGESTER,
        goes_on=True,
    )
    return WriteHandle(cluster, created.seen, DIGESTER, begun=created.begun)


def successor(cluster: Cluster, ledger_id: int) -> WriteHandle:
    taken = take_over(cluster, ledger_id, Password())
    return WriteHandle(
        *(cluster, taken.seen, DIGESTER),
        begun=taken.begun,
        standing=taken.standing,
        unjoined=taken.unjoined,
    )


def add(handle: WriteHandle, *, rolls: int = 3, count: int = 2) -> None:
    """So many fragments of ``count`` entries, and one of as many that is in use."""
    for number in range(rolls + 1):
        if number:
            handle.begin_fragment().result(SECONDS)
        for _ in range(count):
            handle.append(b"%d" % (handle.last_add_confirmed + 1))
    wait_for_all_copies(handle)


def values(keeper: BookKeeper, ledger_id: int, *, recovery: bool = False) -> dict[int, bytes]:
    reader = keeper.open_ledger(ledger_id, recovery=recovery)
    return {entry.entry_id: entry.value for entry in reader.read()}


def those_from(first: int, end: int) -> dict[int, bytes]:
    return {number: b"%d" % number for number in range(first, end)}
