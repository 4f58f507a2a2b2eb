"""Keeps secrets out of the log messages of the S3 client.

At DEBUG botocore logs the headers of each request, with the session token. Its loggers serve the
whole process, so their levels stay unchanged: a filter drops only the details of bkspark's own
requests. (kazoo gets a logger of its own, in ``metadata``.)
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CLIENTS = ("aiobotocore", "aiohttp", "botocore", "fsspec", "s3fs")

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
