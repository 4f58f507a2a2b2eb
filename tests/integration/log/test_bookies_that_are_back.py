"""A bookie that was away serves again at the next roll, and a healthy cluster becomes whole."""

from collections.abc import Callable, Iterator

import pytest

from bkspark import admin
from bkspark.admin.auditing import audit
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import InvalidTermError, NotEnoughBookiesError
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log import rolling
from bkspark.log.log_handle import LogHandle
from bkspark.log.log_writer import LogWriter
from bkspark.log.recovering import recover_ledger
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from tests.integration.log_scenes import NAME, SILENT, one_ledger, unbounded, values
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies, wait_until

DELAYED = WriterSettings(explicit_lac_ms=0, is_change_delayed=True)
AWAY = "bookie-3"


@pytest.fixture
def rig(make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """Its bookies are fast, so an audit sees soon what one lacks."""
    monkeypatch.setattr(audit, "STAYS_SECONDS", 0.2)
    monkeypatch.setattr(audit, "PAUSE_SECONDS", 0.1)
    rig = make_rig(bookie_count=3)
    with rig.faults.installed():
        yield rig


@pytest.fixture
def keeper(rig: Rig) -> Iterator[BookKeeper]:
    with BookKeeper(rig.uri) as keeper:
        yield keeper


def shortened(rig: Rig, log: LogHandle, settings: WriterSettings = SILENT) -> LogWriter:
    """A writer of which one bookie has missed an entry; it is back by now."""
    writer = log.writer(settings=settings)
    writer.append(b"a")
    wait_for_all_copies(writer._segment.handle)
    rig.faults.down = {AWAY}
    writer.append(b"b")
    wait_until(lambda: writer._segment.handle.is_short_of_bookies)
    rig.faults.forget()
    return writer


def only_ledger(keeper: BookKeeper, log: LogHandle) -> LedgerMetadata:
    [ledger_id] = keeper.open_log(log.name).record.listed_ids
    return keeper._cluster.ledger(ledger_id).value


def require_whole(keeper: BookKeeper, log: LogHandle) -> None:
    """All ledgers but the last are closed, and a repair makes all their copies."""
    *closed, last = [keeper._cluster.ledger(ledger.ledger_id).value for ledger in log.ledgers]
    assert closed
    assert {ledger.state for ledger in closed} == {LedgerState.CLOSED}
    assert {member.bookie_id for member in last.last_fragment.ensemble} >= {AWAY}
    uri = keeper._cluster.uri
    admin.repair(uri)
    assert not admin.audit(uri).left


@pytest.mark.parametrize("is_unbounded", [True, False], ids=["unbounded", "chained"])
@pytest.mark.parametrize("settings", [SILENT, DELAYED], ids=["at once", "delayed"])
def test_it_serves_again_at_the_next_roll(
    rig: Rig, keeper: BookKeeper, is_unbounded: bool, settings: WriterSettings
) -> None:
    log = keeper.create_log(NAME, unbounded=is_unbounded)
    writer = shortened(rig, log, settings)
    writer.roll()
    writer.append(b"c")
    wait_for_all_copies(writer._segment.handle)
    require_whole(keeper, log)
    writer.append(b"d")
    assert not writer._segment.handle.is_short_of_bookies
    writer.close()
    assert values(log) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("is_unbounded", [True, False], ids=["unbounded", "chained"])
def test_a_writer_that_is_short_moves_on_by_itself(
    rig: Rig, keeper: BookKeeper, is_unbounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While entries are added, without a limit that would have it roll."""
    log = keeper.create_log(NAME, unbounded=is_unbounded)
    writer = shortened(rig, log)
    before = writer.ledger_id
    writer.append(b"c")
    assert writer._roll_task is None
    monkeypatch.setattr(rolling, "LOOK_SECONDS", 0.0)
    writer.append(b"d")
    assert writer._roll_task is not None
    writer._roll_task.join()
    assert writer.ledger_id != before
    writer.append(b"e")
    wait_for_all_copies(writer._segment.handle)
    require_whole(keeper, log)
    writer.close()
    assert values(log) == [b"a", b"b", b"c", b"d", b"e"]


def test_while_it_is_away_the_writer_stays_where_it_is(
    rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = keeper.create_log(NAME, unbounded=True, strict=True)
    writer = shortened(rig, log)
    rig.faults.down = {AWAY}
    monkeypatch.setattr(rolling, "LOOK_SECONDS", 0.0)
    writer.append(b"c")
    assert writer._roll_task is not None
    writer._roll_task.join()
    assert writer.roll_error is None
    assert len(one_ledger(log).fragments) == 1
    with pytest.raises(NotEnoughBookiesError):
        writer.roll()
    writer.append(b"d")
    writer.release()
    rig.faults.forget()
    assert values(log) == [b"a", b"b", b"c", b"d"]


def test_one_that_ends_short_of_bookies_closes_its_ledger(rig: Rig, keeper: BookKeeper) -> None:
    """Else it would stay open, and only closed ledgers are repaired."""
    log = unbounded(keeper)
    shortened(rig, log).close()
    with log.writer(settings=SILENT) as writer:
        writer.append(b"c")
        wait_for_all_copies(writer._segment.handle)
        require_whole(keeper, log)
    assert values(log) == [b"a", b"b", b"c"]


def test_a_log_moves_on_from_a_ledger_that_was_made_on_fewer_bookies(
    rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = unbounded(keeper)
    rig.faults.down = {AWAY}
    with log.writer(settings=SILENT) as writer:
        writer.append(b"a")
        rig.faults.forget()
        writer.append(b"b")
        assert writer._roll_task is None
        monkeypatch.setattr(rolling, "LOOK_SECONDS", 0.0)
        writer.append(b"c")
        assert writer._roll_task is not None
        writer._roll_task.join()
        writer.append(b"d")
        wait_for_all_copies(writer._segment.handle)
        require_whole(keeper, log)
    assert values(log) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("is_small", [False, True], ids=["one failed", "made on two"])
def test_a_writer_that_is_idle_moves_on_as_well(
    rig: Rig, keeper: BookKeeper, is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = unbounded(keeper)
    monkeypatch.setattr(rolling, "LOOK_SECONDS", 0.05)
    rig.faults.down = {AWAY} if is_small else set()
    writer = log.writer(settings=SILENT)
    before = writer.ledger_id
    writer.append(b"a")
    if not is_small:
        rig.faults.down = {AWAY}
        writer.append(b"b")
        wait_until(lambda: writer._segment.handle.is_short_of_bookies)
    rig.faults.forget()
    wait_until(lambda: writer.ledger_id != before)
    wait_until(lambda: keeper._cluster.ledger(before).value.state is LedgerState.CLOSED)
    require_whole(keeper, log)
    writer.close()


def test_a_watch_ends_with_its_writer(
    rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = unbounded(keeper)
    monkeypatch.setattr(rolling, "LOOK_SECONDS", 0.05)
    rig.faults.down = {AWAY}
    writer = log.writer(settings=SILENT)
    writer.append(b"a")
    writer.release()
    rig.faults.forget()
    assert not writer._look_for_bookies()
    assert writer._segments.watch._is_over


def test_a_log_that_guarantees_its_write_quorum_moves_on_once_others_have_all_copies(
    make_rig: Callable[..., Rig],
) -> None:
    """The bookie that was replaced and is back may serve again."""
    rig = make_rig(bookie_count=4)
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME, unbounded=True, guarantees_write_quorum=True)
        writer = log.writer(settings=SILENT)
        before = writer.ledger_id
        writer.append(b"a")
        wait_for_all_copies(writer._segment.handle)
        away = writer._segment.handle.metadata.last_fragment.ensemble[0].bookie_id
        rig.faults.down = {away}
        writer.append(b"b")
        wait_until(lambda: len(writer._segment.handle.metadata.fragments) == 2)
        rig.faults.forget()
        writer.roll()
        assert writer.ledger_id != before
        assert keeper._cluster.ledger(before).value.state is LedgerState.CLOSED
        writer.append(b"c")
        writer.close()
        assert values(log) == [b"a", b"b", b"c"]
        assert not admin.audit(rig.uri).left


def test_an_audit_counts_what_an_open_ledger_lacks(rig: Rig, keeper: BookKeeper) -> None:
    log = unbounded(keeper)
    writer = shortened(rig, log, WriterSettings(explicit_lac_ms=1))
    wait_until(lambda: bool(admin.audit(rig.uri).left))  # once a bookie says the LAC
    report = admin.audit(rig.uri)
    (left,) = report.left
    assert (left.subject, left.reason) == (
        f"ledger {writer.ledger_id}",
        f"copies: below write quorum, on {AWAY}",
    )
    (row,) = report.details["copies"]
    assert (row["first_entry_id"], row["last_entry_id"]) == (1, 1)
    assert "away while they were written" in row["reason"]
    writer.roll()
    writer.append(b"c")
    wait_for_all_copies(writer._segment.handle)
    require_whole(keeper, log)
    writer.close()


@pytest.mark.parametrize("is_written_on", [False, True], ids=["at once", "behind another writer"])
def test_a_repair_makes_copies_of_a_writer_that_died(
    rig: Rig, keeper: BookKeeper, is_written_on: bool
) -> None:
    """Of the open end, or of an older fragment: the ledger is closed first."""
    log = unbounded(keeper)
    shortened(rig, log, WriterSettings(explicit_lac_ms=1)).release()
    if is_written_on:
        writer = log.writer(settings=WriterSettings(explicit_lac_ms=1))
        writer.append(b"c")
        wait_for_all_copies(writer._segment.handle)
        writer.release()
    assert only_ledger(keeper, log).state is LedgerState.OPEN
    admin.repair(rig.uri, open_grace=0)
    assert not admin.audit(rig.uri).left
    assert only_ledger(keeper, log).state is LedgerState.CLOSED
    with log.writer(settings=SILENT) as writer:
        writer.append(b"d")
    assert values(log) == [b"a", b"b", *[b"c"] * is_written_on, b"d"]


def test_a_repair_widens_a_ledger_of_a_writer_that_died(rig: Rig, keeper: BookKeeper) -> None:
    log = unbounded(keeper)
    rig.faults.down = {AWAY}
    writer = log.writer(settings=SILENT)
    writer.append(b"a")
    writer.release()
    admin.repair(rig.uri, open_grace=0)
    assert only_ledger(keeper, log).state is LedgerState.OPEN  # there is no third bookie
    rig.faults.forget()
    admin.repair(rig.uri, open_grace=0)
    assert not admin.audit(rig.uri).left
    assert only_ledger(keeper, log).quorum.write_quorum_size == 3
    assert values(log) == [b"a"]


def test_a_whole_log_is_not_closed_by_a_repair(rig: Rig, keeper: BookKeeper) -> None:
    log = unbounded(keeper)
    writer = log.writer(settings=WriterSettings(explicit_lac_ms=1))
    writer.append(b"a")
    wait_for_all_copies(writer._segment.handle)
    writer.release()
    admin.repair(rig.uri, open_grace=0)
    assert not admin.audit(rig.uri).left
    assert only_ledger(keeper, log).state is LedgerState.OPEN


@pytest.mark.thorough
def test_an_operator_has_an_older_fragment_made_whole_under_a_living_writer(
    rig: Rig, keeper: BookKeeper
) -> None:
    """The writer is short of nothing and stays in its ledger, and a repair leaves open ledgers."""
    log = unbounded(keeper)
    shortened(rig, log, WriterSettings(explicit_lac_ms=1)).release()
    writer = log.writer(settings=WriterSettings(explicit_lac_ms=1))
    writer.append(b"c")
    wait_for_all_copies(writer._segment.handle)
    writer.roll()
    admin.repair(rig.uri)
    ledger = only_ledger(keeper, log)
    assert ledger.state is LedgerState.OPEN
    assert [left.subject for left in admin.audit(rig.uri).left] == [f"ledger {ledger.ledger_id}"]
    recover_ledger(keeper._cluster, ledger.ledger_id, Password(), seals=True)
    with pytest.raises(InvalidTermError):
        writer.append(b"after the fence")
    with log.writer(settings=SILENT) as after:
        after.append(b"d")
        wait_for_all_copies(after._segment.handle)
        require_whole(keeper, log)
    assert values(log) == [b"a", b"b", b"c", b"d"]
