"""How far logs may be read, for people: asked of all at once, and waited for only so long."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from bkspark.client import asking
from bkspark.client.cluster import Cluster
from bkspark.client.password import Password
from bkspark.client.reading.log_view import LogView, view_of
from bkspark.client.runtime import THREADS
from bkspark.errors import BookKeeperError
from bkspark.protocol.log import LogRecord

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

    def looking_at(share: Sequence[LogRecord]) -> Callable[[], None]:
        def look() -> None:
            for log in share:
                with suppress(BookKeeperError):
                    found[log.name] = view_of(cluster, log, password)

        return look

    shares = {n: looking_at(logs[n::THREADS_MAX]) for n in range(min(THREADS_MAX, len(logs)))}
    answers = asking.ask_all(THREADS, shares, seconds=END_SECONDS, name="look-at-logs")
    for answer in answers.values():
        answer.result()
    return dict(found)
