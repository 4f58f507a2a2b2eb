"""An address is judged alike wherever it is given: as a metadata store, as a bookie, in a move."""

import re
from pathlib import Path

import pytest

from bkspark import admin
from bkspark.admin import bookies
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import InvalidRequestError
from bkspark.storage.address import canonical

SPELLINGS = (
    "file://{}",
    "file://{} ",
    "  file://{}\n",
    "file://{}/",
    "file://{}//",
    "FILE://{}",
    "File:{}",
    "file://localhost{}",
    "{}",
    "{}/",
    " {}\t",
    "file:///{}",
    "{}/.",
    "file://{}/./",
)
REFUSED = (
    "file://{}/../x",
    "{}/../x",
    "file://{}/%2e%2e/x",
    "{}/..",
    "file://{}\x1b",
    "file://{}%00",
)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_each_spelling_is_one_place_for_metadata_and_bookies(tmp_path: Path, spelling: str) -> None:
    meta, first, second, moved = (tmp_path / name for name in ("m", "b1", "b2", "moved"))
    init_cluster(spelling.format(meta), [spelling.format(first)])
    with Cluster(spelling.format(meta)) as cluster:
        assert cluster.uri == meta.as_uri()
        cluster.add_bookie("", spelling.format(second))
        urls = {record.url for record in cluster.bookies().values()}
    assert urls == {first.as_uri(), second.as_uri()}
    second.rename(moved)
    bookies.move(meta.as_uri(), "bookie-2", spelling.format(moved))
    assert admin.audit(spelling.format(meta)).exit_status == 0
    with BookKeeper(spelling.format(meta)) as keeper:
        assert keeper.list_ledgers() == []


@pytest.mark.parametrize("spelling", REFUSED)
def test_what_is_refused_is_refused_everywhere(tmp_path: Path, spelling: str) -> None:
    meta, bookie = tmp_path / "m", tmp_path / "b"
    init_cluster(meta.as_uri(), [bookie.as_uri()])
    with Cluster(meta.as_uri()) as cluster:
        for refused in (
            lambda: init_cluster(spelling.format(tmp_path / "n"), []),
            lambda: init_cluster((tmp_path / "n").as_uri(), [spelling.format(tmp_path / "c")]),
            lambda: Cluster(spelling.format(meta)),
            lambda: cluster.add_bookie("", spelling.format(tmp_path / "c")),
            lambda: bookies.move(meta.as_uri(), "bookie-1", spelling.format(bookie)),
        ):
            with pytest.raises(InvalidRequestError) as caught:
                refused()
            assert "\n" not in str(caught.value)
    assert {path.name for path in tmp_path.iterdir()} == {"m", "b"}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("/a b/%c?#", "file:///a%20b/%25c%3F%23"),
        ("file:///a%20b", "file:///a%20b"),
        ("file:////a", "file:///a"),
        ("/", "file:///"),
        ("//host/a", "//host/a"),
        ("S3://bucket/x", "s3://bucket/x"),
        ("s3://bucket/x ", "s3://bucket/x"),
        ("ZK://host:1/x", "zk://host:1/x"),
        ("memory://x", "memory://x"),
        ("a/b", "a/b"),
        ("file://host/a", "file://host/a"),
        ("file:///a?b", "file:///a?b"),
    ],
)
def test_spelling(given: str, url: str) -> None:
    assert canonical(given) == url
    assert canonical(url) == url


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("hdfs://nn:8020/bk", "HDFS cannot be used"),
        ("wasbs://data@account/bk", "write abfss://"),
        ("gcs://bucket/bk", "write gs://bucket/prefix"),
        ("https://host/bk", "AWS_ENDPOINT_URL or a store"),
        ("sftp://host/bk", "a package that adds a scheme must be installed on every machine"),
    ],
)
def test_an_address_of_another_kind_says_what_to_do(url: str, advice: str, tmp_path: Path) -> None:
    for meta, bookie in ((url, tmp_path / "b"), (tmp_path / "m", url)):
        with pytest.raises(InvalidRequestError, match=re.escape(advice)):
            init_cluster(str(meta), [str(bookie)])
    assert list(tmp_path.iterdir()) == []
