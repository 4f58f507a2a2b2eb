"""A bookie whose journal went back in time, its marker and cookie intact, proves no absence.

Records that others have say what it had before them. What nobody has said yet is not missed.
"""

import pytest

from bkspark import environment
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import BookieUnavailableError, NotEnoughBookiesError, OutcomeUnknownError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.recovery.fencing import FenceAndRead
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerState
from bkspark.protocol.recovery.verdicts import Doubt, MemberAnswer, MemberTail, lost_data
from tests.integration.hand_writer import HandWriter, one_by_one, stop_behind
from tests.integration.recovery.test_lost_folders import lose_folder
from tests.integration.rig import Rig, flat
from tests.integration.stream_driver import Driver, rows_of, the_log
from tests.integration.waiting import wait_until

DIGESTER = Digester(DigestSpec(), None)
LAST = 3
HAD = 1
"""What the record of entry 2, which is everywhere, says that each bookie had."""


@pytest.fixture
def writer(memory_rig: Rig) -> HandWriter:
    """Entries 0 to 2 are on all bookies; the last one only where it was acknowledged."""
    return written(memory_rig)


def written(rig: Rig) -> HandWriter:
    writer = HandWriter(rig)
    for _ in range(LAST):
        writer.add(0, 1, 2, acknowledges=True)
    writer.add(0, 1, acknowledges=True)
    return writer


def journal_of(writer: HandWriter) -> str:
    return layout.journal(writer.ledger_id, 1, writer.metadata.token)


def keep(rig: Rig, writer: HandWriter, index: int, record_count: int) -> None:
    """Leave one bookie its header and so many of its records."""
    bookie_id, name = writer.names[index], journal_of(writer)
    data = rig.file_bytes(bookie_id, name)
    end = 0
    for _ in range(1 + record_count):
        end += journal.frame_length(data, end, position=end) or 0
    rig.replace_file(bookie_id, name, data[:end])


def stuck(writer: HandWriter, entry_id: int, *lost: str) -> str:
    with pytest.raises(NotEnoughBookiesError) as caught:
        writer.recover(run=one_by_one(lost=lost), accepts_loss=lambda _loss: True)
    assert f"entry {entry_id} is in doubt" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("record_count", [0, HAD])
@pytest.mark.parametrize("times", [1, 2])
def test_what_a_record_elsewhere_says_that_it_had_is_missed(
    record_count: int, times: int, rig: Rig
) -> None:
    """The journal is cut exactly behind its header, or a record; so is it in a snapshot."""
    writer = written(rig)
    keep(rig, writer, 0, record_count)
    for _ in range(times):
        message = stuck(writer, LAST, writer.names[1])
        assert f"{writer.names[0]} has lost data of ledger {writer.ledger_id}" in message
    assert rig.ledger(writer.ledger_id).state is LedgerState.IN_RECOVERY
    assert writer.recover().last_entry_id == LAST


def test_what_nobody_has_said_yet_is_not_missed(memory_rig: Rig, writer: HandWriter) -> None:
    """The limit: it has gone back by what no record that is left says that it had."""
    keep(memory_rig, writer, 0, LAST)
    report = writer.recover(run=one_by_one(lost=writer.names[1:2]))
    assert report.last_entry_id == LAST - 1


def test_a_confirmation_says_it_too(memory_rig: Rig, writer: HandWriter) -> None:
    writer.confirm(2)
    keep(memory_rig, writer, 0, LAST)
    stuck(writer, LAST + 1, writer.names[1])


def test_it_takes_the_word_where_nobody_else_can_tell(memory_rig: Rig, writer: HandWriter) -> None:
    for index in (0, 1):
        keep(memory_rig, writer, index, HAD)
    with pytest.raises(NotEnoughBookiesError, match="--accept-loss"):
        writer.recover()
    report = writer.recover(accepts_loss=lambda _loss: True)
    assert (report.last_entry_id, report.lost_from) == (LAST - 1, LAST)


