"""The protocol document of BookKeeper, rule by rule, on the real code.

A test's name begins with the section that its rule stands in.
"""

from collections.abc import Iterator
from dataclasses import fields
from itertools import combinations

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchEntryError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.format import layout
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.recovery import recoverer
from bkspark.ledger.recovery.recover import RecoveryReport
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LEGAL_MOVES, LedgerMetadata, LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from tests.integration.hand_writer import (
    HandWriter,
    good_copies,
    late,
    one_by_one,
    stop_at,
    violations,
)
from tests.integration.rig import Rig


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def has_marker(rig: Rig, bookie_id: str, ledger_id: int, term: int) -> bool:
    return layout.term_marker(ledger_id, term) in rig.names(bookie_id)


# --- Ledgers, Ledger metadata ------------------------------------------------------------------


def test_ledger_metadata_says_who_holds_what_and_in_which_state(keeper: BookKeeper) -> None:
    """Identity, the three sizes, the state, the end and the fragments are all recorded."""
    names = {field.name for field in fields(LedgerMetadata)}
    assert {"ledger_id", "quorum", "state", "last_entry_id", "fragments"} <= names
    assert {LedgerState.OPEN, LedgerState.IN_RECOVERY, LedgerState.CLOSED} <= set(LEGAL_MOVES)


def test_ledger_metadata_ids_are_never_given_twice(keeper: BookKeeper) -> None:
    """A ledger's number is its own for ever, also once the ledger is deleted."""
    ids = []
    for _ in range(4):
        handle = keeper.create_ledger()
        handle.close()
        keeper.delete_ledger(handle.ledger_id)
        ids.append(handle.ledger_id)
    assert len(set(ids)) == 4
    assert max(ids) < 2**63


def test_ledger_metadata_has_a_last_entry_only_when_closed(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """Nobody can read an end out of a ledger that still has none."""
    handle = keeper.create_ledger()
    handle.append(b"a")
    assert memory_rig.ledger(handle.ledger_id).last_entry_id is None
    handle.close()
    assert memory_rig.ledger(handle.ledger_id).last_entry_id == 0


@pytest.mark.parametrize("sizes", [(2, 3, 2), (3, 2, 3), (3, 3, 4), (3, 3, 0)])
def test_ledger_metadata_sizes_in_another_order_make_no_ledger(
    sizes: tuple[int, int, int], keeper: BookKeeper
) -> None:
    """An ensemble is at least a write quorum, and that at least an ack quorum."""
    with pytest.raises(InvalidRequestError):
        keeper.create_ledger(
            ensemble_size=sizes[0], write_quorum_size=sizes[1], ack_quorum_size=sizes[2]
        )
    assert keeper.list_ledgers() == []


# --- Ensembles, write quorums, ack quorums -----------------------------------------------------


def test_ensembles_are_e_bookies_chosen_when_the_ledger_is_made(keeper: BookKeeper) -> None:
    """The first fragment begins at entry 0 and names that many different bookies."""
    handle = keeper.create_ledger(ensemble_size=5)
    handle.release()
    (fragment,) = handle.metadata.fragments
    assert (fragment.first_entry_id, len(set(fragment.ensemble))) == (0, 5)


def test_ensembles_change_by_a_new_fragment_and_each_entry_has_one(memory_rig: Rig) -> None:
    """The document's example: twelve entries, then another bookie in the first place."""
    writer = HandWriter(memory_rig)
    for _ in range(12):
        writer.add(0, 1, 2, acknowledges=True)
    before = writer.names
    spare = next(name for name in memory_rig.urls if name not in before)
    writer.replace(0, spare)
    writer.add(0, 1, 2, acknowledges=True)
    ledger = memory_rig.ledger(writer.ledger_id)
    assert [f.first_entry_id for f in ledger.fragments] == [0, 12]
    assert {m.bookie_id for m in Locations(ledger).holders(11)} == set(before)
    assert {m.bookie_id for m in Locations(ledger).holders(12)} == {spare, *before[1:]}


def test_write_quorums_are_where_each_entry_really_lies(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """Qw neighbours from place "id modulo E" on store an entry, the others do not."""
    with keeper.create_ledger(ensemble_size=4) as handle:
        for number in range(6):
            handle.append(b"%d" % number)
    ledger = memory_rig.ledger(handle.ledger_id)
    assert [ledger.quorum.write_set(n) for n in range(5)] == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 0),
        (3, 0, 1),
        (0, 1, 2),
    ]
    assert good_copies(memory_rig, ledger) == dict.fromkeys(range(6), 3)


def test_write_quorums_there_are_only_e_different_ones() -> None:
    """One, in fact, if every bookie of the ensemble stores everything."""
    assert len({frozenset(Quorum(4, 3, 2).write_set(n)) for n in range(40)}) == 4
    assert len({frozenset(Quorum(3, 3, 2).write_set(n)) for n in range(40)}) == 1


