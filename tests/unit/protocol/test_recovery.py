"""What a recovery may conclude: scripted cases, then every combination of answers, enumerated."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

import pytest

from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import (
    AddRecord,
    AttemptLogs,
    EntryLog,
    InlinePart,
    stripes_of_range,
)
from bkspark.protocol.recovery.verdicts import (
    Doubt,
    MemberAnswer,
    Verdict,
    decide_group,
    last_add_confirmed,
)
from tests.thorough import always

TOKEN = "0" * 32
QUORUMS = [(3, 3, 2), (4, 3, 2), (5, 3, 2)]


class Answer(Enum):
    PRESENT = "the record and the rows that belong here"
    DAMAGED = "the record, but not one good row"
    ABSENT = "surely nothing"
    TORN = "nothing whole, and a torn end"
    CORRUPT = "nothing whole in front of damage in the middle of a journal"
    LOST = "no answer, and none will come: declared lost"
    UNCLEAR = "nothing whole, and something strange among its journals"
    SILENT = "no answer"


DOUBTS = {
    Answer.ABSENT: None,
    Answer.TORN: Doubt.TORN,
    Answer.CORRUPT: Doubt.DAMAGED,
    Answer.LOST: Doubt.LOST,
    Answer.UNCLEAR: Doubt.UNCLEAR,
}


def inline_record(quorum: Quorum, first: int, count: int, confirmed: int = -1) -> AddRecord:
    last = first + count - 1
    stripes = stripes_of_range(first, last, quorum.stripe_count)
    parts = tuple(InlinePart(stripe, 1, "00000000") for stripe in stripes)
    return AddRecord(0, 1, TOKEN, first, last, confirmed, count, quorum, (), rows=parts)


def logs_record(quorum: Quorum, count: int) -> AddRecord:
    stripes = range(min(count, quorum.stripe_count))
    logs = tuple(EntryLog(TOKEN, stripe, 1, 10, 5, "00000000") for stripe in stripes)
    attempts = (AttemptLogs(0, count, logs),)
    return AddRecord(0, 1, TOKEN, 0, count - 1, -1, count, quorum, (), rows=attempts)


def answers_of(given: Mapping[int, Answer], record: AddRecord) -> dict[int, MemberAnswer]:
    """What the members of an ensemble answered about ``record``."""
    first, answers = record.first_entry_id, {}
    for index, answer in given.items():
        own = frozenset(p for p in record.pieces if index in record.quorum.write_set(p[1]))
        if answer is Answer.PRESENT:
            answers[index] = MemberAnswer({first: (record, own)})
        elif answer is Answer.DAMAGED:
            answers[index] = MemberAnswer({first: (record, frozenset())})
        elif answer is not Answer.SILENT:
            answers[index] = MemberAnswer({}, DOUBTS[answer])
    return answers


@dataclass(frozen=True)
class Situation:
    """A group of ``count`` entries from ``first``, and what each member answered about it."""

    quorum: Quorum
    first: int
    count: int
    given: tuple[Answer, ...]

    @property
    def windows(self) -> list[list[int]]:
        """Windows that the group needs; the first is all that is known of a group nobody shows."""
        size, width = self.quorum.ensemble_size, self.quorum.write_quorum_size
        shown = any(a in (Answer.PRESENT, Answer.DAMAGED) for a in self.given)
        firsts = range(self.first, self.first + self.count if shown else self.first + 1)
        return [[(entry + k) % size for k in range(width)] for entry in firsts]

    @property
    def is_readable(self) -> bool:
        """Whether each row has a good copy on one of the members that it belongs on."""
        return all(any(self.given[i] is Answer.PRESENT for i in w) for w in self.windows)

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody's answer could still decide."""
        return bool(
            {Answer.SILENT, Answer.UNCLEAR} & set(self.given)
        )  # from anywhere: a last-add-confirmed decides too

    @property
    def can_have_been_acknowledged(self) -> bool:
        """Try out whatever the silent and the torn members may have."""
        for window in self.windows:
            if {self.given[i] for i in window} <= {Answer.ABSENT, Answer.TORN}:
                return False  # heard from everybody, and nobody has it
        unsure = (Answer.SILENT, Answer.UNCLEAR, Answer.TORN, Answer.CORRUPT, Answer.LOST)
        doubtful = [i for i, a in enumerate(self.given) if a in unsure]
        sure = {i for i, a in enumerate(self.given) if a in (Answer.PRESENT, Answer.DAMAGED)}
        for flags in product((True, False), repeat=len(doubtful)):
            having = sure | {i for i, has in zip(doubtful, flags, strict=True) if has}
            acks = (len(having & set(window)) for window in self.windows)
            if min(acks) >= self.quorum.ack_quorum_size:
                return True
        return False


