"""The instructions of an audit, run near one bookie."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from bkspark.admin.auditing import journals_shown
from bkspark.admin.auditing.files import missing_file, name_of, named_logs
from bkspark.admin.auditing.holding import Holding, MissingFile, Role, roles_of
from bkspark.admin.auditing.journals_shown import JournalsShown
from bkspark.admin.auditing.ranges import Range, difference, own_part
from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.format.damage_record import Mark
from bkspark.format.digest import for_showing
from bkspark.ledger.recovery.writer import LastWriter
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member


@dataclass(frozen=True, slots=True)
class BookieAnswers:
    """One bookie's answers about the requested ledgers.

    Attributes:
        holdings: faulty ledgers; all other ledgers are complete.
        inline: ids of ledgers whose records there hold their rows.
        others: ids of ledgers with files there but not requested.
    """

    holdings: Mapping[int, Holding]
    inline: frozenset[int] = frozenset()
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NotLooked:
    """The bookie could not be examined; its content is unknown."""

    reason: str


@dataclass(frozen=True, slots=True)
class Look:
    """Compare a bookie's content of some ledgers with the expected content; picklable.

    Attributes:
        shards: shards of ledger ids to list for files of other ledgers.
        ledgers: ledgers naming the bookie, without unneeded fields (``slim``).
        marks: damage found there by scrubs, by ledger id.
    """

    address: BookieAddress
    shards: tuple[int, ...]
    ledgers: tuple[LedgerMetadata, ...]
    marks: Mapping[int, Mark] = field(default_factory=dict)

    def run(self, beat: Heartbeat = no_heartbeat) -> BookieAnswers | NotLooked:
        """Runs on: driver thread | executor."""
        try:
            with open_bookie(self.address).open_root() as root:
                others = tuple(self._others(root, beat))
                return self._looked(root, others, beat)
        except BookieUnavailableError as error:
            return NotLooked(str(error))

    def _looked(self, root: BookieRoot, others: tuple[int, ...], beat: Heartbeat) -> BookieAnswers:
        holdings: dict[int, Holding] = {}
        inline: set[int] = set()
        for ledger in self.ledgers:
            holding = holding_of(
                root, self.address.member, ledger, beat, self.marks.get(ledger.ledger_id)
            )
            if not holding.is_whole:
                holdings[ledger.ledger_id] = holding
            if holding.is_inline:
                inline.add(ledger.ledger_id)
            beat()
        return BookieAnswers(holdings, frozenset(inline), others)

    def _others(self, root: BookieRoot, beat: Heartbeat) -> Iterator[int]:
        if not self.shards:
            return
        asked = {ledger.ledger_id for ledger in self.ledgers}
        there = set(map(layout.shard_of_folder, root.list(layout.LEDGERS_FOLDER)))
        for shard in filter(there.__contains__, self.shards):
            for name in root.list(layout.shard_folder(shard)):
                ledger_id = layout.ledger_of_folder(name)
                if ledger_id is not None and ledger_id not in asked:
                    yield ledger_id
            beat()


def slim(ledger: LedgerMetadata) -> LedgerMetadata:
    """Return ``ledger`` without the fields an audit does not need, to send less."""
    settings = replace(ledger.settings, schema=b"", custom_metadata={})
    return replace(ledger, settings=settings, transactions={})


def holding_of(
    root: BookieRoot,
    member: Member,
    ledger: LedgerMetadata,
    beat: Heartbeat,
    mark: Mark | None = None,
) -> Holding:
    """Return the missing content of ``ledger`` on ``member``; marked content counts as missing."""
    ledger_id = ledger.ledger_id
    roles = list(roles_of(ledger, member))
    is_unmarked = False
    try:
        if ledger.state is not LedgerState.CLOSED and member in ledger.last_fragment.ensemble:
            is_unmarked = bool(LastWriter.of(ledger).taken.missing_in(root))
        if not roles:
            return Holding(ledger_id, is_unmarked=is_unmarked)
        shown = journals_shown.show(
            root, member, ledger, for_showing(ledger.settings.digest), beat, mark
        )
        files, strays = _files(root, member, ledger, shown, mark)
    except (BookieUnavailableError, InvalidRequestError) as error:
        return Holding(ledger_id, unknown=str(error))
    lacks = tuple(
        (role.fragment.first_entry_id, entries)
        for role in roles
        for entries in lacking(role, shown, ledger)
    )
    is_told = ledger.state is LedgerState.CLOSED and not lacks
    marked = f"a scrub found {mark.reason}" if mark and lacks else ""
    return Holding(
        ledger_id,
        shown.is_inline,
        lacks,
        files,
        strays if is_told else 0,
        shown.problem or ("" if is_told else shown.damage) or marked,
        is_unmarked=is_unmarked,
    )


def lacking(role: Role, shown: JournalsShown, ledger: LedgerMetadata) -> Iterator[Range]:
    """Yield entries of ``role`` without shown records."""
    for entries in difference(role.entries, shown.held_at(role.index, ledger.quorum)):
        part = own_part(entries, role.index, ledger.quorum) if shown.is_inline else entries
        if part is not None:
            yield part


def _files(
    root: BookieRoot,
    member: Member,
    ledger: LedgerMetadata,
    shown: JournalsShown,
    mark: Mark | None,
) -> tuple[tuple[MissingFile, ...], int]:
    """Return faulty entry logs, and the number of unnamed files."""
    placed = [log for log in named_logs(ledger, shown.records.values()) if member in log.window]
    missing = filter(None, (missing_file(root, ledger, log, mark) for log in placed))
    folder = layout.entries_folder(ledger.ledger_id)
    listed = {f"{folder}/{name}" for name in root.list(folder)}
    return tuple(missing), len(listed - {name_of(ledger, log) for log in placed})
