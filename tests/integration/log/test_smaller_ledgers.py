"""Too few bookies for a ledger of full size: smaller ones are made, unless that is refused."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from bkspark.log.recovering import close_tail
from bkspark.log.streams import appending
from bkspark.log.streams.micro_batch import in_order
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from tests.integration.log_scenes import NAME, SILENT, values
from tests.integration.rig import Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows, the_log
from tests.integration.waiting import wait_until
from tests.kit.faulty import Fault, Moment, Operation

FULL, SMALL = Quorum(3, 3, 2), Quorum(2, 2, 2)
MakeRig = Callable[..., Rig]


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


@contextmanager
def away(rig: Rig, *bookie_ids: str) -> Iterator[None]:
    """Without these bookies."""
    lost = {bookie_id: rig.lose(bookie_id) for bookie_id in bookie_ids}
    yield
    for bookie_id, disk in lost.items():
        rig.bring_back(bookie_id, disk)


def sizes_of(rig: Rig, ledger_ids: Sequence[int]) -> list[Quorum]:
    found = [rig.ledger(ledger_id) for ledger_id in ledger_ids]
    assert {sizes.wanted(ledger) for ledger in found} == {FULL}
    return [ledger.quorum for ledger in found]


def logged(rig: Rig) -> list[Quorum]:
    """The sizes of the ledgers of its log, which wants the usual ones."""
    assert the_log(rig).quorum == FULL
    return sizes_of(rig, the_log(rig).listed_ids)


# --- ledgers -------------------------------------------------------------------------------------


def test_a_ledger_is_made_on_the_bookies_that_there_are(rig: Rig) -> None:
    with away(rig, "bookie-2"), BookKeeper(rig.uri) as keeper:
        with keeper.create_ledger() as handle:
            handle.append_many([b"one", b"two"])
        found = [entry.value for entry in keeper.open_ledger(handle.ledger_id).read()]
    ledger = rig.ledger(handle.ledger_id)
    assert found == [b"one", b"two"]
    assert (ledger.quorum, sizes.wanted(ledger), sizes.is_short(ledger)) == (SMALL, FULL, True)
    assert {m.bookie_id for m in ledger.last_fragment.ensemble} == {"bookie-1", "bookie-3"}


def test_one_that_loses_its_writer_is_recovered_from_any_bookie_of_it(rig: Rig) -> None:
    with away(rig, "bookie-2"), BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(settings=SILENT)
        handle.append(b"acknowledged")
        with away(rig, "bookie-1"), pytest.raises(NotEnoughBookiesError):
            keeper.recover_ledger(handle.ledger_id)  # its copies would be fewer than Qa
    with BookKeeper(rig.uri) as keeper:
        reader = keeper.open_ledger(handle.ledger_id)
        assert [entry.value for entry in reader.read()] == [b"acknowledged"]


@pytest.mark.parametrize("choice", ["strict", "guarantees_write_quorum"])
def test_none_is_where_that_is_refused(rig: Rig, choice: str) -> None:
    """Copies that are guaranteed are those that were asked for."""
    settings: dict[str, Any] = {choice: True}
    with away(rig, "bookie-2"), BookKeeper(rig.uri) as keeper:
        with pytest.raises(NotEnoughBookiesError, match="3 bookies are needed but only 2"):
            keeper.create_ledger(**settings)
        assert keeper.list_ledgers() == []


def test_none_is_made_below_its_ack_quorum(rig: Rig) -> None:
    with away(rig, "bookie-1", "bookie-2"), BookKeeper(rig.uri) as keeper:
        with pytest.raises(NotEnoughBookiesError, match="2 bookies are needed but only 1"):
            keeper.create_ledger()
        handle = keeper.create_ledger(ack_quorum_size=1)
    assert rig.ledger(handle.ledger_id).quorum == Quorum(1, 1, 1)


@pytest.mark.parametrize(
    ("gone", "made"), [(1, (4, 3, 2)), (2, (3, 3, 2)), (3, (2, 2, 2))], ids=str
)
def test_a_striped_one_keeps_its_copies_as_long_as_it_can(
    make_rig: MakeRig, gone: int, made: tuple[int, int, int]
) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    partitions = partitions_of(11, 1, 0, 7)
    with away(rig, *sorted(rig.urls)[:gone]):
        rig.write(partitions, (5, 3, 2))
        assert rig.rows() == flat(partitions)
    [ledger_id] = the_log(rig).listed_ids
    assert rig.ledger(ledger_id).quorum == Quorum(*made)
    assert the_log(rig).quorum == Quorum(5, 3, 2)
    assert rig.rows() == flat(partitions)


def test_an_answer_that_is_lost_makes_no_ledger_smaller(rig: Rig) -> None:
    """What enlists a bookie is sent once; a second writer asks it again."""
    asked: list[str] = []

    def lose_one(_number: int, operation: Operation) -> Fault | None:
        if (operation.call, operation.place) != ("put_new", "bookie-2") or asked:
            return None
        asked.append(operation.name)
        return Fault(Moment.AFTER)

    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        rig.faults.decide = lose_one
        with keeper.create_ledger() as handle:
            handle.append(b"one")
    assert asked
    assert rig.ledger(handle.ledger_id).quorum == FULL


def test_the_first_smaller_one_is_told_loudly(rig: Rig, said: Callable[..., list[str]]) -> None:
    with BookKeeper(rig.uri) as keeper:
        for _ in range(2):
            keeper.create_ledger().close()
            with away(rig, "bookie-2"):
                for _ in range(3):
                    keeper.create_ledger().close()
    assert len(said(logging.WARNING, "is made on 2 bookies")) == 2
    assert len(said(logging.INFO, "is made on 2 bookies")) == 4


# --- logs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbounded", [False, True], ids=["chained", "unbounded"])
def test_a_log_is_written_to_by_new_writers_and_rolled(rig: Rig, unbounded: bool) -> None:
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME, unbounded=unbounded)
        with log.writer() as writer:
            writer.append(b"0")
            with away(rig, "bookie-2"):
                writer.append(b"1")
                wait_until(lambda: writer.faults)
                writer.roll()
                writer.append(b"2")
        with away(rig, "bookie-2"):
            with log.writer() as writer:
                writer.append(b"3")
            with log.writer() as writer:
                writer.append(b"4")
                writer.roll()
                writer.append(b"5")
            assert values(log) == [b"%d" % n for n in range(6)]
        made = sizes_of(rig, log.record.listed_ids)
        assert made == [FULL, *[SMALL] * (1 if unbounded else 4)]


@pytest.mark.parametrize("rolls", [False, True], ids=["a new writer", "a roll"])
def test_an_unbounded_log_goes_back_to_ledgers_of_full_size(rig: Rig, rolls: bool) -> None:
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME, unbounded=True)
        with away(rig, "bookie-2"):
            writer = log.writer()
            writer.append(b"0")
        if rolls:
            writer.roll()
        else:
            writer.close()
            writer = log.writer()
        writer.append(b"1")
        writer.roll()
        writer.append(b"2")
        writer.close()
        assert values(log) == [b"0", b"1", b"2"]
        assert sizes_of(rig, log.record.listed_ids) == [SMALL, FULL]


def test_a_writer_of_an_unbounded_log_that_finds_one_bookie_away_closes_the_ledger(
    rig: Rig,
) -> None:
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME, unbounded=True)
        with log.writer() as writer:
            writer.append(b"0")
        with away(rig, "bookie-2"), log.writer() as writer:
            assert writer.append(b"1") == 1
        assert values(log) == [b"0", b"1"]
        assert sizes_of(rig, log.record.listed_ids) == [FULL, SMALL]


@pytest.mark.parametrize("choice", ["strict", "guarantees_write_quorum"])
@pytest.mark.parametrize("unbounded", [False, True], ids=["chained", "unbounded"])
def test_a_log_that_refuses_smaller_ledgers_is_not_written_to(
    rig: Rig, choice: str, unbounded: bool
) -> None:
    settings: dict[str, Any] = {choice: True}
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME, unbounded=unbounded, **settings)
        with log.writer() as writer:
            writer.append(b"0")
        before = len(keeper.list_ledgers())
        with away(rig, "bookie-2"), pytest.raises(NotEnoughBookiesError):
            log.writer()
        assert len(keeper.list_ledgers()) == before
        with log.writer() as writer:
            writer.append(b"1")
        assert values(log) == [b"0", b"1"]


@pytest.mark.parametrize("unbounded", [False, True], ids=["chained", "unbounded"])
def test_a_roll_that_finds_too_few_bookies_fails_where_the_log_is_strict(
    rig: Rig, unbounded: bool
) -> None:
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME, unbounded=unbounded, strict=True)
        with log.writer() as writer:
            writer.append(b"0")
            with away(rig, "bookie-2"):
                writer.append(b"1")
                wait_until(lambda: writer.faults)
                with pytest.raises(NotEnoughBookiesError):
                    writer.roll()
                writer.append(b"2")
        assert values(log) == [b"0", b"1", b"2"]
        assert sizes_of(rig, log.record.listed_ids) == [FULL]


# --- DataFrames and streams ----------------------------------------------------------------------


def appended(rig: Rig, partitions: list[list[pa.RecordBatch]], **options: Any) -> None:
    """A DataFrame append, to whatever kind of log."""
    target, staging = appending.prepare(rig.request(**options))
    appending.commit(target, staging, rig.tasks(target, partitions))


@pytest.mark.parametrize("unbounded", [False, True], ids=["chained", "unbounded"])
def test_data_frames_are_appended(rig: Rig, unbounded: bool) -> None:
    rows = [partitions_of(5, 3, first=10 * n) for n in range(4)]
    appended(rig, rows[0], is_unbounded=unbounded)
    with away(rig, "bookie-2"):
        appended(rig, rows[1])
        appended(rig, rows[2])
    appended(rig, rows[3])
    made = [FULL, SMALL, FULL] if unbounded else [FULL, SMALL, SMALL, FULL]
    assert logged(rig) == made
    assert settled_rows(rig) == flat([batches for part in rows for batches in part])


@pytest.mark.parametrize("unbounded", [False, True], ids=["chained", "unbounded"])
def test_a_log_that_a_data_frame_makes_wants_what_it_was_told(rig: Rig, unbounded: bool) -> None:
    with away(rig, "bookie-2"):
        appended(rig, partitions_of(5), is_unbounded=unbounded)
    assert logged(rig) == [SMALL]
    assert not the_log(rig).settings.is_strict
    appended(rig, partitions_of(5))
    assert logged(rig) == [SMALL, FULL]


@pytest.mark.parametrize("unbounded", [False, True], ids=["chained", "unbounded"])
def test_a_write_may_be_strict_where_its_log_is_not(rig: Rig, unbounded: bool) -> None:
    appended(rig, partitions_of(5), is_unbounded=unbounded)
    with away(rig, "bookie-2"):
        with pytest.raises(NotEnoughBookiesError):
            appended(rig, partitions_of(5), is_strict=True)
        appended(rig, partitions_of(5))
    assert logged(rig) == [FULL, SMALL]


@pytest.mark.parametrize("unbounded", [False, True], ids=["chained", "unbounded"])
def test_a_strict_write_makes_a_strict_log(rig: Rig, unbounded: bool) -> None:
    appended(rig, partitions_of(5), is_strict=True, is_unbounded=unbounded)
    assert the_log(rig).settings.is_strict
    with pytest.raises(InvalidRequestError, match="created strict"):
        appended(rig, partitions_of(5), is_strict=False)
    with away(rig, "bookie-2"), pytest.raises(NotEnoughBookiesError):
        appended(rig, partitions_of(5))
    assert logged(rig) == [FULL]


def test_a_stream_goes_on_with_a_bookie_away_and_after_it(rig: Rig) -> None:
    driver = Driver(rig)
    assert driver.run(0) == [True]
    with away(rig, "bookie-2"):
        assert driver.run(1) == [True]
        assert driver.with_new_process().run(1, 2) == [False, True]
    assert driver.with_new_process().run(2, 3) == [False, True]
    assert logged(rig) == [FULL, SMALL, FULL]
    assert settled_rows(rig) == expected(0, 1, 2, 3)


def test_a_strict_stream_waits_for_its_bookies(rig: Rig) -> None:
    driver = Driver(rig, options={"is_strict": True})
    with away(rig, "bookie-2"), pytest.raises(NotEnoughBookiesError):
        driver.run(0)
    assert driver.run(0) == [True]
    assert the_log(rig).settings.is_strict
    assert settled_rows(rig) == expected(0)


def test_rows_that_were_striped_for_another_ledger_are_striped_anew(make_rig: MakeRig) -> None:
    """The tasks wrote into the tail; the commit closes it and makes one with fewer stripes."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    rows = [partitions_of(23, 1, 0, 4, first=40 * n) for n in range(3)]
    appended(rig, rows[0], quorum=(5, 3, 2), is_unbounded=True)
    with away(rig, "bookie-2"):
        appended(rig, rows[1])
    appended(rig, rows[2])
    made = [rig.ledger(ledger_id).quorum for ledger_id in the_log(rig).listed_ids]
    assert made == [Quorum(5, 3, 2), Quorum(4, 3, 2), Quorum(5, 3, 2)]
    assert settled_rows(rig) == flat([batches for part in rows for batches in part])


@pytest.mark.parametrize("row_count", range(14))
@pytest.mark.parametrize("block_rows", [1, 2, 5])
def test_stripes_are_put_in_order(row_count: int, block_rows: int) -> None:
    whole = pa.record_batch([pa.array(range(row_count), pa.int64())], ["n"])
    stripes = [
        whole.take(pa.array(range(first, row_count, 4), pa.int64()))
        for first in range(min(4, row_count))
    ]
    blocks = [
        iter([rows.slice(n, block_rows) for n in range(0, rows.num_rows, block_rows)])
        for rows in stripes
    ]
    found = [n for batch in in_order(blocks) for n in batch.column(0).to_pylist()]
    assert found == list(range(row_count))


def test_a_smaller_ledger_is_closed_and_read_by_whoever_opens_the_log(rig: Rig) -> None:
    with away(rig, "bookie-2"), BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME)
        writer = log.writer()
        writer.append(b"0")
    with Cluster(rig.uri) as cluster:
        close_tail(cluster, NAME, rig.request().password)
        [ledger_id] = cluster.log(NAME).value.listed_ids
        ledger: LedgerMetadata = cluster.ledger(ledger_id).value
    assert (ledger.last_entry_id, ledger.quorum) == (0, SMALL)
