"""The S3 connections of a process, one to each store, and single requests over them.

The rule: **every answer but a certain one of the store is a doubt.** "Absent" is the store's code
NoSuchKey and no other 404; "taken" is its 412. A missing bucket, a refusal, a 5xx answer, a lost
connection or a timeout is ``StoreDoubt``; for a write the doubt means that the write may have
happened, or may happen yet (R8, R15, RB-27c).

* **No cache.** Requests bypass fsspec's listings, which never expire and hide later writes of other
  clients (R5, H1), and its instances, which other code in the process could share.
* **No silent repetition.** If botocore itself repeats a conditional request after a lost answer,
  the second request meets the effect of the first and reports a lost race (H6). So botocore, s3fs
  and aiohttp make one attempt (``one_attempt``), and a repeatable request is marked by its caller
  (``repeated``).
* **No fork.** fsspec's event loop runs in a thread that a forked process does not have, so every
  process makes its own connection at first use (``clients``).

Without the name of a store botocore finds credentials, region and endpoint, from
``AWS_ENDPOINT_URL`` and its siblings; other settings, for example ``config_kwargs`` and
``s3_additional_kwargs``, come from fsspec's configuration files
(https://filesystem-spec.readthedocs.io, "Configuration"). The settings of a named store are in the
file of stores (``stores``): of the environment it takes at most region and credentials.
"""

import errno
import logging
import math
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from bkspark import environment, progress, quantities
from bkspark.errors import InvalidRequestError
from bkspark.storage import clients, stores
from bkspark.storage.address import shown_url

# --- pressure ------------------------------------------------------------------------------------
# Slows this process down when an object store asks for fewer requests.
#
# The rule: **the pressure is shared by the process.** An answer that asks for fewer requests
# doubles the time between two requests to the bucket, for all tasks. All such answers to requests
# sent before the slow-down count as one. Each answer that does not ask for fewer shortens the time
# a little. A store that never asks for fewer requests causes no waiting.
#
# A waiting task reports progress: the store has answered, so it is slow and not dead.
# ``connection.repeated`` decides how long to retry, by time and never by count.


VARIABLE = "BKSPARK_OBJECT_STORE_RETRY_SECONDS"
RETRY_SECONDS = 30.0
"""Seconds of retries while the store is too busy, if the variable is not set."""

_FIRST_INTERVAL = 0.01
_LONGEST_INTERVAL = 0.5
_SHORTER = 0.8
"""Factor for the interval after an answer that does not ask for fewer requests."""
_SHORTEST_INTERVAL = 0.005


def retry_seconds() -> float:
    """Seconds during which a request is retried.

    Raises:
        InvalidRequestError: the variable is no number of seconds, 0 or more.
    """
    given = os.environ.get(VARIABLE, "")
    if not given:
        return RETRY_SECONDS
    try:
        return quantities.seconds(VARIABLE, given)
    except InvalidRequestError as error:
        hint = f"leave it unset for {RETRY_SECONDS:g} s"
        raise InvalidRequestError(str(error), hint=hint) from None


def rest(seconds: float) -> None:
    """Sleep for ``seconds`` while reporting progress to tasks that wait for the caller."""
    end = environment.monotonic() + seconds
    while (left := end - environment.monotonic()) > 0:
        progress.made()
        environment.sleep(min(left, progress.TICK_SECONDS))


class Pressure:
    """The pressure on a bucket. Any number of tasks may share the object."""

    def __init__(self) -> None:
        self.interval = 0.0
        self._next_at = 0.0
        self._slowed_at = -math.inf
        self._lock = threading.Lock()

    def wait_for_turn(self) -> float:
        """Wait until the next request may be sent; return the monotonic time of the turn."""
        now = environment.monotonic()
        if not self.interval:
            return now
        with self._lock:
            turn = max(now, self._next_at)
            self._next_at = turn + self.interval
        rest(turn - now)
        return turn

    def was_asked_for_less(self, sent_at: float) -> None:
        """Slow down: the store asked for fewer requests in an answer to a request sent then."""
        with self._lock:
            if sent_at < self._slowed_at:
                return  # the request was on its way when this process began to slow down
            self._slowed_at = environment.monotonic()
            self.interval = min(max(2 * self.interval, _FIRST_INTERVAL), _LONGEST_INTERVAL)

    def was_served(self) -> None:
        """Speed up a little: the store answered without asking for fewer requests."""
        if self.interval:
            with self._lock:
                shorter = self.interval * _SHORTER
                self.interval = shorter if shorter >= _SHORTEST_INTERVAL else 0.0


