"""When an add is acknowledged: scripted cases, then any history against a naive list."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.writer.adding import CheckTicket, PendingAdd, PendingAdds


def acknowledged(pending: PendingAdds) -> list[int]:
    """The last ids of what a check from now on acknowledges."""
    ticket = pending.ticket()
    return [] if ticket is None else [a.last_entry_id for a in pending.acknowledge(ticket)]


def test_ids_are_dense_and_begin_behind_what_was_recovered() -> None:
    pending = PendingAdds(Quorum(3, 3, 2), last_add_confirmed=9)
    groups = [pending.push(count) for count in (1, 4, 2)]
    assert [(a.first_entry_id, a.last_entry_id) for a in groups] == [(10, 10), (11, 14), (15, 16)]
    assert (pending.last_add_confirmed, pending.last_add_pushed, len(pending)) == (9, 16, 3)


@pytest.mark.parametrize("count", [0, -1])
def test_an_add_has_at_least_one_entry(count: int) -> None:
    pending = PendingAdds(Quorum(3, 3, 2))
    with pytest.raises(AssertionError):
        pending.push(count)
    assert (pending.last_add_pushed, len(pending)) == (-1, 0)


@pytest.mark.parametrize(
    ("first", "count", "write_sets"),
    [
        (0, 1, ((0, 1),)),
        (1, 1, ((1, 2),)),
        (3, 2, ((3, 0), (0, 1))),
        (2, 4, ((2, 3), (3, 0), (0, 1), (1, 2))),
        (2, 9, ((2, 3), (3, 0), (0, 1), (1, 2))),
    ],
)
def test_a_group_needs_the_write_sets_of_its_entries(
    first: int, count: int, write_sets: tuple[tuple[int, ...], ...]
) -> None:
    pending = PendingAdds(Quorum(4, 2, 2), last_add_confirmed=first - 1)
    assert pending.push(count).write_sets == write_sets


def test_adds_await_copies_until_each_has_its_ack_quorum() -> None:
    pending = PendingAdds(Quorum(3, 3, 2))
    assert not pending.awaits_copies
    for entry_id in (0, 1):
        pending.push(1)
        pending.count(0, entry_id, entry_id)
        assert pending.awaits_copies
        pending.count(2, entry_id, entry_id)
        assert not pending.awaits_copies
    assert acknowledged(pending) == [0, 1]
    assert not pending.awaits_copies


def test_a_lac_is_said_by_the_next_record_or_by_a_confirmation_when_nothing_is_pending() -> None:
    """Rule 5: what lies before a confirmation in a journal is confirmed by it."""
    pending = PendingAdds(Quorum(1, 1, 1))
    assert not pending.has_unsaid_lac
    first, second = pending.push(1), pending.push(1)
    first.counted.add(0)
    assert acknowledged(pending) == [0]
    assert not pending.has_unsaid_lac, "an add is on its way"
    second.counted.add(0)
    assert acknowledged(pending) == [1]
    assert pending.has_unsaid_lac
    pending.confirmed()
    assert not pending.has_unsaid_lac
    pending.push(1).counted.add(0)
    assert acknowledged(pending) == [2]
    assert pending.has_unsaid_lac
    pending.push(1)  # its record says 2
    pending.push(1)
    assert not pending.has_unsaid_lac


def test_what_was_recovered_was_said_by_somebody() -> None:
    assert not PendingAdds(Quorum(1, 1, 1), last_add_confirmed=9).has_unsaid_lac


def test_a_record_that_names_entry_logs_needs_every_write_set() -> None:
    """Any Qa of E is not enough, nor is the write set of its own first entry (H7)."""
    pending = PendingAdds(Quorum(4, 2, 2))
    add = pending.push(1, names_entry_logs=True)
    add.counted.update({0, 1, 2})
    assert pending.ticket() is None
    add.counted.add(3)
    assert acknowledged(pending) == [0]


@pytest.mark.parametrize(
    ("counted", "complete"), [({1, 2}, True), ({0, 1}, False), ({0, 3}, False)]
)
def test_only_members_of_the_own_write_set_count(counted: set[int], complete: bool) -> None:
    pending = PendingAdds(Quorum(4, 3, 2), last_add_confirmed=0)
    pending.push(1).counted.update(counted)
    assert (pending.ticket() is not None) is complete


def test_qa_members_complete_an_add_and_one_fewer_do_not() -> None:
    pending = PendingAdds(Quorum(3, 3, 2))
    add = pending.push(1)
    add.counted.add(0)
    assert pending.ticket() is None
    add.counted.add(2)
    assert pending.ticket() == CheckTicket(0, 0)
    assert pending.last_add_confirmed == -1


def test_adds_are_acknowledged_in_order() -> None:
    pending = PendingAdds(Quorum(3, 3, 2))
    first, second, third = (pending.push(1) for _ in range(3))
    second.counted.update({0, 1})
    third.counted.update({0, 1, 2})
    assert acknowledged(pending) == []
    first.counted.update({1, 2})
    assert acknowledged(pending) == [0, 1, 2]
    assert (pending.last_add_confirmed, len(pending)) == (2, 0)


def test_a_check_acknowledges_only_what_was_complete_when_it_began() -> None:
    pending = PendingAdds(Quorum(3, 3, 2))
    first, second = pending.push(1), pending.push(1)
    first.counted.update({0, 1})
    ticket = pending.ticket()
    second.counted.update({0, 1})
    assert ticket is not None
    assert pending.acknowledge(ticket) == [first]
    assert pending.last_add_confirmed == 0


def test_checks_may_end_in_any_order() -> None:
    pending = PendingAdds(Quorum(1, 1, 1))
    first, second = pending.push(1), pending.push(1)
    first.counted.add(0)
    older = pending.ticket()
    second.counted.add(0)
    newer = pending.ticket()
    assert older is not None
    assert newer is not None
    assert pending.acknowledge(newer) == [first, second]
    assert pending.acknowledge(older) == []
    assert pending.last_add_confirmed == 1


@pytest.mark.parametrize("indexes", [[0], [2], []])
def test_a_replacement_voids_a_check_that_is_under_way(indexes: list[int]) -> None:
    """The model's 13 steps: a check passed for {b0, b1}, then b0 is replaced (H10)."""
    pending = PendingAdds(Quorum(3, 3, 2))
    pending.push(1).counted.update({0, 1, 2})
    ticket = pending.ticket()
    pending.replace_members(indexes)
    assert ticket is not None
    assert pending.acknowledge(ticket) == []
    assert (pending.last_add_confirmed, len(pending)) == (-1, 1)
    assert acknowledged(pending) == [0]


