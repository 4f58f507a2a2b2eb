"""Find and free unneeded files of remaining ledgers."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bkspark.admin.auditing import look as journals_shown
from bkspark.admin.auditing.copies import roles_of
from bkspark.admin.auditing.look import lacking, name_of, named_logs, slim
from bkspark.admin.collecting.freeing import (
    Doomed,
    FindOldJournals,
    FindUnfinished,
    Free,
    Freed,
    FreeFiles,
    FreeUnfinished,
    MeasureFiles,
    Unwanted,
)
from bkspark.admin.noted_damage import NotedDamage, marks_of
from bkspark.admin.sweep import answers, answers_by_ledger, batches, by_member
from bkspark.bookie.contract import BookieAddress, BookieRoot, Usage
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import (
    BookieUnavailableError,
    CorruptDataError,
    InvalidRequestError,
    MetadataVersionError,
)
from bkspark.format import layout
from bkspark.format.digest import for_showing
from bkspark.format.upkeep_records import Mark
from bkspark.ledger.recovery.running import Instruction, Runner
from bkspark.protocol.ledger.deletion import oldest_owner
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep.repairing import leavers, left_by, may_leave, unnamed

LEDGERS_AT_ONCE = 500

# --- unwanted ------------------------------------------------------------------------------------
# Find unneeded files of remaining ledgers: copies on former members, unnamed entry logs.
#
# ``protocol.upkeep.leaving`` states which files are unneeded, and why. Listings only nominate
# files; records decide.


@dataclass(frozen=True, slots=True)
class ShowEntryLogs:
    """Find the entry logs of closed ledgers named by one bookie's records; picklable.

    Attributes:
        marks: damage found there by scrubs, by ledger id.
        lists: True to return existing but unnamed entry logs; False to return all named ones.
    """

    address: BookieAddress
    ledgers: tuple[LedgerMetadata, ...]
    lists: bool = True
    marks: Mapping[int, Mark] = field(default_factory=dict)

    def run(self, beat: Heartbeat = no_heartbeat) -> dict[int, dict[str, int]]:
        """Return names and sizes of entry logs by ledger id.

        Ledgers without a definite answer are left out. A size is 0 if not looked up.

        Runs on: driver thread | executor.
        """
        found: dict[int, dict[str, int]] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                look = self._listed if self.lists else self._named
                for ledger in self.ledgers:
                    names = look(root, ledger, beat)
                    if names is not None:
                        found[ledger.ledger_id] = names
                    beat()
        except (BookieUnavailableError, InvalidRequestError):
            return found
        return found

    def _listed(self, root: BookieRoot, ledger: LedgerMetadata, beat: Heartbeat) -> dict[str, int]:
        """Return existing entry logs the bookie's records do not name."""
        folder = layout.entries_folder(ledger.ledger_id)
        listed = {f"{folder}/{one}" for one in root.list(folder) if layout.is_entry_log(one)}
        if not listed:
            return {}
        names = listed.difference(self._shown(root, ledger, beat)[0])
        return {name: root.size(name) or 0 for name in names}

    def _named(
        self, root: BookieRoot, ledger: LedgerMetadata, beat: Heartbeat
    ) -> dict[str, int] | None:
        """Return all named entry logs; None if the bookie may hide records."""
        names, is_all = self._shown(root, ledger, beat)
        return dict.fromkeys(names, 0) if is_all else None

    def _shown(
        self, root: BookieRoot, ledger: LedgerMetadata, beat: Heartbeat
    ) -> tuple[set[str], bool]:
        member, mark = self.address.member, self.marks.get(ledger.ledger_id)
        shown = journals_shown.show(
            root, member, ledger, for_showing(ledger.settings.digest), beat, mark
        )
        names = {name_of(ledger, log) for log in named_logs(ledger, shown.records.values())}
        # Records with rows are not read one by one, so records naming files may be hidden between
        # them.
        is_sure = not (shown.problem or shown.damage or shown.is_inline)
        roles = roles_of(ledger, member)
        return names, is_sure and not any(any(lacking(r, shown, ledger)) for r in roles)


