"""Logs of very many ledgers, in every kind of metadata store."""

import secrets
from collections.abc import Iterator

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.cluster.log_records import LogRecords
from bkspark.errors import BookKeeperError, MetadataVersionError
from bkspark.format import layout, log_record
from bkspark.metadata.contract import MetadataStore
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.ledger_list import LoggedLedger, LogPage
from bkspark.protocol.log.record import LogRecord
from tests.kit.zookeeper import missing
from tests.log_with import log_with
from tests.small_pages import forget_pages, pages_of
from tests.thorough import always

NAME = "events"
EMPTY = LogRecord(NAME, LogSettings(Quorum(3, 3, 2)), b"schema")
LENGTH = 10_000_000
MANY = 25_000
"""More than a record in ZooKeeper has room for without pages."""


@pytest.fixture
def logs(store: MetadataStore) -> Iterator[LogRecords]:
    with pages_of(2):
        yield LogRecords(store, "c" * 32)


def with_one_more(record: LogRecord | None) -> LogRecord:
    log = record or EMPTY
    place = LoggedLedger(log.ledger_count, log.end_offset, 3, 100, 1)
    return log_with(log, ledgers=(*log.ledgers, place))


def test_a_log_with_pages_is_read_as_it_was_written(logs: LogRecords) -> None:
    for _ in range(20):
        logs.update(NAME, with_one_more)
    forget_pages()
    found = logs.get(NAME)
    assert found is not None
    assert max(one.height for one in found.value.older if isinstance(one, LogPage)) > 1
    assert [one.ledger_id for one in found.value.every_ledger()] == list(range(20))
    assert logs.is_current(NAME, found)


def test_who_loses_a_race_leaves_a_page_that_nothing_names(
    logs: LogRecords, store: MetadataStore
) -> None:
    for _ in range(4):
        logs.update(NAME, with_one_more)
    seen = logs.get(NAME)
    assert seen is not None
    logs.replace(NAME, with_one_more(seen.value), seen)
    with pytest.raises(MetadataVersionError):
        logs.replace(NAME, with_one_more(seen.value), seen)
    found = logs.get(NAME)
    assert found is not None
    [named] = [one.name for one in found.value.older if isinstance(one, LogPage)]
    made = store.list(f"{layout.LOG_PAGES_PREFIX}/{NAME}")
    assert len(made) == 2
    assert named in made
    assert found.value.ledger_count == 5


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("kind", always([], ["zk"]))
def test_a_log_in_zookeeper_has_more_ledgers_than_a_record_has_room_for(
    kind: str, request: pytest.FixtureRequest
) -> None:
    uri = f"{kind}://{request.getfixturevalue('hosts')}/tests/{secrets.token_hex(8)}"
    bookies = [f"memory://{secrets.token_hex(8)}" for _ in range(3)]
    init_cluster(uri, bookies, accepts_risk=True)
    with BookKeeper(uri) as keeper:
        log = keeper.create_log(NAME)
        logs = keeper._cluster.logs
        places = tuple(
            LoggedLedger(10**6 + n, LENGTH * n, LENGTH, 2**31, 1_795_405_058_537)
            for n in range(MANY)
        )
        plain = log_with(log.record, ledgers=places)
        with pytest.raises(BookKeeperError):
            keeper._cluster.store.put(layout.log_key("plain"), log_record.encode(plain, "n"), None)
        logs.update(NAME, lambda _: plain)
        for _ in range(2):
            with log.writer() as writer:
                offset = writer.append(b"one")
        assert offset == LENGTH * MANY + 1
        assert [entry.value for entry in log.read(LENGTH * MANY)] == [b"one", b"one"]
        assert log.record.ledger_count == MANY + 2
        assert (
            next(log.record.ledgers_in(10_000 * LENGTH, 10_000 * LENGTH + 1)).ledger_id
            == 10**6 + 10_000
        )
        assert len(logs.get(NAME).stored.value) < 20_000  # type: ignore[union-attr]
