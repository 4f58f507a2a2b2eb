"""Waiting for the state that a test means, however long a loaded machine takes to get there.

An acknowledgement needs an ack quorum. The other copies may be written, and checked, long after it.
"""

import time
from collections.abc import Callable

from bkspark.ledger.handles.write_handle import WriteHandle

SECONDS_MAX = 120.0


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def wait_for_all_copies(handle: WriteHandle) -> None:
    """Until each bookie has stored and checked all that was acknowledged, or was given up.

    Of what has no acknowledgement nothing is known: it may not even have been sent.
    """
    wait_until(lambda: handle._writer._lanes.has_nothing_to_do)
