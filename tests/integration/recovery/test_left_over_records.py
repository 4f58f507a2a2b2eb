"""Records that older terms left over, in a ledger that goes on in later ones: nobody reads them.

H43 in the numbers of steps that its shortest counterexamples take; RB-34.
"""

import pytest

from bkspark.admin.auditing import look as journals_shown
from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import LedgerFencedError, NotEnoughBookiesError
from bkspark.format import layout
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.ledger.recovery.fencing import FenceAndRead, FindRecord
from bkspark.log.reading.ledger_files import OpenBookies, find_records, keep_owned
from bkspark.log.reading.read_slices import plan_ledger
from bkspark.log.reading.slice_reader import InlinePlace, SliceReader
from bkspark.log.reading.slices import OffsetRange
from bkspark.protocol.ledger.record import AddRecord
from bkspark.protocol.recovery.steps import RecordShown
from tests.integration.hand_writer import HandWriter, one_by_one, violations
from tests.integration.recovery.successor import Successor
from tests.integration.rig import Rig

ALL = (0, 1, 2)


@pytest.fixture(autouse=True)
def all_journals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recoveries look into journals of earlier terms too: it is the owner's term that decides.

    That they need not is shown elsewhere (``test_taking_over``).
    """
    monkeypatch.setattr(FenceAndRead, "_matters", lambda *_: True)


@pytest.fixture
def first(memory_rig: Rig) -> HandWriter:
    """The writer of term 1: entry 0 is acknowledged, and all bookies know that."""
    writer = HandWriter(memory_rig, goes_on=True)
    writer.add(*ALL, acknowledges=True)
    writer.confirm(*ALL)
    return writer


def leave(writer: HandWriter, last: int, *indexes: int) -> None:
    """Entries up to ``last`` that count nowhere: who writes them is fenced, or dies before."""
    while writer.pending.last_add_pushed < last:
        entry_id = writer.add()
        for index in indexes:
            writer.store(entry_id, index)


def test_h43_an_unacknowledged_entry_takes_the_place_of_none_that_is(
    first: HandWriter, memory_rig: Rig
) -> None:
    """In twenty steps: the first record that is found is the one."""
    second = Successor(first)
    assert second.end == 0
    leave(first, 1, 0)
    assert second.add(1, 2, acknowledges=True) == 1
    with pytest.raises(NotEnoughBookiesError, match="entry 1 is in doubt"):
        second.recover(run=one_by_one(lost=first.names[1:]))
    assert second.recover().last_entry_id == 1
    assert not violations(memory_rig, first.ledger_id, second.sent, second.acked)


def test_h43_what_was_found_absent_does_not_come_back(first: HandWriter, memory_rig: Rig) -> None:
    """In seventeen steps: the record of the highest term that is found is the one."""
    second = Successor(first)
    leave(first, 1, 0)
    assert second.recover(run=one_by_one(lost=first.names[2:])).last_entry_id == 0
    assert not violations(memory_rig, first.ledger_id, second.sent, second.acked)


@pytest.mark.parametrize("third_writes", [False, True])
def test_rb_34_fenced_writers_that_still_have_their_disks_are_read_by_nobody(
    third_writes: bool, first: HandWriter, memory_rig: Rig
) -> None:
    """They store what they like, everywhere, in all later fragments, also while they are read."""
    second = Successor(first)
    leave(first, 4, *ALL)
    second.add(*ALL)
    second.add(*ALL, acknowledges=True)
    second.confirm(*ALL)
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(first.ledger_id, recovery=False)
        found = [entry.value for entry in reader.read()]
    assert found == [second.sent[n] for n in range(3)]
    third = Successor(second)
    assert third.end == 2
    leave(first, 6, *ALL)
    leave(second, 6, *ALL)
    if third_writes:
        third.add(*ALL, acknowledges=True)
    assert third.recover().last_entry_id == (3 if third_writes else 2)
    assert not violations(memory_rig, first.ledger_id, third.sent, third.acked)


def test_rb_34_each_bookie_alone_gives_the_owners_entries(
    first: HandWriter, memory_rig: Rig
) -> None:
    second = Successor(first)
    leave(first, 4, *ALL)
    second.add(*ALL)
    second.add(*ALL)
    second.recover()
    for kept in first.names:
        memory_rig.faults.down = set(first.names) - {kept}
        with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
            found = [entry.value for entry in keeper.open_ledger(first.ledger_id).read()]
        assert found == [second.sent[n] for n in range(3)]


def test_a_reader_that_knows_the_older_journal_looks_for_the_owners(
    first: HandWriter, memory_rig: Rig
) -> None:
    """All that is left is one bookie, whose older journal it has open since there was no other."""
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(first.ledger_id, recovery=False)
        assert [entry.value for entry in reader.read()] == [first.sent[0]]
        second = Successor(first)
        leave(first, 1, *ALL)
        second.add(*ALL, acknowledges=True)
        second.confirm(*ALL)
        assert reader.read_last_add_confirmed() == 1
        memory_rig.faults.down = set(first.names[1:])
        assert [entry.value for entry in reader.read(1, 1)] == [second.sent[1]]


def test_an_audit_counts_no_record_that_is_left_over(first: HandWriter, memory_rig: Rig) -> None:
    second = Successor(first)
    leave(first, 4, *ALL)
    second.add(*ALL)
    second.recover()
    ledger, member = memory_rig.ledger(first.ledger_id), second.metadata.last_fragment.ensemble[0]
    folder = layout.journal_folder(first.ledger_id)
    own = layout.journal(first.ledger_id, 1, first.metadata.token)
    for name in memory_rig.names(member.bookie_id):
        if name.startswith(folder) and name != own:
            memory_rig.replace_file(member.bookie_id, name, None)
    with open_bookie(first._address(0)).open_root() as root:
        shown = journals_shown.show(root, member, ledger, first._digester, lambda: None, None)
    assert [entries for entries, _ in shown.held] == [(0, 0)]


def test_a_plan_takes_the_owners_record_wherever_it_is_met(
    first: HandWriter, memory_rig: Rig
) -> None:
    second = Successor(first)
    leave(first, 4, *ALL)
    second.add(*ALL)
    ledger = second.metadata
    older, owned = (writer._records[1].record for writer in (first, second))
    for order in ((older, owned), (owned, older)):
        found: dict[int, AddRecord] = {}
        for record in order:
            keep_owned(found, record, ledger)
        assert found == {1: owned}
    with OpenBookies(second.cluster) as bookies:
        [record] = find_records(bookies, ledger, Password(), begin=1, end=2)
    assert record == owned


def test_a_search_for_the_last_confirmed_record_passes_what_is_left_over(
    first: HandWriter,
) -> None:
    second = Successor(first)
    leave(first, 2, *ALL)
    ledger = second.metadata
    look = FindRecord(
        first.ledger_id, first._address(0), ledger.settings.digest, Password(), 2, ledger.fragments
    )
    found = look.run()
    assert isinstance(found, RecordShown)
    assert found.record is not None
    assert found.record.last_entry_id == 0


def test_who_was_silent_is_left_out_and_what_it_has_is_read_by_nobody(
    first: HandWriter, memory_rig: Rig
) -> None:
    """Entry 1 is on it alone; it comes back, and joins again in the next term."""
    leave(first, 1, 0)
    second = Successor(first, lost=first.names[:1])
    assert (second.end, second.names[1:]) == (0, first.names[1:])
    assert second.names[0] not in first.names
    second.add(*ALL, acknowledges=True)
    second.add(0)
    third = Successor(second, lost=second.names[1:2])
    assert (third.end, first.names[1] in third.names) == (2, False)
    third.add(*ALL, acknowledges=True)
    assert third.recover().last_entry_id == 3
    assert not violations(memory_rig, first.ledger_id, third.sent, third.acked)


def test_a_fenced_writer_whose_markers_are_pruned_counts_nowhere(
    first: HandWriter, memory_rig: Rig
) -> None:
    second = Successor(first, prunes=True)
    for name in first.names:
        markers = [one for one in memory_rig.names(name) if "/terms/" in one]
        assert markers == [second.permission]
    for index in ALL:
        with pytest.raises(LedgerFencedError):
            first.add(index)
    second.add(*ALL, acknowledges=True)
    third = Successor(second, prunes=True)
    assert third.end == 1
    third.add(*ALL, acknowledges=True)
    third.recover()
    assert not violations(memory_rig, first.ledger_id, third.sent, third.acked)


def test_h43_a_reader_forgets_what_it_was_shown_without_a_promise(
    first: HandWriter, memory_rig: Rig
) -> None:
    """It has read an entry that nobody had confirmed; a later term has used its id since."""
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(first.ledger_id, recovery=False)
        first.add(0)
        assert [entry.value for entry in reader.read_unconfirmed(1, 1)] == [first.sent[1]]
        second = Successor(first, lost=first.names[:1])
        assert second.add(1, 2, acknowledges=True) == 1
        second.confirm(1, 2)
        assert reader.read_last_add_confirmed() == 1
        assert [entry.value for entry in reader.read(1)] == [second.sent[1]]


def test_h43_a_reader_that_goes_on_in_a_ledger_reads_what_counts_now(first: HandWriter) -> None:
    """It has met an entry that was not acknowledged; a later term has used its id since."""
    place = InlinePlace({first.ledger_id: first.metadata})
    reader = SliceReader(VALUE_SCHEMA, cluster=first.cluster, place=place)

    def read(writer: HandWriter, entry_id: int) -> list[bytes]:
        ledger, range_ = writer.metadata, OffsetRange(entry_id, entry_id + 1)
        place.metadata = {ledger.ledger_id: ledger}
        [task] = plan_ledger(writer.cluster, ledger, range_, Password(), 2**30)
        return [value for batch in reader.read(task) for value in batch.column(0).to_pylist()]

    first.add(0)
    assert read(first, 0) == [first.sent[0]]
    handle = place.handle
    assert read(first, 1) == [first.sent[1]]
    second = Successor(first, lost=first.names[:1])
    assert second.add(1, 2, acknowledges=True) == 1
    second.confirm(1, 2)
    assert handle is not None
    assert place.handle is handle
    assert read(second, 1) == [second.sent[1]]
