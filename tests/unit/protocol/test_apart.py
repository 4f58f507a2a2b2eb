"""Write sets whose bookies differ in labels: which ensembles are chosen, refused and kept."""

from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from bkspark.protocol import apart
from bkspark.protocol.apart import Apart, choose_ensemble, choose_stand_ins, require_distinct, shown
from bkspark.protocol.bookies import Candidate, Labels, choose
from bkspark.protocol.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum

QUICK = settings(max_examples=150, derandomize=True, database=None, deadline=None)


def bookies(*racks: str, domain: str = "", **more: str) -> list[Candidate]:
    """One bookie for each letter, in this rack; a dot is a bookie without a rack."""
    return [
        Candidate(Member(f"b{k}", "1"), domain or f"disk{k}", 0, labels_of(rack) | more)
        for k, rack in enumerate("".join(racks))
    ]


def labels_of(rack: str) -> dict[str, str]:
    return {} if rack == "." else {"rack": rack}


def racks(chosen: list[Candidate]) -> str:
    return "".join(candidate.labels.get("rack", ".") for candidate in chosen)


def is_apart(wanted: Apart, ring: list[Labels]) -> bool:
    """The rule in other words: each write set has as many values as wanted."""
    return all(
        len({ring[i][name] for i in ws if name in ring[i]}) >= least
        for ws in wanted.quorum.write_sets()
        for name, least in wanted.distinct.items()
    )


def try_to_choose(candidates: list[Candidate], wanted: Apart, seed: int) -> list[Candidate]:
    try:
        return choose_ensemble(candidates, wanted, draw=Random(seed).random)
    except NotEnoughBookiesError:
        return []


@st.composite
def quorums(draw: st.DrawFn) -> Quorum:
    size = draw(st.integers(1, 5))
    width = draw(st.integers(1, size))
    return Quorum(size, width, draw(st.integers(1, width)))


labels = st.fixed_dictionaries(
    {}, optional={"rack": st.sampled_from("abc"), "zone": st.sampled_from("xy")}
)


@QUICK
@given(quorums(), st.lists(labels, min_size=1, max_size=6), st.data())
def test_an_ensemble_is_apart_whenever_the_bookies_allow(
    quorum: Quorum, given_labels: list[dict[str, str]], data: st.DataObject
) -> None:
    width = quorum.write_quorum_size
    names = data.draw(st.sets(st.sampled_from(["rack", "zone"]), min_size=1))
    wanted = Apart(quorum, {name: data.draw(st.integers(1, width)) for name in sorted(names)})
    candidates = [
        Candidate(Member(f"b{k}", "1"), data.draw(st.sampled_from("de")), 0, own)
        for k, own in enumerate(given_labels)
    ]
    chosen = try_to_choose(candidates, wanted, data.draw(st.integers(0, 99)))
    if chosen:
        assert len({c.member for c in chosen}) == quorum.ensemble_size
        assert is_apart(wanted, [c.labels for c in chosen])
        assert wanted.shortfall([c.labels for c in chosen]) == ""
    else:
        rings = permutations(given_labels, quorum.ensemble_size)
        assert not any(is_apart(wanted, list(ring)) for ring in rings)


@QUICK
@given(quorums(), st.data())
def test_what_is_short_is_told(quorum: Quorum, data: st.DataObject) -> None:
    size = quorum.ensemble_size
    ring: list[Labels] = data.draw(st.lists(labels, min_size=size, max_size=size))
    wanted = Apart(quorum, {"rack": data.draw(st.integers(1, quorum.write_quorum_size))})
    assert (wanted.shortfall(ring) == "") == is_apart(wanted, ring)


@pytest.mark.parametrize("given_racks", ["ab" * 3, "aaab" * 50, "a" * 100 + "bc", "aabbcc."])
def test_a_large_cluster_gives_every_write_set_two_racks(given_racks: str) -> None:
    for sizes in [(3, 3, 2), (6, 3, 2), (4, 2, 2)]:
        wanted = Apart(Quorum(*sizes), {"rack": 2})
        for seed in range(5):
            chosen = try_to_choose(bookies(given_racks), wanted, seed)
            possible = sizes != (4, 2, 2) or given_racks != "a" * 100 + "bc"
            assert bool(chosen) is possible or len(given_racks) > 100
            assert not chosen or is_apart(wanted, [c.labels for c in chosen])


