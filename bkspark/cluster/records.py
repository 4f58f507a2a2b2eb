"""Typed records in a metadata store, and the one loop that changes them."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import islice
from typing import Generic, TypeVar

from bkspark import environment
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    InvalidRequestError,
    LedgerExistsError,
    MetadataVersionError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.format import cluster as cluster_format
from bkspark.format import layout, strict_json, upkeep_records
from bkspark.format import recovery as recovery_format
from bkspark.format.cluster import ClusterRecord
from bkspark.format.recovery import AwayBookie, LostBookie, StuckRecovery
from bkspark.format.upkeep_records import ReportRecord
from bkspark.metadata import freshness
from bkspark.metadata import uri as metadata_stores
from bkspark.metadata.contract import MetadataStore, ReadsTogether, VersionedBytes, pays_to_read

# --- put outcome ---------------------------------------------------------------------------------
# The outcome of a change whose answer was lost, as far as the record itself shows.
#
# The rule: **a version is made once, and the bytes of each change are unique.** So the record found
# now decides about a change sent for the version after ``expected``:
#
# - its own bytes: the change is stored;
# - the next version with other bytes: another client's change was stored, and this change is or
#   will be refused;
# - version ``expected``: the change is not there yet;
# - a later version: unknown, as the first newer version may have been this change.


class PutOutcome(Enum):
    """The certain outcome of a change."""

    STORED = "the store has it as the newest version"
    LOST = "another client stored this version first, so it can never be stored"
    ABSENT = "it is not stored, but its request may still arrive"
    UNKNOWN = "other versions followed a version that may have been this one"


def outcome(found: VersionedBytes | None, data: bytes, expected: int | None) -> PutOutcome:
    """The certain outcome of storing ``data`` after version ``expected`` (None: create).

    Args:
        found: the newest version, read after the answer was lost; None if there is no record.
    """
    if found is not None and found.value == data:
        return PutOutcome.STORED
    version = None if found is None else found.version
    if version == expected:
        return PutOutcome.ABSENT
    return PutOutcome.LOST if version == (expected or 0) + 1 else PutOutcome.UNKNOWN


# --- records -------------------------------------------------------------------------------------
# Typed records in a metadata store, and the one loop that changes them.
#
# Every change carries a random nonce. After a conflict or an unknown outcome the record is read
# back, and ``put_outcome`` decides: if the bytes are equal, the change is stored (R8, H6, RB-27). A
# missing change is sent again, with the same bytes for the same version.


T = TypeVar("T")

StepOver = Callable[[str, BookKeeperError], None]
"""Called with the key of an unreadable record, and the error."""

UNREAD = (CorruptDataError, InvalidRequestError, NothingSentError, OutcomeUnknownError)
"""The errors of an unreadable record."""

RECORDS_AT_ONCE = 256
"""Records for which one task asks; together they are a few hundred kilobytes."""

UPDATE_TRIES_MAX = 200

SENT_AGAIN_MAX = 5
"""Each try has the time limit of a call; after so many more tries the outcome stays unknown."""

_BACKOFF_SECONDS_MAX = 0.05
_TURN_SECONDS_MIN = 0.002
WHAT_TO_DO = "`bkspark metadata damaged` names it, and says what to do"


def back_off(attempt: int) -> None:
    """Wait for a random time, so that one of several competing clients goes first.

    Args:
        attempt: number of lost attempts before, >= 0.
    """
    environment.sleep(environment.draw() * min(_BACKOFF_SECONDS_MAX, 0.001 * 2**attempt))


def wait_after_losses(attempt: int) -> None:
    """Wait for a random time, which is shorter the more attempts a client has lost.

    So a slower client that competes for long goes before clients that have just begun.

    Args:
        attempt: as for ``back_off``.
    """
    longest = max(_TURN_SECONDS_MIN, _BACKOFF_SECONDS_MAX / (attempt + 1))
    environment.sleep(environment.draw() * longest)


@dataclass(frozen=True, slots=True)
class Versioned(Generic[T]):
    """A record as read: its value, and the version to compare against."""

    value: T
    stored: VersionedBytes


class Records(Generic[T]):
    """Records of one kind, all of one cluster.

    A record says its cluster (``envelope``). A record of another cluster, such as one that was
    copied or restored from there, counts as unreadable.

    Args:
        cluster_id: empty if the records say no cluster, like the cluster's own.
        key: name -> key in the store.
        encode: (value, nonce) -> bytes.
        decode: (name, bytes) -> value.
        guesses: whether each change first takes the record as this client last knew it.
    """

    def __init__(
        self,
        store: MetadataStore,
        cluster_id: str,
        key: Callable[[str], str],
        encode: Callable[[T, str], bytes],
        decode: Callable[[str, bytes], T],
        *,
        guesses: bool = False,
    ) -> None:
        self._store = store
        self._guesses = guesses
        self._cluster_id = cluster_id
        self._key = key
        self._encode = encode
        self._decode = decode
        self.step_over: StepOver | None = None
        """Called for an unreadable record, which then counts as absent: for display only."""

    def get(self, name: str) -> Versioned[T] | None:
        """The newest version, or None if there is certainly none."""
        return self._read(name, lambda: self._store.get(self._key(name)))

    def of_all(
        self,
        answers: Mapping[str, Callable[[], VersionedBytes | None]],
        step_over: StepOver | None = None,
    ) -> dict[str, T]:
        """The values of all records requested together (``TimedStore.get_all``), by name.

        Args:
            step_over: called for an unreadable record, unless the attribute is set.
        """

        def answer(name: str) -> VersionedBytes | None:
            self._key(name)  # refuses an invalid name with the error for names
            return answers[name]()

        found = {name: self._read(name, partial(answer, name), step_over) for name in answers}
        return {name: seen.value for name, seen in found.items() if seen is not None}

    def answers(
        self, names: Iterable[str]
    ) -> Iterator[tuple[str, Callable[[], Versioned[T] | None]]]:
        """Yield each name with a function that returns or raises as ``get``; for many records.

        One task asks for many records, since starting a task takes longer than most answers.
        """
        left = iter(names)
        while some := list(islice(left, RECORDS_AT_ONCE)):
            if not isinstance(self._store, ReadsTogether):
                yield from ((name, partial(self.get, name)) for name in some)
                continue
            found = self._store.get_keys([self._shown_key(name) for name in some])
            for name in some:
                yield name, partial(self._read, name, partial(self._answer, found, name))

    def _answer(
        self, found: Mapping[str, Callable[[], VersionedBytes | None]], name: str
    ) -> VersionedBytes | None:
        return found[self._key(name)]()

    def present(self, names: Iterable[str]) -> Iterator[Versioned[T]]:
        """Yield the newest versions of the records of these names that are there; for many records.

        Raises as ``get``, when it comes to the record.
        """
        found = (answer() for _, answer in self.answers(names))
        return (seen for seen in found if seen is not None)

    def _read(
        self,
        name: str,
        ask: Callable[[], VersionedBytes | None],
        step_over: StepOver | None = None,
    ) -> Versioned[T] | None:
        try:
            stored = ask()
            return None if stored is None else Versioned(self._own(name, stored.value), stored)
        except UNREAD as error:
            step_over = self.step_over or step_over
            if step_over is None:
                if isinstance(error, CorruptDataError) and not error.hint:
                    error.hint = WHAT_TO_DO
                raise
            step_over(self._shown_key(name), error)
            return None

    def _own(self, name: str, data: bytes) -> T:
        """The value of a record of this cluster; the checksum of ``data`` comes first."""
        value = self._decode(name, data)
        if self._cluster_id:
            strict_json.require_own(self._cluster_id, self._key(name), data)
        return value

    def key(self, name: str) -> str:
        """The store's key of the record."""
        return self._key(name)

    def _shown_key(self, name: str) -> str:
        """The key, or the name itself if it is invalid."""
        try:
            return self._key(name)
        except InvalidRequestError:
            return name

    def create(self, name: str, value: T) -> Versioned[T]:
        """Store a new record.

        Raises:
            LedgerExistsError: another client has created it.
        """
        try:
            return self._put(name, value, None)
        except MetadataVersionError as error:
            raise LedgerExistsError(f"{self._key(name)} exists already") from error

    def replace(self, name: str, value: T, seen: Versioned[T]) -> Versioned[T]:
        """Compare-and-set once.

        Raises:
            MetadataVersionError: the record changed since it was ``seen``.
            OutcomeUnknownError: the value may or may not be stored, and the record does not tell.
        """
        return self._put(name, value, seen.stored.version)

    def update(
        self,
        name: str,
        transform: Callable[[T | None], T],
        *,
        seen: Versioned[T] | None = None,
    ) -> Versioned[T]:
        """Apply ``transform`` to the newest value until it is stored (BookKeeper's update loop).

        ``transform`` is pure, gets None if there is no record, and may run again on a newer value
        (RB-18, RB-27e); if it returns its argument, no change is stored.
        """
        guess = None if seen is not None else self._change_by_a_guess(name, transform)
        if guess is not None:
            return guess
        for attempt in range(UPDATE_TRIES_MAX):
            if seen is None or attempt:
                with freshness.now():
                    seen = self.get(name)
            changed = transform(None if seen is None else seen.value)
            if seen is not None and changed == seen.value:
                return seen
            try:
                return self._put(name, changed, None if seen is None else seen.stored.version)
            except MetadataVersionError:
                back_off(attempt)
        raise MetadataVersionError(
            f"other clients changed {self._key(name)} in each attempt", hint="try again later"
        )

    def _change_by_a_guess(
        self, name: str, transform: Callable[[T | None], T]
    ) -> Versioned[T] | None:
        """Change the record as this client knows it, where that is worth a try.

        Returns:
            None if there was no change, or the record is newer: only the newest version tells.
        """
        if not self._guesses and not pays_to_read(self._store):
            return None
        try:
            with freshness.guess():
                seen = self.get(name)
        except CorruptDataError:
            return None
        if seen is None and not self._guesses:
            return None
        try:
            changed = transform(None if seen is None else seen.value)
        except BookKeeperError:
            return None
        if seen is not None and changed == seen.value:
            return None
        try:
            return self._put(name, changed, None if seen is None else seen.stored.version)
        except MetadataVersionError:
            return None

    def write_over(self, name: str, value: T) -> Versioned[T]:
        """Store ``value`` in place of any record, readable or not; raises like ``replace``."""
        stored = self._store.get(self._key(name))
        return self._put(name, value, None if stored is None else stored.version)

    def is_current(self, name: str, seen: Versioned[T]) -> bool:
        """The metadata check: whether ``seen`` is still the newest version (R4)."""
        return self._store.is_current(self._key(name), seen.stored)

    def _put(self, name: str, value: T, expected: int | None) -> Versioned[T]:
        data = self._encoded(name, value)
        return Versioned(value, VersionedBytes(data, self._put_bytes(name, data, expected)))

    def _put_bytes(self, name: str, data: bytes, expected: int | None) -> int:
        """Store ``data`` at most once; return its version.

        After an unknown outcome the record is read. If the change is missing, the same bytes are
        sent again for the same version. If the first request arrives late, the store refuses the
        second, and the next read finds the change's own bytes.
        """
        doubt: OutcomeUnknownError | None = None
        for attempt in range(SENT_AGAIN_MAX + 1):
            refusal: MetadataVersionError | None = None
            try:
                return self._store.put(self._key(name), data, expected)
            except NothingSentError as error:
                raise doubt or error from None
            except OutcomeUnknownError as error:
                doubt = error
            except MetadataVersionError as error:
                refusal = error
            found = self._found_after(name, doubt)
            settled = outcome(found, data, expected)
            if found is not None and settled is PutOutcome.STORED:
                return found.version
            if refusal is not None and (doubt is None or settled is PutOutcome.LOST):
                raise refusal
            if settled is PutOutcome.LOST:
                raise self._lost(name) from doubt
            if refusal is not None or settled is PutOutcome.UNKNOWN:
                break
            back_off(attempt)
        assert doubt is not None
        raise doubt

    def _found_after(self, name: str, doubt: OutcomeUnknownError | None) -> VersionedBytes | None:
        """The record after a failed put; raises ``doubt`` again if the store cannot tell."""
        try:
            return self._store.get(self._key(name))
        except (NothingSentError, OutcomeUnknownError):
            if doubt is None:
                raise
            raise doubt from None

    def _lost(self, name: str) -> MetadataVersionError:
        return MetadataVersionError(
            f"another client changed {self._key(name)} first", hint="read it again"
        )

    def _encoded(self, name: str, value: T) -> bytes:
        """The bytes of ``value``, verified by decoding, so that only readable bytes are stored.

        Raises:
            InvalidRequestError: a reader would refuse the bytes, or read another value.
        """
        nonce = environment.token(8)
        data = self._made(name, value, nonce)
        try:
            found = self._own(name, data)
        except (CorruptDataError, InvalidRequestError) as error:
            raise self._unreadable(name, error.args[0]) from error
        if found != value and self._made(name, found, nonce) != data:
            raise self._unreadable(name, "a reader would read another value from it")
        return data

    def _made(self, name: str, value: T, nonce: str) -> bytes:
        data = self._encode(value, nonce)
        if self._cluster_id:
            data = strict_json.of_cluster(self._cluster_id, self._key(name), data)
        return data

    def _unreadable(self, name: str, reason: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"{self._key(name)} was not changed: no reader could read it afterwards: {reason}",
            hint="give values within their bounds",
        )


