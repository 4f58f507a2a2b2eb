"""What a store says, with its code, reaches the message and the log, whoever asked."""

import logging
import secrets

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.errors import BookKeeperError, NotEnoughBookiesError

from .stand_in import BUCKET, Fate, S3Store

CODES = {
    "OperationAborted": Fate(409, "OperationAborted"),
    "RequestTimeTooSkewed": Fate(403, "RequestTimeTooSkewed"),
    "ExpiredToken": Fate(400, "ExpiredToken"),
    "AccessDenied": Fate(403, "AccessDenied"),
}
MANY = 10_000


@pytest.fixture
def uri(s3: S3Store) -> str:
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [f"s3://{BUCKET}/b{number}" for number in range(4)], accepts_risk=True)
    return uri


@pytest.mark.parametrize("code", CODES)
def test_of_a_new_ledger(
    s3: S3Store, uri: str, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    s3.script("put_object", *[CODES[code]] * MANY)
    with BookKeeper(uri) as keeper, pytest.raises(NotEnoughBookiesError) as caught:
        keeper.create_ledger()
    assert code in str(caught.value)
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    given_up = [line for line in told if "is given up" in line]
    assert given_up
    for line in given_up:
        assert code in line
        assert line.count("bookie bookie-") == 1


@pytest.mark.parametrize("code", CODES)
def test_of_an_append(s3: S3Store, uri: str, code: str, caplog: pytest.LogCaptureFixture) -> None:
    with BookKeeper(uri) as keeper:
        writer = keeper.create_ledger()
        writer.append(b"one")
        s3.script("put_object", *[CODES[code]] * MANY)
        with pytest.raises(BookKeeperError) as caught:
            writer.append(b"two")
        assert code in str(caught.value) + caplog.text
        assert "bookie bookie-1: bookie bookie-1:" not in str(caught.value) + caplog.text
        s3.script("put_object")
        with pytest.raises(BookKeeperError):  # the entry is still in doubt
            writer.close()
