"""A bookie that lost its journal, its cookie and the rest of the ledger's folder intact.

Every member began the writer's journal before the metadata named it, so one whose journal is gone,
or holds nothing, has lost data of the ledger: also where no record says yet what it had.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bkspark.bookie.memory import MemoryRoot, find_disk
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun, Joining, enlist
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookieUnavailableError, NotEnoughBookiesError, OutcomeUnknownError
from bkspark.format import journal, layout
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.recovery.fencing import FindRecord
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.recovery.steps import RecordShown
from tests.integration.hand_writer import HandWriter, one_by_one, stop_behind
from tests.integration.recovery.test_lost_folders import lose_folder, stuck
from tests.integration.rig import Rig, partitions_of
from tests.integration.waiting import wait_until
from tests.kit.faulty import Fault, Moment, Operation

SILENT = WriterSettings(explicit_lac_ms=0)
LOSSES: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda _data: None,
    "empty": lambda _data: b"",
    "cut in the prefix": lambda data: data[: journal.PREFIX_BYTES - 1],
    "cut in the header": lambda data: data[: (journal.frame_length(data, 0, position=0) or 0) - 1],
    "never written": lambda data: bytes(len(data)),
}


def own_journal(ledger: LedgerMetadata) -> str:
    """Of the writer of the last fragment."""
    fragment = ledger.last_fragment
    return layout.journal(ledger.ledger_id, fragment.term, fragment.token)


def lose(rig: Rig, ledger: LedgerMetadata, bookie_id: str, how: str = "gone") -> None:
    name = own_journal(ledger)
    rig.replace_file(bookie_id, name, LOSSES[how](rig.file_bytes(bookie_id, name)))


def without(rig: Rig, *away: str) -> Callable[[], None]:
    """Bookies that nobody reaches until the result is called."""
    lost = {bookie_id: rig.lose(bookie_id) for bookie_id in away}

    def bring_back() -> None:
        for bookie_id, disk in lost.items():
            rig.bring_back(bookie_id, disk)

    return bring_back


def one_entry(rig: Rig, sizes: tuple[int, int, int]) -> HandWriter:
    """A writer whose one entry was acknowledged by as many bookies as it takes."""
    writer = HandWriter(rig, sizes)
    writer.add(*range(sizes[2]), acknowledges=True)
    assert writer.acked == [0]
    return writer


# --- recoveries ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", LOSSES)
@pytest.mark.parametrize("sizes", [(3, 3, 3), (3, 3, 2)])
def test_a_lost_journal_is_no_absence(sizes: tuple[int, int, int], how: str, rig: Rig) -> None:
    """Nobody has said yet that the bookie had anything."""
    writer = one_entry(rig, sizes)
    lose(rig, writer.metadata, writer.names[0], how)
    away = writer.names[1:2] if sizes[2] == 2 else writer.names[1:]
    for _ in range(2):
        error = stuck(writer, run=one_by_one(lost=away), accepts_loss=lambda _loss: True)
        assert "entry 0 is in doubt" in str(error)
    assert "it lacks the journal that it began before it became a member" in str(error)
    assert rig.ledger(writer.ledger_id).state is LedgerState.IN_RECOVERY
    assert writer.recover().last_entry_id == 0


def test_a_journal_that_was_begun_and_holds_no_entry_proves_that_there_is_none(rig: Rig) -> None:
    writer = HandWriter(rig)
    report = writer.recover(run=one_by_one(lost=writer.names[:1]))
    assert report.last_entry_id == -1


def test_a_journal_that_is_lost_behind_the_fence_is_seen(memory_rig: Rig) -> None:
    """It is looked for behind the last read that counts, not in front of it."""
    writer = one_entry(memory_rig, (3, 3, 2))
    done: list[str] = []

    def lose_first(root: Any, name: str) -> list[str]:
        if not done and name == layout.journal_folder(writer.ledger_id):
            done.append(name)
            lose(memory_rig, writer.metadata, writer.names[0])
        return list(real(root, name))

    real = MemoryRoot.list
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryRoot, "list", lose_first)
        stuck(writer, run=one_by_one(lost=[writer.names[1]]))
    assert done
    assert writer.recover().last_entry_id == 0


def test_copies_that_a_recovery_gives_do_not_make_it_whole(memory_rig: Rig) -> None:
    """It dies behind them, and the next one hears nobody else who had the entry."""
    writer = one_entry(memory_rig, (3, 3, 2))
    lose(memory_rig, writer.metadata, writer.names[0])
    writer.add(2)
    with pytest.raises(OutcomeUnknownError):
        writer.recover(run=one_by_one(before=stop_behind(1)))
    assert own_journal(writer.metadata) not in memory_rig.names(writer.names[0])
    assert any("/journal/" in name for name in memory_rig.names(writer.names[0]))
    error = stuck(writer, run=one_by_one(lost=writer.names[1:2]))
    assert f"{writer.names[0]} has lost data of ledger {writer.ledger_id}: it lacks" in str(error)


def test_a_header_is_no_record_of_what_was_confirmed(memory_rig: Rig) -> None:
    """Else the search for one would end at a bookie that has joined since."""
    writer = HandWriter(memory_rig)
    address = writer._address(0)
    ledger = writer.metadata
    look = FindRecord(
        writer.ledger_id, address, ledger.settings.digest, Password(), 5, ledger.fragments
    )
    assert look.run() == RecordShown(None)
    writer.add(0)
    found = look.run()
    assert isinstance(found, RecordShown)
    assert found.record is not None
    assert found.record.last_entry_id == 0


def test_members_that_joined_have_a_header_and_no_more(memory_rig: Rig) -> None:
    """Those who had the record have left; it says how long the ledger is."""
    writer = HandWriter(memory_rig, (2, 2, 2))
    spares = [name for name in memory_rig.urls if name not in writer.names]
    writer.add(0, 1, acknowledges=True)
    writer.replace(0, spares[0])
    writer.replace(1, spares[1])
    assert len(writer.metadata.fragments) == 2
    assert writer.recover().last_entry_id == 0
    assert memory_rig.ledger(writer.ledger_id).length_bytes == len("entry 0")


# --- readers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", LOSSES)
def test_a_reader_takes_no_bookie_without_its_journal_for_whole(how: str, rig: Rig) -> None:
    """2/2/2: the one bookie that says how far entries are confirmed loses its journal."""
    writer = HandWriter(rig, (2, 2, 2))
    writer.add(0, 1, acknowledges=True)
    writer.confirm(0)
    with BookKeeper(rig.uri) as keeper:
        assert keeper.open_ledger(writer.ledger_id, recovery=False).last_add_confirmed == 0
        lose(rig, writer.metadata, writer.names[0], how)
        with pytest.raises(BookieUnavailableError, match="lacks the journal that it began"):
            keeper.open_ledger(writer.ledger_id, recovery=False)


def test_a_reader_of_a_new_ledger_is_shown_that_it_is_empty(rig: Rig) -> None:
    writer = HandWriter(rig)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.open_ledger(writer.ledger_id, recovery=False)
        assert (handle.last_add_confirmed, list(handle.read())) == (-1, [])


# --- who begins which journal --------------------------------------------------------------------


def headed(rig: Rig, ledger: LedgerMetadata) -> set[str]:
    """Members on which the writer's journal begins with a header, every byte checked."""
    found = set()
    for member in ledger.last_fragment.ensemble:
        if own_journal(ledger) in rig.names(member.bookie_id):
            data = rig.file_bytes(member.bookie_id, own_journal(ledger))
            digester = make_digester(ledger.settings.digest, Password(literal="secret"))
            content = journal.decode_journal(data, digester, ledger_id=ledger.ledger_id)
            if content.frames and content.frames[0].record.is_header:
                found.add(member.bookie_id)
    return found


