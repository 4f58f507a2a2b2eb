"""What a store, or its absence, says: each reason has its own words and what to do about it."""

import errno
import socket

import pytest

from bkspark.bookie.checks import TooManyOpenFilesError, UnavailableOnOSError
from bkspark.errors import BookieUnavailableError
from bkspark.storage import connection
from bkspark.storage.connection import StoreDoubt


class Refused(Exception):
    """As botocore's ``ClientError``."""

    def __init__(self, status: int, code: str, **headers: str) -> None:
        super().__init__(code)
        self.response = {
            "Error": {"Code": code},
            "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers},
        }


def meaning(error: Exception) -> StoreDoubt:
    return connection._meaning(error)


@pytest.mark.parametrize(
    ("status", "code", "reason", "hint"),
    [
        (403, "RequestTimeTooSkewed", "clock", "NTP"),
        (400, "ExpiredToken", "token has expired", "AWS_SESSION_TOKEN"),
        (403, "ExpiredToken", "token has expired", "AWS_SESSION_TOKEN"),
        (400, "InvalidToken", "token", "AWS_SESSION_TOKEN"),
        (403, "InvalidAccessKeyId", "access key", "AWS_ACCESS_KEY_ID"),
        (403, "SignatureDoesNotMatch", "access key", "AWS_ACCESS_KEY_ID"),
        (403, "AccessDenied", "access was refused", "permissions"),
        (409, "OperationAborted", "409 OperationAborted", ""),
        (503, "SlowDown", "503 SlowDown", "BKSPARK_OBJECT_STORE_RETRY_SECONDS"),
    ],
)
def test_a_refusal_says_what_it_is(status: int, code: str, reason: str, hint: str) -> None:
    doubt = meaning(Refused(status, code))
    assert reason in str(doubt.strerror)
    assert code in str(doubt.strerror)
    assert hint in doubt.hint


@pytest.mark.parametrize("code", ["RequestTimeTooSkewed", "ExpiredToken", "InvalidAccessKeyId"])
def test_what_waiting_does_not_mend_is_not_tried_again(code: str) -> None:
    doubt = meaning(Refused(403, code))
    assert not doubt.is_passing
    assert not doubt.asks_for_less


@pytest.mark.parametrize(
    ("status", "code"),
    [(503, "SlowDown"), (503, ""), (429, ""), (400, "RequestLimitExceeded"), (400, "Throttling")],
)
def test_a_store_that_wants_fewer_requests_is_known(status: int, code: str) -> None:
    assert meaning(Refused(status, code)).asks_for_less


@pytest.mark.parametrize(("given", "seconds"), [("7", 7), ("", 0), ("Wed, 21 Oct 2026", 0)])
def test_how_long_to_wait_is_read(given: str, seconds: float) -> None:
    assert meaning(Refused(503, "SlowDown", **{"retry-after": given})).retry_after == seconds


def wrapped(cause: BaseException) -> OSError:
    """As s3fs hands it on."""
    error = OSError("Could not connect to the endpoint URL: http://me:secret@host")
    error.__cause__ = RuntimeError("of the client")
    error.__cause__.__context__ = cause
    return error


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "host name cannot be resolved"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "port refuses connections"),
        (OSError(errno.EMFILE, "Too many open files"), "too many open files: nothing was sent"),
    ],
)
def test_a_store_that_is_not_reached_says_why(cause: BaseException, words: str) -> None:
    doubt = meaning(wrapped(cause))
    assert words in str(doubt.strerror)
    assert "secret" not in str(doubt)
    assert doubt.hint
    assert doubt.is_absent
    with pytest.raises(BookieUnavailableError) as told, UnavailableOnOSError("b1", "read", "x"):
        raise doubt
    is_own = getattr(cause, "errno", 0) == errno.EMFILE
    assert isinstance(told.value, TooManyOpenFilesError) == is_own