@pytest.mark.parametrize("indexes", [(0, 1), (0, 2), (1, 2)])
def test_ack_quorums_are_any_qa_of_the_write_quorum(
    indexes: tuple[int, int], memory_rig: Rig
) -> None:
    """No matter which of them answer; one less is not enough."""
    writer = HandWriter(memory_rig, (5, 3, 2))
    writer.add(indexes[0], acknowledges=True)
    assert writer.acked == []
    writer.put(0, indexes[1])
    writer.acknowledge()
    assert writer.acked == [0]


# --- Guarantees --------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(3, 3, 2), (5, 3, 2), (5, 4, 3)])
def test_guarantees_qa_minus_one_lost_bookies_lose_nothing(
    sizes: tuple[int, int, int], memory_rig: Rig, keeper: BookKeeper
) -> None:
    """Whichever bookies they are; and all readers see the same entries in the order written."""
    sent = [b"%d" % n for n in range(7)]
    size, write, ack = sizes
    with keeper.create_ledger(
        ensemble_size=size, write_quorum_size=write, ack_quorum_size=ack
    ) as handle:
        for value in sent:
            handle.append(value)
    members = [m.bookie_id for m in handle.metadata.last_fragment.ensemble]
    for chosen in combinations(members, ack - 1):
        away = {name: memory_rig.lose(name) for name in chosen}
        for _ in range(2):
            reader = keeper.open_ledger(handle.ledger_id)
            assert [entry.value for entry in reader.read()] == sent
        for name, disk in away.items():
            memory_rig.bring_back(name, disk)


# --- Writing to ledgers ------------------------------------------------------------------------


def test_writing_gives_out_sequential_ids_and_acknowledges_in_order(memory_rig: Rig) -> None:
    """An entry that is complete waits for all entries before it."""
    writer = HandWriter(memory_rig)
    assert [writer.add(), writer.add(0, 1), writer.add(1, 2)] == [0, 1, 2]
    writer.acknowledge()
    assert writer.acked == []
    writer.put(0, 2, 0)
    writer.acknowledge()
    assert writer.acked == [0, 1, 2]


def test_writing_sends_the_last_add_confirmed_along(memory_rig: Rig, keeper: BookKeeper) -> None:
    """Each record carries what its writer's caller had been told when it was made."""
    writer = HandWriter(memory_rig)
    for acknowledges in (True, True, False, True):
        writer.add(0, 1, acknowledges=acknowledges)
    records = [encoded.record for encoded in writer._records]
    assert [record.last_add_confirmed for record in records] == [-1, 0, 1, 1]
    assert {record.ledger_id for record in records} == {writer.ledger_id}


def test_writing_is_not_disturbed_by_those_who_read_up_to_the_last_add_confirmed(
    keeper: BookKeeper,
) -> None:
    """An open without recovery shows what is confirmed and no more; one with it ends the writer."""
    handle = keeper.create_ledger(settings=WriterSettings(explicit_lac_ms=0))
    handle.append(b"a")
    handle.append(b"b")
    reader = keeper.open_ledger(handle.ledger_id, recovery=False)
    assert [entry.value for entry in reader.read()] == [b"a"]
    with pytest.raises(NoSuchEntryError):
        list(reader.read(1, 1))
    assert handle.append(b"c") == 2
    keeper.open_ledger(handle.ledger_id)
    with pytest.raises(LedgerFencedError):
        handle.append(b"d")


