"""What lies among a ledger's journals and is none: it makes its bookie's absences unknown, and
nothing else; the others decide."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.admin.absent_bookies import declare_lost
from bkspark.admin.auditing.audit import gaps_of
from bkspark.bookie import memory, posix_place
from bkspark.bookie.contract import BookieRoot
from bkspark.bookie.memory import MemoryRoot
from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import BookieUnavailableError, CorruptDataError, NotEnoughBookiesError
from bkspark.format import layout
from bkspark.ledger.journals.journal_reader import journal_size, read_journal
from bkspark.ledger.recovery import fencing
from bkspark.log.reading.ledger_files import OpenBookies, find_records, readable
from bkspark.protocol.recovery.recovering import RecordSearch
from bkspark.protocol.recovery.steps import Answer
from tests.integration.hand_writer import HandWriter, one_by_one, violations
from tests.integration.recovery.test_recovery_losses import journal_of
from tests.integration.rig import Rig

STRAY = ".DS_Store"


def leave(rig: Rig, bookie_id: str, name: str) -> None:
    """Put a file under ``name`` on a bookie, behind its back, with the folders it needs."""
    url = rig.urls[bookie_id]
    if rig.kind == "memory":
        disk = memory.find_disk(url)
        assert disk is not None
        disk.files[name] = memory.MemoryFile(b"x")
        return
    path = Path(posix_place.path_of(url)) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")


def leave_stray(rig: Rig, writer: HandWriter, *indexes: int) -> None:
    for index in indexes:
        leave(rig, writer.names[index], f"{layout.journal_folder(writer.ledger_id)}/{STRAY}")


def with_hidden_entry(rig: Rig) -> HandWriter:
    """Entries 0 to 2 acknowledged; entry 2 is on bookies 0 and 1 only."""
    writer = HandWriter(rig)
    writer.add(0, 1, 2, acknowledges=True)
    writer.add(0, 1, 2, acknowledges=True)
    writer.add(0, 1, acknowledges=True)
    return writer


def expect_doubt(writer: HandWriter, words: str) -> str:
    """Bookie 0 is silent, and what bookie 1 lacks is unknown: nobody may decide."""
    run = one_by_one(lost=[writer.names[0]])
    with pytest.raises(NotEnoughBookiesError, match="in doubt") as caught:
        writer.recover(run=run, accepts_loss=lambda _: True)
    assert f"bookie {writer.names[1]}: " in str(caught.value)
    assert words in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_stray_file_on_one_bookie_stops_nobody_and_is_named(rig: Rig, index: int) -> None:
    writer = with_hidden_entry(rig)
    leave_stray(rig, writer, index)
    told: list[str] = []
    assert writer.recover(tell=told.append).last_entry_id == 2
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)
    assert any(STRAY in line and f"bookie {writer.names[index]}: " in line for line in told)


def test_what_a_bookie_with_a_stray_file_lacks_is_unknown(rig: Rig) -> None:
    writer = HandWriter(rig)
    writer.add(0, 1, 2, acknowledges=True)
    leave_stray(rig, writer, 1)
    assert "move it elsewhere" in expect_doubt(writer, STRAY)
    assert writer.recover().last_entry_id == 0


def test_strange_things_on_all_bookies_are_waited_for_and_no_loss_is_offered(
    memory_rig: Rig,
) -> None:
    writer = with_hidden_entry(memory_rig)
    leave_stray(memory_rig, writer, 0, 1, 2)
    with pytest.raises(NotEnoughBookiesError, match="in doubt") as caught:
        writer.recover(accepts_loss=lambda _: True)
    names = ", ".join(writer.names)
    assert f"repair the journals on {names}, then recover again" in str(caught.value)


@pytest.mark.parametrize(
    ("storage", "kind"), [("memory", "folder"), ("file", "folder"), ("file", "link")]
)
def test_what_stands_in_the_place_of_a_journal_is_no_empty_one(
    make_rig: Callable[..., Rig], storage: str, kind: str
) -> None:
    rig = make_rig(kind=storage)
    writer = with_hidden_entry(rig)
    rig.replace_file(writer.names[1], journal_of(writer), None)
    if kind == "folder":
        leave(rig, writer.names[1], f"{journal_of(writer)}/x")
    else:
        (Path(posix_place.path_of(rig.urls[writer.names[1]])) / journal_of(writer)).symlink_to("no")
    assert "where a journal should be" in expect_doubt(writer, journal_of(writer)[-20:])
    assert writer.recover().last_entry_id == 2
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)


def test_a_journal_that_is_gone_when_it_is_read_is_no_empty_one(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = with_hidden_entry(memory_rig)
    disk = memory.find_disk(memory_rig.urls[writer.names[1]])
    assert disk is not None
    real_list = MemoryRoot.list

    def then_gone(self: MemoryRoot, folder: str) -> list[str]:
        found = real_list(self, folder)
        disk.files.pop(journal_of(writer), None)
        return found

    monkeypatch.setattr(MemoryRoot, "list", then_gone)
    expect_doubt(writer, "was listed and is gone")


@pytest.mark.parametrize("look", [journal_size, lambda *of: read_journal(*of, 0, 10)])
def test_a_journal_that_is_gone_has_neither_length_nor_bytes(
    memory_rig: Rig, look: Callable[[BookieRoot, str], object]
) -> None:
    writer = with_hidden_entry(memory_rig)
    gone_from = writer.names[2]
    memory_rig.replace_file(gone_from, journal_of(writer), None)
    [address] = [
        known for known in writer.cluster.addresses().values() if known.bookie_id == gone_from
    ]
    with (
        open_bookie(address).open_root() as root,
        pytest.raises(CorruptDataError, match="was listed and is gone"),
    ):
        look(root, journal_of(writer))


def test_a_bookie_whose_journal_is_gone_for_good_is_declared_lost(memory_rig: Rig) -> None:
    """Its disk is taken away for that; then, and only then, the operator's word closes the ledger.

    What comes back later is as strange as it was, and waited for no more.
    """
    writer = with_hidden_entry(memory_rig)
    memory_rig.replace_file(writer.names[1], journal_of(writer), None)
    leave(memory_rig, writer.names[1], f"{journal_of(writer)}/x")
    disks = [memory_rig.lose(writer.names[index]) for index in (0, 1)]
    for index in (0, 1):
        declare_lost(writer.cluster, writer.names[index])
    memory_rig.bring_back(writer.names[1], disks[1])
    report = writer.recover(accepts_loss=lambda _: True)
    assert (report.last_entry_id, report.lost_from) == (1, 2)


def test_a_bookie_with_something_strange_may_have_the_record_of_the_confirmed_entry(
    memory_rig: Rig,
) -> None:
    """Not the one that shows that record itself: nothing is newer, whatever else it has."""
    writer = with_hidden_entry(memory_rig)
    leave_stray(memory_rig, writer, 1, 2)
    ledger = writer.cluster.ledger(writer.ledger_id).value
    ensemble = ledger.last_fragment.ensemble
    known = writer.cluster.addresses()
    search, asked = RecordSearch.of(ledger.fragments, 2, tuple(known), frozenset())
    how = (ledger.settings.digest, Password(), 2, ledger.fragments)
    look_ups = [fencing.FindRecord(writer.ledger_id, known[to.member], *how) for to in asked]
    for to, result in zip(asked, one_by_one(lost=[writer.names[0]])(look_ups), strict=True):
        search, more = search.receive(Answer(to, result))
        assert not more
    assert search.is_over
    assert search.newest is not None
    assert [member.bookie_id for member, _ in search.problems] == [
        *(writer.names[0], writer.names[2])
    ]
    assert STRAY in dict(search.problems)[ensemble[2]]


def test_readers_go_on_with_the_other_bookies_and_say_what_they_stepped_over(rig: Rig) -> None:
    writer = with_hidden_entry(rig)
    writer.confirm(0, 1)
    leave_stray(rig, writer, 2)
    with BookKeeper(rig.uri) as keeper:
        reader = keeper.open_ledger(writer.ledger_id, recovery=False)
        assert reader.last_add_confirmed == 2
        assert [entry.value for entry in reader.read()] == list(writer.sent.values())
    with OpenBookies(writer.cluster) as bookies:
        found = readable(bookies, writer.cluster, writer.ledger_id, Password())
    assert found.last_entry_id == 2
    assert all(STRAY in reason for reason in reader.faults.values())


def test_how_far_an_open_ledger_may_be_read_needs_a_bookie_without_strange_things(
    rig: Rig,
) -> None:
    writer = with_hidden_entry(rig)
    leave_stray(rig, writer, 0, 1, 2)
    with (
        OpenBookies(writer.cluster) as bookies,
        pytest.raises(BookieUnavailableError, match=STRAY),
    ):
        readable(bookies, writer.cluster, writer.ledger_id, Password())


def test_what_is_missing_beside_something_strange_is_reported_with_its_name(
    memory_rig: Rig,
) -> None:
    writer = with_hidden_entry(memory_rig)
    writer.recover()
    ledger = memory_rig.ledger(writer.ledger_id)
    assert not gaps_of(writer.cluster, [ledger.ledger_id])
    for index in (0, 1, 2):
        for name in memory_rig.names(writer.names[index]):
            if "/journal/" in name:
                memory_rig.replace_file(writer.names[index], name, None)
        leave_stray(memory_rig, writer, index)
    missing = gaps_of(writer.cluster, [ledger.ledger_id])
    assert {found.member.bookie_id for found in missing} == set(writer.names)
    assert all(STRAY in found.reason for found in missing)
    with OpenBookies(writer.cluster) as bookies, pytest.raises(CorruptDataError, match=STRAY):
        find_records(bookies, ledger, Password())
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(writer.ledger_id)
        with pytest.raises(CorruptDataError, match=STRAY):
            list(reader.read())