def situations(sizes: tuple[int, int, int], kinds: list[Answer]) -> Iterator[Situation]:
    quorum = Quorum(*sizes)
    for given in product(kinds, repeat=quorum.ensemble_size):
        for first in range(quorum.stripe_count):
            for count in range(1, quorum.stripe_count + 2):
                belongs = {i for e in range(first, first + count) for i in quorum.write_set(e)}
                elsewhere = {given[i] for i in range(quorum.ensemble_size) if i not in belongs}
                if not elsewhere & {Answer.PRESENT, Answer.DAMAGED}:
                    yield Situation(quorum, first, count, given)


def verdict(situation: Situation) -> Verdict:
    record = inline_record(situation.quorum, situation.first, situation.count)
    answers = answers_of(dict(enumerate(situation.given)), record)
    return decide_group(situation.first, answers, situation.quorum).verdict


@pytest.mark.parametrize("sizes", always(QUORUMS[:1], QUORUMS))
def test_every_combination_of_answers_is_decided_as_enumeration_says(
    sizes: tuple[int, int, int],
) -> None:
    """Kept if readable, absent if it cannot have been acknowledged, otherwise undecided or lost."""
    rare = {Answer.DAMAGED, Answer.CORRUPT, Answer.LOST, Answer.UNCLEAR}
    kinds = list(Answer) if sizes[0] < 5 else [a for a in Answer if a not in rare]
    seen = set()
    for situation in situations(sizes, kinds):
        if situation.is_readable:
            expected = Verdict.KEEP
        elif situation.can_have_been_acknowledged:
            expected = Verdict.UNDECIDED if situation.is_waited_for else Verdict.LOST
        else:
            expected = Verdict.ABSENT
        assert verdict(situation) is expected, situation
        seen.add(expected)
    assert seen == set(Verdict) - (set() if Answer.LOST in kinds else {Verdict.LOST})


@pytest.mark.parametrize("sizes", QUORUMS)
def test_it_decides_whenever_less_than_qa_members_of_a_window_are_silent(
    sizes: tuple[int, int, int],
) -> None:
    decided = 0
    for situation in situations(sizes, [Answer.PRESENT, Answer.ABSENT, Answer.SILENT]):
        size, width, acks = sizes
        silent = {i for i, answer in enumerate(situation.given) if answer is Answer.SILENT}
        rings = [{(s + k) % size for k in range(width)} for s in range(size)]
        if all(len(ring & silent) < acks for ring in rings):
            assert verdict(situation) is not Verdict.UNDECIDED, situation
            decided += 1
    assert decided > 100 or sizes == (3, 3, 2)


@pytest.mark.parametrize("sizes", QUORUMS)
def test_a_decision_never_changes_when_more_members_answer(sizes: tuple[int, int, int]) -> None:
    """What one recovery found absent, no later one with more answers finds acknowledged."""
    for situation in situations(sizes, [Answer.PRESENT, Answer.ABSENT, Answer.SILENT]):
        if verdict(situation) is not Verdict.ABSENT:
            continue
        for index, answer in enumerate(situation.given):
            if answer is Answer.SILENT:
                fewer = (*situation.given[:index], Answer.ABSENT, *situation.given[index + 1 :])
                later = Situation(situation.quorum, situation.first, situation.count, fewer)
                assert verdict(later) is Verdict.ABSENT


def test_one_good_copy_keeps_a_group() -> None:
    quorum = Quorum(3, 3, 2)
    record = inline_record(quorum, 0, 1)
    given = {0: Answer.ABSENT, 1: Answer.ABSENT, 2: Answer.PRESENT}
    decision = decide_group(0, answers_of(given, record), quorum)
    assert (decision.verdict, decision.record) == (Verdict.KEEP, record)


