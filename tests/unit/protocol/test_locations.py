"""Where the rows of a ledger are, by its record."""

from dataclasses import replace

import pytest

from bkspark.errors import NoSuchEntryError
from bkspark.protocol.ledger.deletion import without_front
from bkspark.protocol.ledger.locations import Home, Locations
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum

A, B, C, D, E = (Member(name, "1") for name in "abcde")
TOKEN = "a" * 32
QUORUM = Quorum(3, 2, 2)
OPEN = LedgerMetadata(
    ledger_id=7,
    quorum=QUORUM,
    state=LedgerState.OPEN,
    term=3,
    token=TOKEN,
    fragments=(
        Fragment(0, 1, (A, B, C), TOKEN, owner=1),
        Fragment(4, 2, (A, D, C), owner=1),
        Fragment(9, 3, (E, D, C), TOKEN, owner=3),
    ),
)
CLOSED = OPEN.closed(last_entry_id=11, length_bytes=1, term=3, token=TOKEN)


def test_each_entry_is_in_one_location_and_on_its_write_set() -> None:
    located = [
        (entry_id, location)
        for location in Locations(CLOSED)
        for entry_id in range(location.entries[0], location.entries[1] + 1)
    ]
    assert [entry_id for entry_id, _ in located] == list(range(12))
    for entry_id, location in located:
        assert Locations(CLOSED).of_entry(entry_id) == location
        assert Locations(CLOSED).at(location.first_entry_id) == location
        ensemble = CLOSED.fragment_of(entry_id).ensemble
        assert location.holders(entry_id) == (ensemble[entry_id % 3], ensemble[(entry_id + 1) % 3])
    assert Locations(CLOSED).at(5) is None


def test_a_location_says_its_terms_and_its_home() -> None:
    first, second, last = Locations(OPEN)
    assert (second.term, second.writer_term, last.writer_term) == (2, 1, 3)
    assert {first.home, second.home, last.home} == {Home.BOOKIES}
    assert second.bookie_ids == ["a", "d", "c"]
    plain = replace(OPEN, fragments=(Fragment(0, 2, (A, B, C), TOKEN),))
    assert Locations(plain).last.writer_term == 2


def test_the_end_of_the_last_location_is_known_when_the_ledger_is_closed() -> None:
    assert [one.last_entry_id for one in Locations(OPEN)] == [3, 8, None]
    assert Locations(OPEN).last.entries == (9, 8)
    assert [one.entries for one in Locations(OPEN).known] == [(0, 3), (4, 8)]
    assert Locations(CLOSED).last.last_entry_id == 11
    assert [one.entries for one in Locations(CLOSED).known] == [(0, 3), (4, 8), (9, 11)]


def test_nothing_is_known_of_a_location_without_entries() -> None:
    alone = replace(OPEN, fragments=OPEN.fragments[:1])
    empty = alone.closed(last_entry_id=-1, length_bytes=0, term=3, token=TOKEN)
    assert Locations(empty).last.last_entry_id == -1
    assert not list(Locations(empty).known)
    assert not list(Locations(CLOSED.deleting()).known)[2:]


def test_each_member_is_named_once_in_the_order_of_the_locations() -> None:
    located = Locations(OPEN)
    assert located.members == (A, B, C, D, E)
    assert located.newest_members == (E, D, C, A, B)
    assert located.last.members == (E, D, C)
    assert len(located) == 3


def test_a_member_of_any_location_is_named_but_only_in_its_incarnation() -> None:
    located = Locations(OPEN)
    assert all(located.names(member) for member in (A, B, C, D, E))
    assert not located.names(replace(A, incarnation="2"))
    assert located.names_bookie({"x", "b"})
    assert not located.names_bookie({"x"})


def test_entries_lie_over_the_locations_between_their_ends() -> None:
    expected = {(0, 3): 1, (3, 4): 2, (4, 4): 1, (0, 9): 3, (9, 11): 1}
    assert {ends: Locations(CLOSED).count_over(*ends) for ends in expected} == expected
    begins = {0: 4, 3: 4, 4: 9, 8: 9, 9: None, 11: None}
    assert {entry: Locations(CLOSED).next_begin(entry) for entry in begins} == begins


def test_a_truncated_entry_has_no_location() -> None:
    rest = without_front(CLOSED, 5)
    assert [one.entries for one in Locations(rest)] == [(4, 8), (9, 11)]
    with pytest.raises(NoSuchEntryError, match="begins at entry 4, and does not have entry 3"):
        Locations(rest).of_entry(3)
