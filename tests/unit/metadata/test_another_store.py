"""Another cluster's store in the place of the one that was opened: nothing is changed in it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.metadata import memory
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.metadata.uri import format_store, open_store

CALLS: dict[str, Callable[[MetadataStore], object]] = {
    "get": lambda store: store.get("logs/other"),
    "create": lambda store: store.put("logs/other", b"x", None),
    "replace": lambda store: store.put("logs/wal", b"y", 1),
    "list": lambda store: store.list("logs"),
    "delete": lambda store: store.delete("logs/wal"),
    "check": lambda store: store.is_current("logs/wal", VersionedBytes(b"of the first", 1)),
}


def swap_folder(uri: str) -> None:
    folder = Path(uri.removeprefix("file://"))
    shutil.rmtree(folder)


def swap_memory(uri: str) -> None:
    memory._stores.pop(uri.removeprefix("memory://"))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["file", "memory"])
def test_it_is_refused(kind: str, call: str, tmp_path: Path) -> None:
    uri, swap = f"memory://{tmp_path.name}-{call}", swap_memory
    if kind == "file":
        uri, swap = f"file://{tmp_path}/meta", swap_folder
    store = format_store(uri)
    store.put("logs/wal", b"of the first", None)
    swap(uri)
    other = format_store(uri)
    other.put("logs/wal", b"of the other", None)
    with pytest.raises(InvalidRequestError, match="another cluster has replaced it"):
        CALLS[call](store)
    anew = open_store(uri)
    assert anew.get("logs/wal") == VersionedBytes(b"of the other", 1)
    assert anew.list("logs") == ["wal"]


def test_a_client_makes_nothing_in_another_cluster(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/meta"

    def init(name: str) -> None:
        folders = [tmp_path / f"{name}{number}" for number in range(3)]
        for folder in folders:
            folder.mkdir()
        init_cluster(uri, [f"file://{folder}" for folder in folders], accepts_risk=True)

    init("a")
    with BookKeeper(uri) as old:
        log = old.create_log("wal")
        shutil.rmtree(tmp_path / "meta")
        init("b")
        for change in (
            lambda: old.create_log("other"),
            old.create_ledger,
            log.writer,
            lambda: log.keep(max_seconds=1),
            lambda: old.delete_log("wal"),
        ):
            with pytest.raises(BookKeeperError, match="another cluster has replaced it"):
                change()
    with BookKeeper(uri) as new:
        assert new._cluster.log_names() == []
        assert new.list_ledgers() == []
