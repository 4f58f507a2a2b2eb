"""What the client of S3 may log of our requests: nothing that is secret.

At DEBUG botocore logs the headers of each request, and with them the session token. Its loggers are
everybody's in this process, so their levels stay as they are: what is dropped are details of
requests that were made from here. (kazoo gets a logger of its own, in ``metadata``.)
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CLIENTS = ("aiobotocore", "aiohttp", "botocore", "fsspec", "s3fs")

# fsspec's event loop runs a request in the context of the thread that waits for it.
_is_ours: ContextVar[bool] = ContextVar("is_ours", default=False)


def watch() -> None:
    """Look at what the clients' loggers that there are by now are given."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in _CLIENTS:
            logging.getLogger(name).addFilter(_may_be_logged)


@contextmanager
def without_details() -> Iterator[None]:
    """Around requests: what is logged of them begins at INFO."""
    token = _is_ours.set(True)
    try:
        yield
    finally:
        _is_ours.reset(token)


def _may_be_logged(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.INFO or not _is_ours.get()
