"""Which places move so that bookies are about equally used, by hand-made facts and by chance."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.protocol.ledger.metadata import Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.upkeep.balancing import (
    Load,
    Movable,
    Move,
    farthest,
    keeps_spread,
    mean_level,
    moves_of,
)

MEMBERS = tuple(Member(f"bookie-{n}", f"{n:032x}") for n in range(8))
Q332, Q422 = Quorum(3, 3, 2), Quorum(4, 2, 2)


def loads_of(
    fragments: Sequence[Movable], count: int, domains: str = "abcdefgh", capacity: float = 1
) -> list[Load]:
    used: Counter[Member] = Counter()
    for fragment in fragments:
        for member in fragment.ensemble:
            used[member] += int(fragment.place_bytes)
    return [Load(m, domains[n], used[m], capacity) for n, m in enumerate(MEMBERS[:count])]


def on(ledger_id: int, *places: int, size: float = 100, quorum: Quorum = Q332) -> Movable:
    return Movable(ledger_id, 0, quorum, tuple(MEMBERS[n] for n in places), size)


def after(fragments: Sequence[Movable], moves: Sequence[Move]) -> list[Movable]:
    """Carried out one by one, each as the compare-and-set would take it."""
    now = {(f.ledger_id, f.first_entry_id): f for f in fragments}
    for move in moves:
        key = (move.place.ledger_id, move.place.fragment_first_entry_id)
        ensemble = list(now[key].ensemble)
        assert ensemble[move.place.index] == move.place.member
        assert move.to.bookie_id not in {member.bookie_id for member in ensemble}
        ensemble[move.place.index] = move.to
        now[key] = replace(now[key], ensemble=tuple(ensemble))
    return list(now.values())


def test_a_new_bookie_gets_its_part_of_the_fullest() -> None:
    fragments = [on(n, 0, 1, 2) for n in range(40)]
    moves = moves_of(loads_of(fragments, 4), fragments)
    then = loads_of(after(fragments, moves), 4)
    assert farthest(then) <= 0.05
    assert {move.to for move in moves} == {MEMBERS[3]}
    assert len({move.place for move in moves}) == len(moves) == 29


def test_nothing_moves_within_the_threshold_nor_where_no_move_helps() -> None:
    assert moves_of(loads_of([], 4), []) == []
    even = [on(n, *places) for n, places in enumerate([(0, 1, 2), (1, 2, 3), (2, 3, 0), (3, 0, 1)])]
    assert moves_of(loads_of(even, 4), even) == []
    one = [on(0, 0, 1, 2)]
    assert moves_of(loads_of(one, 4), one) == []
    assert moves_of(loads_of(one, 3), one) == []
    half = [on(n, 0, 1, 2) for n in range(9)] + [on(n, 1, 2, 3) for n in range(10, 18)]
    assert moves_of(loads_of(half, 4), half, threshold=0.4) == []


def test_what_gains_hardly_anything_stays() -> None:
    """A copy that is a little larger than what it is a copy of makes no other plan."""
    used = [1000, 1000, 1000, 870]
    loads = [Load(member, member.bookie_id, n) for member, n in zip(MEMBERS, used)]
    assert farthest(loads) > 0.1
    assert moves_of(loads, [on(0, 0, 1, 2, size=100)]) == []
    assert len(moves_of(loads, [on(0, 0, 1, 2, size=80)])) == 1


def test_who_takes_nothing_gets_nothing_and_may_give() -> None:
    fragments = [on(n, 0, 1, 2) for n in range(40)]
    loads = loads_of(fragments, 5)
    loads[3] = replace(loads[3], takes=False)
    loads[0] = replace(loads[0], takes=False)
    moves = moves_of(loads, fragments)
    assert {move.to for move in moves} == {MEMBERS[4]}
    assert MEMBERS[0] in {move.place.member for move in moves}
    barred = [replace(f, barred=frozenset({MEMBERS[4]})) for f in fragments]
    assert moves_of(loads, barred) == []


def test_a_bookie_with_twice_the_disk_gets_twice_as_much() -> None:
    fragments = [on(n, n % 3, (n + 1) % 3, quorum=Quorum(2, 2, 1)) for n in range(60)]
    loads = loads_of(fragments, 4, capacity=10_000)
    loads[3] = replace(loads[3], capacity=20_000)
    then = loads_of(after(fragments, moves_of(loads, fragments)), 4)
    assert 1.7 < then[3].used / then[0].used < 2.3


def test_copies_stay_as_far_apart_as_they_were() -> None:
    """The new bookie is beside two of the others: the third keeps its places."""
    fragments = [on(n, 0, 1, 2) for n in range(40)]
    loads = loads_of(fragments, 4, domains="aaba")
    moves = moves_of(loads, fragments)
    assert Counter(move.place.member for move in moves) == {MEMBERS[0]: 13, MEMBERS[1]: 13}
    domains = {load.member: (load.domain,) for load in loads}
    for fragment, then in zip(fragments, after(fragments, moves)):
        assert keeps_spread(Q332, fragment.ensemble, then.ensemble, domains)


def test_the_spread_of_each_write_set_counts() -> None:
    domains = dict(zip(MEMBERS, map(tuple, "aabbc")))
    assert keeps_spread(Q422, MEMBERS[:4], MEMBERS[2:6], {})
    apart, beside = (0, 2, 1, 3), (0, 1, 2, 3)
    for was, now, kept in ((apart, beside, False), (beside, apart, True)):
        ensembles = [[MEMBERS[n] for n in places] for places in (was, now)]
        assert keeps_spread(Q422, *ensembles, domains) is kept


def test_a_move_keeps_what_the_ledger_insists_on() -> None:
    """The new bookie has the rack of the others: only their places may go to it."""
    fragments = [replace(on(n, 0, 1, 2), distinct={"row": 2}) for n in range(40)]
    labels = [{"row": "a"}, {"row": "a"}, {"row": "b"}, {"row": "a"}]
    loads = [replace(load, labels=own) for load, own in zip(loads_of(fragments, 4), labels)]
    moves = moves_of(loads, fragments)
    assert {move.place.member for move in moves} == {MEMBERS[0], MEMBERS[1]}
    free = [replace(fragment, distinct={}) for fragment in fragments]
    assert MEMBERS[2] in {move.place.member for move in moves_of(loads, free)}


def test_a_move_keeps_copies_in_as_many_racks_as_they_are() -> None:
    fragments = [on(n, 0, 1, 2) for n in range(40)]
    labels = [{"rack": "a"}, {"rack": "a"}, {"rack": "b"}, {"rack": "a"}]
    loads = [replace(load, labels=own) for load, own in zip(loads_of(fragments, 4), labels)]
    assert {move.place.member for move in moves_of(loads, fragments)} == {MEMBERS[0], MEMBERS[1]}


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Load], list[Movable]]:
    count = draw(st.integers(3, 7))
    quorum = draw(st.sampled_from([Quorum(3, 3, 2), Quorum(3, 2, 2), Quorum(2, 2, 1)]))
    fragments = []
    for ledger_id in range(draw(st.integers(0, 12))):
        places = draw(st.permutations(range(count)))[: quorum.ensemble_size]
        size = draw(st.sampled_from([0, 1, 10, 10, 100, 1000]))
        fragments.append(on(ledger_id, *places, size=size, quorum=quorum))
    domains = "".join(draw(st.lists(st.sampled_from("abc"), min_size=count, max_size=count)))
    loads = loads_of(fragments, count, domains)
    return [replace(load, takes=draw(st.sampled_from([True, True, False]))) for load in loads], (
        fragments
    )


@settings(max_examples=80, deadline=None)
@given(clusters())
def test_it_gets_better_keeps_all_promises_and_another_plan_has_nothing_to_do(
    cluster: tuple[list[Load], list[Movable]],
) -> None:
    loads, fragments = cluster
    moves = moves_of(loads, fragments)
    then = after(fragments, moves)
    assert len({move.place for move in moves}) == len(moves)
    takers = {load.member for load in loads if load.takes}
    assert takers >= {move.to for move in moves}
    domains = {load.member: (load.domain,) for load in loads}
    for fragment, now in zip(fragments, then):
        assert keeps_spread(fragment.quorum, fragment.ensemble, now.ensemble, domains)
    used = {load.member: load.used for load in loads_of(then, len(loads))}
    later = [replace(load, used=used[load.member]) for load in loads]
    mean = mean_level(loads)
    assert sum((x.used - mean) ** 2 for x in later) <= sum((x.used - mean) ** 2 for x in loads)
    assert moves_of(later, then) == []


def test_places_of_bookies_that_are_not_weighed_are_left_alone() -> None:
    fragments = [on(n, 0, 1, 5) for n in range(8)]
    moves = moves_of(loads_of(fragments, 4), fragments)
    assert {move.place.member for move in moves} <= set(MEMBERS[:4])
    assert moves


def test_where_the_fullest_may_give_nothing_another_one_does() -> None:
    """All that the first has lies on the one beside which there is room."""
    fragments = [*(on(n, 0, 1, 3, size=100) for n in range(4)), on(9, 1, 2, 4, size=10)]
    moves = moves_of(loads_of(fragments, 5, capacity=1), fragments)
    assert {move.to for move in moves} <= {MEMBERS[2], MEMBERS[4]}