def test_writing_goes_on_with_another_bookie_from_the_first_unacknowledged_entry(
    memory_rig: Rig,
) -> None:
    """What the replaced bookie stored of such entries counts no longer."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.add(0)
    writer.replace(0, next(name for name in memory_rig.urls if name not in writer.names))
    writer.put(1, 1)
    writer.acknowledge()
    assert writer.acked == [0]
    writer.put(1, 0)
    writer.acknowledge()
    assert writer.acked == [0, 1]
    assert writer.metadata.last_fragment.first_entry_id == 1


def test_writing_ends_if_the_ledger_is_not_open_when_the_ensemble_changes(memory_rig: Rig) -> None:
    """The compare-and-set fails, the metadata is read again, and says so."""
    writer = HandWriter(memory_rig)
    writer.cluster.ledgers.update(
        str(writer.ledger_id), lambda ledger: ledger.in_recovery("b" * 32)
    )
    spare = next(name for name in memory_rig.urls if name not in writer.names)
    with pytest.raises(LedgerFencedError):
        writer.replace(0, spare)


# --- Closing a ledger as a writer --------------------------------------------------------------


def test_closing_as_a_writer_ends_at_the_last_acknowledged_entry(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """And a closed ledger is never opened for writing again."""
    handle = keeper.create_ledger()
    handle.append_many([b"a", b"b"])
    handle.close()
    ledger = memory_rig.ledger(handle.ledger_id)
    assert (ledger.state, ledger.last_entry_id) == (LedgerState.CLOSED, 1)
    assert LEGAL_MOVES[LedgerState.CLOSED] <= {LedgerState.CLOSED, LedgerState.DELETING}


@pytest.mark.parametrize("other", [0, 1])
def test_closing_as_a_writer_accepts_only_its_own_end(other: int, keeper: BookKeeper) -> None:
    """Closed by somebody else at the same entry is a success, at another one an error."""
    handle = keeper.create_ledger()
    handle.append_many([b"a", b"b"])
    ledger = handle.metadata
    keeper._cluster.ledgers.update(
        str(handle.ledger_id),
        lambda now: now.closed(
            last_entry_id=other, length_bytes=other + 1, term=ledger.term, token=ledger.token
        ),
    )
    if other == 1:
        handle.close()
        return
    with pytest.raises(LedgerClosedError):
        handle.close()


def test_closing_as_a_writer_is_refused_during_recovery(keeper: BookKeeper) -> None:
    """Only the recovery may say where the ledger ends from now on."""
    handle = keeper.create_ledger()
    keeper._cluster.ledgers.update(
        str(handle.ledger_id), lambda ledger: ledger.in_recovery("b" * 32)
    )
    with pytest.raises(LedgerFencedError):
        handle.close()


# --- Closing a ledger as a reader --------------------------------------------------------------


def test_recovery_says_so_in_the_metadata_before_it_fences(memory_rig: Rig) -> None:
    """Then every bookie of the last fragment keeps the fence, also if recovery dies."""
    writer = HandWriter(memory_rig)
    writer.add(0)
    states: list[LedgerState] = []

    def look(instruction: object) -> None:
        states.append(memory_rig.ledger(writer.ledger_id).state)
        stop_at(recoverer.WriteCopies)(instruction)

    with pytest.raises(OutcomeUnknownError):
        writer.recover(run=one_by_one(before=look))
    assert set(states) == {LedgerState.IN_RECOVERY}
    assert all(has_marker(memory_rig, name, writer.ledger_id, 2) for name in writer.names)


@pytest.mark.parametrize("count", [1, 2])
def test_recovery_needs_more_than_qw_minus_qa_answers_from_a_write_quorum(
    count: int, memory_rig: Rig
) -> None:
    """3/3/2: with two of three fenced, no entry can get an ack any more; with one it could."""
    writer = HandWriter(memory_rig)
    silent = writer.names[count:]
    if count == 1:
        with pytest.raises(NotEnoughBookiesError):
            writer.recover(run=one_by_one(lost=silent))
        return
    writer.recover(run=one_by_one(lost=silent))
    writer.add()
    late(writer, 0, 2, 0, 1)
    assert writer.acked == []


def test_recovery_a_fenced_entry_may_have_been_written_or_not(memory_rig: Rig) -> None:
    """To be fenced is like a timeout: only the recovered ledger tells."""
    ends = set()
    for indexes in ((), (0,)):
        writer = HandWriter(memory_rig)
        writer.add(*indexes)
        ends.add(writer.recover().last_entry_id)
        with pytest.raises(LedgerFencedError):
            writer.put(0, 1)
    assert ends == {-1, 0}
    assert issubclass(LedgerFencedError, OutcomeUnknownError)


def test_recovery_reads_on_from_the_highest_last_add_confirmed_and_replicates(
    memory_rig: Rig,
) -> None:
    """What it finds behind that is written to its whole write quorum before the end."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.add(0)
    writer.add(1)
    report = writer.recover()
    assert (report.last_entry_id, report.kept) == (2, 2)
    copies = good_copies(memory_rig, memory_rig.ledger(writer.ledger_id))
    assert copies == {0: 2, 1: 3, 2: 3}
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_recovery_by_several_readers_ends_at_one_entry(memory_rig: Rig) -> None:
    """All are under way at once; the closing compare-and-set is won once, all find the same end."""
    writer = HandWriter(memory_rig)
    writer.add(0)
    reports: list[RecoveryReport] = []

    def recover_with(others: list[None]) -> None:
        def overtaken(instruction: object) -> None:
            if isinstance(instruction, recoverer.WriteCopies) and others:
                others.pop()
                recover_with(others)

        reports.append(writer.recover(run=one_by_one(before=overtaken)))

    recover_with([None] * 2)
    assert [report.last_entry_id for report in reports] == [0, 0, 0]
    assert memory_rig.ledger(writer.ledger_id).term == 4  # of the last one, who closed it
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
