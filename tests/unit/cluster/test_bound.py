"""What belongs to a process is not sent to another one, and says so."""

import copy
import pickle

import pytest

import bkspark
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import InvalidRequestError


def test_handles_say_why_they_cannot_be_pickled(small_cluster):
    with BookKeeper(small_cluster.uri) as keeper:
        log = keeper.create_log("wal")
        with keeper.create_ledger() as ledger, log.writer() as writer:
            adv = keeper.create_ledger_adv()
            reader = keeper.open_ledger(ledger.ledger_id, recovery=False)
            for thing in (keeper, keeper._cluster, log, ledger, writer, adv, reader):
                for send in (pickle.dumps, copy.copy, copy.deepcopy):
                    with pytest.raises(InvalidRequestError, match=type(thing).__name__) as raised:
                        send(thing)
                    text = str(raised.value)
                    assert "belongs to the process that made it; send the cluster's URI" in text
                    assert "\n" not in text
            adv.release()


def test_dir_shows_what_the_package_has():
    assert set(bkspark.__all__) <= set(dir(bkspark))
    assert dir(bkspark) == sorted(dir(bkspark))
    assert "__doc__" in dir(bkspark)
