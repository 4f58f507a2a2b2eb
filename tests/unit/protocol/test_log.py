"""A log's record: joining, dropping, overwriting, transactions."""

import pickle
from dataclasses import replace

import pytest

from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.protocol.ledger.metadata import (
    DigestSpec,
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log.contents import DroppedLedgers, LogSettings
from bkspark.protocol.log.ledger_list import LoggedLedger
from bkspark.protocol.log.record import LogRecord
from tests.log_with import log_with

EMPTY = LogRecord("events", LogSettings(Quorum(2, 2, 1), DigestSpec("MAC", "03", "04")), b"old")
FIRST = LoggedLedger(1, 0, 10, 100)
SECOND = LoggedLedger(2, 10, 5, 50)
LOG = log_with(
    EMPTY, ledgers=(FIRST, SECOND), transactions={"app": 7}, dropped=DroppedLedgers((3,))
)


def ledger(
    ledger_id: int, entry_count: int = 4, state: LedgerState = LedgerState.CLOSED
) -> LedgerMetadata:
    is_closed = state is not LedgerState.OPEN
    return LedgerMetadata(
        ledger_id=ledger_id,
        quorum=Quorum(2, 2, 1),
        state=state,
        term=1,
        token="t",
        fragments=(Fragment(0, 1, (Member("a", "1"), Member("b", "1"))),),
        settings=LedgerSettings(digest=DigestSpec("MAC", "01", "02")),
        last_entry_id=entry_count - 1 if is_closed else None,
        length_bytes=10 * entry_count if is_closed else None,
    )


def splice(
    log: LogRecord, metadata: LedgerMetadata, version: int | None = None, overwrite: bool = False
) -> LogRecord:
    transaction = None if version is None else Transaction("app", version)
    return log.with_ledger(metadata, schema=b"new", transaction=transaction, overwrite=overwrite)


# --- what is valid ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"ledgers": (FIRST, LoggedLedger(2, 11, 5, 0))},
        {"ledgers": (FIRST, LoggedLedger(2, 9, 5, 0))},
        {"ledgers": (LoggedLedger(1, 0, 0, 0),)},
        {"ledgers": (LoggedLedger(1, -1, 5, 0),)},
        {"ledgers": (LoggedLedger(1, 3, 5, 0),), "first_offset": 2},
        {"ledgers": (FIRST,), "first_offset": 11},
        {"first_offset": -1},
        {"ledgers": (), "first_offset": -1},
        {"ledgers": (FIRST, LoggedLedger(1, 10, 5, 0))},
        {"ledgers": (FIRST,), "dropped": DroppedLedgers((1,))},
        {"dropped": DroppedLedgers((8, 8))},
        {"dropped": DroppedLedgers((8,), (9,))},
        {"dropped": DroppedLedgers((-1,))},
        {"tail": (-1,)},
        {"ledgers": (LoggedLedger(-1, 0, 10, 100),)},
        {"first_version": -1},
    ],
)
def test_an_impossible_record_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        log_with(LOG, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"first_offset": 3},
        {"ledgers": (LoggedLedger(1, 3, 5, 0),), "first_offset": 3},
        {"ledgers": (LoggedLedger(1, 3, 5, 0),), "first_offset": 8},
        {"ledgers": (), "first_offset": 15},
    ],
)
def test_a_truncated_record_is_accepted_and_can_be_pickled(changes: dict[str, object]) -> None:
    log = log_with(LOG, **changes)
    assert pickle.loads(pickle.dumps(log)) == log


def test_the_end_and_the_length_of_a_log() -> None:
    assert (LOG.end_offset, LOG.length_bytes) == (15, 150)
    assert (EMPTY.end_offset, EMPTY.length_bytes) == (0, 0)
    assert replace(EMPTY, first_offset=15).end_offset == 15


# --- joining ---------------------------------------------------------------------------------


def test_a_ledger_joins_behind_the_end() -> None:
    after = splice(LOG, ledger(4), 8)
    assert after.ledgers == (FIRST, SECOND, LoggedLedger(4, 15, 4, 40))
    assert (after.schema, after.transactions, after.dropped.ids) == (b"new", {"app": 8}, (3,))
    assert (after.generation, after.quorum, after.digest) == (1, LOG.quorum, LOG.digest)
    assert LOG.transactions == {"app": 7}


def test_a_ledger_joins_behind_the_truncation_point_of_an_emptied_log() -> None:
    after = splice(replace(EMPTY, first_offset=15), ledger(4))
    assert after.ledgers == (LoggedLedger(4, 15, 4, 40),)


@pytest.mark.parametrize("overwrite", [False, True])
def test_joining_twice_is_joining_once(overwrite: bool) -> None:
    once = splice(LOG, ledger(4), 8, overwrite)
    assert splice(once, ledger(4), 8, overwrite) is once


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_dropped_ledger_never_joins(overwrite: bool) -> None:
    with pytest.raises(OutcomeUnknownError, match="ledger 3 was dropped"):
        splice(LOG, ledger(3), None, overwrite)


@pytest.mark.parametrize(
    "state", [LedgerState.OPEN, LedgerState.DELETING], ids=lambda state: state.value
)
def test_only_a_closed_ledger_joins(state: LedgerState) -> None:
    with pytest.raises(InvalidRequestError, match="only a CLOSED"):
        splice(LOG, ledger(4, state=state))


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_ledger_of_another_digest_type_never_joins(overwrite: bool) -> None:
    """Two first writes may found one log; a forger could otherwise add to a log with a MAC."""
    plain = replace(ledger(9), settings=LedgerSettings())
    with pytest.raises(InvalidRequestError, match="digestType MAC, not CRC32C"):
        splice(LOG, plain, overwrite=overwrite)


