"""Which bookies get into an ensemble, and in which order."""

from collections import Counter
from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.bookies import (
    WEIGHT_MULTIPLE_MAX,
    Candidate,
    choose,
    in_place,
    shared_domains,
)
from bkspark.protocol.ledger.metadata import Member

QUICK = settings(max_examples=100, derandomize=True, database=None, deadline=None)

domain_sizes = st.lists(st.integers(1, 4), min_size=1, max_size=6)


def bookies(sizes: list[int], free_bytes: int = 0) -> list[Candidate]:
    """Bookies a0, a1, …, b0, … in domains a, b, … of these sizes."""
    return [
        Candidate(Member(f"{domain}{k}", "1"), domain, free_bytes)
        for domain, size in zip("abcdef", sizes)
        for k in range(size)
    ]


def domains(chosen: list[Candidate]) -> str:
    return "".join(candidate.domain for candidate in chosen)


def windows(ring: str, width: int) -> list[str]:
    return [(ring + ring)[start : start + width] for start in range(len(ring))]


def least_distance(ring: str) -> int:
    """The widest window in which no domain occurs twice, wherever it starts."""
    return max(
        w for w in range(1, len(ring) + 1) if all(len(set(x)) == w for x in windows(ring, w))
    )


@QUICK
@given(domain_sizes, st.data())
def test_the_chosen_are_distinct_and_usable(sizes: list[int], data: st.DataObject) -> None:
    candidates = bookies(sizes)
    ids = [candidate.member.bookie_id for candidate in candidates]
    exclude = data.draw(st.sets(st.sampled_from(ids)))
    near = data.draw(st.lists(st.sampled_from(candidates), unique=True, max_size=3))
    usable = set(ids) - exclude - {candidate.member.bookie_id for candidate in near}
    count = data.draw(st.integers(0, len(ids)))
    draw = Random(data.draw(st.integers(0, 99))).random
    if count > len(usable):
        with pytest.raises(NotEnoughBookiesError, match=f"{count} bookies? .* only {len(usable)}"):
            choose(candidates, count, draw=draw, exclude=exclude, near=near)
        return
    chosen = choose(candidates, count, draw=draw, exclude=exclude, near=near)
    chosen_ids = [candidate.member.bookie_id for candidate in chosen]
    assert len(chosen_ids) == len(set(chosen_ids)) == count
    assert usable.issuperset(chosen_ids)


@QUICK
@given(domain_sizes, domain_sizes, st.data())
def test_no_domain_is_used_twice_before_all_are_used_once(
    sizes: list[int], near_sizes: list[int], data: st.DataObject
) -> None:
    candidates = bookies(sizes)
    near = [
        Candidate(Member(f"near-{c.member.bookie_id}", "1"), c.domain) for c in bookies(near_sizes)
    ]
    count = data.draw(st.integers(1, len(candidates)))
    draw = Random(data.draw(st.integers(0, 99))).random
    chosen = choose(candidates, count, draw=draw, near=near)
    used = Counter(domains(chosen)) + Counter(domains(near))
    spent = {d for d, n in Counter(domains(candidates)).items() if n == domains(chosen).count(d)}
    for domain in domains(chosen):
        assert all(used[domain] - 1 <= used[d] for d in domains(candidates) if d not in spent)


@QUICK
@given(domain_sizes, st.data())
def test_every_window_meets_as_many_domains_as_the_largest_allows(
    sizes: list[int], data: st.DataObject
) -> None:
    candidates = bookies(sizes)
    count = data.draw(st.integers(1, len(candidates)))
    chosen = domains(choose(candidates, count, draw=Random(data.draw(st.integers(0, 99))).random))
    width = count // max(Counter(chosen).values())
    assert all(len(set(window)) == width for window in windows(chosen, width))


@pytest.mark.parametrize("sizes", [[2, 2, 2], [2, 2, 1, 1], [3, 1, 1], [3, 2], [2, 1], [3, 3], [4]])
def test_no_order_of_the_ring_keeps_domains_farther_apart(sizes: list[int]) -> None:
    chosen = domains(choose(bookies(sizes), sum(sizes), draw=Random(1).random))
    best = max(least_distance("".join(ring)) for ring in set(permutations(chosen)))
    assert least_distance(chosen) == best


def test_three_domains_of_two_give_every_write_set_all_three() -> None:
    for seed in range(50):
        ring = domains(choose(bookies([2, 2, 2]), 6, draw=Random(seed).random))
        assert all(set(window) == {"a", "b", "c"} for window in windows(ring, 3))


