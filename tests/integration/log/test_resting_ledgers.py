"""An unbounded log's ledger to which nothing was written since it was OPEN last."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bkspark import verbs
from bkspark.admin.absent_bookies import declare_lost
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.format import layout
from bkspark.log import truncation
from bkspark.log.creating import create_log_ledger
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from tests.integration.log_scenes import NAME, at_rest, the_ledger
from tests.integration.rig import Rig


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def log(keeper: BookKeeper) -> LogHandle:
    return at_rest(keeper)


def test_one_that_rests_is_left_alone_until_something_is_written(
    memory_rig: Rig, log: LogHandle
) -> None:
    """By runs over all; who names it means it."""
    ledger_id = the_ledger(log)
    for number in range(2):
        [row] = verbs.recover(memory_rig.uri, open_grace=0).details["recovered"]
        rested = memory_rig.ledger(ledger_id)
        assert (row["ledger_id"], row["last_entry_id"]) == (ledger_id, 1 + number)
        for _ in range(2):
            report = verbs.recover(memory_rig.uri, open_grace=0)
            assert (report.details["recovered"], memory_rig.ledger(ledger_id)) == ([], rested)
            [left] = report.details["open"]
            assert "nothing was written" in left["reason"]
        with log.writer() as writer:
            writer.append(b"c")
    verbs.recover(memory_rig.uri, ledgers=[ledger_id])
    rested = memory_rig.ledger(ledger_id)
    verbs.recover(memory_rig.uri, ledgers=[ledger_id])
    assert memory_rig.ledger(ledger_id).term > rested.term


def test_one_whose_members_all_lack_what_its_record_confirms_does_not_rest(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    verbs.recover(memory_rig.uri, open_grace=0)

    def confirming(ledger: LedgerMetadata | None) -> LedgerMetadata:
        assert ledger is not None
        last = ledger.last_fragment
        told = replace(last, confirmed=last.first_entry_id)
        return replace(ledger, fragments=(*ledger.fragments[:-1], told))

    keeper._cluster.ledgers.update(str(the_ledger(log)), confirming)
    report = verbs.recover(memory_rig.uri, open_grace=0)
    assert report.details["open"] == []
    assert report.exit_status == 1


@pytest.mark.parametrize("kind", ["permission", "journal", "bookie"])
def test_one_that_rests_is_recovered_where_a_member_does_not_show_what_it_took(
    kind: str, memory_rig: Rig, log: LogHandle
) -> None:
    ledger_id = the_ledger(log)
    verbs.recover(memory_rig.uri, open_grace=0)
    rested = memory_rig.ledger(ledger_id)
    fragment = rested.last_fragment
    gone = fragment.ensemble[0].bookie_id
    name = getattr(layout, kind, layout.journal)(ledger_id, fragment.term, fragment.token)
    if kind == "bookie":
        memory_rig.faults.down = {gone}
    else:
        memory_rig.replace_file(gone, name, None)
    verbs.recover(memory_rig.uri, open_grace=0)
    after = memory_rig.ledger(ledger_id)
    assert (after.state, after.term > rested.term) == (LedgerState.OPEN, True)


def test_a_log_that_rests_is_closed_where_a_bookie_is_gone_for_good(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    """It has its last fragment elsewhere, and all members of that are well."""
    ledger_id = the_ledger(log)
    first = {member.bookie_id for member in memory_rig.ledger(ledger_id).last_fragment.ensemble}
    for name in first:
        memory_rig.faults.down = {name}
        verbs.recover(memory_rig.uri, open_grace=0)
    left = first - {m.bookie_id for m in memory_rig.ledger(ledger_id).last_fragment.ensemble}
    memory_rig.faults.down = {min(left)}
    declare_lost(keeper._cluster, min(left))
    verbs.recover(memory_rig.uri, open_grace=0)
    assert memory_rig.ledger(ledger_id).state is LedgerState.CLOSED


def test_one_that_rests_and_that_no_log_goes_on_in_is_closed(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    unlisted = create_log_ledger(keeper._cluster, log.record, Password(), goes_on=True)
    unlisted.begun.close()
    verbs.recover(memory_rig.uri, open_grace=0)
    assert memory_rig.ledger(unlisted.seen.value.ledger_id).state is LedgerState.CLOSED


def test_whether_one_rests_is_not_known_where_the_log_cannot_be_read(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    ledger_id = the_ledger(log)
    verbs.recover(memory_rig.uri, open_grace=0)
    store, key = keeper._cluster.store, layout.log_key(NAME)
    stored = store.get(key)
    assert stored is not None
    store.put(key, stored.value[:-9] + b"damaged!\n", stored.version)
    report = verbs.recover(memory_rig.uri, open_grace=0)
    assert f"ledger {ledger_id}" in {left.subject for left in report.left}


@pytest.mark.parametrize(("before", "is_closed"), [(2, False), (0, True)])
def test_who_is_gone_for_good_and_had_only_what_is_truncated_closes_nothing(
    before: int,
    is_closed: bool,
    memory_rig: Rig,
    keeper: BookKeeper,
    log: LogHandle,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fragments that are hidden as a whole are left by a truncation that died."""
    ledger_id = the_ledger(log)
    ensemble = memory_rig.ledger(ledger_id).last_fragment.ensemble
    gone = ensemble[0].bookie_id
    memory_rig.faults.down = {gone}
    for _ in range(2):
        with log.writer() as writer:
            writer.append(b"c")
    declare_lost(keeper._cluster, gone)
    with monkeypatch.context() as patched:
        patched.setattr(truncation, "_truncate_tail", lambda *_: None)
        log.truncate(before)
    verbs.recover(memory_rig.uri, open_grace=0)
    found = memory_rig.ledger(ledger_id)
    assert (found.state is LedgerState.CLOSED, found.first_available) == (is_closed, 0)