def test_only_the_replaced_indexes_are_taken_back() -> None:
    pending = PendingAdds(Quorum(3, 3, 2))
    first, second = pending.push(1), pending.push(1)
    first.counted.update({0, 1})
    second.counted.update({0, 2})
    pending.replace_members([0])
    assert (first.counted, second.counted) == ({1}, {2})
    assert pending.ticket() is None


def test_every_add_is_taken_back_before_any_completes() -> None:
    """E2/Qw1/Qa1: e1's stale ack must not follow e0 out (RB-08)."""
    pending = PendingAdds(Quorum(2, 1, 1))
    first, second = pending.push(1), pending.push(1)
    second.counted.add(1)
    pending.replace_members([1])
    first.counted.add(0)
    assert acknowledged(pending) == [0]
    assert pending.ticket() is None


def test_what_is_said_to_be_stored_has_been_counted() -> None:
    """Where the newest record begins that each member was counted for (R14)."""
    pending = PendingAdds(Quorum(3, 3, 2))
    assert pending.stored == (-1, -1, -1)
    pending.push(2)
    second = pending.push(1)
    pending.count(0, 0, 1)
    pending.count(1, 0, 1)
    pending.count(0, 2, 2)
    assert (pending.stored, second.counted) == ((2, 0, -1), {0})
    assert acknowledged(pending) == [1]
    pending.count(2, 0, 1)
    assert pending.stored == (2, 0, 0), "it was late, and has it all the same"


def test_who_takes_a_place_is_not_said_to_have_what_was_stored_there() -> None:
    pending = PendingAdds(Quorum(3, 3, 2))
    pending.push(1)
    for index in range(3):
        pending.count(index, 0, 0)
    pending.replace_members([1])
    assert pending.stored == (0, -1, 0)
    pending.count(1, 0, 0)
    assert pending.stored == (0, 0, 0)


# --- any history ---------------------------------------------------------------------------------


@dataclass
class NaiveAdd:
    """One add of the oracle: its entries and, as the oracle was told, who counts."""

    entries: list[int]
    is_named: bool
    holders: list[int] = field(default_factory=list)


