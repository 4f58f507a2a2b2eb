"""How far logs may be read, for people: asked of all at once, and waited for only so long."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.hang_memory import Answer
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError
from bkspark.log.reading.log_view import LogView, view_of
from bkspark.protocol.log.record import LogRecord

END_SECONDS = 2.0
"""For a number that is nice to have."""

THREADS_MAX = 8
"""So many logs are looked at at once."""


def views_of(cluster: Cluster, logs: Sequence[LogRecord], password: Password) -> dict[str, LogView]:
    """Each log as it can be read now, by name; nobody is disturbed.

    Without those of which that cannot be told at once: too few bookies answer, or it takes another
    password.
    """
    found: dict[str, LogView] = {}

    def look(share: Sequence[LogRecord]) -> None:
        for log in share:
            with suppress(BookKeeperError):
                found[log.name] = view_of(cluster, log, password)

    shares = [logs[n::THREADS_MAX] for n in range(min(THREADS_MAX, len(logs)))]
    answers = [Answer(partial(look, share), "look-at-logs") for share in shares]
    until = environment.monotonic() + END_SECONDS
    for answer in answers:
        if answer.is_there_within(max(0.0, until - environment.monotonic())):
            answer.result()
    return dict(found)
