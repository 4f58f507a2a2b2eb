"""Bookies lose files and folders, cookies intact, within what the promise allows."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from bkspark.bookie.memory import MemoryFile
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.format import journal
from bkspark.format.digest import Digester
from bkspark.format.layout import COOKIE
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.metadata import memory as metadata_memory
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerState
from tests.integration.waiting import wait_for_all_copies
from tests.simulation.disks import URI, Disks
from tests.simulation.faults import PARTIAL, Chance, Kind
from tests.simulation.known import labelled
from tests.simulation.many import jobs_for, run_many
from tests.simulation.oracle import Oracle
from tests.simulation.schedule import run_schedule
from tests.simulation.story import told

from ..thorough import always  # noqa: TID252
from . import mutants

SILENT = WriterSettings(explicit_lac_ms=0)  # each frame of a journal is an entry
DIGESTER = Digester(DigestSpec(), None)
ENTRIES = 4
BOOKIE = "bookie-1"

BATCHES = [(2_000_000, 30), (2_000_030, 370)]
BATCHES += [(first_seed, 400) for first_seed in range(2_000_400, 2_004_000, 400)]
"""First seeds, and how many."""
SEEDS_MAX = 10_000


class Damaged:
    """A ledger of a few entries on three disks, and the oracle that watched them being written."""

    def __init__(self) -> None:
        self.oracle = Oracle(URI)
        self.disks = Disks(3, self.oracle, Random(0))
        self.clear()
        init_cluster(URI, list(self.disks.urls.values()))
        with BookKeeper(URI) as client:
            with client.create_ledger(
                ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, settings=SILENT
            ) as ledger:
                for number in range(ENTRIES):
                    ledger.append(b"entry %d" % number)
                    wait_for_all_copies(ledger)  # the next record says who had it
            self.oracle.see("-", ledger.ledger_id)
        self.ledger = self.oracle.ledgers[ledger.ledger_id]
        self.ledger.acked = ENTRIES - 1
        self._whole = self.contents

    def again(self) -> Iterator[dict[str, bytes]]:
        """What is on the disk before each of some losses; they all begin with the whole disk."""
        for seed in range(20):
            self.disks = Disks(3, self.oracle, Random(seed))
            files = self.disks.at(BOOKIE).files
            files.clear()
            files.update({name: MemoryFile(data) for name, data in self._whole.items()})
            self.oracle.place(BOOKIE, str(seed), self.disks.at(BOOKIE))
            self.ledger.cut.clear()
            for name in files:
                self.oracle.after(0, "-", BOOKIE, "put_new", name, None)
            yield dict(self._whole)

    def clear(self) -> None:
        self.disks.clear()
        metadata_memory._stores.pop("simulation", None)

    @property
    def contents(self) -> dict[str, bytes]:
        return {name: bytes(file.data) for name, file in self.disks.at(BOOKIE).files.items()}

    def entries_in(self, names: set[str]) -> set[int]:
        """Entries in the one journal that there is, if that is among ``names``."""
        return set(range(ENTRIES)) if any("/journal/" in name for name in names) else set()

    @property
    def lost(self) -> set[int]:
        """Entries whose copy on the bookie the oracle knows to be gone."""
        cut = (copy for copy, bookie_id, _ in self.ledger.cut if bookie_id == BOOKIE)
        return {labelled(copy[1])[0] for copy in cut}


@pytest.fixture(scope="module")
def damaged() -> Iterator[Damaged]:
    found = Damaged()
    yield found
    found.clear()


def test_a_file_is_lost_and_never_the_cookie(damaged: Damaged) -> None:
    for before in damaged.again():
        assert damaged.disks.lose_file(BOOKIE)
        gone = set(before) - set(damaged.contents)
        assert len(gone) == 1
        assert COOKIE not in gone
        assert damaged.lost == damaged.entries_in(gone)


def test_a_folder_is_lost_with_all_in_it_and_never_the_cookie(damaged: Damaged) -> None:
    for before in damaged.again():
        assert damaged.disks.lose_folder(BOOKIE)
        left = set(damaged.contents)
        gone = set(before) - left
        folders = {name.rpartition("/")[0] for name in gone}
        assert gone
        assert COOKIE in left
        assert not [name for name in left if name.rpartition("/")[0] in folders]
        assert damaged.lost == damaged.entries_in(gone)


def test_a_file_keeps_any_start_of_it(damaged: Damaged) -> None:
    ledger_id = damaged.ledger.metadata.ledger_id
    for before in damaged.again():
        assert damaged.disks.shorten(BOOKIE)
        (name,) = (name for name, data in damaged.contents.items() if data != before[name])
        left = damaged.contents[name]
        assert before[name].startswith(left)
        content = journal.decode_journal(left, DIGESTER, ledger_id=ledger_id)
        if "/journal/" in name:
            assert damaged.lost == set(range(len(content.records), ENTRIES))


def test_a_disk_goes_back_to_what_it_held(damaged: Damaged) -> None:
    for before in damaged.again():
        assert not damaged.disks.go_back(BOOKIE), "it held nothing else yet"
        name = next(name for name in before if "/journal/" in name)
        second = journal.frame_begins(before[name], 0)[2]
        files = damaged.disks.at(BOOKIE).files
        whole = bytes(files[name].data)
        del files[name].data[second:]
        damaged.disks.remember(BOOKIE)
        files[name].data[:] = whole
        assert damaged.disks.go_back(BOOKIE)
        assert damaged.contents[name] == whole[:second]
        assert damaged.lost == set(range(1, ENTRIES))


@pytest.mark.parametrize(
    ("records_left", "is_done"),
    [(1, False), (2, True), (ENTRIES, True)],
    ids=["says nothing", "says that it had the first", "has all"],
)
def test_what_cannot_be_known_is_not_lost(
    records_left: int, is_done: bool, damaged: Damaged
) -> None:
    """A bookie with a header alone, a second one of which others wait, and one that lags."""
    (before, *_) = damaged.again()
    name = next(name for name in before if "/journal/" in name)
    ledger, members = damaged.ledger, damaged.ledger.metadata.last_fragment.ensemble
    others = [member.bookie_id for member in members if member.bookie_id != BOOKIE]
    lagging = damaged.disks.at(others[1]).files[name]
    whole, closed = bytes(lagging.data), ledger.metadata
    counts = {BOOKIE: ENTRIES, others[0]: ENTRIES, others[1]: records_left}
    ledger.metadata = replace(closed, state=LedgerState.OPEN, last_entry_id=None, length_bytes=None)
    ledger.checked = {(f"{n}/1", one): n for one, count in counts.items() for n in range(count)}
    incarnations = {member.bookie_id: member.incarnation for member in members}
    ledger.copies |= {(("record", name), one, incarnations[one]) for name, one in ledger.checked}
    for member in members:
        disk = damaged.disks.at(member.bookie_id)
        damaged.oracle.place(member.bookie_id, member.incarnation, disk)
    try:
        ends = [*journal.frame_begins(whole, 0), len(whole)]
        del lagging.data[ends[1 + records_left] :]
        assert damaged.disks.cut_to(BOOKIE, {name: ends[1]}) is is_done
        assert (len(damaged.contents[name]) == ends[1]) is is_done
        silent = damaged.oracle.who_must_be_silent()
        assert silent == (frozenset(others[:1]) if records_left == 2 else None)
        without_header = ends[1] - 1
        assert damaged.disks.cut_to(BOOKIE, {name: without_header}), "it shows that it is gone"
    finally:
        ledger.metadata, lagging.data[:] = closed, whole
        ledger.checked.clear()


def test_what_is_written_behind_a_loss_is_a_good_copy(damaged: Damaged) -> None:
    for before in damaged.again():
        files = damaged.disks.at(BOOKIE).files
        name = next(name for name in before if "/journal/" in name)
        while name in files:
            assert damaged.disks.lose_file(BOOKIE)
        files[name] = MemoryFile(before[name])
        damaged.oracle.after(1, "-", BOOKIE, "append", name, None)
        assert damaged.lost == set()


def test_no_other_bookie_is_hit_when_as_many_were_as_the_promise_allows() -> None:
    chance = Chance(Random(0), losses_left=1, loses_files=True)
    assert chance.may_hit("bookie-1")
    chance.note_hit("bookie-1")
    chance.note_hit("bookie-1")
    assert chance.losses_left == 0
    assert [chance.may_hit(one) for one in ("bookie-1", "bookie-2")] == [True, False]


@pytest.mark.parametrize("loses_files", [False, True])
def test_files_are_lost_only_where_that_is_asked_for(loses_files: bool) -> None:
    drawn = set[Kind]()
    for seed in range(100):
        chance = Chance(Random(seed), losses_left=1, loses_files=loses_files)
        drawn |= {kind for _ in range(100) if (kind := chance.draw("append"))}
    assert drawn & PARTIAL == (PARTIAL if loses_files else set())


def test_a_schedule_that_may_lose_files_is_another_one() -> None:
    losing = run_schedule(3, loses_files=True)
    assert losing.digest != run_schedule(3).digest
    assert losing.digest == run_schedule(3, loses_files=True).digest


def test_files_are_not_lost_without_end() -> None:
    chance = Chance(Random(0), losses_left=1, loses_files=True)
    chance.note_hit("bookie-1")
    chance.counts[Kind.FILE_LOST] = 4
    assert not {chance.draw("append") for _ in range(3_000)} & PARTIAL


losing = partial(run_schedule, loses_files=True)


@pytest.mark.parametrize(
    ("first_seed", "count"),
    always(BATCHES[:1], BATCHES, are_rows=True, soaks=BATCHES[4:]),
)
def test_no_schedule_with_losses_breaks_a_promise(
    first_seed: int, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.perf_counter()
    total = run_many(first_seed, count=count, jobs=jobs_for(count), run=losing)
    with capsys.disabled():
        print(f"\n{total.shown(time.perf_counter() - began)}")
    assert total.failed is None, told(total.failed)
    assert total.schedules == count
    assert total.acks
    assert all(total.faults[kind] for kind in PARTIAL)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(108_725, id="the end of a journal that is damaged in its middle"),
        pytest.param(305_450, id="all behind the header"),
    ],
)
def test_what_was_once_lost_beyond_the_promise(seed: int) -> None:
    """Nobody else knew of it, so nobody could: such losses are not asked for."""
    assert not losing(seed).violation


@pytest.mark.parametrize("name", always(list(mutants.UNSHOWN)[:1], list(mutants.UNSHOWN)))
def test_a_loss_that_does_not_show_is_noticed(name: str) -> None:
    with mutants.changed(*mutants.UNSHOWN[name]):
        found = (seed for seed in range(SEEDS_MAX) if losing(seed).violation)
        assert next(found, None) is not None