# --- notes ---------------------------------------------------------------------------------------
# Advisory records: losing a note loses no data, so a failing note stops no work.
#
# Rule. An unreadable note counts as absent, and the next note replaces it. Data for which that
# would be a loss belongs in a record, where unknown is never absent (``records``).


logger = logging.getLogger(__name__)


class Notes(Records[T]):
    """Notes of one kind."""

    def get(self, name: str) -> Versioned[T] | None:
        """The newest note; None if there is none, or no readable note."""
        try:
            return super().get(name)
        except (CorruptDataError, NothingSentError, OutcomeUnknownError) as error:
            logger.warning("note %s cannot be read: %s", self.key(name), error.args[0])
            return None

    def note(self, name: str, value: T) -> None:
        """Store ``value`` in place of any earlier note.

        Raises:
            MetadataVersionError: other clients kept changing the note.
            OutcomeUnknownError: the note may not have been stored.
        """
        for attempt in range(UPDATE_TRIES_MAX):
            try:
                self.write_over(name, value)
                return
            except MetadataVersionError:
                back_off(attempt)
        raise MetadataVersionError(
            f"other clients changed {self.key(name)} in each attempt to note something there"
        )

    def try_to_note(self, name: str, value: T) -> str:
        """Note ``value``; return why it may not be stored, in one line, or an empty text."""
        try:
            self.note(name, value)
        except BookKeeperError as error:
            logger.warning("%s could not be stored: %s", self.key(name), error.args[0])
            return str(error.args[0])
        return ""