def test_a_ring_that_the_usual_order_cannot_make() -> None:
    wanted = Apart(Quorum(6, 3, 2), {"rack": 2})
    for seed in range(20):
        chosen = try_to_choose(bookies("aaaabc"), wanted, seed)
        assert sorted(racks(chosen)) == list("aaaabc")
        assert "aaa" not in racks(chosen) * 2


def test_a_large_ensemble_that_cannot_be_is_refused_soon() -> None:
    wanted = Apart(Quorum(201, 3, 2), {"rack": 3})
    assert try_to_choose(bookies("a" * 150 + "bc" * 30), wanted, 1) == []
    assert try_to_choose(bookies("abc" * 100), wanted, 1)


def test_a_search_ends_after_a_number_of_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each label alone allows the ensemble, so only trying shows that both together do not."""
    in_racks = [{"rack": f"r{k}", "zone": "z"} for k in range(12)]
    in_zones = [{"rack": "r", "zone": f"z{k}"} for k in range(12)]
    wanted = Apart(Quorum(12, 12, 2), {"rack": 9, "zone": 9})
    available = [wanted.values(own) for own in in_racks + in_zones]
    monkeypatch.setattr(apart, "TRIES_MAX", 500)
    draws = iter(range(500 * len(available)))  # an error beyond, where the search went on for ever
    assert wanted.arranged(available, lambda: next(draws) % 7) == []
    possible = [wanted.values(own | {"zone": f"y{k}"}) for k, own in enumerate(in_racks)]
    assert len(wanted.arranged(available + possible, Random(1).random)) == 12


def test_the_refusal_says_which_labels_there_are() -> None:
    wanted = Apart(Quorum(3, 3, 2), {"rack": 2})
    with pytest.raises(NotEnoughBookiesError) as refused:
        choose_ensemble(bookies("aaa."), wanted, draw=Random(1).random)
    assert str(refused.value.args[0]) == (
        "no 3 bookies are as far apart as minDistinct rack:2 says; "
        "usable bookies: 3 rack=a, 1 without rack"
    )
    assert "bkspark bookie label" in refused.value.hint
    many = Apart(Quorum(8, 8, 2), {"rack": 8})
    with pytest.raises(NotEnoughBookiesError, match="1 rack=e, 2 more values"):
        choose_ensemble(bookies("abcdefga"), many, draw=Random(1).random)


def test_bookies_that_fail_often_are_taken_if_the_others_are_not_apart() -> None:
    wanted = Apart(Quorum(2, 2, 1), {"rack": 2})
    how = {"draw": Random(1).random}
    chosen = choose_ensemble(bookies("aaab"), wanted, last={"b3"}, **how)
    assert sorted(racks(chosen)) == ["a", "b"]
    for _ in range(20):
        chosen = choose_ensemble(bookies("aabb"), wanted, last={"b3", "b0"}, **how)
        assert {c.member.bookie_id for c in chosen} == {"b1", "b2"}
    with pytest.raises(NotEnoughBookiesError):
        choose_ensemble(bookies("aaab"), wanted, exclude={"b3"}, **how)


# --- changes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "is_kept"),
    [
        ("aab", "aac", True),
        ("aab", "aaa", False),
        ("aab", "aa.", False),
        ("aaa", "aaa", True),
        ("aaa", "aa.", True),
        ("abc", "aab", True),  # two are wanted, and two are left
        ("...", "...", True),
    ],
)
def test_no_change_goes_below_what_is_wanted(before: str, after: str, is_kept: bool) -> None:
    wanted = Apart(Quorum(3, 3, 2), {"rack": 2})
    assert wanted.is_kept([*map(labels_of, before)], [*map(labels_of, after)]) is is_kept


def test_a_bookie_fits_where_no_write_set_goes_below_what_is_wanted() -> None:
    settings = LedgerSettings(min_distinct={"rack": 2})
    fragment = Fragment(0, 1, tuple(Member(f"b{k}", "1") for k in range(4)))
    made = LedgerMetadata(7, Quorum(4, 2, 2), LedgerState.OPEN, 1, "t", (fragment,), settings)
    wanted = Apart.of(made)
    assert wanted == Apart(Quorum(4, 2, 2), {"rack": 2})
    ring = [*map(labels_of, "abac")]
    fitting = [
        "".join(rack for rack in "abc." if wanted.fits(ring, index, labels_of(rack)))
        for index in range(4)
    ]
    assert fitting == ["a", "bc", "a", "bc"]


def test_each_write_set_is_looked_at() -> None:
    wanted = Apart(Quorum(4, 2, 2), {"rack": 2})
    assert not wanted.is_kept([*map(labels_of, "abab")], [*map(labels_of, "aabb")])
    assert wanted.shortfall([*map(labels_of, "aabb")]) == (
        "values of label rack in a write set: 1, and 2 are wanted"
    )


def test_nothing_wanted_is_always_kept() -> None:
    free = Apart(Quorum(3, 3, 2), {})
    assert free.is_kept([{}] * 3, [{}] * 3)
    assert free.shortfall([{}] * 3) == ""


# --- without insisting ---------------------------------------------------------------------------


def test_copies_are_spread_over_zones_and_then_racks() -> None:
    """As BookKeeper's region-aware policy does: the widest label first."""
    there = bookies("aab", zone="x") + [
        Candidate(Member(f"y{k}", "1"), f"y{k}", 0, {"zone": "y", "rack": rack})
        for k, rack in enumerate("ccd")
    ]
    for seed in range(30):
        chosen = choose(there, 4, draw=Random(seed).random)
        assert sorted(c.labels["zone"] for c in chosen) == ["x", "x", "y", "y"]
        assert sorted(racks(chosen)) == ["a", "b", "c", "d"]
        zones = "".join(c.labels["zone"] for c in chosen)
        assert zones in ("xyxy", "yxyx")