def test_an_undecided_group_names_whom_it_waits_for() -> None:
    quorum = Quorum(5, 3, 2)
    record = inline_record(quorum, 1, 1)
    given = {0: Answer.ABSENT, 1: Answer.ABSENT, 4: Answer.ABSENT}
    decision = decide_group(1, answers_of(given, record), quorum)
    assert (decision.verdict, decision.waiting_for) == (Verdict.UNDECIDED, (2, 3))


def test_damaged_rows_everywhere_are_a_doubt_that_no_answer_can_lift() -> None:
    quorum = Quorum(3, 3, 2)
    record = inline_record(quorum, 0, 1)
    given = dict.fromkeys(range(3), Answer.DAMAGED)
    decision = decide_group(0, answers_of(given, record), quorum)
    assert (decision.verdict, decision.record) == (Verdict.LOST, record)
    assert decision.waiting_for == (0, 1, 2)
    given[1] = Answer.SILENT
    decision = decide_group(0, answers_of(given, record), quorum)
    assert (decision.verdict, decision.waiting_for) == (Verdict.UNDECIDED, (1,))


def test_torn_ends_everywhere_are_an_absence_but_not_while_one_member_is_silent() -> None:
    quorum = Quorum(3, 3, 2)
    record = inline_record(quorum, 0, 1)
    torn = dict.fromkeys(range(3), Answer.TORN)
    assert decide_group(0, answers_of(torn, record), quorum).verdict is Verdict.ABSENT
    torn[1] = Answer.SILENT
    assert decide_group(0, answers_of(torn, record), quorum).verdict is Verdict.UNDECIDED


def test_damage_in_the_middle_of_a_journal_never_becomes_an_absence() -> None:
    """Everybody has answered, and what the damaged journal may have held is unknown (RB-11)."""
    quorum = Quorum(3, 3, 2)
    record = inline_record(quorum, 0, 1)
    given = {0: Answer.CORRUPT, 1: Answer.TORN, 2: Answer.ABSENT}
    decision = decide_group(0, answers_of(given, record), quorum)
    assert (decision.verdict, decision.waiting_for) == (Verdict.LOST, (0,))
    given[2] = Answer.SILENT
    decision = decide_group(0, answers_of(given, record), quorum)
    assert (decision.verdict, decision.waiting_for) == (Verdict.UNDECIDED, (2,))


def test_a_lost_member_has_answered_but_proves_nothing() -> None:
    quorum = Quorum(3, 3, 2)
    record = inline_record(quorum, 0, 1)
    given = {0: Answer.LOST, 1: Answer.ABSENT, 2: Answer.ABSENT}
    assert decide_group(0, answers_of(given, record), quorum).verdict is Verdict.ABSENT
    given[1] = Answer.LOST
    decision = decide_group(0, answers_of(given, record), quorum)
    assert (decision.verdict, decision.waiting_for) == (Verdict.LOST, (0, 1))
    given[2] = Answer.SILENT
    decision = decide_group(0, answers_of(given, record), quorum)
    assert (decision.verdict, decision.waiting_for) == (Verdict.UNDECIDED, (2,))


def test_something_strange_is_waited_for_and_proves_nothing() -> None:
    """Until somebody has cleared it up; the others decide if they are enough."""
    quorum = Quorum(3, 3, 2)
    record = inline_record(quorum, 0, 1)
    given = {0: Answer.UNCLEAR, 1: Answer.ABSENT, 2: Answer.ABSENT}
    assert decide_group(0, answers_of(given, record), quorum).verdict is Verdict.ABSENT
    given[1] = Answer.TORN
    decision = decide_group(0, answers_of(given, record), quorum)
    assert (decision.verdict, decision.waiting_for) == (Verdict.UNDECIDED, (0,))
    given[2] = Answer.LOST
    decision = decide_group(0, answers_of(given, record), quorum)
    assert (decision.verdict, decision.waiting_for) == (Verdict.UNDECIDED, (0,))


def test_a_torn_end_beside_a_lost_member_is_no_absence() -> None:
    """Both may have held it, and had: a disk fault can cut a journal's last record too."""
    quorum = Quorum(3, 3, 2)
    record = inline_record(quorum, 0, 1)
    given = {0: Answer.LOST, 1: Answer.TORN, 2: Answer.ABSENT}
    decision = decide_group(0, answers_of(given, record), quorum)
    assert (decision.verdict, decision.waiting_for) == (Verdict.LOST, (0,))


