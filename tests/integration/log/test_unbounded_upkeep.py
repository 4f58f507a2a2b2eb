"""What recoveries, and other upkeep, make of the ledger that an unbounded log goes on in."""

from collections.abc import Iterator

import pytest

from bkspark import verbs
from bkspark.admin.absent_bookies import declare_lost
from bkspark.admin.survey import Survey
from bkspark.bookie import memory
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    InvalidTermError,
    LedgerClosedError,
    NoSuchLedgerError,
    UnauthorizedError,
)
from bkspark.format import layout
from bkspark.ledger.recovery import recover
from bkspark.ledger.recovery.recover import LedgerTakeover
from bkspark.log import recovering
from bkspark.log.creating import create_log_ledger
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.metadata import LedgerState, Member
from tests.integration.log_scenes import NAME, SILENT, at_rest, open_ledgers, the_ledger, values
from tests.integration.rig import Rig


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def log(keeper: BookKeeper) -> LogHandle:
    return at_rest(keeper)


def test_who_is_recovered_from_is_overtaken_and_the_next_goes_on(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    writer = log.writer(settings=SILENT)
    writer.append(b"c")
    report = keeper.recover_ledger(the_ledger(log))
    assert (report.is_open, report.state, report.last_entry_id) == (True, LedgerState.OPEN, 2)
    assert memory_rig.ledger(the_ledger(log)).state is LedgerState.OPEN
    with pytest.raises(InvalidTermError):
        writer.append(b"late")
    assert values(log) == [b"a", b"b", b"c"]
    with log.writer() as other:
        assert other.append(b"d") == 3


def test_one_that_is_sealed_is_closed_and_the_log_goes_on_in_another(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    first = the_ledger(log)
    report = keeper.recover_ledger(first, seal=True)
    assert (report.is_open, report.last_entry_id) == (False, 1)
    assert memory_rig.ledger(first).state is LedgerState.CLOSED
    assert keeper.recover_ledger(first).state is LedgerState.CLOSED
    for number in (2, 3):
        with log.writer() as writer:
            assert writer.append(b"%d" % number) == number
    assert values(log) == [b"a", b"b", b"2", b"3"]
    assert log.record.listed_ids == (first, the_ledger(log))
    assert open_ledgers(keeper._cluster.uri) == {the_ledger(log)}


def test_who_opens_it_by_its_id_reads_all_and_closes_nothing(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    writer = log.writer(settings=SILENT)
    writer.append(b"c")
    reader = keeper.open_ledger(the_ledger(log))
    assert [entry.value for entry in reader.read()] == [b"a", b"b", b"c"]
    assert not reader.is_closed
    assert memory_rig.ledger(the_ledger(log)).state is LedgerState.OPEN
    writer.release()


def test_many_at_once_say_which_are_open_again(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    with keeper.create_ledger() as handle:
        handle.append(b"x")
        report = verbs.recover(memory_rig.uri, ledgers=[the_ledger(log), handle.ledger_id])
        handle.release()
        handle._is_sealed = True
    rows = {row["ledger_id"]: row["state"] for row in report.details["recovered"]}
    assert rows == {the_ledger(log): "OPEN", handle.ledger_id: "CLOSED"}
    assert "1 of them OPEN again" in report.summary
    with log.writer() as writer:
        writer.append(b"c")
    assert verbs.recover(memory_rig.uri, open_grace=0).details["recovered"][0]["state"] == "OPEN"
    assert memory_rig.ledger(the_ledger(log)).state is LedgerState.OPEN


def test_a_ledger_that_no_log_goes_on_in_is_closed(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    """It is on no list; or on that of a log that has been chained since."""
    unlisted = create_log_ledger(keeper._cluster, log.record, Password(), goes_on=True)
    unlisted.begun.close()
    report = keeper.recover_ledger(unlisted.seen.value.ledger_id)
    assert not report.is_open
    chained = keeper.create_log("chained")
    made = create_log_ledger(keeper._cluster, chained.record, Password(), goes_on=True)
    made.begun.close()
    keeper._cluster.logs.update(
        "chained", lambda record: (record or chained.record).with_tail(made.seen.value)
    )
    assert not keeper.recover_ledger(made.seen.value.ledger_id).is_open


def test_nothing_is_done_where_the_log_cannot_be_read(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_id = the_ledger(log)
    before = memory_rig.ledger(ledger_id)

    def unreadable(_name: str) -> None:
        raise CorruptDataError("the record is damaged")

    monkeypatch.setattr(keeper._cluster.logs, "get", unreadable)
    with pytest.raises(CorruptDataError):
        keeper.recover_ledger(ledger_id)
    assert memory_rig.ledger(ledger_id) == before


def test_one_that_somebody_seals_meanwhile_is_closed_for_both(
    keeper: BookKeeper, log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = recover.take_over

    def sealed_meanwhile(*args: object, **kwargs: object) -> LedgerTakeover:
        recover.recover(*args, **kwargs)  # type: ignore[arg-type]
        return real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(recover, "take_over", sealed_meanwhile)
    report = keeper.recover_ledger(the_ledger(log))
    assert (report.is_open, report.last_entry_id) == (False, 1)


def test_one_of_which_something_is_given_up_is_closed(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    """Nobody who takes it over could be asked about its last record."""
    ledger_id = the_ledger(log)
    log.writer().close()
    fragments = memory_rig.ledger(ledger_id).fragments
    names = {member.bookie_id for one in fragments for member in one.ensemble}
    memory_rig.faults.down = names
    for name in names:
        declare_lost(keeper._cluster, name)
    asked: list[str] = []

    def accepts(loss: str) -> bool:
        asked.append(loss)
        return True

    report = recovering.recover_ledger(keeper._cluster, ledger_id, Password(), accepts_loss=accepts)
    assert (report.is_open, report.last_entry_id) == (False, 1)
    assert report.lost_from is not None
    assert len(asked) == len(set(asked))
    assert memory_rig.ledger(ledger_id).state is LedgerState.CLOSED


def test_a_wrong_password_recovers_nothing(memory_rig: Rig, keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME, unbounded=True, digest_type="MAC", password="sesame")
    log.writer().close()
    before = memory_rig.ledger(the_ledger(log))
    with pytest.raises(UnauthorizedError):
        keeper.recover_ledger(the_ledger(log))
    [left] = verbs.recover(memory_rig.uri, ledgers=[the_ledger(log)]).left
    assert "password" in left.reason
    assert memory_rig.ledger(the_ledger(log)) == before


# --- ends ----------------------------------------------------------------------------------------


def test_a_log_that_is_sealed_takes_nothing_any_more(keeper: BookKeeper, log: LogHandle) -> None:
    writer = log.writer(settings=SILENT)
    writer.append(b"c")
    log.seal()
    for add in (lambda: writer.append(b"late"), log.writer):
        with pytest.raises(BookKeeperError) as refused:
            add()
        assert isinstance(refused.value, LedgerClosedError | InvalidTermError)
    assert values(log) == [b"a", b"b", b"c"]
    assert open_ledgers(keeper._cluster.uri) == set()


def test_a_log_that_is_deleted_has_no_ledger_that_goes_on(
    keeper: BookKeeper, log: LogHandle
) -> None:
    writer = log.writer(settings=SILENT)
    keeper.delete_log(NAME)
    with pytest.raises((InvalidTermError, NoSuchLedgerError)):
        writer.append(b"late")
    anew = keeper.create_log(NAME, unbounded=True)
    with anew.writer() as other:
        assert other.append(b"z") == 0
    assert values(anew) == [b"z"]


# --- bookies -------------------------------------------------------------------------------------


def test_a_bookie_is_emptied_when_its_ledger_is_sealed(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    ledger_id = the_ledger(log)
    leaving = memory_rig.ledger(ledger_id).last_fragment.ensemble[0].bookie_id
    report = verbs.decommission(memory_rig.uri, bookies=[leaving])
    assert any("--seal" in left.hint for left in report.left)
    keeper.recover_ledger(ledger_id, seal=True)
    report = verbs.decommission(memory_rig.uri, bookies=[leaving])
    assert report.left == []
    with log.writer() as writer:
        assert writer.append(b"c") == 2
    names = {m.bookie_id for f in memory_rig.ledger(the_ledger(log)).fragments for m in f.ensemble}
    assert leaving not in names
    assert values(log) == [b"a", b"b", b"c"]


def lose_a_bookie(rig: Rig, keeper: BookKeeper, ledger_id: int) -> str:
    gone = rig.ledger(ledger_id).last_fragment.ensemble[0].bookie_id
    rig.faults.down = {gone}
    declare_lost(keeper._cluster, gone)
    return gone


def test_one_whose_bookie_is_gone_for_good_is_closed_and_repaired(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    ledger_id = the_ledger(log)
    gone = lose_a_bookie(memory_rig, keeper, ledger_id)
    plan = verbs.recover(memory_rig.uri, open_grace=0, dry_run=True).plan["recover"]
    assert plan == [{"ledger_id": ledger_id, "state": "OPEN", "seal": True}]
    report = verbs.repair(memory_rig.uri, open_grace=0)
    assert (report.exit_status, report.left) == (0, [])
    [fragment] = memory_rig.ledger(ledger_id).fragments
    assert gone not in {member.bookie_id for member in fragment.ensemble}
    with log.writer() as writer:
        assert writer.append(b"c") == 2
    assert values(log) == [b"a", b"b", b"c"]
    assert log.record.listed_ids == (ledger_id, the_ledger(log))


def test_what_a_bookie_lost_of_one_that_rests_is_copied_once_it_is_sealed(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    ledger_id = the_ledger(log)
    log.writer().close()
    log.writer().close()
    member = memory_rig.ledger(ledger_id).fragments[0].ensemble[0]
    disk = memory.find_disk(memory_rig.urls[member.bookie_id])
    assert disk is not None
    for name in [name for name in disk.files if name.startswith("ledgers/")]:
        del disk.files[name]
    reasons = [left.reason for left in verbs.repair(memory_rig.uri).left]
    assert any(f"ledger recover {ledger_id} --seal" in reason for reason in reasons)
    keeper.recover_ledger(ledger_id, seal=True)
    assert verbs.repair(memory_rig.uri).left == []
    assert values(log) == [b"a", b"b"]


def test_one_whose_writer_may_live_is_left_to_him_whoever_is_gone(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    ledger_id = the_ledger(log)
    lose_a_bookie(memory_rig, keeper, ledger_id)
    before = memory_rig.ledger(ledger_id)
    assert verbs.recover(memory_rig.uri).details["recovered"] == []
    assert memory_rig.ledger(ledger_id) == before


def test_one_that_is_named_is_closed_only_where_that_is_asked_for(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    ledger_id = the_ledger(log)
    lose_a_bookie(memory_rig, keeper, ledger_id)
    [row] = verbs.recover(memory_rig.uri, ledgers=[ledger_id]).details["recovered"]
    assert row["state"] == "OPEN"


def test_none_is_closed_where_nobody_knows_who_is_gone(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_id = the_ledger(log)
    gone = lose_a_bookie(memory_rig, keeper, ledger_id)
    real = Survey.lost_members

    def not_all_can_be_read(self: Survey) -> frozenset[Member]:
        self.unreadable[layout.bookie_key("bookie-5")] = "damaged"
        return real(self)

    monkeypatch.setattr(Survey, "lost_members", not_all_can_be_read)
    [row] = verbs.recover(memory_rig.uri, open_grace=0).details["recovered"]
    assert row["state"] == "OPEN"
    assert gone not in {m.bookie_id for m in memory_rig.ledger(ledger_id).last_fragment.ensemble}


def test_an_audit_finds_nothing_wrong_with_one_that_rests(memory_rig: Rig, log: LogHandle) -> None:
    report = verbs.audit(memory_rig.uri)
    assert (report.exit_status, report.left) == (0, [])
    assert report.details["waiting"] == []


def test_a_bookie_that_is_away_is_waited_for_or_stood_in_for(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    """An audit says so, and a recovery makes it well."""
    ledger_id = the_ledger(log)
    gone = memory_rig.ledger(ledger_id).last_fragment.ensemble[0].bookie_id
    memory_rig.faults.down = {gone}
    [waiting] = verbs.audit(memory_rig.uri).details["waiting"]
    assert waiting["ledger_id"] == ledger_id
    keeper.recover_ledger(ledger_id)
    members = {one.bookie_id for one in memory_rig.ledger(ledger_id).last_fragment.ensemble}
    assert gone not in members
    assert verbs.audit(memory_rig.uri).details["waiting"] == []
    memory_rig.faults.forget()
