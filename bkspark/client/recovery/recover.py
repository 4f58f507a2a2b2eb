"""Fence and recover: close a ledger that somebody else was writing, without losing an ack.

The steps are those of the protocol document, "Recovery", in the order of reliability R16:

1. CAS to IN_RECOVERY in the next term. The ensemble of this very version is the one to ask.
2. On every bookie of the last fragment: first the term markers, durably, then look what is there.
3. Decide group by group, from the highest LAC on (``bkspark.protocol.recovery``).
4. Write what is kept back, byte-identical, to every member of its write sets; Qa at least.
5. CAS to CLOSED, once, with everything this recovery found out.

It can be killed at any point and run again; any number may run at once, the closing CAS decides.
Steps 2 and 4 are lists of picklable instructions: a thread pool carries them out, or Spark.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Protocol, TypeVar

from bkspark.bookie.contract import BookieAddress
from bkspark.client.cluster import Cluster
from bkspark.client.password import Password, make_digester
from bkspark.client.reading.ledger_files import OpenBookies
from bkspark.client.recovery.fencing import (
    FenceAndRead,
    MemberTail,
    RecoveredGroup,
    WriteBack,
    WrittenBack,
)
from bkspark.client.recovery.journal_tail import find_record
from bkspark.errors import (
    BookieUnavailableError,
    LedgerClosedError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.protocol.ledger import INVALID_ENTRY_ID, LedgerMetadata, LedgerState, Member
from bkspark.protocol.record import AddRecord
from bkspark.protocol.recovery import GroupDecision, Verdict, decide_group, last_add_confirmed

R = TypeVar("R", covariant=True)


class Instruction(Protocol[R]):
    """Picklable work on one bookie."""

    def run(self) -> R: ...


class Runner(Protocol):
    """Carries out instructions, all of them, and returns the results in order."""

    def __call__(self, instructions: Sequence[Instruction[Any]]) -> list[Any]: ...


def in_threads(instructions: Sequence[Instruction[Any]]) -> list[Any]:
    """Carry out ``instructions`` at once, a thread each."""
    if not instructions:
        return []
    with ThreadPoolExecutor(len(instructions)) as pool:
        return list(pool.map(lambda instruction: instruction.run(), instructions))


@dataclass(slots=True)
class RecoveryReport:
    """What a recovery did.

    Attributes:
        last_entry_id: where the ledger is closed, -1 if it is empty.
        kept: groups beyond the LAC that were found and written back.
        notes: one line for each step and each bookie that could not help.
    """

    ledger_id: int
    last_entry_id: int = INVALID_ENTRY_ID
    kept: int = 0
    notes: list[str] = field(default_factory=list)


def recover(
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    *,
    run: Runner = in_threads,
    tell: Callable[[str], None] | None = None,
) -> RecoveryReport:
    """Close ledger ``ledger_id`` at the last entry that may have been acknowledged.

    Args:
        run: how to carry out instructions on bookies.
        tell: called with each note as it is made.

    Raises:
        NotEnoughBookiesError: it cannot be decided yet; says which bookies are waited for, which
            entry is in doubt and what would help. The ledger stays IN_RECOVERY.
        OutcomeUnknownError: another recovery took over and has not finished.
        NoSuchLedgerError: there is no such ledger.
        UnauthorizedError: the password is missing or wrong; nothing was fenced.
    """
    report = RecoveryReport(ledger_id)

    def note(text: str) -> None:
        report.notes.append(text)
        if tell is not None:
            tell(text)

    before = cluster.ledger(ledger_id).value
    if before.state is LedgerState.CLOSED:
        return _closed_report(report, before, note)
    make_digester(before.digest, password)  # a wrong password must not fence anybody
    token = token_hex(16)
    try:
        taken = cluster.ledgers.update(str(ledger_id), _taken_over(token)).value
    except LedgerClosedError:
        return _closed_report(report, cluster.ledger(ledger_id).value, note)
    note(f"ledger {ledger_id} is IN_RECOVERY in term {taken.term}")
    work = _Recovery(cluster, taken, password, run, note)
    tails = work.fence_and_read()
    groups, end = work.decide(tails)
    work.write_back(groups, tails)
    closed = work.close(groups, end)
    report.last_entry_id = _end_of(closed)
    report.kept = len(groups)
    note(f"ledger {ledger_id} is CLOSED at entry {report.last_entry_id}")
    return report


def _taken_over(token: str) -> Callable[[LedgerMetadata | None], LedgerMetadata]:
    def transform(metadata: LedgerMetadata | None) -> LedgerMetadata:
        assert metadata is not None
        is_mine = metadata.state is LedgerState.IN_RECOVERY and metadata.token == token
        return metadata if is_mine else metadata.in_recovery(token)

    return transform


def _closed_report(
    report: RecoveryReport, metadata: LedgerMetadata, note: Callable[[str], None]
) -> RecoveryReport:
    report.last_entry_id = _end_of(metadata)
    note(f"ledger {report.ledger_id} is CLOSED at entry {report.last_entry_id} already")
    return report


def _end_of(metadata: LedgerMetadata) -> int:
    return INVALID_ENTRY_ID if metadata.last_entry_id is None else metadata.last_entry_id


class _Recovery:
    """One recovery in one term."""

    def __init__(
        self,
        cluster: Cluster,
        metadata: LedgerMetadata,
        password: Password,
        run: Runner,
        note: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._metadata = metadata
        self._password = password
        self._run = run
        self._note = note
        self._quorum = metadata.quorum
        self._ensemble = metadata.last_fragment.ensemble
        self._floor = metadata.last_fragment.first_entry_id - 1
        self._silent: dict[int, str] = {}
        self._confirmed: AddRecord | None = None

    def fence_and_read(self) -> dict[int, MemberTail]:
        """What every member that answers has, after it was fenced, by ensemble index."""
        known = self._cluster.addresses()
        instructions: list[FenceAndRead] = []
        for index, member in enumerate(self._ensemble):
            address = known.get(member)
            if address is None:
                self._silent[index] = f"{member.bookie_id} was initialised anew and lost its data"
            else:
                instructions.append(self._fence(index, address))
        tails: dict[int, MemberTail] = {}
        for instruction, result in zip(instructions, self._run(instructions), strict=True):
            if isinstance(result, MemberTail):
                tails[instruction.ensemble_index] = result
            else:
                self._silent[instruction.ensemble_index] = str(result)
        names = [self._ensemble[index].bookie_id for index in sorted(tails)]
        self._note(f"fenced and read {', '.join(names) or 'no bookie'}")
        for reason in self._silent.values():
            self._note(f"no answer: {reason}")
        return tails

    def decide(self, tails: dict[int, MemberTail]) -> tuple[list[AddRecord], int]:
        """The groups to keep, in order, and the last entry after them."""
        answers = {index: tail.answer for index, tail in tails.items()}
        seen = max((tail.last_add_confirmed for tail in tails.values()), default=-1)
        confirmed = last_add_confirmed(answers, max(seen, self._floor))
        self._note(f"last add confirmed is {confirmed}")
        kept: list[AddRecord] = []
        end = confirmed
        while True:
            decision = decide_group(end + 1, answers, self._quorum)
            if decision.verdict is Verdict.UNDECIDED:
                raise self._undecided(decision)
            if decision.verdict is Verdict.ABSENT:
                self._note(f"entry {end + 1} was never acknowledged")
                if not kept:
                    self._confirmed = self._find_confirmed(tails, confirmed)
                return kept, end
            assert decision.record is not None
            kept.append(decision.record)
            end = decision.record.last_entry_id
            self._note(f"entries {decision.first_entry_id} to {end} are kept")

    def write_back(self, groups: Sequence[AddRecord], tails: dict[int, MemberTail]) -> None:
        """Give every member of the groups' write sets its copy, durably; Qa at least each."""
        if not groups:
            return
        known = self._cluster.addresses()
        instructions: list[WriteBack] = []
        for index, member in enumerate(self._ensemble):
            owned = [group for group in groups if _belongs_on(group, index)]
            if owned and member in known:
                instructions.append(self._write(index, owned, tails, known))
        written: set[int] = set()
        for instruction, result in zip(instructions, self._run(instructions), strict=True):
            if isinstance(result, WrittenBack):
                written.add(instruction.ensemble_index)
            else:
                self._silent[instruction.ensemble_index] = str(result)
                self._note(f"not written back: {result}")
        for group in groups:
            if not all(self._quorum.is_ack_quorum(ws, written) for ws in group.write_sets()):
                raise NotEnoughBookiesError(
                    f"ledger {self._metadata.ledger_id}: entries {group.first_entry_id} to "
                    f"{group.last_entry_id} were found but cannot be written to "
                    f"{self._quorum.ack_quorum_size} bookies ({'; '.join(self._silent.values())})",
                    hint="bring back one of these bookies, then recover again",
                )
        self._note(f"wrote back {len(groups)} groups to {len(written)} bookies")

    def close(self, groups: Sequence[AddRecord], end: int) -> LedgerMetadata:
        """The closing CAS; the loser of a race adopts what the winner stored (RB-17)."""
        term, token = self._metadata.term, self._metadata.token
        last = groups[-1] if groups else self._confirmed

        def transform(metadata: LedgerMetadata | None) -> LedgerMetadata:
            assert metadata is not None
            if metadata.state is LedgerState.CLOSED:
                return metadata
            if (metadata.term, metadata.token) != (term, token):
                raise OutcomeUnknownError(
                    f"ledger {metadata.ledger_id} is being recovered by somebody else",
                    hint="wait for it, or recover again",
                )
            return metadata.closed(
                last_entry_id=end,
                length_bytes=last.length_bytes if last is not None else 0,
                transactions=last.transactions if last is not None else {},
                term=term,
                token=token,
            )

        return self._cluster.ledgers.update(str(self._metadata.ledger_id), transform).value

    def _find_confirmed(self, tails: Mapping[int, MemberTail], confirmed: int) -> AddRecord | None:
        """The record that ends at the confirmed entry: it knows the ledger's length up to there."""
        if confirmed == INVALID_ENTRY_ID:
            return None
        for tail in tails.values():
            shown = [record for record, _ in tail.answer.records.values()]
            for record in (*shown, tail.confirmed):
                if record is not None and record.last_entry_id == confirmed:
                    return record
        return self._look_up(confirmed)

    def _look_up(self, entry_id: int) -> AddRecord:
        """The record that ends at a confirmed entry, from the bookies of its own fragment."""
        digester = make_digester(self._metadata.digest, self._password)
        missing: list[str] = []
        with OpenBookies(self._cluster) as bookies:
            for member in self._metadata.fragment_of(entry_id).ensemble:
                try:
                    found = find_record(
                        bookies.root(member), self._metadata.ledger_id, digester, entry_id
                    )
                except BookieUnavailableError as error:
                    missing.append(str(error))
                    continue
                if found is not None:
                    return found
        raise NotEnoughBookiesError(
            f"ledger {self._metadata.ledger_id}: no bookie shows the record of the confirmed "
            f"entry {entry_id} ({'; '.join([*missing, *self._silent.values()])})",
            hint="bring back one of these bookies, then recover again",
        )

    def _fence(self, index: int, address: BookieAddress) -> FenceAndRead:
        ledger = self._metadata
        return FenceAndRead(
            ledger.ledger_id,
            ledger.term,
            index,
            address,
            ledger.digest,
            self._password,
            self._floor,
            ledger.last_fragment.term,
        )

    def _write(
        self,
        index: int,
        groups: Sequence[AddRecord],
        tails: Mapping[int, MemberTail],
        known: Mapping[Member, BookieAddress],
    ) -> WriteBack:
        ledger = self._metadata
        recovered = tuple(
            RecoveredGroup(
                group,
                _all_parts(group, tails),
                tuple(
                    known[self._ensemble[holder]]
                    for holder, tail in tails.items()
                    if group.first_entry_id in tail.answer.records
                    and self._ensemble[holder] in known
                ),
            )
            for group in groups
        )
        return WriteBack(
            ledger.ledger_id,
            ledger.term,
            ledger.token,
            index,
            known[self._ensemble[index]],
            ledger.digest,
            self._password,
            recovered,
        )

    def _undecided(self, decision: GroupDecision) -> NotEnoughBookiesError:
        waiting = [self._ensemble[index].bookie_id for index in decision.waiting_for]
        reasons = "; ".join(self._silent.get(i, "") for i in decision.waiting_for)
        what = "its rows are damaged" if decision.record else "it may have been acknowledged"
        return NotEnoughBookiesError(
            f"ledger {self._metadata.ledger_id} cannot be closed yet: entry "
            f"{decision.first_entry_id} is in doubt ({what}), no sure answer from "
            f"{', '.join(waiting) or 'any bookie that has it'} ({reasons})",
            hint="bring back one of these bookies, then recover again",
        )


def _belongs_on(group: AddRecord, index: int) -> bool:
    return any(index in write_set for write_set in group.write_sets())


def _all_parts(group: AddRecord, tails: Mapping[int, MemberTail]) -> dict[int, bytes]:
    """The group's inline rows, put together from whoever has them."""
    found: dict[int, bytes] = {}
    for tail in tails.values():
        found.update(tail.parts.get(group.first_entry_id, {}))
    return found
