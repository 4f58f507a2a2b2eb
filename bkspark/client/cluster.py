"""A cluster as its clients see it: the records in its metadata store and its bookies."""

import os
import random
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from secrets import token_hex

from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie, storage
from bkspark.client import asking
from bkspark.client.records import Records, Seen
from bkspark.client.runtime import THREADS, Runtime
from bkspark.errors import (
    BookieUnavailableError,
    InvalidRequestError,
    NoSuchLedgerError,
)
from bkspark.format import cluster as cluster_format
from bkspark.format import cookie as cookie_format
from bkspark.format import layout, ledger_metadata, log_record
from bkspark.format import recovery as recovery_format
from bkspark.format.cluster import BookieRecord, ClusterRecord
from bkspark.format.recovery import LostBookie, StuckRecovery
from bkspark.metadata import uri as metadata_stores
from bkspark.protocol.ledger import LedgerMetadata, LedgerState, Member
from bkspark.protocol.log import LogRecord
from bkspark.protocol.placement import Candidate
from bkspark.protocol.quarantine import Quarantine

ASK_AGAIN_SECONDS = 60.0
"""A question to storage that hung may never be answered, even after the storage has healed (a mount
that was taken away by force): then another one is asked, and a thread is left to wait for ever."""


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

    @property
    def member(self) -> Member:
        return Member(self.record.bookie_id, self.record.incarnation)

    @property
    def may_join(self) -> bool:
        """Whether it may get into an ensemble, unless it was declared lost."""
        return not (self.problem or self.record.is_read_only)


class Cluster:
    """Typed access to one cluster. Holds a connection; use it in a ``with`` block.

    Raises:
        InvalidRequestError: the URI is malformed, or there is no cluster at it.
    """

    def __init__(self, metadata_uri: str) -> None:
        self.store = metadata_stores.open_store(metadata_uri)
        self.uri = metadata_uri
        self._quarantine = Quarantine()
        self._unanswered: dict[Member, tuple[float, Future[BookieStatus]]] = {}
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
        self.recoveries: Records[StuckRecovery] = Records(
            self.store,
            lambda name: layout.recovery_key(int(name)),
            recovery_format.encode_stuck,
            lambda name, data: recovery_format.decode_stuck(int(name), data),
        )
        self.lost: Records[LostBookie] = Records(
            self.store, layout.lost_key, recovery_format.encode_lost, recovery_format.decode_lost
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

    def lost_members(self) -> frozenset[Member]:
        """Members that an operator declared lost for ever."""
        found = ((name, self.lost.get(name)) for name in self.store.list(layout.LOST_PREFIX))
        return frozenset(
            Member(name, incarnation)
            for name, seen in found
            if seen is not None
            for incarnation in seen.value.incarnations
        )

    def probe(
        self, *, exclude: Collection[str] = (), runtime: Runtime = THREADS, needed: int = 0
    ) -> list[BookieStatus]:
        """Look at every bookie, all at once: its cookie and its free space.

        One that does not answer in time cannot be used now; nothing else is concluded. It is not
        asked again, nor waited for, for ``ASK_AGAIN_SECONDS`` or until it has answered.

        Args:
            exclude: bookie ids that are not looked at.
            runtime: what the questions run on.
            needed: if fewer can be used in time, those that are silent get more of it.
        """
        found = [BookieStatus(r) for r in self.bookies().values() if r.bookie_id not in exclude]
        now = time.monotonic()
        hanging = {
            member: (asked, answer)
            for member, (asked, answer) in self._unanswered.items()
            if not answer.done() and now - asked < ASK_AGAIN_SECONDS
        }
        questions = {s.member: self._look_at(s.record) for s in found if s.member not in hanging}
        answers = asking.ask(
            runtime,
            questions,
            seconds=asking.ANSWER_SECONDS,
            name="look-at-bookie",
            needed=needed,
            counts=lambda status: status.may_join,
        )
        silent = hanging | {m: (now, a) for m, a in answers.items() if not a.done()}
        self._unanswered = silent
        return [
            BookieStatus(s.record, f"bookie {s.record.bookie_id} does not answer")
            if s.member in silent
            else answers[s.member].result()
            for s in found
        ]

    def candidates(
        self, *, exclude: Collection[str] = (), runtime: Runtime = THREADS, needed: int = 0
    ) -> list[Candidate]:
        """Bookies that may get into an ensemble now; none that was declared lost.

        Args:
            exclude, runtime, needed: see ``probe``.
        """
        lost = self.lost_members()
        return [
            Candidate(status.member, status.record.domain, status.free_bytes)
            for status in self.probe(exclude=exclude, runtime=runtime, needed=needed)
            if status.may_join and status.member not in lost
        ]

    def note_failure(self, member: Member) -> None:
        """A writer could not use a bookie; after some failures others are chosen first."""
        self._quarantine.note_failure(member, time.monotonic())

    def suspects(self) -> frozenset[str]:
        """Bookies that failed so often lately that placement takes them last."""
        return self._quarantine.bookie_ids(time.monotonic())

    def _look_at(self, record: BookieRecord) -> Callable[[], BookieStatus]:
        def look() -> BookieStatus:
            try:
                with open_bookie(self.address(record)).open_root() as root:
                    return BookieStatus(record, "", root.free_bytes())
            except BookieUnavailableError as error:
                return BookieStatus(record, str(error))

        return look

    def add_bookie(self, bookie_id: str, url: str) -> BookieRecord:
        """Make the empty place at ``url`` a bookie of this cluster and register it.

        Raises:
            InvalidRequestError: the id or the place is taken, or unsuitable; nothing was made.
        """
        if layout.bookie_id(bookie_id) in self.bookies():
            raise InvalidRequestError(
                f"there is a bookie {bookie_id!r} already", hint="`bkspark bookies` lists them"
            )
        place = storage(url)
        place.require_suitable()
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
    if len({_real_place(url) for url in bookie_urls}) != len(bookie_urls):
        raise InvalidRequestError(
            "a bookie is given twice", hint="two names of one directory are one bookie"
        )
    for url in bookie_urls:
        storage(url).require_suitable()
    store = metadata_stores.format_store(metadata_uri)
    record = ClusterRecord(token_hex(16), now_ms())
    store.put(layout.CLUSTER_KEY, cluster_format.encode_cluster(record, token_hex(8)), None)
    store.close()
    with Cluster(metadata_uri) as cluster:
        for number, url in enumerate(bookie_urls, start=1):
            cluster.add_bookie(f"bookie-{number}", url)


def _real_place(url: str) -> str:
    """Where the URL leads, links followed: two bookies there would be one disk (H39)."""
    prefix = "file://"
    return os.path.realpath(url.removeprefix(prefix)) if url.startswith(prefix) else url


def now_ms() -> int:
    """Wall clock for people's eyes; of all decisions only retention by age depends on it."""
    return time.time_ns() // 1_000_000


def draw() -> float:
    """The chance that placement is given."""
    return random.random()
