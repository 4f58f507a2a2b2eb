"""Bookies lose what is not durable: what everybody saw there, and nobody has synced."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from bkspark.bookie.memory import MemoryBookie, MemoryRoot
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.ledger import copying
from bkspark.ledger.entry_log_reader import EntryLogFile
from bkspark.ledger.journals.journal_reader import find_journals
from bkspark.ledger.recovery.recoverer import WriteCopies
from bkspark.metadata import memory as metadata_memory
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import EntryLog
from tests.simulation import schedule
from tests.simulation.disks import URI, Disks
from tests.simulation.faults import POWER, Chance, Kind
from tests.simulation.known import Ledger
from tests.simulation.oracle import Oracle
from tests.simulation.schedule import run_schedule

BOOKIE = "bookie-1"
MARKER = layout.term_marker(7, 1)
JOURNAL = layout.journal(7, 1, "a" * 32)
LEDGER = LedgerMetadata(
    7,
    Quorum(1, 1, 1),
    LedgerState.OPEN,
    term=1,
    token="b" * 32,
    fragments=(Fragment(0, 1, (Member(BOOKIE, "c" * 32),)),),
)
SCHEDULES_MAX = 3_000
"""Within so many schedules of batches a missing sync must be noticed."""


@pytest.fixture
def disks() -> Iterator[Disks]:
    made = Disks(1, Oracle(URI), Random(0))
    init_cluster(URI, list(made.urls.values()))
    with Cluster(URI) as cluster:
        for record in cluster.bookies().values():
            made._oracle.place(BOOKIE, record.incarnation, made.at(BOOKIE))
    yield made
    made.clear()
    metadata_memory._stores.pop("simulation", None)


@pytest.fixture
def root(disks: Disks) -> Iterator[MemoryRoot]:
    with Cluster(URI) as cluster:
        (address,) = cluster.addresses().values()
    with MemoryBookie(address).open_root() as opened:
        yield opened


def test_what_nobody_synced_is_seen_until_the_power_is_cut(disks: Disks, root: MemoryRoot) -> None:
    journal = root.open_journal(JOURNAL)
    journal.append([b"durable"])
    disks.leave_unsynced(BOOKIE, JOURNAL, lambda: journal.append([b" or not"]))
    disks.leave_unsynced(BOOKIE, MARKER, lambda: root.put_new(MARKER, b""))
    assert root.read(JOURNAL) == b"durable or not"
    assert root.size(MARKER) == 0
    assert disks.lose_power(BOOKIE)
    assert root.read(JOURNAL) == b"durable"
    assert root.size(MARKER) is None
    assert not disks.lose_power(BOOKIE)


@pytest.mark.parametrize("sync", [lambda root: root.sync(MARKER), lambda root: put(root)])
def test_what_is_found_in_place_is_made_durable(
    disks: Disks, root: MemoryRoot, sync: Callable[[MemoryRoot], bool]
) -> None:
    disks.leave_unsynced(BOOKIE, MARKER, lambda: put(root))
    sync(root)
    assert not disks.lose_power(BOOKIE)
    assert root.size(MARKER) == 0


def put(root: MemoryRoot) -> bool:
    return root.put_new(MARKER, b"")


def test_what_fails_anew_is_no_more_durable_than_before(disks: Disks, root: MemoryRoot) -> None:
    for _ in range(2):
        disks.leave_unsynced(BOOKIE, MARKER, lambda: put(root))
    assert disks.lose_power(BOOKIE)
    assert root.size(MARKER) is None


def test_a_copy_counts_once_it_is_durable(disks: Disks, root: MemoryRoot) -> None:
    oracle, name = disks._oracle, layout.entry_log(7, "a" * 32, 0)
    ledger = oracle.ledgers[7] = Ledger(LEDGER)
    file = root.create(name)
    disks.leave_unsynced(BOOKIE, name, file.finish)
    oracle.after(0, "-", BOOKIE, "finish", name, None)
    assert not ledger.copies
    root.sync(name)
    oracle.after(1, "-", BOOKIE, "sync", name, True)
    assert [copy for copy, *_ in ledger.copies] == [("log", "a" * 32, "0")]


def test_power_is_cut_only_where_that_is_asked_for() -> None:
    for loses_power in (False, True):
        drawn = set[Kind]()
        for seed in range(100):
            chance = Chance(Random(seed), losses_left=1, loses_power=loses_power)
            drawn |= {kind for _ in range(100) if (kind := chance.draw("append"))}
        assert drawn & POWER == (POWER if loses_power else set())


def test_no_power_cut_breaks_a_promise() -> None:
    outcomes = [run_schedule(seed, loses_power=True) for seed in range(100)]
    assert [outcome.violation for outcome in outcomes if outcome.violation] == []
    counts = sum((outcome.faults for outcome in outcomes), start=type(outcomes[0].faults)())
    assert all(counts[kind] for kind in POWER)


def require_good_alone(
    into: BookieClient, log: EntryLog, digester: Digester, ledger_id: int, beat: Callable[[], None]
) -> None:
    for _piece in EntryLogFile(into.storage(), log, digester, ledger_id=ledger_id).pieces():
        beat()


def there_as_it_is(self: WriteCopies, records: Any, beat: Any) -> bool:
    with open_bookie(self.address).open_root() as root:
        found = find_journals(root, self.address.bookie_id, self.ledger_id, ())
        earlier = filter(self._is_of_earlier_recovery, found.names)
        return any(self._shows(root, name, records, beat) for name in earlier)


@pytest.mark.thorough
def test_copies_of_an_earlier_recovery_that_are_taken_as_they_are_found_are_noticed() -> None:
    """It may have died before they were durable."""
    with patch.object(WriteCopies, "_are_there", there_as_it_is):
        seeds = range(1_100, 1_100 + SCHEDULES_MAX)
        found = (run_schedule(seed, loses_power=True).violation for seed in seeds)
        violation = next(filter(None, found), "")
    assert "(I3)" in violation


@pytest.mark.thorough
def test_a_copy_that_is_taken_as_it_is_found_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its maker may have died before it was durable."""
    monkeypatch.setattr(schedule, "_BATCH_SHARE", 1.0)
    with patch.object(copying, "_require_good", require_good_alone):
        found = (run_schedule(seed, loses_power=True).violation for seed in range(SCHEDULES_MAX))
        violation = next(filter(None, found), "")
    assert "(I3)" in violation
