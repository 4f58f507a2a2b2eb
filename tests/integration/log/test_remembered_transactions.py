"""Writes with ``txnAppId``: what a log takes, and what it remembers, in each kind of log."""

import json
from pathlib import Path

import pytest

from bkspark import BookKeeper
from bkspark.cli import main
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.log.batch.commit import CommitResult
from bkspark.log.log_handle import transactions_of
from bkspark.log.streams import appending
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log import transactions
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import settled_rows

KINDS = [False, True]


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A cluster whose logs remember few applications."""
    monkeypatch.setattr(transactions, "NAMED_MAX", 2)
    monkeypatch.setattr(transactions, "DIGESTS_MAX", 3)
    monkeypatch.setattr(transactions, "TAIL_DIGESTS_MAX", 1)
    return Rig(tmp_path / "cluster", metadata="memory", bookie_count=3)


def append(rig: Rig, unbounded: bool, transaction: Transaction | None) -> CommitResult:
    request = rig.request(transaction=transaction, is_unbounded=unbounded)
    target, staging = appending.prepare(request)
    return appending.commit(target, staging, rig.tasks(target, partitions_of(1)))


def remembered(rig: Rig, unbounded: bool) -> dict[str, int]:
    """The transactions of the log, when its tail is closed."""
    settled_rows(rig)
    with Cluster(rig.uri) as cluster:
        log = cluster.log(rig.log_name).value
        of_ledger = cluster.ledger(log.ledgers[-1].ledger_id).value.transactions
        assert not unbounded or len(of_ledger) == 3  # by name, and one digest
        return dict(log.transactions)


@pytest.mark.parametrize("unbounded", KINDS)
def test_an_id_for_each_run_never_ends_a_log(rig: Rig, unbounded: bool) -> None:
    runs = [Transaction(f"run-{number}", 0) for number in range(7)]
    for run in runs:
        assert append(rig, unbounded, run).row_count == 1
    for run in runs[2:]:  # by name, or by digest
        assert append(rig, unbounded, run).row_count == 0
    assert append(rig, unbounded, None).row_count == 1
    found = remembered(rig, unbounded)
    assert [key for key in found if transactions.is_name(key)] == ["run-5", "run-6"]
    assert found["#"] == 2
    assert len(found) == 6
    assert len(settled_rows(rig)) == 8


@pytest.mark.parametrize("unbounded", KINDS)
def test_the_order_of_applications_is_stored(rig: Rig, unbounded: bool) -> None:
    for name in ("b", "a", "b"):
        append(rig, unbounded, Transaction(name, 1 + (name == "b")))
    append(rig, unbounded, Transaction("b", 9))
    append(rig, unbounded, Transaction("0", 0))
    found = remembered(rig, unbounded)
    assert list(found)[:2] == ["b", "0"]
    assert append(rig, unbounded, Transaction("a", 1)).row_count == 0


@pytest.mark.parametrize("unbounded", KINDS)
def test_a_version_out_of_range_changes_nothing(rig: Rig, unbounded: bool) -> None:
    append(rig, unbounded, Transaction("app", 2**63 - 1))
    with pytest.raises(InvalidRequestError, match="txnVersion"):
        append(rig, unbounded, Transaction("app", 2**63))
    assert append(rig, unbounded, Transaction("app", 2**63 - 1)).row_count == 0
    assert append(rig, unbounded, Transaction("other", 0)).row_count == 1
    assert len(settled_rows(rig)) == 2


def test_an_application_takes_no_name_of_a_query(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster:
        for name in ("stream/7", "#0123456789abcdef"):
            with pytest.raises(BookKeeperError, match="must not begin with"):
                append(rig, False, Transaction(name, 0))
        assert cluster.ledger_ids() == []


@pytest.mark.parametrize("unbounded", KINDS)
def test_the_transactions_of_a_log_are_shown_its_open_tail_included(
    rig: Rig, unbounded: bool
) -> None:
    for number in range(7):
        append(rig, unbounded, Transaction(f"run-{number}", number))
    with BookKeeper(rig.uri) as keeper:
        assert keeper.open_log(rig.log_name).transactions == {"run-5": 5, "run-6": 6}
    with Cluster(rig.uri) as cluster:
        found = transactions_of(cluster, rig.log_name, Password())
        assert bool(cluster.log(rig.log_name).value.tail) is unbounded
    assert found["#"] == 2
    assert len(found) == 6


def test_a_command_shows_them(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(6):
        append(rig, False, Transaction(f"run-{number}", number))
    assert main(["log", "transactions", rig.log_name, "--metadata", rig.uri, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["forgotten"] == {"applications": 1, "queries": 0}
    rows = shown["transactions"]
    assert [row["application"] for row in rows if row["application"]] == ["run-4", "run-5"]
    assert sorted(row["version"] for row in rows) == [1, 2, 3, 4, 5]
    assert main(["log", "transactions", rig.log_name, "--metadata", rig.uri]) == 0
    assert "1 applications" in capsys.readouterr().err
