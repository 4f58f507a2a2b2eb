"""Reads of a log as it was at a version, or at a time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from bkspark import environment, verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, NoSuchEntryError
from bkspark.protocol.log.ledger_list import (
    LoggedLedger,
    LogPage,
    PageContents,
    place_of_version,
)
from bkspark.spark.option_table import OPTIONS, Use
from bkspark.spark.options import parse
from bkspark.spark.source import BookKeeperDataSource, _without_range

T = 1_700_000_000_000


class Log:
    """The log ``a``, on whose clock an append counts ten milliseconds."""

    def __init__(self, small_cluster: Any, numbers: Any, patch: pytest.MonkeyPatch) -> None:
        self.cluster = small_cluster
        self.numbers = numbers
        self.now = T
        patch.setattr(environment, "now_ms", lambda: self.now)

    def append(self, first: int, end: int, **options: Any) -> None:
        self.cluster.append("a", [self.numbers(first, end)], **options)
        self.now += 10

    def read(self, **given: object) -> list[int]:
        options = {name: str(value) for name, value in given.items()}
        uri = {"metadataServiceUri": self.cluster.uri, "path": "a"}
        source = BookKeeperDataSource({**uri, **options})
        reader = source.reader(source.schema())
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
        return sorted(n for batch in batches for n in batch["n"].to_pylist())

    def versions(self) -> list[int | None]:
        from bkspark.admin import views

        with Cluster(self.cluster.uri) as cluster:
            return [row["version"] for row in views.history(cluster, "a")]


@pytest.fixture
def log(small_cluster, numbers, monkeypatch) -> Log:
    """Versions 0 to 2, of 20, 10 and 5 rows, at T, T + 10 and T + 20."""
    log = Log(small_cluster, numbers, monkeypatch)
    for first, end in ((0, 20), (20, 30), (30, 35)):
        log.append(first, end)
    return log


def test_each_version_is_what_the_log_was(log: Log) -> None:
    assert log.versions() == [0, 1, 2]
    for version, end in enumerate((20, 30, 35)):
        assert log.read(versionAsOf=version) == [*range(end)]
        assert log.read(timestampAsOf=T + 10 * version) == [*range(end)]
        assert log.read(timestampAsOf=T + 10 * version + 9) == [*range(end)]
    assert log.read(versionAsOf=1, startingOffsets=25) == [*range(25, 30)]
    assert log.read(versionAsOf=1, startingTimestamp=T + 5) == [*range(20, 30)]
    begun = datetime.fromtimestamp(T / 1000, UTC)
    for micros, end in ((0, 20), (1, 20), (9_999, 20), (10_000, 30), (10_001, 30)):
        time = begun + timedelta(microseconds=micros)
        assert log.read(timestampAsOf=time) == [*range(end)], micros
    log.append(35, 40)
    assert log.read(versionAsOf=2) == log.read(timestampAsOf=T + 20) == [*range(35)]


def test_a_version_that_is_not_there_yet(log: Log) -> None:
    with pytest.raises(NoSuchEntryError, match="no version 3 yet: the newest one is 2"):
        log.read(versionAsOf=3)
    keeper = BookKeeper(log.cluster.uri)
    with keeper.open_log("a").writer() as writer:
        writer.append_many(pa.table(log.numbers(35, 36)))
        with pytest.raises(NoSuchEntryError, match="once it is closed"):
            log.read(versionAsOf=3)
    assert log.read(versionAsOf=3) == [*range(36)]
    keeper.create_log("empty")
    with (
        Cluster(log.cluster.uri) as cluster,
        pytest.raises(NoSuchEntryError, match="no version 0 yet: it has none now"),
    ):
        cluster.log("empty").value.end_of_version(0)


def test_versions_that_were_truncated_or_overwritten_away(log: Log) -> None:
    BookKeeper(log.cluster.uri).open_log("a").truncate(25)
    assert log.versions() == [None, 1, 2]
    assert log.read(versionAsOf=1) == [*range(25, 30)]
    told = "cannot be read any more: the oldest version that can be read is 1"
    with pytest.raises(NoSuchEntryError, match=f"version 0 of log 'a' {told}"):
        log.read(versionAsOf=0)
    with pytest.raises(NoSuchEntryError, match=r"or before: the oldest version .* is 1;"):
        log.read(timestampAsOf=T + 9)
    log.now += 100
    log.append(0, 3, is_overwrite=True)
    assert log.versions() == [3]
    assert log.read(versionAsOf=3) == log.read() == [0, 1, 2]
    with pytest.raises(NoSuchEntryError, match="the oldest version that can be read is 3"):
        log.read(versionAsOf=2)
    with pytest.raises(NoSuchEntryError, match=r"nothing from 1700000000020 ms .* is 3;"):
        log.read(timestampAsOf=T + 20)
    BookKeeper(log.cluster.uri).open_log("a").truncate(3)
    with pytest.raises(NoSuchEntryError, match="any more: no version can be read now"):
        log.read(versionAsOf=3)


def test_versions_that_were_compacted_are_read_by_time(log: Log) -> None:
    verbs.compact(log.cluster.uri, log="a")
    assert log.versions() == [2]
    assert log.read(versionAsOf=2) == [*range(35)]
    with pytest.raises(NoSuchEntryError, match="version 1 of log 'a' was compacted into version 2"):
        log.read(versionAsOf=1)
    assert log.read(timestampAsOf=T + 10) == [*range(30)]


def test_the_rest_of_a_tiered_read_has_no_other_range() -> None:
    """``bkspark.read`` gives the rest offsets of its own."""
    ranges = {name for name in OPTIONS if name.lower().endswith(("offsets", "asof", "timestamp"))}
    ranges |= {name for name in OPTIONS if "OffsetsBy" in name}
    assert {"versionAsOf", "timestampAsOf", "endingOffsetsByTimestamp"} < ranges
    assert (
        _without_range(dict.fromkeys([*OPTIONS, "VERSIONASOF"], "1")).keys() == {*OPTIONS} - ranges
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"versionAsOf": 1, "timestampAsOf": T}, "give versionAsOf or timestampAsOf, not both"),
        ({"versionAsOf": 1, "endingOffsets": 3}, "give versionAsOf or endingOffsets, not both"),
        ({"timestampAsOf": T, "endingTimestamp": T}, "give timestampAsOf or endingTimestamp, not"),
        ({"versionAsOf": -1}, "versionAsOf must be a version of the log, a number >= 0"),
        ({"versionAsOf": "new"}, "versionAsOf must be a version of the log"),
        ({"timestampAsOf": "2026-01-01"}, "timestampAsOf has no time zone"),
        ({"timestampAsOf": "soon"}, "timestampAsOf must be a time"),
    ],
)
def test_one_end_is_given(given: dict[str, Any], told: str) -> None:
    texts = {name: str(value) for name, value in given.items()}
    with pytest.raises(InvalidRequestError, match=told):
        parse({"metadataServiceUri": "file:///a", "path": "a", **texts}, None, Use.BATCH_READ)
    uri = {"metadataServiceUri": "file:///a", "ledgerId": "3"}
    for name, value in (("versionAsOf", "1"), ("timestampAsOf", "3")):
        with pytest.raises(InvalidRequestError, match=f"give {name} or ledgerId"):
            parse({**uri, name: value}, None, Use.BATCH_READ)


def test_a_version_is_found_on_pages_and_in_compacted_places() -> None:
    """Each place has one to three versions; places are on pages of pages."""
    places = [LoggedLedger(n, n, 1, 0, merged_count=n % 3) for n in range(12)]
    contents: dict[str, PageContents] = {}

    def page(number: int, what: PageContents) -> LogPage:
        name = f"{len(contents)}-{number}"
        contents[name] = what
        return what.named(name)

    lower = [page(n, PageContents(ledgers=tuple(places[n : n + 2]))) for n in range(0, 8, 2)]
    upper = [page(n, PageContents(pages=tuple(lower[n : n + 2]))) for n in (0, 2)]

    class Source:
        def contents(self, page: LogPage) -> PageContents:
            return contents[page.name]

    version = 7
    for place in places:
        last = version + place.merged_count
        for one in range(version, last + 1):
            found = place_of_version([*upper, *places[8:]], 7, one, Source())
            assert found == (place, last)
        version = last + 1
    assert place_of_version([*upper, *places[8:]], 7, version, Source()) is None
    assert place_of_version([*upper, *places[8:]], 7, 6, Source()) is None
