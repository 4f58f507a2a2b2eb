"""The description of unbounded ledgers, sentence by sentence and in its order, on the real code.

A test's name begins with the section that its sentence stands in; "differs" says where bkspark does
otherwise, and why. What it says of requests and of the terms in them is in
``test_unbounded_ledgers``, what it takes from guaranteed write quorums in
``test_guaranteed_write_quorum``.

It has two designs: the term fences only, and bookies cut off what an older term has left; or the
term is part of what identifies an entry. bkspark has the second one.
"""

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError, InvalidTermError
from bkspark.format import journal, layout
from bkspark.ledger.recovery.fencing import FenceAndRead
from bkspark.ledger.recovery.recover import take_over
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger import metadata
from bkspark.protocol.ledger.evidence import owners
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from tests.integration.hand_writer import HandWriter, good_copies, one_by_one, violations
from tests.integration.log_scenes import SILENT, one_ledger, unbounded, values
from tests.integration.recovery.successor import Successor
from tests.integration.recovery.test_taking_over import Scene
from tests.integration.rig import Rig

ALL = (0, 1, 2)


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def log(keeper: BookKeeper) -> LogHandle:
    return unbounded(keeper)


@pytest.fixture
def first(memory_rig: Rig) -> HandWriter:
    """The writer of term 1, whose entry 0 is acknowledged, and confirmed everywhere."""
    writer = HandWriter(memory_rig, goes_on=True)
    writer.add(*ALL, acknowledges=True)
    writer.confirm(*ALL)
    return writer


def names_in(ledger: LedgerMetadata) -> list[set[str]]:
    """Bookies of each fragment."""
    return [{member.bookie_id for member in one.ensemble} for one in ledger.fragments]


def terms_on(rig: Rig, ledger_id: int, bookie_id: str) -> list[tuple[int, int]]:
    """Term and id of every entry that a bookie stores, in each of its journals."""
    digester, found = Scene(rig)._digester, list[tuple[int, int]]()
    for name in rig.names(bookie_id):
        if name.startswith(layout.journal_folder(ledger_id)):
            data = rig.file_bytes(bookie_id, name)
            frames = journal.decode_journal(data, digester, ledger_id=ledger_id).frames
            records = [frame.record for frame in frames]
            found += [(r.term, r.first_entry_id) for r in records if r.parts]
    return found


# --- Why unbounded ledgers? -----------------------------------------------------------------------


def test_why_one_ledger_is_written_by_several_clients_over_its_life(log: LogHandle) -> None:
    """And is an unbounded stream by itself: no list of ledgers grows."""
    for number in range(4):
        with log.writer() as writer:
            assert writer.append(b"%d" % number) == number
    assert values(log) == [b"0", b"1", b"2", b"3"]
    assert one_ledger(log).term == 4


# --- A log of logs --------------------------------------------------------------------------------


def test_a_log_of_logs_new_bookies_take_on_load_without_a_new_ledger(
    memory_rig: Rig, log: LogHandle
) -> None:
    with log.writer() as writer:
        writer.append(b"0")
        with Cluster(memory_rig.uri) as cluster:
            others = set(memory_rig.urls) - names_in(one_ledger(log))[0]
            new = cluster.add_bookie("", "memory://new-one", accepts_risk=True).bookie_id
        memory_rig.faults.down = set()
        for number in range(1, 2 * len(others) + 3):
            writer.roll()
            writer.append(b"%d" % number)
    assert new in set[str]().union(*names_in(one_ledger(log)))


def test_a_log_of_logs_a_write_that_fails_appends_a_fragment(
    memory_rig: Rig, log: LogHandle
) -> None:
    """Its entries lie on the bookies of the one that they are in, and on no others."""
    with log.writer() as writer:
        writer.append(b"0")
        [before] = names_in(one_ledger(log))
        gone = min(before)
        memory_rig.faults.down = {gone}
        while len(one_ledger(log).fragments) == 1:
            writer.append(b"more")
        ledger = one_ledger(log)  # at its end the writer closes a ledger that lacks copies
    assert [gone in names for names in names_in(ledger)] == [True, False]
    assert [one.owner for one in ledger.fragments] == [1, 1]
    assert ledger.fragments[1].first_entry_id > 0


def test_a_log_of_logs_a_fragment_has_a_maximum_size(log: LogHandle) -> None:
    with log.writer(roll_entries=2) as writer:
        for number in range(9):
            writer.append(b"%d" % number)
    begins = [one.first_entry_id for one in one_ledger(log).fragments]
    assert len(begins) >= 3
    assert all(after - before <= 4 for before, after in zip(begins, begins[1:]))


