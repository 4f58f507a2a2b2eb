"""Planning a read of a log of many ledgers."""

import os
import threading
from collections import Counter
from types import SimpleNamespace

import pytest

from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.cluster.records import Records
from bkspark.errors import NoSuchEntryError
from bkspark.ledger.deleting import delete_log
from bkspark.log.reading import read_slices
from bkspark.log.reading.ledger_files import journal_name
from bkspark.log.reading.log_view import look_at
from bkspark.log.reading.read_slices import (
    LOOK_UPS_AT_ONCE,
    TASK_BYTES,
    TASK_BYTES_MIN,
    _tasks,
    plan_view,
)
from bkspark.log.reading.slices import OffsetRange
from bkspark.log.reading.tier_rows import TierSlice
from bkspark.protocol.ledger.locations import Locations

NO_PASSWORD = Password()


@pytest.fixture
def meeting(monkeypatch):
    """Answers about ledgers come only when all who may ask at once have asked."""
    barrier, answers = threading.Barrier(LOOK_UPS_AT_ONCE), Records.answers

    def met(records, names):
        barrier.wait(60)
        return answers(records, names)

    monkeypatch.setattr(Records, "answers", met)


@pytest.fixture
def log(small_cluster, numbers):
    """Twice as many ledgers of ten rows as are looked up at once."""
    for begin in range(0, LOOK_UPS_AT_ONCE * 20, 10):
        small_cluster.append("a", [numbers(begin, begin + 10)])
    return small_cluster


def test_ledgers_are_looked_up_several_at_once_and_read_in_order(log, meeting):
    with Cluster(log.uri) as cluster:
        view = look_at(cluster, "a", NO_PASSWORD)
        [task] = plan_view(cluster, view, OffsetRange(0, view.end_offset), NO_PASSWORD, 2**40)
    found = dict.fromkeys(item.ledger_id for item in task.slices)
    assert list(found) == [logged.ledger_id for logged in view.every_ledger()]


def test_a_ledger_that_went_away_ends_the_plan(log):
    with Cluster(log.uri) as cluster:
        view = look_at(cluster, "a", NO_PASSWORD)
        delete_log(cluster, "a")
        with pytest.raises(NoSuchEntryError, match="overwritten or deleted during the read"):
            plan_view(cluster, view, OffsetRange(0, view.end_offset), NO_PASSWORD, None)


def planned(uri, task_bytes=None, **options):
    with Cluster(uri) as cluster:
        view = look_at(cluster, "a", NO_PASSWORD)
        offsets = OffsetRange(0, view.end_offset)
        return plan_view(cluster, view, offsets, NO_PASSWORD, task_bytes, **options)


def ids_of(tasks):
    return [item.ledger_id for task in tasks for item in task.slices]


def test_a_plan_asks_each_bookie_once_for_all_ledgers(log, monkeypatch):
    asked = Counter()
    begin = BookieClient.begin

    def counted(client, question, *start):
        asked[client.address.bookie_id] += 1
        return begin(client, question, *start)

    monkeypatch.setattr(BookieClient, "begin", counted)
    assert len(set(ids_of(planned(log.uri)))) == 2 * LOOK_UPS_AT_ONCE
    assert asked
    assert set(asked.values()) == {1}


@pytest.mark.parametrize("what", ["damaged", "gone"])
def test_a_journal_that_fails_is_read_elsewhere_and_the_others_are_not(log, what, caplog):
    before = ids_of(planned(log.uri))
    with Cluster(log.uri) as cluster:
        bad = cluster.ledger(before[3]).value
    bookie = Locations(bad).newest_members[0].bookie_id
    journal = log.bookie(bookie) / journal_name(bad)
    if what == "gone":
        journal.unlink()
    else:
        content = bytearray(journal.read_bytes())
        content[len(content) // 2] ^= 1
        journal.write_bytes(content)
    caplog.clear()
    assert ids_of(planned(log.uri)) == before
    told = [record.getMessage() for record in caplog.records if "ledger" in record.getMessage()]
    assert len(told) == 1
    assert f"ledger {bad.ledger_id}" in told[0]


def test_very_many_small_ledgers_are_read_by_several_tasks(log, monkeypatch):
    monkeypatch.setattr(read_slices.os, "cpu_count", lambda: 4)
    [task] = planned(log.uri)
    as_many_more = 3 * TASK_BYTES_MIN // len(task.slices)
    monkeypatch.setattr(read_slices, "SLICE_BYTES", as_many_more)
    tasks = planned(log.uri)
    assert len(tasks) == 3
    sizes = [len(task.slices) for task in tasks]
    assert max(sizes) < 2 * min(sizes)
    assert ids_of(tasks) == ids_of(planned(log.uri, 2**40))
    assert len(planned(log.uri, 2**40)) == 1
    assert len(planned(log.uri, least_tasks=8)) >= 8


def test_what_a_task_has_of_a_file_of_a_table_is_one_range(monkeypatch):
    """Each range decodes whole row groups: two ranges of a file would decode one of them twice."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    snapshot = SimpleNamespace(within=lambda _begin, _end: snapshot)
    size, count = TASK_BYTES, 2_000_000
    files = [
        TierSlice("a", n * count, (n + 1) * count, size, "file:///t", "_offset", snapshot, ())
        for n in range(4)
    ]
    tasks = _tasks(files, {}, None, 1)
    assert [[item.range for item in task.slices] for task in tasks] == [[f.range] for f in files]