class LeftoverFinder:
    """Finds unneeded files of closed ledgers.

    Attributes:
        unsure: ids of the ledgers that may have unneeded files, now or after a change of the
            bookies alone.
    """

    def __init__(self, cluster: Cluster, run: Runner) -> None:
        self.unsure: set[int] = set()
        self._run = run
        self._listed: Mapping[BookieAddress, frozenset[int]] = {}
        self._addresses: Mapping[Member, BookieAddress] = {}
        self._able = free_members(cluster)
        self._marks = NotedDamage(cluster).marks(cluster.addresses())

    def found(
        self,
        ledgers: Sequence[LedgerMetadata],
        listed: Mapping[BookieAddress, frozenset[int]],
    ) -> list[Unwanted]:
        """Return the unneeded files of some ledgers; change nothing.

        Args:
            listed: ids of the ledgers with files on each bookie that answers, as a hint.
        """
        self._listed = listed
        self._addresses = {address.member: address for address in listed}
        closed = [slim(ledger) for ledger in ledgers if ledger.state is LedgerState.CLOSED]
        found = []
        for some in batches(closed, LEDGERS_AT_ONCE):
            found += [*self._copies(some), *self._strays(some), *self._unfinished(some)]
        return [*found, *self._old_journals(ledgers)]

    def _copies(self, ledgers: Sequence[LedgerMetadata]) -> list[Unwanted]:
        orders: dict[BookieAddress, list[int]] = {}
        for ledger in ledgers:
            holders = [a.member for a, ids in self._listed.items() if ledger.ledger_id in ids]
            leaving = leavers(ledger, holders, self._able & self._addresses.keys())
            if any(may_leave(ledger, member) for member in holders):
                self.unsure.add(ledger.ledger_id)
            for member in (one for one in holders if one in leaving):
                orders.setdefault(self._addresses[member], []).append(ledger.ledger_id)
        return weighed(self._run, orders)

    def _strays(self, ledgers: Sequence[LedgerMetadata]) -> Iterator[Unwanted]:
        listed = self._show(ledgers, lists=True)
        asked = {(m, one.ledger_id) for m, own in self._of_members(ledgers).items() for one in own}
        self.unsure.update(ledger_id for _, ledger_id in asked - listed.keys())
        shown = {key: names for key, names in listed.items() if names}
        strange = {ledger_id for _, ledger_id in shown}
        self.unsure |= strange
        nominated = [x for x in ledgers if x.ledger_id in strange]
        named = self._show(nominated, lists=False)
        by_id = {ledger.ledger_id: ledger for ledger in nominated}
        for (member, ledger_id), sizes in sorted(shown.items(), key=lambda item: item[0][1]):
            members = Locations(by_id[ledger_id]).members
            strays = unnamed(sizes, [named.get((other, ledger_id)) for other in members])
            if strays:
                usage = Usage(len(strays), sum(sizes[name] for name in strays))
                yield Unwanted(ledger_id, member, usage, tuple(sorted(strays)))

    def _unfinished(self, ledgers: Sequence[LedgerMetadata]) -> Iterator[Unwanted]:
        looks = [
            FindUnfinished(self._addresses[member], tuple(ledger.ledger_id for ledger in own))
            for member, own in self._of_members(ledgers).items()
        ]
        for member, ledger_id, usage in self._sure(looks):
            yield Unwanted(ledger_id, member, usage, is_unfinished=True)

    def _old_journals(self, ledgers: Sequence[LedgerMetadata]) -> Iterator[Unwanted]:
        """Yield the old journals of ledgers on the bookies that were listed with files of them."""
        terms = {ledger.ledger_id: oldest_owner(ledger) for ledger in ledgers}
        terms = {ledger_id: term for ledger_id, term in terms.items() if term}
        looks = [
            FindOldJournals(address, {i: term for i, term in terms.items() if i in ids})
            for address, ids in self._listed.items()
            if not ids.isdisjoint(terms)
        ]
        for member, ledger_id, sizes in self._sure(looks):
            usage = Usage(len(sizes), sum(sizes.values()))
            yield Unwanted(ledger_id, member, usage, tuple(sorted(sizes)), is_journals=True)

    def _sure(
        self, looks: Sequence[FindUnfinished | FindOldJournals]
    ) -> Iterator[tuple[Member, int, Any]]:
        """Yield the answers by ledger; note the ledgers of bookies that gave none."""
        for look, answer in answers(self._run, looks):
            if isinstance(answer, Mapping):
                yield from ((look.address.member, number, one) for number, one in answer.items())
            else:
                self.unsure.update(look.ledger_ids)

    def _of_members(self, ledgers: Sequence[LedgerMetadata]) -> dict[Member, list[LedgerMetadata]]:
        """Return the ledgers of each member with a known address."""
        found = by_member(ledgers)
        return {member: found[member] for member in found if member in self._addresses}

    def _show(
        self, ledgers: Sequence[LedgerMetadata], *, lists: bool
    ) -> dict[tuple[Member, int], dict[str, int]]:
        """Return the members' definite answers about their ledgers."""
        looks = [
            ShowEntryLogs(
                self._addresses[member],
                tuple(own),
                lists,
                {} if lists else marks_of(self._marks, member, own),
            )
            for member, own in self._of_members(ledgers).items()
        ]
        shown = answers_by_ledger(self._run, looks)
        return {(member, ledger_id): names for member, ledger_id, names in shown}


