"""What handles do is counted in their process, under the names of BookKeeper's client."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import bkspark
from bkspark import environment
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.client_metrics import BOUNDS, ClientCounts
from bkspark.errors import NotEnoughBookiesError
from bkspark.ledger.handles.settings import ReaderSettings
from bkspark.log.batch.commit import commit
from tests.integration.faults.test_hanging_bookies import Gates, names_of
from tests.integration.rig import Rig, partitions_of
from tests.integration.waiting import wait_for_all_copies, wait_until

Look = Callable[[], dict[str, float]]
COUNT = 200
"""More than there are records on their way at a time."""

UNCOUNTED = """
import sys
from bkspark.bookkeeper import BookKeeper
with BookKeeper(sys.argv[1]) as keeper:
    with keeper.create_ledger() as handle:
        handle.append(b"0")
assert "prometheus_client" not in sys.modules
import bkspark, prometheus_client
bkspark.register_metrics()
bkspark.register_metrics()
print(prometheus_client.REGISTRY.get_sample_value("bookkeeper_client_ADD_ENTRY_count"))
"""


def scraped(registry: CollectorRegistry) -> dict[str, float]:
    """What Prometheus takes: by name, and with the class behind it in a histogram."""
    text = generate_latest(registry).decode()
    return {
        sample.name + sample.labels.get("le", ""): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("bookkeeper_client_")
    }


@pytest.fixture
def look() -> Look:
    """``look()``: by how much everything has grown since the last look."""
    registry = CollectorRegistry()
    bkspark.register_metrics(registry)
    last = scraped(registry)

    def grown() -> dict[str, float]:
        nonlocal last
        before, last = last, scraped(registry)
        return {name.removeprefix("bookkeeper_client_"): last[name] - before[name] for name in last}

    return grown


@pytest.fixture
def gates(memory_rig: Rig) -> Iterator[Gates]:
    gates = Gates(memory_rig.faults)
    yield gates
    gates.open()


def test_entries_are_counted_by_how_long_they_took(
    memory_rig: Rig, memory_keeper: BookKeeper, look: Look
) -> None:
    with memory_keeper.create_ledger() as handle:
        look()
        for number in range(5):
            handle.append(b"%d" % number)
        handle.append_many([b"a", b"b", b"c"])
    found = look()
    assert (found["ADD_ENTRY_count"], found["ADD_ENTRY_bucket+Inf"]) == (8, 8)
    assert 0 < found["ADD_ENTRY_sum"] < 8 * 30
    classes = [found[f"ADD_ENTRY_bucket{bound}"] for bound in BOUNDS]
    assert classes == sorted(classes)
    assert found["NUM_PENDING_ADD"] == found["NUM_ENSEMBLE_CHANGE_total"] == 0


def test_rows_of_a_write_are_counted_when_they_are_committed(memory_rig: Rig, look: Look) -> None:
    target = memory_rig.target()
    reports = memory_rig.tasks(target, partitions_of(3, 4))
    counts, pending = environment.the_one(ClientCounts), list[int]()
    look()
    before = counts.pending_entries
    memory_rig.faults.decide = lambda *_: pending.append(counts.pending_entries - before)
    with memory_rig.faults.installed():
        commit(target, reports)
    found = look()
    assert {0, 7} == set(pending)
    assert (found["ADD_ENTRY_count"], found["NUM_PENDING_ADD"]) == (7, 0)
    assert 0 < found["ADD_ENTRY_sum"] < 7 * 30


def test_rows_of_a_write_that_failed_wait_for_nothing(memory_rig: Rig, look: Look) -> None:
    target = memory_rig.target()
    reports = memory_rig.tasks(target, partitions_of(3))
    look()
    memory_rig.faults.down = set(memory_rig.urls)
    with memory_rig.faults.installed(), pytest.raises(NotEnoughBookiesError) as raised:
        commit(target, reports)
    assert raised.value.__traceback__ is not None  # which holds on to who has written
    found = look()
    assert (found["ADD_ENTRY_count"], found["NUM_PENDING_ADD"]) == (0, 0)


def test_classes_hold_what_took_no_longer() -> None:
    counts = ClientCounts()
    counts.added([(2, BOUNDS[0]), (1, BOUNDS[0] + 1e-9), (4, 1e9)])
    assert counts.latencies == [2, 1, *[0] * (len(BOUNDS) - 2), 4]
    assert counts.seconds == pytest.approx(4e9)


def test_what_waits_for_its_acknowledgement_is_counted_and_then_no_more(
    memory_rig: Rig, memory_keeper: BookKeeper, gates: Gates, look: Look
) -> None:
    with memory_keeper.create_ledger() as handle:
        look()
        gates.closed = {(name, "append") for name in memory_rig.urls}
        futures = [handle.append_async(b"0") for _ in range(COUNT)]
        assert look()["NUM_PENDING_ADD"] == COUNT
        gates.open()
        assert [future.result() for future in futures] == list(range(COUNT))
        found = look()
    assert (found["NUM_PENDING_ADD"], found["ADD_ENTRY_count"]) == (-COUNT, COUNT)


def test_a_bookie_that_takes_the_place_of_another_is_counted(
    memory_rig: Rig, memory_keeper: BookKeeper, look: Look
) -> None:
    with memory_keeper.create_ledger() as handle:
        handle.append(b"0")
        wait_for_all_copies(handle)
        gone = names_of(handle)[0]
        memory_rig.faults.down = {gone}
        look()
        handle.append(b"1")
        wait_until(lambda: gone not in names_of(handle))
    assert look()["NUM_ENSEMBLE_CHANGE_total"] == 1


def test_a_speculative_read_is_counted_and_others_are_not(
    memory_rig: Rig, memory_keeper: BookKeeper, gates: Gates, look: Look
) -> None:
    with memory_keeper.create_ledger() as handle:
        handle.append(b"0")
        wait_for_all_copies(handle)
    look()
    for settings in (ReaderSettings(), ReaderSettings(speculative_read_ms=300_000)):
        opened = memory_keeper.open_ledger(handle.ledger_id, settings=settings)
        assert [entry.value for entry in opened.read()] == [b"0"]
    assert look()["SPECULATIVE_READ_COUNT_total"] == 0
    eager = ReaderSettings(speculative_read_ms=20)
    reader = memory_keeper.open_ledger(handle.ledger_id, settings=eager)
    gates.closed = {(name, "open_root") for name in names_of(handle)[:2]}
    assert [entry.value for entry in reader.read()] == [b"0"]
    assert look()["SPECULATIVE_READ_COUNT_total"] >= 1


def test_they_are_in_the_default_registry_of_who_has_one(memory_keeper: BookKeeper) -> None:
    assert REGISTRY.get_sample_value("bookkeeper_client_NUM_PENDING_ADD") is not None
    assert environment.the_one(ClientCounts) is environment.the_one(ClientCounts)


def test_who_does_not_ask_imports_nothing_for_it_and_may_ask_later(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="file", bookie_count=3)
    done = subprocess.run(
        [sys.executable, "-c", UNCOUNTED, rig.uri], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("1.0\n", "")