def members_of(ledger: LedgerMetadata) -> set[str]:
    return {member.bookie_id for member in ledger.last_fragment.ensemble}


@pytest.mark.parametrize("digest", [{}, {"digest_type": "MAC", "password": "secret"}])
def test_every_member_of_a_new_ledger_has_begun_its_journal(
    digest: dict[str, Any], rig: Rig
) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(settings=SILENT, **digest)
        ledger = rig.ledger(handle.ledger_id)
        assert ledger.last_fragment.has_headers
        assert headed(rig, ledger) == members_of(ledger)
        handle.append(b"a")
        assert headed(rig, ledger) == members_of(ledger)
        handle.close()


def test_journals_are_durable_before_the_metadata_names_their_bookies(memory_rig: Rig) -> None:
    """Whatever a power cut takes in the moment of the compare-and-set, they are there."""
    left: list[dict[str, int]] = []

    def cut_power(_number: int, operation: Operation) -> Fault | None:
        if operation.call == "put" and "ledgers/" in operation.name:
            for url in memory_rig.urls.values():
                disk = find_disk(url)
                assert disk is not None
                disk.lose_power()
                left.append({n: len(f.data) for n, f in disk.files.items() if "/journal/" in n})
        return None

    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        memory_rig.faults.decide = cut_power
        handle = keeper.create_ledger(settings=SILENT)
        memory_rig.faults.forget()
        ledger = memory_rig.ledger(handle.ledger_id)
        handle.release()
    with_journal = [found for found in left if found.get(own_journal(ledger), 0) > 0]
    assert len(with_journal) == 3


@pytest.mark.parametrize("call", ["put_new", "open_journal"])
def test_who_did_not_surely_begin_is_not_named(call: str, memory_rig: Rig) -> None:
    """It may have begun the journal late: as a bookie of a writer that nobody knows."""
    late: list[Operation] = []

    def decide(_number: int, operation: Operation) -> Fault | None:
        if operation.call != call or late:
            return None
        late.append(operation)
        return Fault(Moment.AFTER)

    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        memory_rig.faults.decide = decide
        with keeper.create_ledger() as handle:
            memory_rig.faults.forget()
            ledger = memory_rig.ledger(handle.ledger_id)
            handle.append(b"a")
    (refused,) = late
    assert refused.place not in members_of(ledger)
    assert ledger.token not in refused.name
    assert headed(memory_rig, ledger) == members_of(ledger)