def free_members(cluster: Cluster) -> set[Member]:
    """Return the members able to receive places, by the bookies' records."""
    lost = cluster.lost_members()
    read_only = {name for name, record in cluster.bookies().items() if record.is_read_only}
    return {m for m in cluster.addresses() if m not in lost and m.bookie_id not in read_only}


def weighed(run: Runner, orders: Mapping[BookieAddress, Sequence[int]]) -> list[Unwanted]:
    """Return all files of some ledgers on bookies as unneeded; skip unanswered requests."""
    weighs = [MeasureFiles(address, tuple(ids)) for address, ids in orders.items()]
    found = [
        Unwanted(ledger_id, member, own)
        for member, ledger_id, own in answers_by_ledger(run, weighs)
        if own.files
    ]
    return sorted(found, key=lambda one: (one.ledger_id, one.member.bookie_id))


# --- letting go ----------------------------------------------------------------------------------
# Free unneeded files of remaining ledgers.
#
# A former member's copy is removed only after a compare-and-set on the ledger's record
# (``protocol.upkeep.leaving``, rule 2), which is read and checked anew for that. A copy whose size
# has changed since the plan is left alone: a repair may be copying there and would have to begin
# again. This check only avoids duplicate work: a repair overtaken by the removal loses only time.


GIVEN_BACK = (
    "a bookie with a place in the ledger is removed or being removed: the former bookie may "
    "get the place back"
)
IN_USE = "its places are changing: another command may be making copies"


@dataclass(slots=True)
class LetGo:
    """Freed files of remaining ledgers.

    Attributes:
        problems: why files remain, by ledger id and bookie id.
    """

    removed: Usage = field(default_factory=Usage)
    problems: dict[tuple[int, str], str] = field(default_factory=dict)


