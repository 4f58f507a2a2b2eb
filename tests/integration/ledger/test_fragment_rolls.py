"""Fragments that a writer begins because he is asked to: who is in them, what stays as it was."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from bkspark import LedgerClosedError, NotEnoughBookiesError, verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import bookie_client
from bkspark.format import layout
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from tests.integration.hand_writer import Gate, good_copies, violations
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies, wait_until
from tests.kit.faulty import Fault, Moment, Operation

SECONDS = 60


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def narrow(make_rig: Callable[..., Rig]) -> Rig:
    """Four bookies: three of them leave no fragment of new ones."""
    return make_rig(kind="memory", metadata="memory", bookie_count=4)


def names_of(handle: WriteHandle) -> list[str]:
    return [member.bookie_id for member in handle.metadata.last_fragment.ensemble]


def roll(handle: WriteHandle) -> int:
    return handle.begin_fragment().result(SECONDS)


def firsts(rig: Rig, handle: WriteHandle) -> list[int]:
    return [fragment.first_entry_id for fragment in rig.ledger(handle.ledger_id).fragments]


def permissions_asked(rig: Rig, name: str) -> int:
    return sum(o.place == name and o.call == "put_new" for o in rig.faults.trace)


def test_what_is_added_behind_it_lies_in_a_new_fragment(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    with keeper.create_ledger() as handle:
        sent = {handle.append(b"%d" % n): b"%d" % n for n in range(3)}
        assert roll(handle) == 3
        sent |= {handle.append(b"%d" % n): b"%d" % n for n in range(3, 5)}
        reader = keeper.open_ledger(handle.ledger_id, recovery=False)
        assert reader.last_add_confirmed >= 3
        wait_for_all_copies(handle)
        one, other = handle.metadata.fragments
        assert (one.token, one.term) == (other.token, other.term)
        assert other.has_headers
    assert firsts(memory_rig, handle) == [0, 3]
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


def test_a_fragment_without_entries_is_new_already(memory_rig: Rig, keeper: BookKeeper) -> None:
    with keeper.create_ledger() as handle:
        before = handle.metadata
        assert [roll(handle), roll(handle)] == [0, 0]
        assert handle.metadata is before
        handle.append(b"0")
        asked = [handle.begin_fragment() for _ in range(3)]
        assert [future.result(SECONDS) for future in asked] == [1, 1, 1]
    assert firsts(memory_rig, handle) == [0]  # nothing lies behind entry 0


def test_all_bookies_get_their_share_and_those_that_left_come_back(narrow: Rig) -> None:
    """None is asked for a permission, or a journal, a second time (R19)."""
    with narrow.faults.installed(), BookKeeper(narrow.uri) as keeper:
        handle = keeper.create_ledger()
        sent, ensembles = dict[int, bytes](), list[list[str]]()
        for n in range(16):
            sent[handle.append(b"%d" % n)] = b"%d" % n
            ensembles.append(names_of(handle))
            wait_for_all_copies(handle)
            assert roll(handle) == n + 1
        counts = {name: sum(name in one for one in ensembles) for name in narrow.urls}
        assert all(permissions_asked(narrow, name) == 1 for name in narrow.urls)
        handle.close()
    assert min(counts.values()) > 4
    assert max(counts.values()) < 16
    for before, after in zip(ensembles, ensembles[1:]):
        assert all(after.index(name) == before.index(name) for name in after if name in before)
    assert not violations(narrow, handle.ledger_id, sent, list(sent))


def test_where_there_are_no_others_the_same_bookies_have_the_new_fragment(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(bookie_count=3)
    with BookKeeper(rig.uri) as keeper, keeper.create_ledger() as handle:
        before = names_of(handle)
        sent = {handle.append(b"0"): b"0"}
        assert roll(handle) == 1
        sent[handle.append(b"1")] = b"1"
        assert names_of(handle) == before
        wait_for_all_copies(handle)
    assert not violations(rig, handle.ledger_id, sent, list(sent))


def test_who_did_not_surely_take_the_permission_is_never_asked_again(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """It took it, and its answer was lost (R19)."""

    def lost(_number: int, operation: Operation) -> Fault | None:
        is_asked = operation.call == "put_new" and operation.place in others
        return Fault(Moment.AFTER) if is_asked else None

    with keeper.create_ledger() as handle:
        handle.append(b"0")
        others = set(memory_rig.urls) - set(names_of(handle))
        memory_rig.faults.decide = lost
        before, asked = names_of(handle), dict[str, int]()
        for n in range(1, 8):
            assert roll(handle) == n
            handle.append(b"%d" % n)
        asked = {name: permissions_asked(memory_rig, name) for name in others}
        assert names_of(handle) == before
    assert set(asked.values()) <= {0, 1}
    assert 1 in asked.values()


@pytest.mark.parametrize("what", ["the permission", "the journal"])
def test_who_lost_what_it_took_does_not_come_back(narrow: Rig, what: str) -> None:
    """Else the loss would count against the new fragment from the start (R18)."""
    with BookKeeper(narrow.uri) as keeper, keeper.create_ledger() as handle:
        left = ""
        count = 0
        while not left:
            before = names_of(handle)
            handle.append(b"%d" % count)
            count += 1
            wait_for_all_copies(handle)
            roll(handle)
            left = next(iter(set(before) - set(names_of(handle))), "")
        fragment = handle.metadata.last_fragment
        who = (handle.ledger_id, fragment.term, fragment.token)
        lost = layout.permission(*who) if what == "the permission" else layout.journal(*who)
        narrow.replace_file(left, lost, None)
        for _ in range(12):
            handle.append(b"%d" % count)
            count += 1
            roll(handle)
            assert left not in names_of(handle)


def test_who_leaves_finishes_what_it_was_sent(memory_rig: Rig, keeper: BookKeeper) -> None:
    """And comes back only when it has."""
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger(ensemble_size=6, write_quorum_size=3, ack_quorum_size=2)
    first = names_of(handle)
    slow = first[0]
    gate.close(slow)
    sent = {handle.append(b"%d" % n): b"%d" % n for n in range(6)}
    count = 6
    while slow in names_of(handle):
        roll(handle)
        sent[handle.append(b"%d" % count)] = b"%d" % count
        count += 1
    for _ in range(3):
        roll(handle)
        assert slow not in names_of(handle)
        sent[handle.append(b"%d" % count)] = b"%d" % count
        count += 1
    gate.open()
    while slow not in names_of(handle):
        roll(handle)
        sent[handle.append(b"%d" % count)] = b"%d" % count
        count += 1
    wait_for_all_copies(handle)
    handle.close()
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


def test_without_enough_bookies_the_old_fragment_stays_in_use(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(bookie_count=3)
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(settings=WriterSettings(is_change_delayed=True))
        sent = {handle.append(b"0"): b"0"}
        gone = names_of(handle)[2]
        rig.faults.down = {gone}
        sent[handle.append(b"1")] = b"1"
        wait_until(lambda: handle.faults)
        with pytest.raises(NotEnoughBookiesError, match="no new fragment was begun: there are too"):
            roll(handle)
        sent[handle.append(b"2")] = b"2"
        handle.close()
        assert firsts(rig, handle) == [0]
        with pytest.raises(LedgerClosedError):
            handle.begin_fragment()


def test_one_that_hangs_is_not_waited_for(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", 0.2)
    gate = Gate(memory_rig.faults, "put_new")
    with keeper.create_ledger() as handle:
        handle.append(b"0")
        others = set(memory_rig.urls) - set(names_of(handle))
        gate.close(*others)
        before = names_of(handle)
        asked = handle.begin_fragment()
        assert [handle.append(b"1"), handle.append(b"2")] == [1, 2]
        assert asked.result(SECONDS) == 3
        assert names_of(handle) == before
        gate.open()


def test_who_takes_over_goes_on_behind_it(memory_rig: Rig, keeper: BookKeeper) -> None:
    handle = keeper.create_ledger()
    sent = {handle.append(b"0"): b"0"}
    roll(handle)
    sent[handle.append(b"1")] = b"1"
    handle.release()
    assert keeper.open_ledger(handle.ledger_id).last_add_confirmed == 1
    assert firsts(memory_rig, handle) == [0, 1]
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


def test_with_a_guaranteed_write_quorum_it_waits_for_all_copies(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger(guarantees_write_quorum=True)
    slow = names_of(handle)[2]
    gate.close(slow)
    sent = {handle.append(b"0"): b"0"}
    asked = handle.begin_fragment()
    roll, lock = handle._writer.machine.roll, handle._writer._lock

    def has_bookies() -> bool:
        with lock:  # between two turns of the writer
            return bool(roll._found)

    wait_until(has_bookies)
    assert not roll.is_named
    waiting = handle.append_async(b"1")
    assert not asked.done()
    assert not waiting.done()
    gate.open()
    assert asked.result(SECONDS) == 1
    sent[waiting.result(SECONDS)] = b"1"
    handle.close()
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


def test_who_came_back_has_not_got_what_was_written_while_it_was_away(narrow: Rig) -> None:
    """Its journal goes on behind a gap; who gives it a place in there copies what it lacks."""
    with BookKeeper(narrow.uri) as keeper, keeper.create_ledger() as handle:
        sent, ensembles = dict[int, bytes](), list[list[str]]()
        while not (away := _away_and_back(ensembles)):
            sent[handle.append(b"%d" % len(sent))] = b"%d" % len(sent)
            ensembles.append(names_of(handle))
            wait_for_all_copies(handle)
            roll(handle)
    instead = next(iter(set(ensembles[-2]) - set(ensembles[-1])))
    assert verbs.decommission(narrow.uri, bookies=[instead]).left == []
    del narrow.urls[instead]
    assert not violations(narrow, handle.ledger_id, sent, list(sent))
    copies = good_copies(narrow, narrow.ledger(handle.ledger_id))
    assert set(copies.values()) == {3}, away


def _away_and_back(ensembles: list[list[str]]) -> set[str]:
    """Who is in the last and not in the one before, and was there before that."""
    *earlier, before, last = [set[str](), set[str](), *map(set, ensembles)]
    return (last - before) & set[str]().union(*earlier)


def test_what_a_callback_adds_is_sent_when_it_has_ended(keeper: BookKeeper) -> None:
    with keeper.create_ledger(settings=WriterSettings(explicit_lac_ms=0)) as handle:
        handle.append(b"0")
        added: list[Future[int]] = []
        handle.begin_fragment().add_done_callback(
            lambda _done: added.append(handle.append_async(b"1"))
        )
        wait_until(lambda: bool(added))
        assert added[0].result(SECONDS) == 1