def test_copies_that_it_gets_do_not_make_it_whole(memory_rig: Rig, writer: HandWriter) -> None:
    """They lie in a journal of the recovery, which dies behind them."""
    keep(memory_rig, writer, 0, HAD)
    with pytest.raises(OutcomeUnknownError):
        writer.recover(run=one_by_one(before=stop_behind(1)))
    assert sum("/journal/" in name for name in memory_rig.names(writer.names[0])) == 2
    stuck(writer, LAST + 1, writer.names[1])


def test_what_is_lost_beyond_the_promise_is_told(memory_rig: Rig, writer: HandWriter) -> None:
    for index in (0, 1):
        keep(memory_rig, writer, index, HAD)
    for _ in range(2):
        writer.add(2)
    report = writer.recover(accepts_loss=lambda _loss: True)
    names = ", ".join(writer.names[:2])
    assert any(f"on {names} only" in loss or names in loss for loss in report.losses)


# --- who says it ----------------------------------------------------------------------------------


def stored_by(rig: Rig, ledger_id: int) -> list[tuple[int, ...]]:
    """What the records of a ledger's first member say was stored, in its journal's order."""
    ledger = rig.ledger(ledger_id)
    name, fragment = ledger.last_fragment.ensemble[0].bookie_id, ledger.last_fragment
    data = rig.file_bytes(name, layout.journal(ledger_id, fragment.term, fragment.token))
    frames = journal.decode_journal(data, DIGESTER, ledger_id=ledger_id).frames
    return [frame.record.stored for frame in frames if not frame.record.is_header]


def test_each_record_of_a_handle_says_it_and_so_does_a_confirmation(memory_rig: Rig) -> None:
    settings = WriterSettings(explicit_lac_ms=1)
    with BookKeeper(memory_rig.uri) as keeper:
        ledger = keeper.create_ledger(ack_quorum_size=3, settings=settings)
        for _ in range(2):
            ledger.append(b"entry")
            wait_until(lambda: ledger._writer.machine.pending._said == ledger.last_add_confirmed)
        ledger.close()
    found = stored_by(memory_rig, ledger.ledger_id)
    assert found == [(-1, -1, -1), (0, 0, 0), (0, 0, 0), (1, 1, 1)]


def test_each_record_of_a_sink_says_it_and_so_does_a_confirmation(memory_rig: Rig) -> None:
    Driver(memory_rig, quorum=(3, 3, 2)).run(0, 1)
    (ledger_id,) = the_log(memory_rig).tail
    second = len(flat(rows_of(0)))
    found = stored_by(memory_rig, ledger_id)
    assert list(dict.fromkeys(found)) == [(-1,) * 3, (0,) * 3, (second,) * 3]


# --- whom it is said of ---------------------------------------------------------------------------


@pytest.mark.parametrize("acknowledged", [0, 1])
def test_who_takes_a_place_is_not_held_to_what_was_stored_there(
    acknowledged: int, memory_rig: Rig
) -> None:
    """What is on its way when a bookie is replaced says what that one had, not its successor.

    With nothing acknowledged yet the fragment stays the same, and only its members change.
    """
    writer = HandWriter(memory_rig)
    for _ in range(acknowledged):
        writer.add(0, 1, 2, acknowledges=True)
    first = writer.add(0, 1)
    writer.pending._pending[-1].counted.clear()  # not acknowledged yet
    second = writer.add(1)
    assert writer._records[second].record.stored[0] == first
    writer.replace(0, spare_of(memory_rig, writer))
    assert writer.metadata.last_fragment.first_entry_id == acknowledged
    report = writer.recover(run=one_by_one(lost=writer.names[2:3]))
    assert report.last_entry_id == second


def spare_of(rig: Rig, writer: HandWriter) -> str:
    return next(name for name in rig.urls if name not in writer.names)


def test_who_was_fenced_before_it_was_read_shows_what_it_had(
    memory_rig: Rig, writer: HandWriter
) -> None:
    """A writer that does not know yet goes on between the looks at two bookies."""

    def goes_on(instruction: object) -> None:
        if isinstance(instruction, FenceAndRead) and instruction.ensemble_index == 2:
            entry_id = writer.add(2)
            assert writer._records[entry_id].record.stored[:2] == (LAST, LAST)

    assert writer.recover(run=one_by_one(before=goes_on)).last_entry_id == LAST + 1