# --- upkeep records ------------------------------------------------------------------------------
# Records of upkeep about a cluster, for later runs and for operators.


class UpkeepRecords:
    """The records about bookies and runs; none describes a ledger's contents.

    Attributes:
        recoveries: why a ledger could not be recovered, by its id.
        lost: bookies that an operator declared lost for ever.
        away: since when a bookie has been silent.
        reports: the findings of each command's last run.
    """

    def __init__(self, store: MetadataStore, cluster_id: str) -> None:
        self.recoveries: Records[StuckRecovery] = Records(
            store,
            cluster_id,
            lambda name: layout.recovery_key(int(name)),
            recovery_format.encode_stuck,
            lambda name, data: recovery_format.decode_stuck(int(name), data),
        )
        self.lost: Records[LostBookie] = Records(
            store,
            cluster_id,
            layout.lost_key,
            recovery_format.encode_lost,
            recovery_format.decode_lost,
        )
        self.away: Notes[AwayBookie] = Notes(
            store,
            cluster_id,
            layout.away_key,
            recovery_format.encode_away,
            recovery_format.decode_away,
        )
        self.reports: Notes[ReportRecord] = Notes(
            store,
            cluster_id,
            layout.report_key,
            upkeep_records.encode_report,
            upkeep_records.decode_report,
        )


# --- founding ------------------------------------------------------------------------------------
# Makes the metadata of a new cluster: the store, and the record with the cluster's identity.


def make_cluster(metadata_uri: str, record: ClusterRecord) -> None:
    """Make the empty place at ``metadata_uri`` the metadata store of a cluster.

    Raises:
        InvalidRequestError: the place is not empty, or the store cannot be made.
    """
    store = metadata_stores.format_store(metadata_uri, record.group)
    try:
        Records(
            store,
            "",
            lambda name: name,
            cluster_format.encode_cluster,
            lambda _name, data: cluster_format.decode_cluster(data),
        ).create(layout.CLUSTER_KEY, record)
    finally:
        store.close()
