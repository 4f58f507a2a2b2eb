"""Entry logs: the files named by records, and whether bookies have the files."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bkspark.admin.auditing import journals_shown
from bkspark.admin.auditing.holding import MissingFile, known_fragments
from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.format.damage_record import Mark
from bkspark.format.digest import for_showing
from bkspark.log.reading.ledger_files import PlacedLog, placed_logs
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.record import AddRecord


def named_logs(ledger: LedgerMetadata, records: Iterable[AddRecord]) -> list[PlacedLog]:
    """Return the entry logs ``records`` name, of fragments with known entries."""
    ranges = [entries for _, entries in known_fragments(ledger)]
    known = [r for r in records if any(a <= r.first_entry_id <= b for a, b in ranges)]
    return list(placed_logs(ledger, known))


def name_of(ledger: LedgerMetadata, placed: PlacedLog) -> str:
    """Return the file's name on a bookie."""
    log = placed.entry_log
    return layout.entry_log(ledger.ledger_id, log.attempt_id, log.stripe)


def missing_file(
    root: BookieRoot, ledger: LedgerMetadata, placed: PlacedLog, mark: Mark | None = None
) -> MissingFile | None:
    """Return the fault of an entry log on ``root``; None if present with the right length.

    Args:
        mark: damage found there by a scrub.

    Raises:
        BookieUnavailableError: the bookie gives no definite answer.
    """
    name, log = name_of(ledger, placed), placed.entry_log
    size = root.size(name)
    if size == log.length_bytes:
        is_marked = mark is not None and name in mark.entry_logs
        return _missing(ledger, placed, "a scrub found damage in it") if is_marked else None
    reason = "the bookie does not have the file"
    if size is not None:
        reason = f"the file has {size} bytes in place of {log.length_bytes}"
    return _missing(ledger, placed, reason)


def _missing(ledger: LedgerMetadata, placed: PlacedLog, reason: str) -> MissingFile:
    log, first = placed.entry_log, placed.first_entry_id
    last = first + (log.row_count - 1) * ledger.quorum.stripe_count
    fragment = ledger.fragment_of(first)
    return MissingFile(
        name_of(ledger, placed), log.stripe, fragment.first_entry_id, (first, last), reason
    )


@dataclass(frozen=True, slots=True)
class NameFiles:
    """Read on one bookie the entry logs named by some ledgers' records; picklable."""

    address: BookieAddress
    ledgers: tuple[LedgerMetadata, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> dict[int, list[PlacedLog]]:
        """Return the files by ledger id; leave out ledgers without a definite answer."""
        named: dict[int, list[PlacedLog]] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger in self.ledgers:
                    named[ledger.ledger_id] = self._named(root, ledger, beat)
                    beat()
        except (BookieUnavailableError, InvalidRequestError):
            return named
        return named

    def _named(self, root: BookieRoot, ledger: LedgerMetadata, beat: Heartbeat) -> list[PlacedLog]:
        digester = for_showing(ledger.settings.digest)
        shown = journals_shown.show(root, self.address.member, ledger, digester, beat)
        return named_logs(ledger, shown.records.values())


@dataclass(frozen=True, slots=True)
class LookForFiles:
    """Check on one bookie entry logs its own records do not name; picklable."""

    address: BookieAddress
    wanted: tuple[tuple[LedgerMetadata, Sequence[PlacedLog]], ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> dict[int, tuple[MissingFile, ...]]:
        """Return the missing files by ledger id; leave out ledgers without a definite answer."""
        missing: dict[int, tuple[MissingFile, ...]] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger, logs in self.wanted:
                    missing[ledger.ledger_id] = tuple(self._missing(root, ledger, logs))
                    beat()
        except BookieUnavailableError:
            return missing
        return missing

    def _missing(
        self, root: BookieRoot, ledger: LedgerMetadata, logs: Sequence[PlacedLog]
    ) -> Iterator[MissingFile]:
        for placed in logs:
            if self.address.member in placed.window:
                missing = missing_file(root, ledger, placed)
                if missing is not None:
                    yield missing
