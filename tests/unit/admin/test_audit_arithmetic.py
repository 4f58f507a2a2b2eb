"""The set arithmetic of an audit, held against the plainest way to say the same."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.admin.auditing import copies
from bkspark.admin.auditing.audit import misplaced
from bkspark.admin.auditing.copies import (
    Absent,
    Answer,
    Copies,
    Holding,
    MissingFile,
    classify,
    gaps,
)
from bkspark.admin.auditing.findings import (
    LEDGERS_AT_ONCE,
    SHARDS,
    Misplaced,
    plan_of_all,
    plan_of_some,
)
from bkspark.bookie.contract import BookieAddress
from bkspark.protocol.ledger.locations import Location, Locations
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum

QUICK = settings(max_examples=100, derandomize=True, database=None, deadline=None)
END = 24
RANGES = st.lists(
    st.tuples(st.integers(0, END), st.integers(0, 9)).map(lambda x: (x[0], x[0] + x[1])), max_size=5
)
QUORUMS = st.sampled_from([Quorum(3, 3, 2), Quorum(4, 2, 2), Quorum(5, 3, 2), Quorum(2, 1, 1)])
MEMBERS = tuple(Member(f"bookie-{n}", f"{n:032x}") for n in range(6))


def entries_of(found: list[tuple[int, int]]) -> set[int]:
    return {e for first, last in found for e in range(first, last + 1)}


@QUICK
@given(RANGES, st.integers(0, END), st.integers(0, END))
def test_a_difference_of_ranges_is_one_of_sets(
    held: list[tuple[int, int]], first: int, length: int
) -> None:
    wanted = (first, first + length)
    found = copies.difference(wanted, held)
    assert entries_of(found) == entries_of([wanted]) - entries_of(held)
    assert found == sorted(found)


@QUICK
@given(QUORUMS, st.integers(0, 9), st.integers(0, 9), st.data())
def test_the_own_part_of_a_range_ends_with_own_entries(
    quorum: Quorum, first: int, length: int, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, quorum.ensemble_size - 1))
    last = first + length
    own = [e for e in range(first, last + 1) if index in quorum.write_set(e)]
    part = copies.own_part((first, last), index, quorum)
    assert part == ((own[0], own[-1]) if own else None)


@QUICK
@given(RANGES)
def test_pieces_cover_the_same_and_lie_in_each_range_as_a_whole_or_not_at_all(
    found: list[tuple[int, int]],
) -> None:
    pieces = list(copies.cut(found))
    assert entries_of(pieces) == entries_of(found)
    assert sum(last - first + 1 for first, last in pieces) == len(entries_of(found))
    for piece in pieces:
        for one in found:
            assert entries_of([piece]) <= entries_of([one]) or not (
                entries_of([piece]) & entries_of([one])
            )


def ledger_of(quorum: Quorum) -> LedgerMetadata:
    """Two fragments, of which the second begins at entry 10."""
    size = quorum.ensemble_size
    fragments = (Fragment(0, 1, MEMBERS[:size]), Fragment(10, 1, MEMBERS[1 : size + 1]))
    return LedgerMetadata(
        7, quorum, LedgerState.CLOSED, 1, "0" * 32, fragments, last_entry_id=END, length_bytes=1
    )


ANSWERS = st.one_of(
    st.none(),
    st.sampled_from([Absent("silent", is_gone=False), Absent("lost", is_gone=True)]),
    st.just(Holding(7, unknown="an error")),
    st.tuples(RANGES, RANGES).map(
        lambda found: Holding(
            7, True, tuple((f, r) for f, rs in zip((0, 10), found) for r in clipped(f, rs))
        )
    ),
)


def clipped(first: int, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    end = 9 if first == 0 else END
    return [(max(first, a), min(end, b)) for a, b in found if max(first, a) <= min(end, b)]


def has(answer: Answer, first: int, entry_id: int) -> bool | None:
    """Whether a member has an entry of its own; None if that is not known."""
    if answer is None:
        return True
    if isinstance(answer, Absent):
        return False if answer.is_gone else None
    if answer.unknown:
        return None
    lacking = [r for fragment, r in answer.lacks if fragment == first]
    return entry_id not in entries_of(lacking)


@QUICK
@given(QUORUMS, st.lists(ANSWERS, min_size=6, max_size=6))
def test_each_entry_has_as_many_copies_as_counting_says(
    quorum: Quorum, given_answers: list[Answer]
) -> None:
    ledger = ledger_of(quorum)
    answers: Mapping[Member, Answer] = dict(zip(MEMBERS, given_answers))
    counted = {
        (location.first_entry_id, member, entry_id): found
        for location in Locations(ledger).known
        for entry_id in entries_of([location.entries])
        for member, found in counting(location, answers, entry_id)
    }
    told: set[tuple[int, Member, int]] = set()
    for gap in gaps(ledger, answers, is_inline=True):
        keys = [(gap.fragment_first_entry_id, gap.member, e) for e in entries_of([gap.entries])]
        lacking = [key for key in keys if key in counted]
        assert gap.copies is copies.worst([counted[key] for key in lacking])
        assert gap.is_unknown == (has(answers[gap.member], *lacking[0][::2]) is None)
        told |= set(lacking)
    assert told == counted.keys()


def counting(
    location: Location, answers: Mapping[Member, Answer], entry_id: int
) -> Iterator[tuple[Member, Copies]]:
    """What there is of one entry, for each member that lacks it or may lack it."""
    own = location.holders(entry_id)
    state = {m: has(answers[m], location.first_entry_id, entry_id) for m in own}
    held = sum(value is True for value in state.values())
    unknown = sum(value is None for value in state.values())
    for member, value in state.items():
        if value is not True:
            yield member, classify(location.quorum, held=held, unknown=unknown)


def test_what_is_unknown_makes_nothing_worse_than_what_is_surely_missing() -> None:
    quorum = Quorum(3, 3, 2)
    assert classify(quorum, held=0, unknown=3) is Copies.UNKNOWN
    assert classify(quorum, held=2, unknown=1) is Copies.UNKNOWN
    assert classify(quorum, held=1, unknown=1) is Copies.BELOW_WRITE_QUORUM
    assert classify(quorum, held=0, unknown=1) is Copies.BELOW_ACK_QUORUM
    assert classify(quorum, held=1, unknown=0) is Copies.BELOW_ACK_QUORUM
    assert classify(quorum, held=0, unknown=0) is Copies.NONE
    assert copies.worst([Copies.UNKNOWN, Copies.NONE]) is Copies.NONE


def test_a_file_that_another_lacks_as_a_whole_counts_for_neither() -> None:
    """E=5, Qw=3: stripe 1 lies on members 1 to 3; one is gone, one lacks the file."""
    ledger = ledger_of(Quorum(5, 3, 2))
    file = MissingFile("entries/a-1.arrow", 1, 0, (1, 6), "the bookie does not have the file")
    answers: dict[Member, Answer] = dict.fromkeys(MEMBERS)
    answers[MEMBERS[2]] = Holding(7, False, files=(file,))
    [gap] = gaps(ledger, answers, is_inline=False)
    assert (gap.copies, gap.entries) == (Copies.BELOW_WRITE_QUORUM, (1, 6))
    answers[MEMBERS[1]] = Absent("lost", is_gone=True)
    assert {
        gap.copies for gap in gaps(ledger, answers, is_inline=False) if gap.what == file.name
    } == {Copies.BELOW_ACK_QUORUM}
    answers[MEMBERS[1]] = Absent("silent", is_gone=False)
    assert {
        gap.copies for gap in gaps(ledger, answers, is_inline=False) if gap.what == file.name
    } == {Copies.BELOW_WRITE_QUORUM}


def on(domain: str, **labels: str) -> BookieAddress:
    return BookieAddress("b", "1" * 32, "c" * 32, "memory://b", domain, labels=labels)


def test_a_ledger_that_is_not_as_far_apart_as_it_insists_is_misplaced() -> None:
    ledger = ledger_of(Quorum(3, 3, 2))
    insists = replace(ledger, settings=replace(ledger.settings, min_distinct={"rack": 2}))
    same = {member: on(f"disk{n}", rack="a") for n, member in enumerate(MEMBERS)}
    said = "fragment 0: values of label rack in a write set: 1, and 2 are wanted (minDistinct)"
    assert misplaced(ledger, same) is None
    assert misplaced(insists, same) == Misplaced(said, is_refused=True)
    assert misplaced(insists, same | {MEMBERS[2]: on("disk2", rack="b")}) is None
    assert misplaced(insists, same | {MEMBERS[2]: on("disk2")}) is not None


def test_placement_is_kept_where_no_domain_is_free() -> None:
    ledger = ledger_of(Quorum(3, 3, 2))
    apart = {member: on(f"disk{n}") for n, member in enumerate(MEMBERS)}
    assert misplaced(ledger, apart) is None
    assert misplaced(ledger, dict.fromkeys(MEMBERS, on("disk"))) is None
    together = apart | {MEMBERS[0]: on("disk1")}
    said = "fragment 0 lies on 2 failure domains, and 3 are possible"
    assert misplaced(ledger, together) == Misplaced(said)
    del together[MEMBERS[0]]
    assert misplaced(ledger, together) is None


@QUICK
@given(st.integers(0, 5 * LEDGERS_AT_ONCE))
def test_a_plan_names_each_ledger_and_each_shard_once(count: int) -> None:
    plan = plan_of_all(range(count), ["bookie-1"])
    assert sorted(i for step in plan.steps for i in step.ledger_ids) == list(range(count))
    assert [shard for step in plan.steps for shard in step.shards] == list(range(SHARDS))
    assert all({i % SHARDS for i in step.ledger_ids} <= set(step.shards) for step in plan.steps)
    assert all(len(step.ledger_ids) <= LEDGERS_AT_ONCE for step in plan.steps)
    some = plan_of_some(range(count), ["bookie-1"])
    assert [i for step in some.steps for i in step.ledger_ids] == list(range(count))
    assert not any(step.shards for step in some.steps)