def tail(reached: int, had: dict[int, int] | None = None, doubt: Doubt | None = None) -> MemberTail:
    return MemberTail(MemberAnswer({}, doubt), {}, -1, None, reached=reached, had=had or {})


@pytest.mark.parametrize("doubt", [Doubt.UNFENCED, Doubt.UNCLEAR])
def test_who_may_be_asked_again_is_not_held_to_anything_yet(
    doubt: Doubt, writer: HandWriter
) -> None:
    """Where no fence could be put the writer may have gone on; strange files hide journals."""
    tails = {0: tail(1, doubt=doubt), 1: tail(5, {0: 4, 1: 5})}
    assert lost_data(tails, writer.metadata) == {}


def test_a_torn_end_does_not_hide_that_more_is_gone(writer: HandWriter) -> None:
    tails = {0: tail(1, doubt=Doubt.TORN), 1: tail(5, {0: 4, 1: 5})}
    (found,) = lost_data(tails, writer.metadata).values()
    assert (found.answer.doubt, found.hidden) == (Doubt.DATA_LOST, ((2, None),))


# --- readers --------------------------------------------------------------------------------------


@pytest.fixture
def striped(memory_rig: Rig) -> HandWriter:
    """3/2/2: an entry is on its way that is on one bookie, which alone says that 4 is confirmed."""
    writer = HandWriter(memory_rig, (3, 2, 2))
    for entry_id in range(5):
        writer.add(entry_id % 3, (entry_id + 1) % 3, acknowledges=True)
    writer.add(0)
    return writer


def test_copies_of_a_recovery_make_no_bookie_whole_for_readers(memory_rig: Rig) -> None:
    """2/2/2: the one bookie that says how far entries are confirmed loses the ledger's folder."""
    writer = HandWriter(memory_rig, (2, 2, 2))
    for _ in range(2):
        writer.add(0, 1, acknowledges=True)
    writer.confirm(0)
    with BookKeeper(memory_rig.uri) as keeper:
        before = keeper.open_ledger(writer.ledger_id, recovery=False)
        assert before.last_add_confirmed == 1
        lose_folder(memory_rig, writer, 0)
        with pytest.raises(OutcomeUnknownError):
            writer.recover(run=one_by_one(before=stop_behind(1)))
        assert any("/journal/" in name for name in memory_rig.names(writer.names[0]))
        with pytest.raises(BookieUnavailableError, match="has lost data of ledger"):
            keeper.open_ledger(writer.ledger_id, recovery=False)


def test_a_reader_takes_no_bookie_without_its_marker_for_whole(memory_rig: Rig) -> None:
    """Its journal is there, without a record of which nobody knows; its marker is not."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.add(0, 1, acknowledges=True)
    with BookKeeper(memory_rig.uri) as keeper:
        before = keeper.open_ledger(writer.ledger_id, recovery=False)
        assert before.last_add_confirmed == 0
        memory_rig.replace_file(writer.names[0], writer.permission, None)
        keep(memory_rig, writer, 0, 1)
        with pytest.raises(BookieUnavailableError, match="has lost data of ledger"):
            keeper.open_ledger(writer.ledger_id, recovery=False)


def test_a_reader_is_shown_no_end_by_a_bookie_that_has_lost_more(
    memory_rig: Rig, striped: HandWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BookKeeper(memory_rig.uri) as keeper:
        before = keeper.open_ledger(striped.ledger_id, recovery=False)
        assert before.last_add_confirmed == 4
        keep(memory_rig, striped, 0, 1)
        looks: list[object] = []
        monkeypatch.setattr(environment, "sleep", looks.append)
        with pytest.raises(BookieUnavailableError, match="has lost data: it had entry 3"):
            keeper.open_ledger(striped.ledger_id, recovery=False)
    assert len(looks) == 1, "who has lost data does not get it by being asked again"
