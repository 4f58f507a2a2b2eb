"""The target of a DataFrame write: all that a task needs to know.

The driver makes the target once, and sends it pickled to the tasks and to the commit. Tasks never
access the metadata store.
"""

from dataclasses import dataclass

import pyarrow as pa

from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.password import Password, make_digester
from bkspark.format import arrow_schema
from bkspark.format.digest import Digester
from bkspark.protocol.apart import Distinct
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import Transaction


@dataclass(frozen=True, slots=True)
class BlockSettings:
    """How rows are cut into blocks, the unit of digests, pruning and splits.

    Attributes:
        rows_per_block: most rows in a block.
        target_bytes: approximate payload bytes at which a block is cut.
        compression: none, lz4 or zstd.
    """

    rows_per_block: int
    target_bytes: int
    compression: str


@dataclass(frozen=True, slots=True)
class WriteChecks:
    """The checks of a write.

    Attributes:
        compares_repeats: whether a committed micro-batch that is sent again must have the same
            rows.
        is_strict: whether no ledger may be made on fewer bookies than wanted; a log that the write
            creates is then strict too. None if not given.
        min_distinct: labels whose values must differ in each write set of a new log; must agree
            with an existing log. None if not given.
    """

    compares_repeats: bool = True
    is_strict: bool | None = None
    min_distinct: Distinct | None = None


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The user's request; None for options that were not given.

    Attributes:
        log_name: the log to append to.
        schema: schema of the rows.
        quorum, is_unbounded: for a new log; must agree with an existing log, if given.
        checks: the checks of the write.
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

    @property
    def min_distinct(self) -> Distinct | None:
        return self.checks.min_distinct


@dataclass(frozen=True, slots=True)
class BatchTarget:
    """The ledger that the tasks of a write fill, and its log.

    The ledger is private and joins the log later, or is the tail of the log already.

    Attributes:
        wanted: the quorum sizes that the log wants; ``quorum`` has the ledger's sizes.
        schema: the schema of the ledger's rows, as an IPC schema message.
        token: the writer's token; only the one commit process writes records with it (R2).
        ensemble: E bookies in stripe order.
        spares: bookies that may replace members, in order of preference.
        is_done: the transaction is in the log already; tasks and commit write nothing.
        log_last_ms: the last time of the log's closed ledgers when the write began
            (``commit_times``).
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
    log_last_ms: int = 0

    @property
    def cluster_id(self) -> str:
        """Id of the cluster in which the write began; empty if the write is done."""
        return self.ensemble[0].cluster_id if self.ensemble else ""

    @property
    def columns(self) -> pa.Schema:
        """The columns of the ledger."""
        return arrow_schema.decode(self.schema)

    def digester(self) -> Digester:
        return make_digester(self.digest, self.request.password)

    def address(self, bookie_id: str) -> BookieAddress:
        """Return the address of a member of the ensemble or of a spare."""
        return next(a for a in (*self.ensemble, *self.spares) if a.bookie_id == bookie_id)
