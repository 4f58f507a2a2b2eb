"""Scenes of a recovery, for scripts; see ``script``.

The first line names the sizes, the members of the last fragment and where that begins, and other
bookies that are registered:

    recovery 3/3/2 of a b c [guaranteed] [from ENTRY behind d e f] [beside g h] [for a writer]

``a shows 0 1-2@0`` is the answer of a member that has the records of entry 0 and of the entries 1
and 2, where the latter says that 0 is confirmed, and ``1@0/-1`` that not all members have it yet;
``3!`` is a record whose rows are bad there.
Behind that may stand why the answer is in doubt, the entry that damage hides (``hidden 0``), or
what the records say that another member had (``and saw 1 on b``).
"""

from dataclasses import replace
from functools import partial
from typing import Any

from bkspark.protocol.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, InlinePart, stripes_of_range
from bkspark.protocol.recovery.recovering import LedgerRecovery, Looking
from bkspark.protocol.recovery.steps import (
    Answer,
    Ask,
    ChooseSpares,
    Close,
    Closed,
    Consent,
    DeclaredLost,
    Displaced,
    EndRecovery,
    Event,
    Fail,
    Failure,
    Fence,
    Instruction,
    LeaveReason,
    LedgerSeen,
    ListLost,
    LookAgain,
    LookUp,
    Note,
    Open,
    Opened,
    Prune,
    ReadLedger,
    RecordShown,
    Silence,
    Spares,
    Take,
    TakenOver,
    TakeOver,
    Took,
    Unreadable,
    WaitForOthers,
    WriteBack,
    WrittenBack,
)
from bkspark.protocol.recovery.verdicts import Doubt, MemberAnswer, MemberTail

WRITER, OWN, OTHER = "a" * 32, "b" * 32, "c" * 32
_DOUBTS = {doubt.name.lower(): doubt for doubt in Doubt}


def member(name: str) -> Member:
    return Member(name, "1" * 32)


def record_of(quorum: Quorum, first: int, last: int, confirmed: int = -1) -> AddRecord:
    """An add record, ten bytes for an entry."""
    stripes = stripes_of_range(first, last, quorum.stripe_count)
    parts = tuple(InlinePart(stripe, 10, "00000000") for stripe in stripes)
    length = 10 * (last + 1)
    stored = (-1,) * quorum.ensemble_size
    return AddRecord(7, 1, WRITER, first, last, confirmed, length, quorum, stored, rows=parts)


def tail_of(
    index: int,
    records: list[tuple[AddRecord, bool]],
    doubt: Doubt | None,
    *,
    is_full: bool = False,
) -> MemberTail:
    """What the member at ``index`` answers that has ``records``, each with good rows or not.

    Args:
        is_full: whether the ledger guarantees its write quorum.
    """
    confirmed = max((record.last_add_confirmed for record, _ in records), default=-1)
    replicated = max((record.last_add_fully_replicated for record, _ in records), default=-1)
    floor = replicated if is_full else confirmed
    done = [record for record, _ in records if record.last_entry_id <= floor]
    shown: dict[int, tuple[AddRecord, frozenset[tuple[str, int]]]] = {}
    parts: dict[int, dict[int, bytes]] = {}
    for record, is_good in records:
        if record.last_entry_id > floor:
            stripes = [part.stripe for part in record.parts_of(index) if is_good]
            pieces = frozenset(("", stripe) for stripe in stripes)
            shown[record.first_entry_id] = (record, pieces)
            parts[record.first_entry_id] = dict.fromkeys(stripes, b"rows")
    answer = MemberAnswer(shown, doubt)
    reached = max((record.last_entry_id for record, _ in records), default=-1)
    tail = MemberTail(answer, parts, confirmed, done[-1] if done else None, reached=reached)
    tail = replace(tail, last_add_fully_replicated=floor) if is_full else tail
    return tail if doubt is None else tail.doubted(doubt, f"it is {doubt.name.lower()}")


