"""In which journals of an unbounded log an entry is looked for."""

from collections.abc import Callable

import pytest

from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import CorruptDataError
from bkspark.format import layout
from bkspark.ledger.copying import new_journal
from bkspark.ledger.journals import member_journals
from bkspark.ledger.journals.journal_reader import StoredRecord
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, InlinePart
from tests.integration.rig import Rig

WRITERS = 6


@pytest.fixture
def ledger_id(memory_rig: Rig) -> int:
    """Of an unbounded log with one entry of each of ``WRITERS`` writers, in terms 1, 2, and on."""
    with BookKeeper(memory_rig.uri) as keeper:
        log = keeper.create_log("wal", unbounded=True)
        for number in range(WRITERS):
            with log.writer() as writer:
                writer.append(b"%d" % number)
        (ledger,) = log.ledgers
    return ledger.ledger_id


def journals_read(rig: Rig) -> set[str]:
    calls = (o for o in rig.faults.trace if o.call == "read" and "/journal/" in o.name)
    return {o.name.rpartition("/")[2] for o in calls}


@pytest.mark.parametrize("entry_id", range(WRITERS))
def test_an_entry_is_taken_from_its_owners_journal_alone(
    memory_rig: Rig, ledger_id: int, entry_id: int
) -> None:
    with BookKeeper(memory_rig.uri) as keeper, memory_rig.faults.installed():
        reader = keeper.open_ledger(ledger_id, recovery=False)
        owner = reader.metadata.fragment_of(entry_id).owner
        memory_rig.faults.forget()
        (entry,) = reader.read(entry_id, entry_id)
        names = journals_read(memory_rig)
    assert entry.value == b"%d" % entry_id
    assert {layout.journal_term(name) for name in names} == {owner}


def give_a_later_copy(rig: Rig, ledger_id: int, left: Callable[[bytes], bytes | None]) -> None:
    """Entry 0 lies in a journal of a later term everywhere; of its owner's this much is left."""
    owner = rig.ledger(ledger_id).fragment_of(0)
    own = layout.journal(ledger_id, owner.term, owner.token)
    with Cluster(rig.uri) as cluster:
        known = cluster.addresses()
        for address in (known[member] for member in owner.ensemble):
            data = rig.file_bytes(address.bookie_id, own)
            with open_bookie(address).open_root() as root:
                copy = new_journal(root, ledger_id, owner.term + 2, "0" * 32)
                copy.append([data])
                copy.close()
            rig.replace_file(address.bookie_id, own, left(data))


@pytest.mark.parametrize("is_there", [False, True])
def test_a_copy_that_lies_in_a_journal_of_a_later_term_is_found(
    memory_rig: Rig, ledger_id: int, is_there: bool
) -> None:
    """As recoveries leave them; the owner's own journals are gone or cut on all bookies."""
    give_a_later_copy(memory_rig, ledger_id, lambda data: data[:100] if is_there else None)
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(ledger_id, recovery=False)
        assert [entry.value for entry in reader.read(0, 0)] == [b"0"]


def test_a_record_with_a_part_missing_does_not_end_the_search() -> None:
    parts = tuple(InlinePart(stripe, 1, "00") for stripe in (0, 1))
    record = AddRecord(7, 1, "a" * 32, 4, 5, 3, 10, Quorum(2, 1, 1), (), rows=parts)
    assert member_journals._shows_all(StoredRecord(0, 100, record, {0: b"", 1: b""}))
    assert not member_journals._shows_all(StoredRecord(0, 100, record, {0: b""}))
    assert not member_journals._shows_all(None)


def test_behind_a_record_that_is_refused_the_search_goes_on(
    memory_rig: Rig, ledger_id: int
) -> None:
    """A copy elsewhere may be another one."""
    give_a_later_copy(memory_rig, ledger_id, lambda data: data)
    with BookKeeper(memory_rig.uri) as keeper, memory_rig.faults.installed():
        reader = keeper.open_ledger(ledger_id, recovery=False)
        entries = reader._entry_reader
        record = entries.find(reader.metadata, 0).record
        assert record is not None
        entries.refuse(record, "holds something else")
        memory_rig.faults.forget()
        assert entries.find(reader.metadata, 0).record is None
        terms = {layout.journal_term(name) for name in journals_read(memory_rig)}
    assert record.term + 2 in terms


def test_where_the_record_is_refused_that_is_known_it_looks_for_new_journals(
    memory_rig: Rig, ledger_id: int
) -> None:
    """As where no known journal shows it."""
    with BookKeeper(memory_rig.uri) as keeper, memory_rig.faults.installed():
        reader = keeper.open_ledger(ledger_id, recovery=False)
        entries = reader._entry_reader
        record = entries.find(reader.metadata, 0).record
        assert record is not None
        entries.refuse(record, "holds something else")
        memory_rig.faults.forget()
        assert entries.find(reader.metadata, 0).record is None
        asked = {o.place for o in memory_rig.faults.trace if "/journal/" in o.name}
        listed = {o.place for o in memory_rig.faults.trace if o.call == "list"}
    assert asked == listed != set()


def test_no_journal_of_an_earlier_term_than_the_owners_is_looked_into(
    memory_rig: Rig, ledger_id: int
) -> None:
    """Not even where the entry is not in the owner's, so that others are looked into."""
    owner = memory_rig.ledger(ledger_id).fragment_of(3)
    own = layout.journal(ledger_id, owner.term, owner.token)
    for member in owner.ensemble:
        memory_rig.replace_file(member.bookie_id, own, None)
    with BookKeeper(memory_rig.uri) as keeper, memory_rig.faults.installed():
        reader = keeper.open_ledger(ledger_id, recovery=False)
        memory_rig.faults.forget()
        with pytest.raises(CorruptDataError):
            list(reader.read(3, 3))
        terms = {layout.journal_term(name) for name in journals_read(memory_rig)}
    assert terms
    assert min(terms) > owner.term