class Pressures:
    """The pressures of a process: ``environment.the_one(Pressures)``."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], Pressure] = {}

    def of(self, bucket: str, store: str = "") -> Pressure:
        """The pressure on a bucket of a store."""
        found = self._of.get((store, bucket))
        return found if found is not None else self._of.setdefault((store, bucket), Pressure())


# --- quiet ---------------------------------------------------------------------------------------
# Keeps secrets out of the log messages of the S3 client.
#
# At DEBUG botocore logs the headers of each request, with the session token. Its loggers serve the
# whole process, so their levels stay unchanged: a filter drops only the details of bkspark's own
# requests. (kazoo gets a logger of its own, in ``metadata``.)


_CLIENTS = (
    *("aiobotocore", "aiohttp", "botocore", "fsspec", "s3fs"),
    *("azure", "google", "msal", "requests", "urllib3"),
)

# fsspec's event loop runs a request in the context of the thread that waits for it.
_is_ours: ContextVar[bool] = ContextVar("is_ours", default=False)


def watch() -> None:
    """Add the filter to all present loggers of the clients."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in _CLIENTS:
            logging.getLogger(name).addFilter(_may_be_logged)


@contextmanager
def without_details() -> Iterator[None]:
    """Log the requests inside the block from INFO on only."""
    token = _is_ours.set(True)
    try:
        yield
    finally:
        _is_ours.reset(token)


def _may_be_logged(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.INFO or not _is_ours.get()


# --- connection ----------------------------------------------------------------------------------


T = TypeVar("T")

# Limit for a whole request with its body; a connection or a read without progress ends earlier.
REQUEST_SECONDS_MAX = 300
_CONNECTIONS_MAX = 32
# Random pauses between attempts: at most the first number at first, then doubling up to the last.
PAUSES_SECONDS = (0.1, 5.0)
# Shorter limit for a server that is not reached: such a server did not answer that it is busy.
ABSENT_SECONDS = 1.0
_READ_BYTES = 2**20
_CREDENTIALS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE)"
_ENDPOINT = "AWS_ENDPOINT_URL"
# Names of botocore's errors; botocore is imported only where S3 is used.
_WITHOUT_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound")

_BUSY = (
    *("SlowDown", "ServiceUnavailable", "RequestLimitExceeded", "TooManyRequests"),
    *("TooManyRequestsException", "Throttling", "ThrottlingException", "ThrottledException"),
    *("RequestThrottled", "RequestThrottledException", "BandwidthLimitExceeded", "ServerBusy"),
)
_SLOW_DOWN = f"the store asks for fewer requests; run fewer tasks, or set {VARIABLE} to wait longer"
_CLOCK = (
    "the clock of this host differs too much from the store's",
    "set this host's clock, for example by NTP",
)
_TOKEN = (
    "the session token has expired or is not valid",
    "get new credentials, and give them to all processes (AWS_SESSION_TOKEN)",
)
_KEY = ("the store does not accept the access key", f"check {_CREDENTIALS}, and {_ENDPOINT}")
_REASONS = {
    "RequestTimeTooSkewed": _CLOCK,
    "RequestExpired": _CLOCK,
    "ExpiredToken": _TOKEN,
    "ExpiredTokenException": _TOKEN,
    "InvalidToken": _TOKEN,
    "TokenRefreshRequired": _TOKEN,
    "InvalidAccessKeyId": _KEY,
    "SignatureDoesNotMatch": _KEY,
}
_UNREACHED = (
    (socket.gaierror, "the host name cannot be resolved"),
    (ConnectionRefusedError, "the port refuses connections"),
)


class StoreDoubt(OSError):
    """A request without a certain answer.

    Attributes:
        is_passing: the next attempt may well succeed, soon.
        asks_for_less: the store asked for fewer requests, and did not act on this request.
        is_absent: no server was reached.
        is_out_of_files: this process could not open a connection.
        retry_after: seconds that the store wants to pass before a retry.
        hint: the user's next action; may be empty.
    """

    def __init__(
        self,
        reason: str,
        *,
        is_passing: bool = False,
        asks_for_less: bool = False,
        is_absent: bool = False,
        retry_after: float = 0.0,
        hint: str = "",
    ) -> None:
        super().__init__(errno.EPROTO, reason)
        self.is_passing = is_passing
        self.asks_for_less = asks_for_less
        self.is_absent = is_absent
        self.is_out_of_files = False
        self.retry_after = retry_after
        self.hint = hint