class RecoveryScene:
    """One recovery, and what the text calls things."""

    def __init__(self, line: str) -> None:
        words = line.split()
        quorum = Quorum(*map(int, words[1].split("/")))
        size = quorum.ensemble_size
        names, behind, beside = words[3 : 3 + size], list[str](), list[str]()
        writer = "d" * 32 if words[-3:] == ["for", "a", "writer"] else ""
        made = partial(Fragment, term=1, token=WRITER, owner=1 if writer else 0)
        fragments: tuple[Fragment, ...] = (made(0, ensemble=tuple(map(member, names))),)
        if "from" in words:
            at = words.index("from")
            behind = words[at + 3 : at + 3 + size]
            older = made(0, ensemble=tuple(map(member, behind)))
            fragments = (older, replace(fragments[0], first_entry_id=int(words[at + 1])))
        words = words[:-3] if writer else words
        if "beside" in words:
            beside = words[words.index("beside") + 1 :]
        self.ledger = LedgerMetadata(
            *(7, quorum, LedgerState.OPEN, 1, WRITER, fragments),
            settings=LedgerSettings(guarantees_write_quorum="guaranteed" in words),
        )
        self.recovery = LedgerRecovery(Looking(writer_token=writer))
        self._known = tuple(map(member, dict.fromkeys([*names, *behind, *beside])))
        self._asked: dict[str, Any] = {}
        self._close: Close | Open | None = None

    def receive(self, line: str) -> list[str]:
        """What the recovery does when the event of ``line`` happens."""
        return [self._shown(step) for step in self.recovery.receive(self._event(line.split()))]

    def _event(self, words: list[str]) -> Event:
        match words:
            case ["seen"]:
                return LedgerSeen(self.ledger)
            case ["seen", "taken", "over", "by", "another"]:
                return LedgerSeen(self.ledger.in_recovery(OTHER))
            case ["seen", "closed", "at", end]:
                return LedgerSeen(self._closed_by_another(int(end)))
            case ["taken", "over", *rest]:
                self.ledger = self.ledger.in_recovery(OWN)
                anew = rest[1:]
                known = (one for one in self._known if one.bookie_id not in anew)
                return TakenOver(self.ledger, tuple(known))
            case ["lost", *names]:
                return DeclaredLost(frozenset(map(member, names)) - {member("nobody")})
            case ["consent"] | ["no", "consent"]:
                return Consent(words == ["consent"])
            case ["spares", *names]:
                return Spares(tuple(member(name) for name in names if name != "nobody"))
            case ["closed"]:
                assert isinstance(self._close, Close)
                self.ledger = self._close.applied_to(self.ledger)
                return Closed(self.ledger)
            case ["closed", "by", "another", "at", end]:
                return Closed(self._closed_by_another(int(end)))
            case ["displaced"]:
                return Displaced("another was faster")
            case ["opened"]:
                assert isinstance(self._close, Open)
                self.ledger = self._close.applied_to(self.ledger)
                return Opened(self.ledger)
            case [name, *rest] if isinstance(self._asked[name], Take | LookAgain):
                problem = "" if rest == ["has", "it"] else f"bookie {name} {' '.join(rest)}"
                return Took(self._asked.pop(name), problem)
            case [name, *rest]:
                return Answer(self._asked.pop(name), self._result(name, rest))
        raise ValueError(f"no event: {words}")

    def _closed_by_another(self, end: int) -> LedgerMetadata:
        taken = self.ledger.in_recovery(OTHER)
        length = 10 * (end + 1)
        return taken.closed(last_entry_id=end, length_bytes=length, term=taken.term, token=OTHER)

    def _result(
        self, name: str, words: list[str]
    ) -> MemberTail | RecordShown | WrittenBack | Unreadable | Displaced | Failure:
        match words:
            case ["shows", *shown, "hidden", entry_id]:
                tail = self._tail(name, shown)
                return replace(tail, hidden=((int(entry_id), int(entry_id)),))
            case ["shows", *shown, "and", "saw", entry_id, "on", other]:
                had = {self._index_of(other): int(entry_id)}
                return replace(self._tail(name, shown), had=had)
            case ["shows", *shown]:
                return self._tail(name, shown)
            case ["has", "nothing"]:
                return RecordShown(None)
            case ["has", text]:
                return RecordShown(self._record(text)[0])
            case ["fails"]:
                return Failure(f"bookie {name} fails")
            case ["is", "silent"]:
                return Silence(f"bookie {name} does not answer")
            case ["took", "it"]:
                return WrittenBack(1)
            case ["found", "nobody", "to", "copy", "from"]:
                return Unreadable("nobody has it")
            case ["took", "another", "in"]:
                return Displaced(f"bookie {name} knows a later one")
        raise ValueError(f"no answer: {words}")

    def _index_of(self, name: str) -> int:
        return self.ledger.last_fragment.ensemble.index(member(name))

    def _tail(self, name: str, shown: list[str]) -> MemberTail:
        doubt = _DOUBTS.get(shown[-1])
        records = [self._record(text) for text in shown if text[0].isdigit()]
        is_full = self.ledger.settings.guarantees_write_quorum
        return tail_of(self._index_of(name), records, doubt, is_full=is_full)

    def _record(self, text: str) -> tuple[AddRecord, bool]:
        ids, _, said = text.rstrip("!").partition("@")
        confirmed, _, replicated = said.partition("/")
        first, _, last = ids.partition("-")
        quorum = self.ledger.quorum
        record = record_of(quorum, int(first), int(last or first), int(confirmed or -1))
        if replicated:
            record = replace(record, stored=(int(replicated) + 1,) * quorum.ensemble_size)
        return record, not text.endswith("!")

    def _shown(self, step: Instruction) -> str:
        match step:
            case Note(line, is_warning):
                return f"{'warn' if is_warning else 'note'}: {line}"
            case TakeOver():
                return "take over"
            case Fence(_, bookie, after):
                self._asked[bookie.bookie_id] = step
                return f"fence {bookie.bookie_id} and read what is behind {after}"
            case ListLost():
                return "list the lost"
            case Ask(loss):
                return f"ask: {loss}"
            case LookUp(bookie, entry_id):
                self._asked[bookie.bookie_id] = step
                return f"look on {bookie.bookie_id} for the record of {entry_id}"
            case WriteBack(_, bookie, groups, must_fence):
                self._asked[bookie.bookie_id] = step
                firsts = " ".join(str(group.record.first_entry_id) for group in groups)
                fence = "fence and " if must_fence else ""
                return f"{fence}write {firsts} to {bookie.bookie_id}"
            case ChooseSpares(count, exclude, near):
                apart = f", apart from {_names(near)}" if near else ""
                return f"choose {count}, not {' '.join(sorted(exclude))}{apart}"
            case Close():
                self._close = step
                length = step.last.length_bytes if step.last is not None else 0
                names = " ".join(bookie.bookie_id for bookie in step.ensemble)
                moved = f" with {names} from {step.first_entry_id} on" if names else ""
                return f"close at {step.last_entry_id}, {length} bytes{moved}"
            case Take(_, bookie):
                self._asked[bookie.bookie_id] = step
                return f"let {bookie.bookie_id} take it"
            case LookAgain(_, bookie):
                self._asked[bookie.bookie_id] = step
                return f"look again on {bookie.bookie_id}"
            case Open(last_entry_id=last, ensemble=ensemble, kept_by=kept_by):
                self._close = step
                kept = f", kept by {_list(kept_by)} from {step.first_kept} on" if kept_by else ""
                return f"open behind {last} on {_list(ensemble)}{kept}"
            case Prune(bookie, (term, _), is_empty):
                what = "the journal and the permission" if is_empty else "the permission"
                return f"prune on {bookie.bookie_id} {what} of {term}, then fence {term + 1}"
            case ReadLedger():
                return "look at the ledger"
            case WaitForOthers(count):
                return f"wait for others, displaced before: {count}"
            case LeaveReason(_, stuck):
                names = " ".join(bookie.bookie_id for bookie in stuck.waiting_for) or "nobody"
                return f"leave the reason: {stuck.reason}; waiting for {names}"
            case Fail(error):
                return f"fail with {type(error).__name__}"
            case EndRecovery(last, kept, lost_from):
                lost = "" if lost_from is None else f", lost from {lost_from} on"
                unjoined = " ".join(sorted(step.unjoined))
                hint = f", nobody may ask {unjoined}" if unjoined else ""
                return f"end at {last}, kept {kept}{lost}{hint}"


def _list(members: tuple[Member, ...]) -> str:
    return " ".join(bookie.bookie_id for bookie in members)


def _names(members: frozenset[Member]) -> str:
    return " ".join(sorted(bookie.bookie_id for bookie in members))
