"""A cluster as its clients see it: the records in its metadata store and its bookies."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_hex

from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie, storage
from bkspark.client.records import Records, Seen
from bkspark.errors import (
    BookieUnavailableError,
    InvalidRequestError,
    NoSuchLedgerError,
)
from bkspark.format import cluster as cluster_format
from bkspark.format import cookie as cookie_format
from bkspark.format import layout, ledger_metadata, log_record
from bkspark.format.cluster import BookieRecord, ClusterRecord
from bkspark.metadata import uri as metadata_stores
from bkspark.protocol.ledger import LedgerMetadata, LedgerState, Member
from bkspark.protocol.log import LogRecord
from bkspark.protocol.placement import Candidate


@dataclass(frozen=True, slots=True)
class BookieStatus:
    """A registered bookie and whether it can be used now.

    Attributes:
        problem: empty if it can be used, else why not, in one line.
        free_bytes: 0 if unknown.
    """

    record: BookieRecord
    problem: str = ""
    free_bytes: int = 0


class Cluster:
    """Typed access to one cluster. Holds a connection; use it in a ``with`` block.

    Raises:
        InvalidRequestError: the URI is malformed, or there is no cluster at it.
    """

    def __init__(self, metadata_uri: str) -> None:
        self.store = metadata_stores.open_store(metadata_uri)
        self.uri = metadata_uri
        self.ledgers: Records[LedgerMetadata] = Records(
            self.store,
            lambda name: layout.ledger_key(int(name)),
            ledger_metadata.encode,
            lambda name, data: ledger_metadata.decode(int(name), data),
        )
        self.logs: Records[LogRecord] = Records(
            self.store, layout.log_key, log_record.encode, log_record.decode
        )
        self._bookies: Records[BookieRecord] = Records(
            self.store,
            layout.bookie_key,
            cluster_format.encode_bookie,
            cluster_format.decode_bookie,
        )
        self._counters: Records[int] = Records(
            self.store,
            lambda name: name,
            lambda value, nonce: cluster_format.encode_counter(
                layout.LEDGER_COUNTER_KEY, value, nonce
            ),
            cluster_format.decode_counter,
        )
        try:
            self.cluster_id = self._read_identity()
        except BaseException:
            self.store.close()
            raise

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    # --- ledgers and logs ------------------------------------------------------------------

    def new_ledger_id(self) -> int:
        """An id that no ledger has had or will have again."""
        seen = self._counters.update(layout.LEDGER_COUNTER_KEY, lambda value: (value or 0) + 1)
        return seen.value - 1

    def ledger(self, ledger_id: int) -> Seen[LedgerMetadata]:
        """The ledger's newest metadata.

        Raises:
            NoSuchLedgerError: never existed, or is being deleted.
        """
        seen = self.ledgers.get(str(ledger_id))
        if seen is None or seen.value.state is LedgerState.DELETING:
            raise NoSuchLedgerError(
                f"there is no ledger {ledger_id}", hint="`bkspark ledgers` lists them"
            )
        return seen

    def ledger_ids(self) -> list[int]:
        """Ids of all ledgers, tombstones included, ascending."""
        return [layout.parse_ledger_key(name) for name in self.store.list(layout.LEDGERS_PREFIX)]

    def log(self, name: str) -> Seen[LogRecord]:
        """The log's newest record.

        Raises:
            NoSuchLedgerError: there is no such log.
        """
        seen = self.logs.get(name)
        if seen is None or seen.value.is_vacant:
            raise NoSuchLedgerError(f"there is no log {name!r}", hint="`bkspark logs` lists them")
        return seen

    def log_names(self) -> list[str]:
        """Names that have or had a log."""
        return self.store.list(layout.LOGS_PREFIX)

    # --- bookies ---------------------------------------------------------------------------

    def bookies(self) -> dict[str, BookieRecord]:
        """All registered bookies by id."""
        found = ((name, self._bookies.get(name)) for name in self.store.list("bookies"))
        return {name: seen.value for name, seen in found if seen is not None}

    def address(self, record: BookieRecord) -> BookieAddress:
        return BookieAddress(
            record.bookie_id, record.incarnation, self.cluster_id, record.url, record.domain
        )

    def addresses(self) -> dict[Member, BookieAddress]:
        """Where each registered member is; members of older incarnations are not there any more."""
        return {
            Member(record.bookie_id, record.incarnation): self.address(record)
            for record in self.bookies().values()
        }

    def probe(self) -> list[BookieStatus]:
        """Look at every bookie: its cookie and its free space."""
        return [self._probe_one(record) for record in self.bookies().values()]

    def candidates(self) -> list[Candidate]:
        """Bookies that may get into an ensemble now."""
        return [
            Candidate(
                Member(status.record.bookie_id, status.record.incarnation),
                status.record.domain,
                status.free_bytes,
            )
            for status in self.probe()
            if not status.problem and not status.record.is_read_only
        ]

    def _probe_one(self, record: BookieRecord) -> BookieStatus:
        try:
            with open_bookie(self.address(record)).open_root() as root:
                return BookieStatus(record, "", root.free_bytes())
        except BookieUnavailableError as error:
            return BookieStatus(record, str(error))

    def add_bookie(self, bookie_id: str, url: str) -> BookieRecord:
        """Make the empty place at ``url`` a bookie of this cluster and register it."""
        place = storage(url)
        incarnation = token_hex(16)
        cookie = cookie_format.Cookie(self.cluster_id, bookie_id, incarnation, now_ms())
        record = BookieRecord(layout.bookie_id(bookie_id), incarnation, url, place.failure_domain())
        place.format(cookie_format.encode(cookie))
        self._bookies.create(bookie_id, record)
        return record

    def _read_identity(self) -> str:
        stored = self.store.get(layout.CLUSTER_KEY)
        if stored is None:
            raise InvalidRequestError(
                f"there is no cluster at {self.uri}", hint=f"run: bkspark init {self.uri}"
            )
        return cluster_format.decode_cluster(stored.value).cluster_id


def init_cluster(metadata_uri: str, bookie_urls: Sequence[str]) -> None:
    """Make a new cluster with the given bookies, or nothing at all if something is in the way.

    Raises:
        InvalidRequestError: a place is taken, missing or named twice.
    """
    if len(set(bookie_urls)) != len(bookie_urls):
        raise InvalidRequestError("a bookie URL is given twice")
    for url in bookie_urls:
        storage(url).require_suitable()
    store = metadata_stores.format_store(metadata_uri)
    record = ClusterRecord(token_hex(16), now_ms())
    store.put(layout.CLUSTER_KEY, cluster_format.encode_cluster(record, token_hex(8)), None)
    store.close()
    with Cluster(metadata_uri) as cluster:
        for number, url in enumerate(bookie_urls, start=1):
            cluster.add_bookie(f"bookie-{number}", url)


def now_ms() -> int:
    """Wall clock for people's eyes; no decision depends on it."""
    return time.time_ns() // 1_000_000


def draw() -> float:
    """The chance that placement is given."""
    return random.random()
