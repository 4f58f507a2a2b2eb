"""Logs of many ledgers: most of their places are on pages, and nobody who uses a log notices.

Pages have room for two ledgers here, and a record for four.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bkspark import environment
from bkspark.admin import views
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.log_records import REMEMBERED_MAX, PageMemory
from bkspark.errors import (
    CorruptDataError,
    InvalidRequestError,
)
from bkspark.format import layout, log_page, strict_json
from bkspark.ledger.deleting import delete_ledger, delete_log
from bkspark.log import truncation
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.log.ledger_list import LogPage, PageContents
from tests.integration.log_scenes import NAME, fill, values
from tests.integration.rig import Rig, flat, partitions_of
from tests.kit.faulty import Fault, Operation
from tests.small_pages import forget_pages, pages_of
from tests.thorough import always

COUNTS = (2, 1, 3, 1, 1, 2, 2, 1, 1, 3, 1, 2)
"""Entries of the ledgers of a log with pages of pages."""


@pytest.fixture(autouse=True)
def small_pages() -> Iterator[None]:
    with pages_of(2):
        yield


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def log(keeper: BookKeeper) -> LogHandle:
    made = keeper.create_log(NAME)
    assert len(fill(made, *COUNTS)) == sum(COUNTS)
    heights = [page.height for page in made.record.older if isinstance(page, LogPage)]
    assert heights == sorted(heights, reverse=True)
    forget_pages()
    return made


def entries_from(first: int) -> list[bytes]:
    return [f"entry {n}".encode() for n in range(first, sum(COUNTS))]


# --- using a log -----------------------------------------------------------------------------


def test_a_log_is_read_from_everywhere_to_everywhere(log: LogHandle) -> None:
    end = sum(COUNTS)
    assert values(log) == entries_from(0)
    for first in range(end):
        assert values(log, first) == entries_from(first)
        assert values(log, first, first + 1) == entries_from(first)[:1]
    assert [ledger.entry_count for ledger in log.ledgers] == list(COUNTS)


def test_history_shows_every_ledger_with_its_version(log: LogHandle, memory_rig: Rig) -> None:
    log.truncate(5)
    with Cluster(memory_rig.uri) as cluster:
        rows = views.history(cluster, NAME)[1:]
        [shown] = views.logs(cluster, NAME)
    assert [row["version"] for row in rows] == list(range(2, len(COUNTS)))
    assert [row["entries"] for row in rows] == list(COUNTS[2:])
    assert shown["ledgers"] == len(COUNTS) - 2
    assert shown["bytes"] == sum(row["bytes"] for row in rows)


@pytest.mark.parametrize("before", always(range(0, 25, 4), range(sum(COUNTS) + 1)))
def test_a_truncation_deletes_every_ledger_that_it_hides(
    log: LogHandle, memory_rig: Rig, before: int
) -> None:
    places = log.ledgers
    log.truncate(before)
    assert log.first_offset == before
    assert values(log) == entries_from(before)
    hidden = {one.ledger_id for one in places[:-1] if one.end_offset <= before}
    with Cluster(memory_rig.uri) as cluster:
        states = {n: cluster.ledgers.get(str(n)).value.state for n in cluster.ledger_ids()}  # type: ignore[union-attr]
    assert {n for n, state in states.items() if state is LedgerState.DELETING} == hidden
    assert log.record.to_delete_count == 0
    assert not log.record.has_any_dropped


def test_retention_deletes_a_few_at_a_time_and_catches_up(
    log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(truncation, "LEDGERS_PER_ROLL_MAX", 2)
    log.keep(max_bytes=1)
    counts = []
    for _ in range(len(COUNTS)):
        fill(log, 1)
        fill(log, 1)
        counts.append(log.record.ledger_count)
    assert counts[0] > 5
    assert counts[-1] == 1
    assert not log.record.to_delete_count


def test_hidden_pages_are_worked_off_by_rolls_too(log: LogHandle, memory_rig: Rig) -> None:
    """Whoever hid them died before anything was deleted."""
    ids = [one.ledger_id for one in log.ledgers]
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as faulty:
        memory_rig.faults.decide = refusing_changes_of_ledgers
        faulty.open_log(NAME).truncate(14)
    memory_rig.faults.forget()
    assert log.record.dropped.pages_to_delete
    for _ in range(8):
        fill(log, 1)
    assert not log.record.to_delete_count
    with Cluster(memory_rig.uri) as cluster:
        left = [n for n in ids if cluster.ledgers.get(str(n)).value.state is LedgerState.CLOSED]  # type: ignore[union-attr]
    assert left == ids[9:]


def refusing_changes_of_ledgers(_number: int, operation: Operation) -> Fault | None:
    is_change = operation.call == "put" and operation.name.startswith("ledgers/")
    return Fault() if is_change else None


def test_a_log_that_is_deleted_takes_all_ledgers_along(log: LogHandle, memory_rig: Rig) -> None:
    ids = {one.ledger_id for one in log.ledgers}
    with Cluster(memory_rig.uri) as cluster:
        assert set(delete_log(cluster, NAME)) == ids
        left = cluster.logs.get(NAME)
    assert left is not None
    assert not left.value.has_any_dropped
    assert not left.value.has_pages


def test_what_an_overwrite_dropped_is_deleted_with_the_log(memory_rig: Rig) -> None:
    for number in range(12):
        memory_rig.write(partitions_of(1, first=number))
    memory_rig.write(partitions_of(3), is_overwrite=True)
    record = memory_rig.log()
    assert record is not None
    assert record.dropped.pages
    assert not record.to_delete_count
    assert memory_rig.rows() == flat(partitions_of(3))
    with Cluster(memory_rig.uri) as cluster:
        assert len(delete_log(cluster, memory_rig.log_name)) == 13


def test_a_ledger_on_a_page_is_part_of_its_log(log: LogHandle, memory_rig: Rig) -> None:
    first = log.ledgers[0].ledger_id
    assert first not in log.record.ids_at_hand
    with (
        Cluster(memory_rig.uri) as cluster,
        pytest.raises(InvalidRequestError, match=f"part of log '{NAME}'"),
    ):
        delete_ledger(cluster, first)


# --- pages that are not what they should be --------------------------------------------------


def overwritten_page(log: LogHandle, name: str, data: bytes) -> None:
    key, store = layout.log_page_key(NAME, name), log._cluster.store
    found = store.get(key)
    assert found is not None
    store.put(key, data, found.version)
    forget_pages()


def first_page(log: LogHandle) -> tuple[LogPage, PageContents]:
    record = log.record
    [page, *_] = [one for one in record.older if isinstance(one, LogPage)]
    while record.source.contents(page).pages:
        page = record.source.contents(page).pages[0]
    return page, record.source.contents(page)


@pytest.mark.parametrize("part", ["ledger_id", "first_offset", "entry_count", "length_bytes"])
def test_a_page_that_says_something_else_than_is_said_of_it_is_damaged(
    log: LogHandle, part: str
) -> None:
    page, contents = first_page(log)
    places = list(contents.ledgers)
    at = -1 if part != "first_offset" else 0
    places[at] = replace(places[at], **{part: getattr(places[at], part) + 1000})
    if part == "first_offset":
        places = [replace(one, first_offset=one.first_offset + 7) for one in contents.ledgers]
    forged = PageContents(ledgers=tuple(places))
    key, data = layout.log_page_key(NAME, page.name), log_page.encode(NAME, page.name, forged)
    overwritten_page(log, page.name, strict_json.of_cluster(log._cluster.cluster_id, key, data))
    with pytest.raises(CorruptDataError, match="does not hold what"):
        values(log)
    assert values(log, log.record.ledgers[0].first_offset) == entries_from(
        log.record.ledgers[0].first_offset
    )


def test_a_page_under_another_name_or_of_another_log_is_damaged(log: LogHandle) -> None:
    page, contents = first_page(log)
    other = layout.log_page_name(1, environment.token())
    for data in (
        log_page.encode(NAME, other, contents),
        log_page.encode("other", page.name, contents),
        log_page.encode(NAME, page.name, contents)[:-1],
    ):
        overwritten_page(log, page.name, data)
        with pytest.raises(CorruptDataError, match="damaged"):
            values(log)


def test_a_missing_page_is_no_end_of_the_log(log: LogHandle) -> None:
    page, _ = first_page(log)
    log._cluster.store.delete(layout.log_page_key(NAME, page.name))
    forget_pages()
    with pytest.raises(CorruptDataError, match="is missing"):
        values(log)
    fill(log, 1)
    assert log.end_offset == sum(COUNTS) + 1


def test_a_process_remembers_so_many_pages(log: LogHandle, monkeypatch: pytest.MonkeyPatch) -> None:
    values(log)
    memory = environment.the_one(PageMemory)
    assert 0 < len(memory._pages) < REMEMBERED_MAX
    monkeypatch.setattr("bkspark.cluster.log_records.REMEMBERED_MAX", 2)
    forget_pages()
    assert values(log) == entries_from(0)
    assert len(memory._pages) == 2