def test_an_empty_ledger_takes_no_offsets_but_commits_its_transaction() -> None:
    after = splice(LOG, ledger(4, entry_count=0), 8)
    assert (after.ledgers, after.transactions, after.dropped.ids) == (
        LOG.ledgers,
        {"app": 8},
        (3, 4),
    )
    assert after.dropped.to_delete == (4,)
    assert splice(after, ledger(4, entry_count=0), 8) is after


# --- transactions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transaction", "expected"),
    [
        (None, False),
        (Transaction("app", 6), True),
        (Transaction("app", 7), True),
        (Transaction("app", 8), False),
        (Transaction("other", 0), False),
    ],
)
def test_a_version_not_above_the_last_is_committed(
    transaction: Transaction | None, expected: bool
) -> None:
    assert LOG.has_committed(transaction) is expected


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("version", [6, 7])
def test_a_committed_transaction_is_not_done_again(version: int, overwrite: bool) -> None:
    after = splice(LOG, ledger(4), version, overwrite)
    assert after == replace(LOG, dropped=DroppedLedgers((3, 4)))
    assert splice(after, ledger(4), version, overwrite) is after


def test_transactions_of_other_applications_are_kept() -> None:
    after = LOG.with_ledger(ledger(4), schema=b"", transaction=Transaction("other", 0))
    assert after.transactions == {"app": 7, "other": 0}
    assert splice(after, ledger(5)).transactions == {"app": 7, "other": 0}


# --- dropping, overwriting, deleting -----------------------------------------------------------


def test_an_aborted_ledger_is_dropped_once_and_for_ever() -> None:
    after = LOG.without(4)
    assert after == replace(LOG, dropped=DroppedLedgers((3, 4)))
    assert after.without(4) is after
    with pytest.raises(OutcomeUnknownError):
        splice(after, ledger(4))


def test_an_abort_after_the_commit_drops_nothing() -> None:
    assert LOG.without(1) is LOG


def test_overwriting_starts_a_generation_at_offset_0_and_drops_what_was_there() -> None:
    after = splice(replace(LOG, first_offset=4), ledger(4), 8, overwrite=True)
    assert after.ledgers == (LoggedLedger(4, 0, 4, 40),)
    assert (after.generation, after.first_offset, after.dropped.ids) == (2, 0, (3, 1, 2))
    assert after.transactions == {"app": 8}
    assert (after.quorum, after.digest) == (LOG.quorum, LOG.digest)


def test_versions_go_on_behind_an_overwrite_and_a_deletion() -> None:
    truncated = log_with(LOG, first_version=5, first_offset=4, truncated_ms=9)
    for after in (splice(truncated, ledger(4), overwrite=True), truncated.vacated()):
        assert (after.listed.first_version, after.times.truncated_ms) == (7, None)


def test_transactions_survive_an_overwrite_without_one() -> None:
    assert splice(LOG, ledger(4), overwrite=True).transactions == {"app": 7}


def test_a_ledger_that_was_overwritten_does_not_come_back() -> None:
    after = splice(LOG, ledger(4), overwrite=True)
    with pytest.raises(OutcomeUnknownError):
        splice(after, ledger(1))


def test_a_vacant_name_is_created_with_the_settings_of_the_first_ledger() -> None:
    vacant = LogRecord.tombstone("events", Quorum(3, 3, 2))
    assert (vacant.is_tombstone, vacant.generation) == (True, 0)
    assert LogRecord.of(None, "events", Quorum(3, 3, 2)) == vacant
    assert LogRecord.of(vacant, "events", Quorum(1, 1, 1)) is vacant
    after = splice(vacant, ledger(4), 1, overwrite=True)
    assert (after.is_tombstone, after.generation) == (False, 1)
    assert (after.quorum, after.digest) == (ledger(4).quorum, ledger(4).settings.digest)
    assert after.ledgers == (LoggedLedger(4, 0, 4, 40),)


def test_an_abort_before_the_first_write_leaves_the_name_vacant() -> None:
    after = LogRecord.tombstone("events", Quorum(3, 3, 2)).without(4)
    assert after.is_tombstone
    with pytest.raises(OutcomeUnknownError):
        splice(after, ledger(4))


def test_a_deleted_log_forgets_transactions_but_not_dropped_ledgers() -> None:
    after = replace(LOG, first_offset=4).vacated()
    assert (after.is_tombstone, after.ledgers, after.first_offset) == (True, (), 0)
    assert (after.transactions, after.dropped.ids, after.schema) == ({}, (3, 1, 2), b"")
    created = splice(after, ledger(4), 1)
    assert (created.generation, created.ledgers) == (2, (LoggedLedger(4, 0, 4, 40),))


def test_a_stamp_says_when_a_log_changed_and_once_when_it_began() -> None:
    first, second = replace(FIRST, closed_ms=5), replace(SECOND, closed_ms=9)
    once = log_with(LOG, ledgers=(FIRST,)).stamped(5)
    assert (once.times.created_ms, once.times.changed_ms, once.ledgers) == (5, 5, (first,))
    again = log_with(once, ledgers=(first, SECOND)).stamped(9)
    assert (again.times.created_ms, again.times.changed_ms, again.ledgers) == (
        5,
        9,
        (first, second),
    )
