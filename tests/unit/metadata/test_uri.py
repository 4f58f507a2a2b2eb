"""Finding the store for a URI."""

import pickle
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.metadata.files import FileMetadataStore
from bkspark.metadata.memory import MemoryMetadataStore
from bkspark.metadata.uri import format_store, open_store
from bkspark.metadata.zookeeper import ZooKeeperMetadataStore


def test_scheme_picks_the_kind(tmp_path: Path) -> None:
    assert isinstance(open_store(tmp_path.as_uri()), FileMetadataStore)
    assert isinstance(open_store(tmp_path.as_uri().replace("file", "FILE")), FileMetadataStore)
    assert isinstance(open_store("memory://x"), MemoryMetadataStore)
    assert isinstance(open_store("zk://h1:2181,h2:2181/bk"), ZooKeeperMetadataStore)


def test_formatted_store_is_opened_by_its_uri(tmp_path: Path) -> None:
    for uri in ((tmp_path / "meta").as_uri(), f"memory://{secrets.token_hex(8)}"):
        store = format_store(uri)
        store.put("cluster", b"x", None)
        assert open_store(store.uri).get("cluster") == store.get("cluster")
        with pytest.raises(InvalidRequestError, match="exists already"):
            format_store(uri)


@pytest.mark.parametrize("uri", ["etcd://h1:2379/bk", "sqlite:///x"])
def test_other_schemes_are_refused_by_name(uri: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        open_store(uri)
    assert uri in str(caught.value)
    for known in ("file:///directory", "zk://host:port/path", "memory://name"):
        assert known in str(caught.value)


@pytest.mark.parametrize(
    ("path", "example"),
    [("data/meta", "file:///absolute"), ("meta", "file:///absolute"), ("", "file:///absolute")],
)
def test_what_is_no_absolute_path_is_answered_with_the_uri(path: str, example: str) -> None:
    for call in (open_store, format_store):
        with pytest.raises(InvalidRequestError, match="has no scheme") as caught:
            call(path)
        assert example in caught.value.hint


@pytest.mark.parametrize(
    "uri",
    [
        "s3://key:s3cret@bucket/bk",
        "s3://bucket/bk?password=s3cret",
        "zk://h/bk#s3cret",
        "zk:user:s3cret@h/bk",
        "file://user:s3cret@host/dir",
        "file:///dir?password=s3cret",
        "memory://user:s3cret@name",
        "user:s3cret@host/dir",
        "//user:s3cret@host/dir",
        "zk://user:s3cret@[host/dir",
        "etcd://user:s3cret",
        "file://user:s3cret%40host/dir",
        "file:///user:s3?cret@host",
        "s3://user:p?s3cret@bucket/bk",
        "s3:/user:s3cret@bucket/bk",
        "s3://bucket/bk?token=a@s3cret",
        "memory://s3cret@",
        "zk://[s3cret@h/bk",
    ],
)
def test_no_message_shows_credentials(uri: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        open_store(uri).get("cluster")
    assert "s3cret" not in f"{caught.value} {caught.value.__cause__}"


def test_store_in_memory_is_of_one_process() -> None:
    store = format_store(f"memory://{secrets.token_hex(8)}")
    store.put("cluster", b"x", None)
    script = "import pickle, sys; pickle.load(sys.stdin.buffer).get('cluster')"
    done = subprocess.run(
        [sys.executable, "-c", script], input=pickle.dumps(store), capture_output=True, check=False
    )
    assert b"no bkspark cluster at memory://" in done.stderr
    assert b"in this process" in done.stderr


@pytest.mark.parametrize("uri", ["memory://", "memory://a/b", "memory://a?b", "memory:a"])
def test_address_in_memory_is_a_name(uri: str) -> None:
    with pytest.raises(InvalidRequestError, match="memory://name"):
        open_store(uri)


def test_store_in_memory_must_be_formatted() -> None:
    with pytest.raises(InvalidRequestError, match="no bkspark cluster"):
        open_store("memory://never").get("cluster")
