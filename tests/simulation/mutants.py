"""Single rules of the protocol, broken in the real code while a context lasts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from bkspark.bookie import memory
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.password import make_digester
from bkspark.cluster.records import Records
from bkspark.errors import BookieUnavailableError, CorruptDataError
from bkspark.format import add_record, journal, layout
from bkspark.format.digest import Digester
from bkspark.ledger.handles import entries, how_far, lane
from bkspark.ledger.handles.lane import Appender
from bkspark.ledger.handles.membership import Membership, News
from bkspark.ledger.journals.member_journals import Taken
from bkspark.ledger.recovery.fencing import FenceAndRead
from bkspark.ledger.recovery.recoverer import WriteCopies
from bkspark.protocol.ledger import evidence
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, Fragment, LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.recovery import conclusions
from bkspark.protocol.recovery import verdicts as recovery
from bkspark.protocol.recovery.replication import Replicated, Replication
from bkspark.protocol.recovery.steps import Failure
from bkspark.protocol.writer.adding import CheckTicket, PendingAdd, PendingAdds
from bkspark.protocol.writer.steps import Checked, Swap, Swapped

Change = tuple[object, str, object]


@contextmanager
def changed(*changes: Change) -> Iterator[None]:
    if not changes:
        yield
        return
    owner, name, value = changes[0]
    with patch.object(owner, name, value), changed(*changes[1:]):
        yield


def nothing(*_: object, **__: object) -> None:
    """In place of a check."""


def already_replicated(self: Replication, _silent: object) -> Any:
    return replace(self, outcome=Replicated(self.ensemble)), ()


def checked(_self: Membership, ticket: CheckTicket, _seen: object) -> News:
    return Checked(ticket), None


def always(*_: object, **__: object) -> bool:
    return True


def append_after_check(self: Appender, _record: object, frame: Sequence[Any]) -> None:
    assert self._journal is not None
    check = lane.post_check  # type: ignore[attr-defined]  # which a mutant may have replaced
    mine = self._ledger
    check(
        self.address,
        self._journal,
        ledger_id=mine.ledger_id,
        term=mine.term,
        token=mine.token,
    )
    self._journal.append(frame)


def read_and_fence(self: FenceAndRead, *_: object) -> Any:
    digester = make_digester(self.digest, self.password)
    try:
        with open_bookie(self.address).open_root() as root:
            tail = self._read(root, digester)
            self._fence(root)
        return self._judged(tail)
    except (BookieUnavailableError, CorruptDataError) as error:
        return Failure(str(error))


def only_read(self: FenceAndRead, *_: object) -> Any:
    digester = make_digester(self.digest, self.password)
    try:
        with open_bookie(self.address).open_root() as root:
            tail = self._read(root, digester)
        return self._judged(tail)
    except (BookieUnavailableError, CorruptDataError) as error:
        return Failure(str(error))


def fence_where_something_is(self: FenceAndRead, *_: object) -> Any:
    digester = make_digester(self.digest, self.password)
    try:
        with open_bookie(self.address).open_root() as root:
            if root.list(layout.journal_folder(self.ledger_id)):
                self._fence(root)
            tail = self._read(root, digester)
        return self._judged(tail)
    except (BookieUnavailableError, CorruptDataError) as error:
        return Failure(str(error))


def confirming_itself(*args: Any, **facts: Any) -> AddRecord:
    record = AddRecord(*args, **facts)
    return replace(record, last_add_confirmed=record.last_entry_id)


def absent_one_early(self: Quorum, write_set: Sequence[int], absences: Sequence[int]) -> bool:
    proofs = sum(index in absences for index in write_set)
    return proofs >= self.write_quorum_size - self.ack_quorum_size


def complete_one_early(self: PendingAdd, quorum: Quorum) -> bool:
    needed = quorum.ack_quorum_size - 1
    return all(sum(i in self.counted for i in ws) >= needed for ws in self.write_sets)


def silent_is_absent(
    write_set: Sequence[int], holders: Mapping[int, object], answers: object, quorum: Quorum
) -> bool:
    return quorum.is_absent(write_set, [index for index in write_set if index not in holders])


def torn_is_absent(
    write_set: Sequence[int],
    holders: Mapping[int, object],
    answers: Mapping[int, object],
    quorum: Quorum,
) -> bool:
    return quorum.is_absent(write_set, [i for i in write_set if i in answers and i not in holders])


def swap_in_memory(self: Membership, step: Swap) -> News:
    mine = self.seen.value
    kept = [f for f in mine.fragments if f.first_entry_id < step.first_entry_id]
    fragment = Fragment(step.first_entry_id, step.term, step.ensemble, step.token)
    swapped = replace(self.seen, value=replace(mine, fragments=(*kept, fragment)))
    return Swapped(swapped.value), swapped


def write_with_own_lac(real: Callable[..., None]) -> Callable[..., None]:
    def write(self: WriteCopies, digester: Any, *_: object) -> None:
        with open_bookie(self.address).open_root() as root:
            file = root.open_journal(layout.journal(self.ledger_id, self.term, self.token))
            for group in self.groups:
                first = group.record.first_entry_id
                record = replace(group.record, last_add_confirmed=first - 1)
                encoded = journal.encode(record, digester, group.parts)
                file.append(encoded.frame(self.ensemble_index, file.end))
            file.close()

    return write


def put_without_version(self: Any, name: str, value: Any, expected: int | None) -> Any:
    stored = self._store.get(self._key(name))
    return REAL_PUT(self, name, value, None if stored is None else stored.version)


def put_log_without_version(self: Any, name: str, value: Any, expected: int | None) -> Any:
    put = put_without_version if isinstance(value, LogRecord) else REAL_PUT
    return put(self, name, value, expected)


REAL_PUT = Records._put


def without_looking(_self: FenceAndRead, tail: Any) -> Any:
    """In place of a look for what a bookie that lost data lacks."""
    return tail


NO_EVIDENCE: tuple[Change, ...] = ((FenceAndRead, "_judged", without_looking),)
NO_COOKIES: tuple[Change, ...] = (
    *NO_EVIDENCE,
    (memory, "check_cookie", nothing),
    (memory.MemoryRoot, "_confirm_cookie", nothing),
)
NO_POST_CHECK: tuple[Change, ...] = ((lane, "post_check", nothing),)
NO_METADATA_CHECK: tuple[Change, ...] = ((Membership, "check", checked),)


def highest_said(
    _quorum: Quorum, said: Mapping[int, int], _sure: object, floor: int = INVALID_ENTRY_ID
) -> evidence.Confirmed:
    highest = max([floor, *said.values()])
    return evidence.Confirmed(highest, highest)


def least_said(
    quorum: Quorum, said: Mapping[int, int], sure: set[int], floor: int = INVALID_ENTRY_ID
) -> evidence.Confirmed:
    found = evidence.confirmed(quorum, said, sure, floor)
    return found if found.most is None else evidence.Confirmed(found.least, found.least)


def covered(
    quorum: Quorum, said: Mapping[int, int], sure: set[int], floor: int = INVALID_ENTRY_ID
) -> evidence.Confirmed:
    highest = max([floor, *said.values()])
    has_all = all(quorum.is_absent(write_set, sure) for write_set in quorum.write_sets())
    return evidence.Confirmed(highest, highest if has_all else None)


def uncounted_replacement(self: PendingAdds, indexes: Sequence[int]) -> None:
    self._replacements += 1


MUTANTS: dict[str, tuple[Change, ...]] = {
    "post-check skipped": NO_POST_CHECK,
    "post-check before the append": ((Appender, "append", append_after_check),),
    "fence after read": ((FenceAndRead, "run", read_and_fence),),
    "recovery reads without a fence": ((FenceAndRead, "run", only_read),),
    "a bookie that has nothing is not fenced": ((FenceAndRead, "run", fence_where_something_is),),
    "a log is changed without compare": ((Records, "_put", put_log_without_version),),
    "digests are not checked": ((Digester, "matches", always),),
    "a record confirms itself": (
        (entries, "AddRecord", confirming_itself),
        (
            add_record,
            "require_readable",
            nothing,
        ),  # no reader takes such a record: it is a guard too
    ),
    "absence from Qw - Qa answers": ((Quorum, "is_absent", absent_one_early),),
    "silence counts as absence": ((recovery, "_is_absent", silent_is_absent),),
    "ack at Qa - 1": ((PendingAdd, "is_complete", complete_one_early),),
    "metadata check skipped": NO_METADATA_CHECK,
    "acks of a replaced bookie kept": ((PendingAdds, "replace_members", uncounted_replacement),),
    "replacement counted without CAS": ((Membership, "swap", swap_in_memory),),
    "torn record is absent": ((recovery, "_is_absent", torn_is_absent),),
    "cookie not checked": NO_COOKIES,
    "close without write-back": ((Replication, "begun", already_replicated),),
    "write-back under its own LAC": ((WriteCopies, "_write_records", write_with_own_lac(nothing)),),
    "update without compare": ((Records, "_put", put_without_version),),
    "a reader believes whoever answers": ((how_far, "confirmed", highest_said),),
    "a reader believes the highest LAC of enough": ((how_far, "confirmed", covered),),
    "a reader takes what bookies agree on": ((how_far, "confirmed", least_said),),
}

LOSSES: dict[str, tuple[Change, ...]] = {
    "post-check and metadata check skipped": NO_POST_CHECK + NO_METADATA_CHECK,
    "post-check before the append, metadata check skipped": (
        *MUTANTS["post-check before the append"],
        *NO_METADATA_CHECK,
    ),
    "fence after read, metadata check skipped": (
        *MUTANTS["fence after read"],
        *NO_METADATA_CHECK,
    ),
    "metadata check skipped": NO_METADATA_CHECK,
    "ack at Qa - 1": MUTANTS["ack at Qa - 1"],
}
"""Noticed by what they lose alone. The fence and the metadata check cover each other: with either
of them a writer that was taken over gets no ack, so it takes both to be broken."""


def read_in_front_of_evidence(self: FenceAndRead, *_: object) -> Any:
    """What shows a loss is looked for behind the fence, and then read."""
    digester = make_digester(self.digest, self.password)
    try:
        with open_bookie(self.address).open_root() as root:
            unfenced = self._fence(root)
            is_whole = not self.writer.taken.missing_in(root)
            tail = self._read(root, digester)
        return tail if is_whole and not unfenced else self._judged(tail)
    except (BookieUnavailableError, CorruptDataError) as error:
        return Failure(str(error))


def fence_with_permission(self: FenceAndRead, root: Any) -> str:
    """A recovery makes the writer's permission as well."""
    try:
        root.put_new(self.writer.taken.permission, b"")
    except BookieUnavailableError as error:
        return str(error)
    return REAL_FENCE(self, root)


REAL_FENCE = FenceAndRead._fence


def nobody_lacks(*_: object) -> dict[int, Any]:
    return {}


def taken_without_journal(ledger: LedgerMetadata) -> Taken:
    """Members took the permission, and no more."""
    return replace(REAL_TAKEN(ledger), journal="")


REAL_TAKEN = Taken.of

UNSHOWN: dict[str, tuple[Change, ...]] = {
    "a bookie that lost data proves absences": NO_EVIDENCE,
    "what shows a loss is made anew": ((FenceAndRead, "_fence", fence_with_permission),),
    "what shows a loss is looked for first": ((FenceAndRead, "run", read_in_front_of_evidence),),
    "a recovery takes a journal that is gone for an empty one": (
        (Taken, "of", taken_without_journal),
    ),
    "what records say is not held against a bookie": ((conclusions, "lost_data", nobody_lacks),),
}
"""Noticed where bookies lose files and folders, and journals go back in time."""
