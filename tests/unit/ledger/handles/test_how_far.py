"""How far a ledger may be read, where an older answer of the metadata store is enough."""

import secrets
from collections.abc import Iterator

import pytest

from bkspark import BookKeeper, environment
from bkspark.bookie import memory
from bkspark.cluster.cluster import init_cluster
from bkspark.cluster.records import Records
from bkspark.ledger.handles.how_far import LAST_SEEN_SECONDS, LastSeen
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log.reading.log_view import LogWatch
from bkspark.metadata import freshness

SILENT = WriterSettings(explicit_lac_ms=0)


@pytest.fixture
def keeper() -> Iterator[BookKeeper]:
    name = secrets.token_hex(6)
    uri = f"memory://{name}-metadata"
    init_cluster(uri, [f"memory://{name}-{n}" for n in (1, 2, 3)], accepts_risk=True)
    with BookKeeper(uri) as keeper:
        yield keeper


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each check whether metadata is the newest: whether an older answer was enough."""
    found: list[bool] = []
    is_current = Records.is_current

    def noted(self: Records[object], name: str, seen: object) -> bool:
        found.append(freshness.may_lag())
        return bool(is_current(self, name, seen))  # type: ignore[arg-type]

    monkeypatch.setattr(Records, "is_current", noted)
    return found


@pytest.mark.parametrize("is_damaged", [False, True])
def test_what_looks_like_damage_is_compared_with_the_newest_metadata(
    keeper: BookKeeper, checks: list[bool], is_damaged: bool
) -> None:
    log = keeper.create_log("a")
    with log.writer(settings=SILENT) as writer:
        writer.append(b"x")
        writer.append(b"y")
        watch: LogWatch = log._watch
        watch.look()
        if is_damaged:
            urls = [record.url for record in keeper._cluster.bookies().values()]
            memory.place_disk(urls[0], None)
        checks.clear()
        assert watch.look_again().end_offset == 1
    of_the_ledger = checks[1:]  # the first is of the log
    assert of_the_ledger[:2] == ([True, False] if is_damaged else [True])


def test_metadata_of_long_ago_are_read_again(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bookie that they name may hang, and have been replaced."""
    with keeper.create_ledger() as handle:
        seen = keeper._cluster.ledger(handle.ledger_id)
    now, last_seen = [100.0], LastSeen()
    monkeypatch.setattr(environment, "monotonic", lambda: now[0])
    assert last_seen.take(handle.ledger_id) is None
    for later, found in ((LAST_SEEN_SECONDS - 0.1, seen), (LAST_SEEN_SECONDS, None)):
        last_seen.keep(seen)
        now[0] += later
        assert last_seen.take(handle.ledger_id + 1) is None
        assert last_seen.take(handle.ledger_id) is found
        assert last_seen.take(handle.ledger_id) is None