class SureAnswer(StoreDoubt):
    """A certain answer to requests for which it is defined; a doubt for all others."""


class NoSuchObject(SureAnswer):
    """The store answers that there is no such key in an existing bucket."""


class ObjectTaken(SureAnswer):
    """The store answers that the key of a conditional create exists."""


class RangeBehindEnd(SureAnswer):
    """The store answers that the object ends before the range begins."""


def call(method: str, *, store: str = "", **arguments: Any) -> dict[str, Any]:
    """Make a request, for example ``put_object``, once, to the named or the default store.

    Waits for its turn if the store has asked this process for fewer requests.
    """
    filesystem = _connected(store)
    answer = in_turn(
        *(arguments["Bucket"], store),
        lambda: filesystem.call_s3(method, timeout=REQUEST_SECONDS_MAX, **arguments),
        lambda error: _doubt(error, store),
    )
    return dict(answer)


def in_turn(
    bucket: str, store: str, request: Callable[[], T], meaning: Callable[[Exception], "StoreDoubt"]
) -> T:
    """Make a request of any kind of store, once, when it is its turn.

    Args:
        store: which store the pressure is on; differs between the kinds.
        meaning: translates an exception of the request.
    """
    pressure = environment.the_one(Pressures).of(bucket, store)
    sent_at = pressure.wait_for_turn()
    try:
        with without_details():
            answer = request()
    except Exception as error:
        doubt = meaning(error)
        if doubt.asks_for_less:
            pressure.was_asked_for_less(sent_at)
        # Not chained: the original message may quote a secret of the address.
        raise doubt from None
    pressure.was_served()
    progress.made()
    return answer


def get(*, store: str = "", **arguments: Any) -> tuple[dict[str, Any], bytes]:
    """Make a ``get_object`` request; returns the answer and the whole body."""
    answer = call("get_object", store=store, **arguments)
    try:
        data = _synchronously(_connected(store), _read, answer["Body"], progress.reporter())
    except Exception as error:
        raise _doubt(error, store) from None
    if len(data) != answer["ContentLength"]:
        raise StoreDoubt("the answer was cut short", is_passing=True)
    return answer, data


def slow_down() -> str:
    """The hint for a store that asks for fewer requests."""
    return _SLOW_DOWN


def repeated(request: Callable[[], T], *, only_if_refused: bool = False) -> T:
    """Return the result of ``request``; retry while the store is merely busy.

    Only for requests that may take effect more than once, or late, without harm. Time limits the
    retries, and the number of attempts does not (``pressure``).

    Args:
        only_if_refused: retry only if the store asked for fewer requests.
    """
    sent_at, longest = environment.monotonic(), PAUSES_SECONDS[0]
    begin: float | None = None
    while True:
        try:
            return request()
        except StoreDoubt as doubt:
            if begin is None:  # a store that answered was not silent before
                begin = environment.monotonic() if doubt.asks_for_less else sent_at
            limit = ABSENT_SECONDS if doubt.is_absent else retry_seconds()
            pause = max(environment.draw() * longest, doubt.retry_after)
            may_repeat = doubt.asks_for_less or (doubt.is_passing and not only_if_refused)
            if not may_repeat or environment.monotonic() + pause - begin > limit:
                raise
            answers = not doubt.is_absent
        longest = min(2 * longest, PAUSES_SECONDS[1])
        if answers:
            rest(pause)
        else:
            environment.sleep(pause)


def forget() -> None:
    """Connect anew next time, for a process whose environment has changed."""
    clients.forget()


def require_known(store: str) -> None:
    """Return if this machine knows what ``store`` means; raises the errors of ``stores.find``."""
    if store and not clients.have(store):
        stores.find(store)


def endpoint_of(store: str) -> str:
    """Host and port of a store's endpoint, in one spelling; "" for AWS.

    Raises:
        InvalidRequestError: this machine does not know the store, or cannot make a client for it.
    """
    require_known(store)
    try:
        return stores.place_of(str(_connected(store).s3.meta.endpoint_url))
    except StoreDoubt as doubt:
        what = f"store {store}" if store else "the object store"
        raise InvalidRequestError(
            f"{what} cannot be used here: {doubt.strerror}", hint=doubt.hint
        ) from None