class LeftoverRemover:
    """Frees unneeded files; reads records anew, and changes the records first where necessary.

    Args:
        addresses: addresses of the bookies to ask.
        silent: ids of bookies not answering.
    """

    def __init__(
        self,
        cluster: Cluster,
        run: Runner,
        addresses: Mapping[Member, BookieAddress],
        silent: Collection[str],
    ) -> None:
        self.outcome = LetGo()
        self._cluster = cluster
        self._run = run
        self._addresses = addresses
        self._free = {m for m in free_members(cluster) if m.bookie_id not in silent}

    def take(self, step: Sequence[Unwanted]) -> None:
        """Free the files of ``step``.

        Raises:
            OutcomeUnknownError: the metadata store or Spark gave no definite answer.
        """
        here = [one for one in step if one.member in self._addresses]
        copies = self._as_planned([one for one in here if one.is_copy])
        doomed: dict[Member, list[Doomed]] = {}
        for ledger_id in sorted({one.ledger_id for one in copies}):
            leaving = self._leave(ledger_id, copies)
            for member in (one for one in self._addresses if one in leaving):
                doomed.setdefault(member, []).append(Doomed(ledger_id))
        strays = self._by_address(one for one in here if one.names and not one.is_journals)
        journals = self._by_address(one for one in here if one.is_journals)
        begun = self._by_address(one for one in here if one.is_unfinished)
        orders: list[Instruction[object]] = [
            *(Free(self._addresses[member], tuple(own)) for member, own in doomed.items()),
            *(FreeFiles(address, own) for address, own in strays.items()),
            *(FreeUnfinished(address, own) for address, own in begun.items()),
            *(FreeFiles(address, own) for address, own in journals.items()),
        ]
        for order, answer in answers(self._run, orders):
            self._note(order.address.bookie_id, answer)

    def _by_address(
        self, unwanted: Iterable[Unwanted]
    ) -> dict[BookieAddress, tuple[Unwanted, ...]]:
        found: dict[BookieAddress, tuple[Unwanted, ...]] = {}
        for one in unwanted:
            address = self._addresses[one.member]
            found[address] = (*found.get(address, ()), one)
        return found

    def _as_planned(self, copies: Sequence[Unwanted]) -> list[Unwanted]:
        """Return the copies with the same size as in the plan."""
        orders: dict[BookieAddress, list[int]] = {}
        for one in copies:
            orders.setdefault(self._addresses[one.member], []).append(one.ledger_id)
        now = set(weighed(self._run, orders))
        for one in copies:
            if one not in now:
                self.outcome.problems[one.ledger_id, one.member.bookie_id] = IN_USE
        return [one for one in copies if one in now]

    def _leave(self, ledger_id: int, copies: Iterable[Unwanted]) -> set[Member]:
        """Return the former members with unneeded copies, after recording their leaving."""
        try:
            seen = self._cluster.ledgers.get(str(ledger_id))
        except CorruptDataError:
            return set()  # the plan reports the record
        if seen is None:
            return set()
        ledger = seen.value
        holders = [one.member for one in copies if one.ledger_id == ledger_id]
        members = leavers(ledger, holders, self._free)
        after = left_by(ledger, members)
        if after != ledger:
            if self._may_be_given_back(ledger):
                names = [member.bookie_id for member in members]
                self.outcome.problems |= dict.fromkeys(((ledger_id, n) for n in names), GIVEN_BACK)
                return set()
            try:
                self._cluster.ledgers.replace(str(ledger_id), after, seen)
            except MetadataVersionError:
                return set()  # retried by the next run: the new record may name the members
        return members

    def _may_be_given_back(self, ledger: LedgerMetadata) -> bool:
        """Return whether a leaving member's place may return to its previous member.

        The bookies' records are read after the ledger's record (``admin.bookies.removing``).
        """
        return any(map(self._cluster.is_going, Locations(ledger).members))

    def _note(self, bookie_id: str, answer: object) -> None:
        if isinstance(answer, Freed):
            self.outcome.removed += sum(answer.removed.values(), Usage())
            for ledger_id, problem in answer.problems.items():
                self.outcome.problems[ledger_id, bookie_id] = problem
        elif isinstance(answer, Mapping):
            for ledger_id, done in answer.items():
                if isinstance(done, Usage):
                    self.outcome.removed += done
                else:
                    self.outcome.problems[ledger_id, bookie_id] = done
