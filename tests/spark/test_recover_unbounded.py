"""Recovery of the ledger that an unbounded log goes on in, as a Spark action and as a job."""

import json

import pytest
from test_recover import job, state_of

import bkspark
from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.metadata import LedgerState


@pytest.fixture
def log(place):
    with bkspark.BookKeeper(place.uri) as opened:
        log = opened.create_log("wal", unbounded=True)
        with log.writer() as writer:
            writer.append(b"x")
        yield log


def test_it_is_open_again_unless_it_is_sealed_and_both_say_so(spark, place, log, capsys):
    [ledger_id] = log.record.tail
    report = bkspark.recover_ledger(spark, place.uri, ledger_id)
    assert (report.is_open, report.last_entry_id) == (True, 0)
    for words, state in (([], "OPEN"), (["--seal"], "CLOSED"), ([], "CLOSED")):
        arguments = ["--metadata", place.uri, "--ledger", str(ledger_id), *words]
        assert job("recover")(arguments) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["state"], told["last_entry_id"]) == (state, 0)
        assert state_of(place, ledger_id).value == state
    with log.writer() as writer:
        assert writer.append(b"y") == 1
    [second] = log.record.tail
    assert not bkspark.recover_ledger(spark, place.uri, second, seal=True).is_open
    assert state_of(place, second) is LedgerState.CLOSED


def test_a_seal_is_of_one_ledger_and_yes_or_no(spark, place, log, capsys):
    [ledger_id] = log.record.tail
    assert job("recover")(["--metadata", place.uri, "--all", "--seal"]) == 2
    assert "--seal apply to one ledger" in capsys.readouterr().err
    with pytest.raises(InvalidRequestError, match="seal"):
        bkspark.recover_ledger(spark, place.uri, ledger_id, seal="no")
    assert state_of(place, ledger_id) is LedgerState.OPEN