class PendingAddsMachine(RuleBasedStateMachine):
    """Pushes, counts, checks and replacements in any order, against a plain list."""

    @initialize(
        sizes=st.integers(1, 5).flatmap(
            lambda e: st.integers(1, e).flatmap(
                lambda w: st.tuples(st.just(e), st.just(w), st.integers(1, w))
            )
        ),
        confirmed=st.integers(-1, 7),
    )
    def start(self, sizes: tuple[int, int, int], confirmed: int) -> None:
        self.size, self.write, self.ack = sizes
        self.pending = PendingAdds(Quorum(*sizes), last_add_confirmed=confirmed)
        self.waiting: list[tuple[NaiveAdd, PendingAdd]] = []
        self.next_id = confirmed + 1
        self.confirmed = confirmed
        self.checks: list[tuple[CheckTicket, list[NaiveAdd]]] = []

    def is_complete(self, add: NaiveAdd) -> bool:
        starts = range(self.size) if add.is_named else [e % self.size for e in add.entries]
        for start in starts:
            window = (list(range(self.size)) * 2)[start : start + self.write]
            if len([index for index in window if index in add.holders]) < self.ack:
                return False
        return True

    @rule(count=st.integers(1, 7), is_named=st.booleans())
    def push(self, count: int, is_named: bool) -> None:
        real = self.pending.push(count, names_entry_logs=is_named)
        naive = NaiveAdd([self.next_id + k for k in range(count)], is_named)
        self.next_id += count
        self.waiting.append((naive, real))
        assert [real.first_entry_id, real.last_entry_id] == [naive.entries[0], naive.entries[-1]]

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def count(self, data: st.DataObject) -> None:
        naive, real = data.draw(st.sampled_from(self.waiting[:3]))
        indexes = data.draw(st.sets(st.integers(0, self.size - 1), min_size=1))
        real.counted.update(indexes)
        naive.holders.extend(indexes)

    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        indexes = data.draw(st.sets(st.integers(0, self.size - 1), max_size=2))
        self.pending.replace_members(indexes)
        for naive, _ in self.waiting:
            naive.holders = [index for index in naive.holders if index not in indexes]
        self.checks = [(ticket, []) for ticket, _ in self.checks]

    @rule()
    def begin_check(self) -> None:
        prefix: list[NaiveAdd] = []
        for naive, _ in self.waiting:
            if not self.is_complete(naive):
                break
            prefix.append(naive)
        ticket = self.pending.ticket()
        assert (ticket is None) == (not prefix)
        if ticket is not None:
            self.checks.append((ticket, prefix))

    @precondition(lambda self: self.checks)
    @rule(data=st.data())
    def end_check(self, data: st.DataObject) -> None:
        ticket, prefix = self.checks.pop(data.draw(st.integers(0, len(self.checks) - 1)))
        expected = [pair for pair in self.waiting if any(pair[0] is add for add in prefix)]
        done = self.pending.acknowledge(ticket)
        assert [id(add) for add in done] == [id(real) for _, real in expected]
        self.waiting = self.waiting[len(expected) :]
        if expected:
            self.confirmed = expected[-1][0].entries[-1]

    @invariant()
    def agrees_with_the_list(self) -> None:
        assert self.pending.last_add_confirmed == self.confirmed
        assert self.pending.last_add_pushed == self.next_id - 1
        assert len(self.pending) == len(self.waiting)
        assert sum(len(naive.entries) for naive, _ in self.waiting) == (
            self.next_id - 1 - self.confirmed
        )


class TestAnyHistory(PendingAddsMachine.TestCase):  # type: ignore[misc]
    settings = settings(
        max_examples=50, stateful_step_count=25, derandomize=True, database=None, deadline=None
    )


def test_two_writers_that_differ_only_in_what_is_fully_replicated_are_not_alike() -> None:
    """Who goes through all states must not take the one for the other."""
    states = set()
    for counted in ((), (0,), (0, 1), (0, 1, 2)):
        pending = PendingAdds(Quorum(3, 3, 1), guarantees_write_quorum=True)
        pending.push(1)
        assert pending.lagging is not None
        for index in counted:
            pending.count(index, 0, 0)
        acknowledged(pending)
        states.add(pending.lagging.state)
    assert len(states) == 4