def _connected(store: str) -> Any:
    return _filesystems.of(store)


def _connect(store: str, _account: str = "") -> Any:
    settings = _settings_of(store)
    try:
        import s3fs  # An extra: it brings twenty packages, and most clusters use disks.
    except ImportError as error:
        raise InvalidRequestError(
            "s3:// needs the package s3fs, which is not installed here",
            hint="pip install 'bkspark[s3]', on the driver and on every worker",
        ) from error
    from bkspark.storage.one_attempt import OneAttemptSession  # a subclass of s3fs's session

    watch()
    filesystem = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True, **settings)
    filesystem.retries = 1
    filesystem.config_kwargs = {
        "max_pool_connections": _CONNECTIONS_MAX,
        **filesystem.config_kwargs,
        "retries": {"total_max_attempts": 1},
        "http_session_cls": OneAttemptSession,
    }
    with without_details():
        _require_conditional_requests(filesystem, store)
    watch()
    return filesystem


_filesystems = clients.Clients[Any](_connect)


def _settings_of(store: str) -> dict[str, Any]:
    """Arguments of s3fs for a store; a named store takes nothing from fsspec's configuration."""
    if not store:
        return {}
    try:
        found = stores.find(store)
    except InvalidRequestError as error:
        raise StoreDoubt(str(error.args[0]), hint=error.hint) from error
    client = {"region_name": found.region, "verify": found.ca_file}
    config: dict[str, Any] = {"ignore_configured_endpoint_urls": True}
    if found.addressing_style:
        config["s3"] = {"addressing_style": found.addressing_style}
    return {
        **dict.fromkeys(("key", "secret", "token", "username", "password", "session")),
        "anon": False,
        "s3_additional_kwargs": {},
        "endpoint_url": found.endpoint_url or None,
        "client_kwargs": {name: value for name, value in client.items() if value},
        "config_kwargs": config,
        **({"profile": found.profile} if found.profile else {}),
    }


def _require_conditional_requests(filesystem: Any, store: str) -> None:
    """Refuse a botocore that does not know the condition: s3fs silently drops unknown arguments."""
    try:
        operations = filesystem.s3.meta.service_model
        known = [
            "IfNoneMatch" in operations.operation_model(name).input_shape.members
            for name in ("PutObject", "CompleteMultipartUpload")
        ]
    except Exception as error:
        raise _doubt(error, store) from None
    if not all(known):
        raise InvalidRequestError(
            "this botocore is too old to create objects conditionally",
            hint="pip install 's3fs>=2026.9', and do not pin boto3 or botocore",
        )


def _after_fork() -> None:
    # Another thread of the parent may have held fsspec's lock.
    if "fsspec.asyn" in sys.modules:
        sys.modules["fsspec.asyn"].reset_lock()


os.register_at_fork(after_in_child=_after_fork)