# --- Protocol changes -----------------------------------------------------------------------------


def test_protocol_the_term_is_a_number_that_each_takeover_raises(
    first: HandWriter, memory_rig: Rig
) -> None:
    """In the metadata, and on the bookies of the last fragment: on no others.

    It differs in what a bookie remembers: not a number that is raised, but a marker for each term,
    since a write of an old one that comes late would take the fence back (H3).
    """
    writer = first
    for term in range(2, 5):
        before = set(writer.names)
        writer = Successor(writer)
        assert memory_rig.ledger(first.ledger_id).term == term
        fence = layout.term_marker(first.ledger_id, term)
        holders = {name for name in memory_rig.urls if fence in memory_rig.names(name)}
        assert holders == before


def test_protocol_only_one_client_writes_at_a_time(log: LogHandle) -> None:
    """Whoever was displaced, at any time before, is refused."""
    writers = [log.writer(settings=SILENT) for _ in range(3)]
    for late in writers[:-1]:
        with pytest.raises(InvalidTermError) as refused:
            late.append(b"late")
        assert refused.value.newer_term > refused.value.term
    assert writers[-1].append(b"0") == 0
    for writer in writers:
        writer.release()


def test_protocol_it_copes_with_clients_that_battle_for_control(log: LogHandle) -> None:
    """No leader is elected; what each was told to be acknowledged is there, once."""
    acked = dict[int, bytes]()

    def battle(number: int) -> None:
        for turn in range(6):
            value = b"%d of %d" % (turn, number)
            try:
                with log.writer(settings=SILENT) as writer:
                    acked[writer.append(value)] = value
            except BookKeeperError:
                continue

    threads = [Thread(target=battle, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = dict(enumerate(values(log)))
    assert acked
    assert {offset: found[offset] for offset in acked} == acked
    assert len(set(found.values())) == len(found)
    one_ledger(log)


def test_protocol_recovery_is_performed_at_the_beginning_of_a_term(
    first: HandWriter, memory_rig: Rig
) -> None:
    """OPEN, IN_RECOVERY, OPEN; it is not closed."""
    states = list[LedgerState]()
    first.add(0)

    def noted(_instruction: object) -> None:
        states.append(memory_rig.ledger(first.ledger_id).state)

    assert memory_rig.ledger(first.ledger_id).state is LedgerState.OPEN
    taken = take(Scene(memory_rig), first, noted)
    assert set(states) == {LedgerState.IN_RECOVERY}
    assert (taken.state, taken.term, taken.last_entry_id) == (LedgerState.OPEN, 2, None)


def take(scene: Scene, first: HandWriter, before: Callable[[Any], None]) -> LedgerMetadata:
    run = one_by_one(before=before)
    taken = take_over(scene.cluster, first.ledger_id, scene.password, run=run)
    taken.begun.close()
    return taken.seen.value


def test_protocol_differs_a_fragment_is_of_one_term(log: LogHandle) -> None:
    """There fragments and terms have nothing to do with one another; but a term is no fragment."""
    with log.writer() as writer:
        writer.append(b"0")
        writer.roll()
        writer.append(b"1")
    with log.writer() as writer:
        writer.append(b"2")
    assert [one.owner for one in one_ledger(log).fragments] == [1, 1, 2]


def test_protocol_the_list_of_ensembles_is_bounded(
    log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It differs in how: behind so many a log goes on in another ledger."""
    monkeypatch.setattr(metadata, "FRAGMENTS_MAX", 3)
    for number in range(8):
        with log.writer() as writer:
            writer.append(b"%d" % number)
    ledgers = [log._cluster.ledger(number).value for number in log.record.listed_ids]
    assert max(len(one.fragments) for one in ledgers) == 3
    assert len(ledgers) == 3
    assert len(values(log)) == 8


def test_protocol_fragments_are_deleted_rather_than_ledgers(log: LogHandle) -> None:
    with log.writer() as writer:
        for number in range(4):
            writer.append(b"%d" % number)
            writer.roll()
        writer.append(b"4")
    before = one_ledger(log)
    log.truncate(2)
    after = one_ledger(log)
    assert after.ledger_id == before.ledger_id
    assert after.first_available == 2
    assert values(log) == [b"2", b"3", b"4"]


def test_protocol_only_bookies_of_the_last_fragment_are_asked(
    first: HandWriter, memory_rig: Rig
) -> None:
    spare = min(set(memory_rig.urls) - set(first.names))
    left = first.names[2]
    first.replace(2, spare)
    asked = set[str]()

    def noted(instruction: object) -> None:
        if isinstance(instruction, FenceAndRead):
            asked.add(instruction.address.bookie_id)

    take(Scene(memory_rig), first, noted)
    assert asked == set(first.names)
    assert left not in asked


def test_protocol_who_was_refused_and_is_leader_still_refreshes_and_engages_again(
    log: LogHandle,
) -> None:
    writer = log.writer(settings=SILENT)
    writer.append(b"0")
    log.writer(settings=SILENT).release()
    with pytest.raises(InvalidTermError):
        writer.append(b"1")
    with log.writer() as again:
        assert again.append(b"1") == 1
    assert values(log) == [b"0", b"1"]


# --- The scope of a term: for fencing only --------------------------------------------------------


def test_fencing_only_differs_what_is_left_stays_and_is_read_by_nobody(
    first: HandWriter, memory_rig: Rig
) -> None:
    """The six steps in which logs diverge there, unless bookies cut off what is left.

    Entry 1 is A's on the first bookie alone; C takes over, without it, and writes another entry 1,
    which the first bookie does not get. It has A's for ever, and gives it to nobody.
    """
    first.add()
    second = Successor(first)  # step 3: the end is entry 0, and the ledger is OPEN
    first.store(1, 0)  # step 2, as late as can be
    assert second.end == 0
    assert second.add(1, 2, acknowledges=True) == 1  # steps 4 and 5
    second.confirm(1, 2)
    stored = [terms_on(memory_rig, first.ledger_id, name) for name in first.names]
    assert [(1, 1) in one for one in stored] == [True, False, False]  # step 6
    assert [(2, 1) in one for one in stored] == [False, True, True]
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(first.ledger_id, recovery=False)
        assert [entry.value for entry in reader.read()] == [second.sent[0], second.sent[1]]
        memory_rig.faults.down = set(first.names[1:])
        with memory_rig.faults.installed(), pytest.raises(BookKeeperError):
            keeper.open_ledger(first.ledger_id, recovery=False).read(1, 1)
    memory_rig.faults.forget()
    second.recover()
    assert not violations(memory_rig, first.ledger_id, second.sent, second.acked)


def test_fencing_only_differs_a_takeover_adds_no_entry(log: LogHandle) -> None:
    """There each ends with one that says "truncate", which readers have to leave out."""
    for _ in range(3):
        log.writer().close()
    with log.writer() as writer:
        assert writer.append(b"0") == 0
    assert values(log) == [b"0"]


# --- Terms are also entry identifiers -------------------------------------------------------------


def test_identifiers_entries_of_two_terms_are_not_confused(
    first: HandWriter, memory_rig: Rig
) -> None:
    """A bookie that has both has them as two, each with its term: it is stored with every entry."""
    first.add()
    second = Successor(first)
    first.store(1, 0)
    second.add(*ALL, acknowledges=True)
    found = terms_on(memory_rig, first.ledger_id, first.names[0])
    assert {(1, 0), (1, 1), (2, 1)} <= set(found)
    assert second.recover().last_entry_id == 1
    assert not violations(memory_rig, first.ledger_id, second.sent, second.acked)


def test_identifiers_the_metadata_has_the_range_of_each_term(
    first: HandWriter, memory_rig: Rig
) -> None:
    """So a reader knows in which term to ask for an entry."""
    second = Successor(first)
    second.add(*ALL, acknowledges=True)
    third = Successor(second)
    third.add(*ALL, acknowledges=True)
    fragments = memory_rig.ledger(first.ledger_id).fragments
    assert [list(owners(fragments, n)) for n in range(4)] == [[1], [2], [3], [3]]


def test_identifiers_recovery_writes_need_no_write_quorum(
    first: HandWriter, memory_rig: Rig
) -> None:
    """What is recovered is on Qa of its bookies when the ledger is OPEN; one of them is away."""
    first.add(0, 1)
    away = first.names[2]
    second = Successor(first, lost=[away])
    assert second.end == 1
    assert away not in second.names
    assert second.metadata.fragments[0].first_entry_id == 0
    closed = second.recover(run=one_by_one(lost=[away]))
    assert closed.last_entry_id == 1
    assert good_copies(memory_rig, memory_rig.ledger(first.ledger_id))[1] >= 2
    assert not violations(memory_rig, first.ledger_id, second.sent, second.acked)