def test_a_disk_comes_before_every_label() -> None:
    """Two bookies of one disk are lost together, whatever their labels say."""
    together = [Candidate(Member(f"s{k}", "1"), "one", 0, {"rack": r}) for k, r in enumerate("ab")]
    other = Candidate(Member("o", "1"), "two", 0, {"rack": "a"})
    for seed in range(20):
        chosen = choose([*together, other], 2, draw=Random(seed).random)
        assert {c.domain for c in chosen} == {"one", "two"}


# --- what a user may ask for ---------------------------------------------------------------------


def test_what_is_wanted_is_checked() -> None:
    assert require_distinct({"zone": 1, "rack": 3}, Quorum(3, 3, 2)) == {"rack": 3, "zone": 1}
    assert shown({"rack": 3, "zone": 1}) == "rack:3,zone:1"
    with pytest.raises(InvalidRequestError, match="4 values of label rack are more than"):
        require_distinct({"rack": 4}, Quorum(5, 3, 2))
    for bad in ({"rack": 0}, {"rack": True}, {"rack": "2"}, {"Rack": 2}):
        with pytest.raises(InvalidRequestError, match="minDistinct"):
            require_distinct(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="more than 32"):
        require_distinct({f"l{k}": 1 for k in range(33)})


@pytest.mark.parametrize("seed", range(10))
def test_a_recovery_prefers_what_keeps_copies_apart_and_takes_the_others(seed: int) -> None:
    feeds = ["a", "a", "a", "a", "b"]
    free = [
        Candidate(Member(f"b{k}", "1"), f"disk{k}", 0, {"feed": feed})
        for k, feed in enumerate(feeds)
    ]
    wanted = Apart(Quorum(3, 3, 2), {"feed": 2})
    ensemble: list[Labels] = [{"feed": "a"}, {"feed": "a"}, {"feed": "b"}]

    def chosen(*places: int) -> list[str]:
        draw = Random(seed).random
        found = choose_stand_ins(free, wanted, ensemble, places, [], draw=draw)
        assert len({candidate.member for candidate in found}) == len(found)
        return [candidate.labels["feed"] for candidate in found]

    assert chosen(2) == ["b"]
    assert chosen(2, 1) == ["b", "a"]
    assert sorted(chosen(0, 1, 2)) == ["a", "a", "b"]
    ensemble = [{"feed": "b"}, {"feed": "c"}, {"feed": "d"}]
    assert sorted(chosen(0, 1, 2, 0, 1, 2)) == sorted(feeds)
