"""A streaming sink without Spark: what is in the log after whatever happens between its batches."""

from pathlib import Path

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerFencedError,
    NotEnoughBookiesError,
)
from bkspark.ledger.recovery.recover import recover
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.log.reading.log_view import look_at
from bkspark.log.recovering import close_tail
from bkspark.log.rolling import RollPolicy
from bkspark.log.streams.commit import TailWriterCache, abort
from bkspark.log.streams.micro_batch import StreamPart, gathered
from bkspark.protocol.ledger.metadata import FIRST_TERM, LedgerState
from bkspark.protocol.log.batch import AttemptReport
from tests.integration.rig import Rig, flat, partitions_of
from tests.integration.stream_driver import QUERY, Driver, expected, settled_rows, the_log

QUORUMS = [(3, 3, 2), (4, 3, 2), (5, 2, 2)]


@pytest.fixture(params=["memory", "file"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    return Rig(tmp_path / "cluster", request.param)


@pytest.mark.parametrize("quorum", QUORUMS, ids=lambda sizes: "-".join(map(str, sizes)))
def test_batches_of_a_run_go_into_one_ledger(rig: Rig, quorum: tuple[int, int, int]) -> None:
    driver = Driver(rig, quorum=quorum)
    assert driver.run(0, 1, 2, 3) == [True] * 4
    reports = [report for number in range(4) for report in driver.planned(number).reports]
    log = the_log(rig)
    assert len(log.tail) == 1
    assert not log.ledgers
    assert settled_rows(rig) == expected(0, 1, 2, 3)
    log = the_log(rig)
    assert len(log.ledgers) == 1
    assert log.ledgers[0].length_bytes == sum(report.length_bytes for report in reports)
    assert log.transactions == {f"stream/{QUERY}": 3}
    with Cluster(rig.uri) as cluster:
        assert cluster.ledger_ids() == [0]


@pytest.mark.parametrize("quorum", QUORUMS, ids=lambda sizes: "-".join(map(str, sizes)))
def test_who_finds_another_tail_copies_what_the_tasks_wrote(
    rig: Rig, quorum: tuple[int, int, int]
) -> None:
    driver = Driver(rig, quorum=quorum)
    driver.run(0, 1)
    for batch_ids in ((2,), (3, 4)):
        late, *others = (driver.planned(batch_id) for batch_id in batch_ids)
        with Cluster(rig.uri) as cluster:
            close_tail(cluster, rig.log_name, driver.request.password)
        assert [driver.commit(late), *map(driver.commit, others)] == [True] * len(batch_ids)
    assert settled_rows(rig) == expected(0, 1, 2, 3, 4)
    log = the_log(rig)
    assert len(log.ledgers) == 3
    for logged in log.ledgers:
        for holders in rig.good_copies(logged.ledger_id).values():
            assert len(holders) == quorum[1]


def test_a_batch_that_is_in_the_log_is_not_written_again(rig: Rig) -> None:
    driver = Driver(rig)
    assert driver.run(0, 0, 1, 1) == [True, False, True, False]
    assert driver.with_new_process().run(1) == [False]
    assert Driver(rig).run(1, 2) == [False, True]
    assert settled_rows(rig) == expected(0, 1, 2)


def test_a_batch_can_be_read_as_soon_as_it_is_committed(rig: Rig) -> None:
    driver = Driver(rig)
    for batch_id in range(3):
        driver.run(batch_id)
        with Cluster(rig.uri) as cluster:
            assert look_at(cluster, rig.log_name, Password()).end_offset == 10 * (batch_id + 1)
    assert len(the_log(rig).tail) == 1


def test_a_private_ledger_becomes_the_tail_once(rig: Rig) -> None:
    """Its token is known to two processes then, and only one of them may write with it (R2)."""
    driver = Driver(rig)
    batch = driver.planned(0)
    assert driver.commit(batch)
    hung, driver.held = driver.held, TailWriterCache()
    assert not driver.commit(batch)
    assert rig.ledger(batch.staging.ledger_id).term == 2
    driver.run(1)
    assert hung.commit(driver.request, driver.planned(2))
    assert settled_rows(rig) == expected(0, 1, 2)


def test_a_process_that_serves_a_newer_run_takes_the_tail_over_for_it(rig: Rig) -> None:
    older, newer = Driver(rig), Driver(rig)
    newer.held = older.held
    older.run(0)
    newer.run(1)
    assert the_log(rig).committed.streams[QUERY] == (older.run_id, newer.run_id)
    with pytest.raises(LedgerFencedError, match="a newer run"):
        older.with_new_process().run(2)
    assert settled_rows(rig) == expected(0, 1)


def test_queries_are_told_apart(rig: Rig) -> None:
    one, other = Driver(rig), Driver(rig, "query-2")
    for batch_id in range(3):
        assert one.run(batch_id) == [True]
        assert other.run(batch_id) == [True]
    rows = settled_rows(rig)
    assert sorted(rows, key=str) == sorted(expected(0, 1, 2) * 2, key=str)


def test_an_older_run_ends_when_a_newer_one_has_committed(rig: Rig) -> None:
    zombie = Driver(rig)
    zombie.run(0, 1)
    late = zombie.planned(2)
    Driver(rig).run(2)
    with pytest.raises(LedgerFencedError, match=f"a newer run of query {QUERY} has taken over"):
        zombie.commit(late)
    with pytest.raises(LedgerFencedError, match="a newer run"):
        zombie.run(3)
    assert settled_rows(rig) == expected(0, 1, 2)


def test_an_older_run_goes_on_until_then(rig: Rig) -> None:
    older = Driver(rig)
    older.run(0)
    Driver(rig).planned(1)
    assert older.run(1) == [True]
    assert settled_rows(rig) == expected(0, 1)


def test_a_batch_without_rows_leaves_nothing(rig: Rig) -> None:
    driver = Driver(rig)
    assert not driver.commit(driver.planned(0, [[], []]))
    assert not driver.commit(driver.planned(0, [[], []]))
    driver.run(1)
    assert not driver.commit(driver.planned(2, [[]]))
    assert settled_rows(rig) == expected(1)
    assert Driver(rig).run(1) == [False]


# Rolling.


def test_many_batches_leave_as_many_ledgers_as_there_were_rolls(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "cluster")
    driver = Driver(rig, limits=RollPolicy(max_records=50))
    driver.run(*range(200))
    assert settled_rows(rig) == expected(*range(200))
    log = the_log(rig)
    assert len(log.ledgers) == 4
    assert not log.dropped.ids
    with Cluster(rig.uri) as cluster:
        assert len(cluster.ledger_ids()) == 4


@pytest.mark.parametrize("limits", [RollPolicy(max_bytes=1), RollPolicy(max_seconds=1e-9)], ids=str)
def test_ledgers_roll_by_size_and_age_too(rig: Rig, limits: RollPolicy) -> None:
    Driver(rig, limits=limits).run(0, 1, 2)
    log = the_log(rig)
    assert (len(log.ledgers), len(log.tail)) == (2, 1)
    assert rig.ledger(log.tail[0]).state is LedgerState.CLOSED
    assert settled_rows(rig) == expected(0, 1, 2)


def test_a_batch_that_is_run_again_after_a_roll_is_found(rig: Rig) -> None:
    driver = Driver(rig, limits=RollPolicy(max_records=2))
    driver.run(0, 1)
    assert driver.run(1) == [False]
    assert driver.with_new_process().run(1, 2) == [False, True]
    assert settled_rows(rig) == expected(0, 1, 2)


# Others write to the same log.


def test_batch_appends_in_between_and_the_stream_go_on(rig: Rig) -> None:
    driver = Driver(rig)
    batches = [flat(partitions_of(4, first=1000 * number)) for number in (1, 2)]
    driver.run(0, 1)
    rig.write(partitions_of(4, first=1000))
    assert driver.run(1, 2) == [False, True]
    late = driver.planned(3)
    rig.write(partitions_of(4, first=2000))
    assert driver.commit(late)
    assert settled_rows(rig) == (
        expected(0, 1) + batches[0] + expected(2) + batches[1] + expected(3)
    )


def test_an_append_under_a_running_sink_sees_all_its_batches(rig: Rig) -> None:
    """What the sink committed is kept although its last record was never confirmed."""
    Driver(rig).run(0, 1)
    rig.write(partitions_of(4, first=1000))
    assert rig.rows() == expected(0, 1) + flat(partitions_of(4, first=1000))


def test_an_overwrite_begins_a_generation_in_which_the_stream_goes_on(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0, 1)
    rig.write(partitions_of(4, first=1000), is_overwrite=True)
    assert driver.run(1, 2) == [False, True]
    assert settled_rows(rig) == flat(partitions_of(4, first=1000)) + expected(2)
    log = the_log(rig)
    assert log.generation == 2


def test_a_ledger_that_was_not_used_is_dropped(rig: Rig) -> None:
    """The tail was closed before the planning, so the batch had a ledger made for it."""
    driver = Driver(rig, limits=RollPolicy(max_records=1))
    driver.run(0)
    late = driver.planned(1)
    assert late.staging.is_private
    Driver(rig, "query-2").run(0)
    rig.write(partitions_of(2, first=1000))
    with Cluster(rig.uri) as cluster:
        cluster.ledgers.update(
            str(late.staging.ledger_id), lambda ledger: ledger and ledger.in_recovery("0" * 32)
        )
    assert driver.commit(late)
    log = the_log(rig)
    assert late.staging.ledger_id in log.dropped.ids
    assert settled_rows(rig)[-10:] == expected(1)


def test_after_an_abort_the_batch_s_ledger_never_joins(rig: Rig) -> None:
    driver = Driver(rig)
    failed = driver.planned(0)
    parts = [StreamPart(failed.run, 0, failed.staging, report) for report in failed.reports]
    abort(driver.request, [*parts, None])
    log_ids = rig.names("bookie-1"), rig.names("bookie-2")
    assert driver.run(0) == [True]
    assert driver.commit(failed) is False
    log = the_log(rig)
    assert failed.staging.ledger_id in log.dropped.ids
    assert set(log_ids[0]) <= set(rig.names("bookie-1"))
    assert settled_rows(rig) == expected(0)


def test_a_commit_that_wakes_after_its_abort_copies_its_rows(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    rig.write(partitions_of(2, first=1000))
    failed = driver.planned(1)
    parts = [StreamPart(failed.run, 1, failed.staging, report) for report in failed.reports]
    abort(driver.request, parts)
    assert driver.commit(failed)
    log = the_log(rig)
    assert failed.staging.ledger_id not in log.listed_ids
    assert settled_rows(rig) == expected(0) + flat(partitions_of(2, first=1000)) + expected(1)


def test_an_abort_of_what_was_committed_changes_nothing(rig: Rig) -> None:
    driver = Driver(rig)
    done = driver.planned(0)
    driver.commit(done)
    abort(driver.request, [StreamPart(done.run, 0, done.staging, done.reports[0])])
    assert driver.run(1) == [True]
    assert settled_rows(rig) == expected(0, 1)


# Refused.


def test_a_batch_is_complete_and_of_one_kind(rig: Rig) -> None:
    driver = Driver(rig)
    batch = driver.planned(0)
    parts = [StreamPart(batch.run, 0, batch.staging, report) for report in batch.reports]
    other = StreamPart(batch.run, 1, batch.staging, AttemptReport(1, 0, 0, ()))
    for wrong, batch_id in (([parts[0], None], 0), ([parts[0], other], 0), (parts, 1), ([], 0)):
        with pytest.raises(InvalidRequestError, match="nothing was committed"):
            gathered(wrong, batch_id)
    assert gathered(parts, 0) == batch


def test_a_sealed_log_takes_no_batches(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    late = driver.planned(1)
    settled_rows(rig)
    with Cluster(rig.uri) as cluster:
        cluster.logs.update(rig.log_name, lambda log: log and log.sealed())
    with pytest.raises(LedgerClosedError, match="is sealed"):
        driver.commit(late)
    with pytest.raises(LedgerClosedError, match="is sealed"):
        driver.planned(1)
    assert rig.rows() == expected(0)


def test_a_log_that_was_made_meanwhile_with_other_stripes_is_an_error(rig: Rig) -> None:
    driver = Driver(rig)
    late = driver.planned(0)
    rig.write(partitions_of(3), (4, 3, 2))
    with Cluster(rig.uri) as cluster:  # so that the tasks' own ledger is not tried first
        cluster.logs.update(rig.log_name, lambda log: log and log.without(late.staging.ledger_id))
    with pytest.raises(InvalidRequestError, match="created with other quorum sizes"):
        driver.commit(late)


def test_a_ledger_that_somebody_took_over_is_not_written_to(rig: Rig) -> None:
    home = Driver(rig).planned(0).staging
    with Cluster(rig.uri) as cluster:
        recover(cluster, home.ledger_id, Password())
        seen = cluster.ledger(home.ledger_id)
        digester, ensemble = make_digester(home.digest, Password()), list(home.bookies[:3])
        with pytest.raises(LedgerFencedError, match="taken over by another client"):
            RecordWriter(
                cluster, seen, digester, ensemble, term=FIRST_TERM, token=home.private_token
            )


# Bookies fail.


@pytest.mark.parametrize("bookie_count", [3, 5])
def test_a_bookie_that_dies_between_batches_is_replaced_or_done_without(
    tmp_path: Path, bookie_count: int
) -> None:
    rig = Rig(tmp_path / "cluster", bookie_count=bookie_count)
    driver = Driver(rig)
    driver.run(0, 1)
    ensemble = driver.planned(2).staging.bookies[:3]
    lost = rig.lose(ensemble[0].bookie_id)
    driver.run(2, 3)
    rig.bring_back(ensemble[0].bookie_id, lost)
    driver.run(4)
    log = the_log(rig)
    assert len(rig.ledger(log.tail[0]).fragments) == (2 if bookie_count == 5 else 1)
    assert settled_rows(rig) == expected(0, 1, 2, 3, 4)


def test_a_bookie_that_dies_between_tasks_and_commit(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "cluster")
    driver = Driver(rig)
    driver.run(0)
    late = driver.planned(1)
    gone = late.staging.bookies[1].bookie_id
    rig.lose(gone)
    assert driver.commit(late)
    driver.run(2)
    assert settled_rows(rig) == expected(0, 1, 2)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["same-run", "new-run"])
def test_without_an_ack_quorum_the_commit_fails_and_can_be_run_again(
    tmp_path: Path, is_restarted: bool
) -> None:
    rig = Rig(tmp_path / "cluster", bookie_count=3)
    driver = Driver(rig)
    driver.run(0)
    late = driver.planned(1)
    lost = {bookie_id: rig.lose(bookie_id) for bookie_id in ("bookie-1", "bookie-2")}
    with pytest.raises(NotEnoughBookiesError):
        driver.commit(late)
    assert not driver.held._tails
    with pytest.raises(NotEnoughBookiesError):
        driver.commit(late)
    for bookie_id, disk in lost.items():
        rig.bring_back(bookie_id, disk)
    again = Driver(rig) if is_restarted else driver
    assert again.run(1, 2) in ([True, True], [False, True])
    assert settled_rows(rig) == expected(0, 1, 2)


def test_rows_are_copied_from_good_replicas_only(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "cluster", bookie_count=3)
    driver = Driver(rig)
    driver.run(0)
    late = driver.planned(1)
    names = [
        f"ledgers/00/{late.staging.ledger_id:016x}/entries/{log.entry_log.attempt_id}-0.arrow"
        for report in late.reports
        for log in report.logs
    ]
    for bookie in late.staging.bookies[:2]:
        for name in names:
            data = bytearray(rig.file_bytes(bookie.bookie_id, name))
            data[len(data) // 3] ^= 4
            rig.replace_file(bookie.bookie_id, name, bytes(data))
    assert driver.with_new_process().commit(late)
    assert settled_rows(rig) == expected(0, 1)


def test_a_ledger_with_a_password(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "cluster")
    secret = Password(literal="secret")
    options = {"digest_type": "MAC", "password": secret}
    Driver(rig, options=options).run(0, 1)
    Driver(rig, options=options).run(2)
    rig.write(partitions_of(3, first=500), **options)
    assert rig.rows(password=secret) == expected(0, 1, 2) + flat(partitions_of(3, first=500))