def test_a_bookie_that_did_not_surely_begin_is_not_asked_again(memory_rig: Rig) -> None:
    """A sink's writer that changes its ensemble: what it sent may still come."""
    asked: list[str] = []

    def decide(_number: int, operation: Operation) -> Fault | None:
        if (operation.place, operation.call) != (spare.bookie_id, "open_journal"):
            return Fault() if operation.place == first.bookie_id else None
        asked.append(operation.name)
        return Fault(Moment.AFTER)

    target = memory_rig.target((3, 3, 2))
    first, spare = target.ensemble[0], target.spares[0]
    with memory_rig.faults.installed(), Cluster(memory_rig.uri) as cluster:
        seen, begun = with_headers(cluster, target)
        memory_rig.faults.decide = decide
        place = {"term": target.term, "token": target.token, "begun": begun}
        with RecordWriter(cluster, seen, target.digester(), target.ensemble, **place) as writer:
            for number in (0, 4):
                reports = memory_rig.tasks(target, partitions_of(4, first=number))
                writer.write(reports, spares=target.spares[:1], transaction=None)
        memory_rig.faults.forget()
    assert asked == [layout.journal(target.ledger_id, 1, target.token)]
    assert writer.last_add_confirmed == 7


def with_headers(cluster: Cluster, target: Any) -> tuple[Any, Begun]:
    """The target's ledger as if its writer had made it, and the journals that were begun."""
    key = str(target.ledger_id)
    seen = cluster.ledgers.update(key, lambda ledger: ledger and flagged(ledger))
    joining = Joining.last_writer(seen.value, target.digester())
    return seen, enlist(dict(enumerate(target.ensemble)), joining)


def flagged(ledger: LedgerMetadata, *, has_headers: bool = True) -> LedgerMetadata:
    fragment = replace(ledger.last_fragment, has_headers=has_headers)
    return replace(ledger, fragments=(*ledger.fragments[:-1], fragment))


def test_a_handle_never_makes_a_journal_anew(memory_rig: Rig) -> None:
    with BookKeeper(memory_rig.uri) as keeper:
        handle = keeper.create_ledger(settings=SILENT)
        ledger = memory_rig.ledger(handle.ledger_id)
        gone = ledger.last_fragment.ensemble[0].bookie_id
        lose(memory_rig, ledger, gone)
        assert handle.append(b"a") == 0
        assert own_journal(ledger) not in memory_rig.names(gone)
        wait_until(lambda: gone not in members_of(memory_rig.ledger(handle.ledger_id)))
        handle.close()


def test_a_journal_is_handed_over_once(memory_rig: Rig) -> None:
    """Who makes a second writer of it has none, and makes none."""
    target = memory_rig.target((3, 3, 2))
    reports = memory_rig.tasks(target, partitions_of(4))
    with Cluster(memory_rig.uri) as cluster:
        seen, begun = with_headers(cluster, target)
        place = {"term": target.term, "token": target.token, "begun": begun}
        first = RecordWriter(cluster, seen, target.digester(), target.ensemble, **place)
        first.write(reports, spares=(), transaction=None)
        with (
            RecordWriter(cluster, seen, target.digester(), target.ensemble, **place) as second,
            pytest.raises(NotEnoughBookiesError, match="has no journal of this writer"),
        ):
            second.write(reports, spares=(), transaction=None)
        first.close()


def test_a_sink_never_makes_a_journal_that_was_begun(memory_rig: Rig) -> None:
    """Nobody has handed it over, and the bookies have lost it."""
    target = memory_rig.target((3, 3, 2))
    reports = memory_rig.tasks(target, partitions_of(4))
    with Cluster(memory_rig.uri) as cluster:
        seen, begun = with_headers(cluster, target)
        begun.close()
        for bookie_id in members_of(seen.value):
            lose(memory_rig, seen.value, bookie_id)
        place = {"term": target.term, "token": target.token}
        with (
            RecordWriter(cluster, seen, target.digester(), target.ensemble, **place) as writer,
            pytest.raises(NotEnoughBookiesError, match="has no journal of this writer"),
        ):
            writer.write(reports, spares=(), transaction=None)


def test_a_folder_without_journals_is_seen_by_its_journal(memory_rig: Rig) -> None:
    """What a tool that removes folders takes first."""
    writer = one_entry(memory_rig, (3, 3, 2))
    lose_folder(memory_rig, writer, 0, "journal/")
    assert writer.permission in memory_rig.names(writer.names[0])
    stuck(writer, run=one_by_one(lost=writer.names[1:2]))