def test_nothing_is_lost_while_anybody_is_silent() -> None:
    """5/3/2: the silent ones have no copy of the entry, but may know that it is confirmed."""
    quorum = Quorum(5, 3, 2)
    given = dict.fromkeys(range(3), Answer.LOST)
    answers = answers_of(given, inline_record(quorum, 0, 1))
    decision = decide_group(0, answers, quorum)
    assert (decision.verdict, decision.waiting_for) == (Verdict.UNDECIDED, (3, 4))
    answers |= {3: MemberAnswer({}), 4: MemberAnswer({})}
    assert decide_group(0, answers, quorum).verdict is Verdict.LOST


def test_a_record_of_entry_logs_needs_every_window_also_those_without_its_rows() -> None:
    """5/3/2 with one row, on window 0: proofs of absence from window 2 alone rule it out (H7)."""
    quorum = Quorum(5, 3, 2)
    record = logs_record(quorum, 1)
    broken = {0: Answer.DAMAGED, 1: Answer.SILENT, 2: Answer.SILENT}
    absences = {3: Answer.ABSENT, 4: Answer.ABSENT}
    decision = decide_group(0, answers_of(broken | absences, record), quorum)
    assert decision.verdict is Verdict.ABSENT
    decision = decide_group(0, answers_of(broken, record), quorum)
    assert (decision.verdict, decision.waiting_for) == (Verdict.UNDECIDED, (1, 2, 3, 4))


def test_rows_in_entry_logs_are_kept_from_several_bookies_together() -> None:
    quorum = Quorum(5, 3, 2)
    record = logs_record(quorum, 7)
    given = {0: Answer.PRESENT, 2: Answer.PRESENT}  # stripes 3, 4, 0 and 0, 1, 2
    assert decide_group(0, answers_of(given, record), quorum).verdict is Verdict.KEEP
    del given[2]
    assert decide_group(0, answers_of(given, record), quorum).verdict is Verdict.UNDECIDED


def test_copies_are_judged_file_by_file() -> None:
    """Each of two tasks has a good copy of its file somewhere, and no bookie has both."""
    quorum = Quorum(3, 3, 2)
    ids = ("a" * 32, "b" * 32)
    attempts = tuple(
        AttemptLogs(number, 1, (EntryLog(one, 0, 1, 10, 5, "00000000"),))
        for number, one in enumerate(ids)
    )
    record = AddRecord(0, 1, TOKEN, 0, 1, -1, 2, quorum, (), rows=attempts)
    answers = {
        index: MemberAnswer({0: (record, frozenset([(one, 0)]))}) for index, one in enumerate(ids)
    }
    assert decide_group(0, answers, quorum).verdict is Verdict.KEEP
    del answers[1]
    assert decide_group(0, answers, quorum).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("floor", "seen", "expected"),
    [(-1, [], -1), (-1, [3], 3), (-1, [2, 7, 4], 7), (5, [], 5), (5, [3], 5), (5, [9], 9)],
)
def test_the_last_add_confirmed_is_the_highest_seen_anywhere_and_never_below_the_floor(
    floor: int, seen: list[int], expected: int
) -> None:
    quorum = Quorum(3, 3, 2)
    answers = {
        index: MemberAnswer({10: (inline_record(quorum, 10, 1, confirmed), frozenset())})
        for index, confirmed in enumerate(seen)
    }
    answers[9] = MemberAnswer({})
    assert last_add_confirmed(answers, floor) == expected


@pytest.mark.parametrize(
    ("doubt", "other"), [(Doubt.DATA_LOST, Doubt.LOST), (Doubt.UNFENCED, Doubt.UNCLEAR)]
)
def test_doubts_that_decide_alike(doubt: Doubt, other: Doubt) -> None:
    """Data that is lost is as good as a bookie that is; one without a fence is waited for."""
    for situation in situations((3, 3, 2), list(Answer)):
        record = inline_record(situation.quorum, situation.first, situation.count)
        answers = answers_of(dict(enumerate(situation.given)), record)
        alike = {
            index: replace(answer, doubt=doubt) if answer.doubt is other else answer
            for index, answer in answers.items()
        }
        decisions = [
            decide_group(situation.first, given, situation.quorum) for given in (answers, alike)
        ]
        assert decisions[0] == decisions[1], situation