def _synchronously(filesystem: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    from fsspec.asyn import sync

    with without_details():
        return sync(filesystem.loop, function, *arguments, timeout=REQUEST_SECONDS_MAX)


async def _read(body: Any, made: Callable[[], None]) -> bytes:
    pieces = []
    try:
        while piece := await body.read(_READ_BYTES):
            pieces.append(piece)
            made()
    finally:
        body.close()
    return b"".join(pieces)


def _doubt(error: Exception, store: str) -> StoreDoubt:
    """The meaning of ``error``, with a hint that names the settings of the store."""
    doubt = _meaning(error, store)
    if store:
        hint = doubt.hint.replace(_ENDPOINT, f"endpoint_url of store {store}")
        doubt.hint = hint.replace(_CREDENTIALS, f"the profile of store {store}")
    return doubt


def _meaning(error: Exception, store: str = "") -> StoreDoubt:
    """Translate an exception of s3fs, botocore or aiohttp into an ``StoreDoubt``."""
    answer = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
    if not isinstance(answer, dict):
        return _no_answer(error, store)
    code = str(answer.get("Error", {}).get("Code", ""))[:60]
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    match status, code:
        case 404, "NoSuchKey":
            return NoSuchObject("the object does not exist")
        case 412, _:
            return ObjectTaken("the object exists")
        case 416, _:
            return RangeBehindEnd("the object is shorter than the requested range")
        case _, "NoSuchBucket":
            return StoreDoubt(
                "the bucket does not exist (NoSuchBucket)",
                hint=f"make the bucket first, or check its name and {_ENDPOINT}",
            )
        case _, _ if code in _REASONS:
            reason, hint = _REASONS[code]
            return StoreDoubt(f"{reason} ({code})", hint=hint)
        case ((401 | 403), _):
            return StoreDoubt(
                f"access was refused ({code}); without s3:ListBucket, S3 does not tell a "
                "missing object from a forbidden one",
                hint=f"check the permissions of the credentials: {_CREDENTIALS}",
            )
    asks_for_less = status in (429, 503) or code in _BUSY
    return StoreDoubt(
        f"the store answered {status} {code}".rstrip(),
        is_passing=status >= 500 or status == 409 or asks_for_less,
        asks_for_less=asks_for_less,
        retry_after=_retry_after(answer),
        hint=_SLOW_DOWN if asks_for_less else "",
    )


def _retry_after(answer: dict[str, Any]) -> float:
    """The seconds of the answer's Retry-After; 0 if there is none, or a date."""
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    given = str(headers.get("retry-after", ""))
    return float(given) if given.isdecimal() else 0.0


def _no_answer(error: Exception, store: str) -> StoreDoubt:
    """The doubt for ``error``, without its text, which may quote a secret of the endpoint."""
    kind = type(error).__name__
    if kind in _WITHOUT_CREDENTIALS:
        return StoreDoubt(f"there are no credentials ({kind})", hint=f"set {_CREDENTIALS}")
    if "Checksum" in kind:
        return StoreDoubt(
            f"the received data does not match its checksum ({kind})",
            is_passing=True,
            hint="if this persists, the object is damaged; readers use another copy",
        )
    return no_answer(error, _endpoint(store), f"check that the store runs, and {_ENDPOINT}")


def no_answer(error: Exception, endpoint: str, hint: str) -> StoreDoubt:
    """The doubt for an ``error`` of the connection to ``endpoint``, without the error's text."""
    kind = type(error).__name__
    if isinstance(error, TimeoutError) or "Timeout" in kind:
        return StoreDoubt(f"no answer from {endpoint} in time ({kind})", is_passing=True, hint=hint)
    causes = list(_causes(error))
    if any(getattr(cause, "errno", 0) in (errno.EMFILE, errno.ENFILE) for cause in causes):
        doubt = StoreDoubt(
            "too many open files: nothing was sent",
            is_absent=True,
            hint="raise the limit of open files (ulimit -n), or keep fewer handles open",
        )
        doubt.is_out_of_files = True
        return doubt
    for cause, what in _UNREACHED:
        if any(isinstance(found, cause) for found in causes):
            return StoreDoubt(
                f"no answer from {endpoint} ({what})", is_passing=True, is_absent=True, hint=hint
            )
    is_connection = isinstance(error, OSError) or "Connection" in kind or "Client" in kind
    return StoreDoubt(f"no answer from {endpoint} ({kind})", is_passing=is_connection, hint=hint)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """``error`` and all its causes."""
    seen: list[BaseException | None] = [None]
    left: list[Any] = [error]
    while left:
        found = left.pop()
        if isinstance(found, BaseException) and found not in seen:
            seen.append(found)
            yield found
            left += [found.__cause__, found.__context__, getattr(found, "os_error", None)]
            left += [getattr(found, "kwargs", {}).get("error"), getattr(found, "reason", None)]
            left += found.args[:1]


def _endpoint(store: str) -> str:
    """Scheme, host and port of the endpoint, without the rest of the URL."""
    try:
        connected: Any = _filesystems.known(store)
        return shown_endpoint(str(connected.s3.meta.endpoint_url))
    except Exception:  # there is no connection
        return f"store {store}" if store else "the store"


def size_behind(content_range: str) -> int:
    """The whole object's length, from the header of an answer to a request for a range."""
    size = content_range.rpartition("/")[2]
    if not size.isdecimal():
        raise StoreDoubt("the store does not support requests for a range of bytes")
    return int(size)


def shown_endpoint(url: str) -> str:
    """``url`` without user, password, path and query, fit for messages."""
    scheme, _, rest = shown_url(url).partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('/')[0]}"
