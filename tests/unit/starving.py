"""A process that cannot open another file."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def starved() -> Iterator[None]:
    """This process has no descriptor left."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = os.open(os.devnull, os.O_RDONLY)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 1, limits[1]))
        held = []
        with suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        try:
            yield
        finally:
            for descriptor in held:
                os.close(descriptor)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        os.close(open_now)