def test_a_replacement_comes_from_the_domain_least_used_by_those_who_stay() -> None:
    a0, a1, b0, b1, c0 = bookies([2, 2, 1])
    for seed in range(20):
        draw = Random(seed).random
        assert choose([a1, b1, c0], 3, draw=draw, near=[a0, b0])[0] == c0
        assert choose([a1, b1], 1, draw=draw, near=[a0, b0, a1, c0]) == [b1]


def test_a_bookie_listed_twice_is_chosen_once() -> None:
    a0, b0 = bookies([1, 1])
    assert len(choose([a0, b0, a0], 2, draw=Random(1).random)) == 2
    with pytest.raises(NotEnoughBookiesError):
        choose([a0, b0, a0], 3, draw=Random(1).random)


def test_excluding_does_not_change_the_callers_lists() -> None:
    candidates = bookies([2, 1])
    near, exclude = [candidates[0]], ["b0"]
    choose(candidates, 1, draw=Random(1).random, exclude=exclude, near=near)
    assert (candidates, near, exclude) == (bookies([2, 1]), [candidates[0]], ["b0"])


# --- weights ---------------------------------------------------------------------------------


def shares(*free_bytes: int) -> list[float]:
    """How often each of the bookies of one domain is chosen, for evenly spread draws."""
    candidates = [Candidate(Member(f"b{k}", "1"), "one", free) for k, free in enumerate(free_bytes)]
    steps = 1000
    firsts = Counter(
        choose(candidates, 1, draw=lambda k=step: k / steps)[0].member.bookie_id  # type: ignore[misc]
        for step in range(steps)
    )
    return [firsts[f"b{k}"] / steps for k in range(len(free_bytes))]


def test_free_space_weighs() -> None:
    assert shares(100, 100, 200) == pytest.approx([0.25, 0.25, 0.5], abs=0.002)


def test_an_empty_bookie_is_not_flooded() -> None:
    top = WEIGHT_MULTIPLE_MAX / (WEIGHT_MULTIPLE_MAX + 2)
    assert shares(100, 100, 10**12)[2] == pytest.approx(top, abs=0.002)


def test_a_bookie_of_unknown_space_weighs_like_the_median() -> None:
    assert shares(100, 100, 0) == pytest.approx([1 / 3] * 3, abs=0.002)
    assert shares(0, 0) == pytest.approx([0.5, 0.5], abs=0.002)


def test_a_draw_that_rounds_up_to_the_total_still_chooses() -> None:
    assert choose(bookies([2]), 2, draw=lambda: 1.0)[0].member.bookie_id == "a1"


def test_domains_that_hold_more_than_one_bookie() -> None:
    assert shared_domains(bookies([2, 1, 3])) == {"a": ["a0", "a1"], "c": ["c0", "c1", "c2"]}


@QUICK
@given(domain_sizes, st.data())
def test_bookies_to_be_taken_last_are_taken_only_where_there_is_no_other(
    sizes: list[int], data: st.DataObject
) -> None:
    candidates = bookies(sizes)
    ids = [candidate.member.bookie_id for candidate in candidates]
    last = data.draw(st.sets(st.sampled_from(ids)))
    count = data.draw(st.integers(0, len(ids)))
    draw = Random(data.draw(st.integers(0, 99))).random
    chosen = choose(candidates, count, draw=draw, last=last)
    taken = {candidate.member.bookie_id for candidate in chosen}
    assert len(taken) == count
    assert len(taken & last) == max(0, count - (len(ids) - len(last)))


# --- a new fragment --------------------------------------------------------------------------


def placed(before: str, failed: set[int], chosen: str) -> str:
    """Who is where, a letter for each; a dot for nobody."""
    found = in_place([Member(n, "1") for n in before], failed, [Member(n, "1") for n in chosen])
    return "".join(found[i].bookie_id if i in found else "." for i in range(len(before)))


def test_who_stays_keeps_its_place() -> None:
    assert placed("abc", set(), "dca") == "adc"
    assert placed("abc", set(), "def") == "def"
    assert placed("abc", {1}, "cad") == "adc"


def test_a_place_for_which_there_is_nobody_stays_as_it_is_if_it_can() -> None:
    assert placed("abc", set(), "d") == "dbc"
    assert placed("abc", {2}, "d") == "abd"
    assert placed("abc", {1, 2}, "d") == "ad."
    assert placed("abc", set(), "") == "abc"
