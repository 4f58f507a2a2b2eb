"""Where a DataFrame write goes: everything a task needs to know, and nothing else.

A target is made once, on the driver, and travels pickled to the tasks and to the commit. Tasks
never talk to the metadata store.
"""

from dataclasses import dataclass

import pyarrow as pa

from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.password import Password, make_digester
from bkspark.format import arrow_schema
from bkspark.format.digest import Digester
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.ledger.settings import DigestSpec


@dataclass(frozen=True, slots=True)
class BlockSettings:
    """How rows are cut into blocks, the unit of digests, pruning and splits.

    Attributes:
        rows_per_block: most rows in a block.
        target_bytes: a block is cut when it has about this many payload bytes.
        compression: none, lz4 or zstd.
    """

    rows_per_block: int
    target_bytes: int
    compression: str


@dataclass(frozen=True, slots=True)
class WriteChecks:
    """What a write refuses to do.

    Attributes:
        compares_repeats: whether a micro-batch that is committed, and comes again, has to have the
            same rows.
        is_strict: whether no ledger may be made for it on fewer bookies than wanted; a log that it
            makes stays so. None where nothing was said.
    """

    compares_repeats: bool = True
    is_strict: bool | None = None


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What the user asked for; None where nothing was said.

    Attributes:
        log_name: the log to append to.
        schema: of the rows.
        quorum, is_unbounded: for a new log; for an existing one it must agree if given.
        checks: what it refuses to do.
    """

    metadata_uri: str
    log_name: str
    schema: pa.Schema
    quorum: Quorum | None
    digest_type: str | None
    password: Password
    blocks: BlockSettings
    transaction: Transaction | None = None
    is_overwrite: bool = False
    merges_schema: bool = False
    is_unbounded: bool | None = None
    checks: WriteChecks = WriteChecks()

    @property
    def compares_repeats(self) -> bool:
        return self.checks.compares_repeats

    @property
    def is_strict(self) -> bool | None:
        return self.checks.is_strict


@dataclass(frozen=True, slots=True)
class BatchTarget:
    """A private ledger that one DataFrame write fills, and the log it then joins.

    Attributes:
        wanted: the sizes that the log wants; ``quorum`` is what the ledger has.
        schema: under which the ledger stores its rows, as an IPC schema message.
        token: of the writer; only the one commit process writes records with it (R2).
        ensemble: E bookies in stripe order.
        spares: bookies that may step in, in order of preference.
        is_done: the transaction is in the log already; tasks write nothing, commit does nothing.
    """

    request: WriteRequest
    ledger_id: int
    term: int
    token: str
    quorum: Quorum
    wanted: Quorum
    schema: bytes
    digest: DigestSpec
    ensemble: tuple[BookieAddress, ...]
    spares: tuple[BookieAddress, ...]
    is_done: bool = False

    @property
    def cluster_id(self) -> str:
        """Of the cluster that the write began in; empty if it is done."""
        return self.ensemble[0].cluster_id if self.ensemble else ""

    @property
    def columns(self) -> pa.Schema:
        """As the ledger has them."""
        return arrow_schema.decode(self.schema)

    def digester(self) -> Digester:
        return make_digester(self.digest, self.request.password)

    def address(self, bookie_id: str) -> BookieAddress:
        """Of a member of the ensemble or a spare."""
        return next(a for a in (*self.ensemble, *self.spares) if a.bookie_id == bookie_id)
