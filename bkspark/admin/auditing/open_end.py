"""Find acknowledged entries missing on members of an open ledger's last fragment.

Such a ledger has no end yet, and its members receive entries at different times. So a member counts
as lacking entries only under two conditions: its journal does not grow for ``STAYS_SECONDS``, and
other members had shown before that later entries are acknowledged. A slow bookie stores a record
within that time, or its writer replaces the bookie.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from bkspark import environment
from bkspark.admin.auditing.copies import Gap, classify
from bkspark.admin.auditing.ranges import own_part
from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.bookie_client import STORE_SECONDS
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError, CorruptDataError
from bkspark.format import layout
from bkspark.format.digest import for_showing
from bkspark.ledger.journals.journal_end import JournalEnds, JournalName
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, LedgerState, Member

STAYS_SECONDS = STORE_SECONDS + 5.0
"""Longer than a writer waits for a bookie without progress."""

PAUSE_SECONDS = 1.0

REASON = (
    f"the bookie did not store these entries within {STAYS_SECONDS:g} s: it was away while "
    "they were written, or it hangs; the log's writer begins another ledger once enough "
    "bookies can be used, and `bkspark repair` makes the copies once this ledger is closed"
)


@dataclass(frozen=True, slots=True)
class OpenEnd:
    """The end of the writer's journal on one member.

    Attributes:
        last: the last entry committed or confirmed by the journal.
        confirmed: the last entry the journal shows as acknowledged.
    """

    last: int = INVALID_ENTRY_ID
    confirmed: int = INVALID_ENTRY_ID


OpenEnds = Mapping[tuple[Member, int], OpenEnd]
"""By member and ledger id, without members lacking a definite answer."""


@dataclass(frozen=True, slots=True)
class LookAtEnds:
    """Read the ends of some open ledgers' journals on one bookie; picklable."""

    address: BookieAddress
    ledgers: tuple[LedgerMetadata, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> dict[int, OpenEnd]:
        """Return the ends by ledger id."""
        found: dict[int, OpenEnd] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger in self.ledgers:
                    end = end_of(root, self.address.member, ledger)
                    if end is not None:
                        found[ledger.ledger_id] = end
                    beat()
        except BookieUnavailableError:
            return found
        return found


def end_of(root: BookieRoot, member: Member, ledger: LedgerMetadata) -> OpenEnd | None:
    """Return the journal's end; None without a journal, a loss the audit reports separately."""
    digester = for_showing(ledger.settings.digest)
    name = layout.journal(ledger.ledger_id, ledger.term, ledger.token)
    source = JournalName(ledger.ledger_id, member, name, digester)
    try:
        record = JournalEnds().look(root, source).record
    except CorruptDataError:
        return None
    if record is None or record.is_header:
        return OpenEnd()
    return OpenEnd(record.last_entry_id, record.last_add_confirmed)


def ends_of(
    ledgers: Iterable[LedgerMetadata], addresses: Mapping[Member, BookieAddress], run: Runner
) -> OpenEnds:
    """Return the current ends on members of the last fragments."""
    of_member: dict[Member, list[LedgerMetadata]] = {}
    for ledger in ledgers:
        for member in ledger.last_fragment.ensemble:
            if member in addresses:
                of_member.setdefault(member, []).append(ledger)
    looks = [LookAtEnds(addresses[member], tuple(theirs)) for member, theirs in of_member.items()]
    return {
        (look.address.member, ledger_id): end
        for look, answer in zip(looks, run(looks), strict=True)
        for ledger_id, end in (answer.items() if isinstance(answer, dict) else ())
    }


def lacking_at_ends(
    ledgers: Iterable[LedgerMetadata], look: Callable[[Iterable[LedgerMetadata]], OpenEnds]
) -> dict[int, list[Gap]]:
    """Return the entries surely missing on members of open last fragments, by ledger id."""
    open_ = [one for one in ledgers if one.state is LedgerState.OPEN]
    before = look(open_) if open_ else {}
    doubtful = [one for one in open_ if any(_lacking(one, before, before))]
    after, until = before, environment.monotonic() + STAYS_SECONDS
    while doubtful and environment.monotonic() < until:
        environment.sleep(PAUSE_SECONDS)
        after = look(doubtful)
        doubtful = [one for one in doubtful if any(_lacking(one, before, after))]
    return {one.ledger_id: list(_lacking(one, before, after)) for one in doubtful}


def _lacking(ledger: LedgerMetadata, before: OpenEnds, after: OpenEnds) -> Iterator[Gap]:
    fragment, number = ledger.last_fragment, ledger.ledger_id
    ends = {m: before[m, number] for m in fragment.ensemble if (m, number) in before}
    confirmed = max((end.confirmed for end in ends.values()), default=INVALID_ENTRY_ID)
    lacks = {}
    for index, member in enumerate(fragment.ensemble):
        end = ends.get(member)
        if end is None or after.get((member, number)) != end:
            continue
        first = max(end.last + 1, fragment.first_entry_id)
        part = own_part((first, confirmed), index, ledger.quorum)
        if part is not None:
            lacks[member] = part
    copies = classify(ledger.quorum, held=ledger.quorum.write_quorum_size - len(lacks), unknown=0)
    folder = layout.journal_folder(number)
    for member, entries in lacks.items():
        yield Gap(number, fragment.first_entry_id, entries, member, folder, copies, False, REASON)
