"""Where several syncs follow each other, each of them shows that the disk gets on."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.metadata.directory import Directory, open_directory
from bkspark.progress import Progress, reported_to
from bkspark.storage import posix_calls
from bkspark.testing.bookie_place import (
    CLUSTER,
    ENTRIES,
    INCARNATION,
    JOURNAL,
    MARKER,
    a_cookie,
)

Act = Callable[[], object]


def finish(root: BookieRoot) -> Act:
    file = root.create(ENTRIES)
    file.write(b"x")
    return file.finish


IN_BOOKIE: dict[str, Callable[[BookieRoot], Act]] = {
    "put_new": lambda root: lambda: root.put_new(MARKER, b"x"),
    "open_journal": lambda root: lambda: root.open_journal(JOURNAL),
    "finish": finish,
}
IN_METADATA: dict[str, Callable[[Directory], object]] = {
    "put_if_absent": lambda directory: directory.put_if_absent("version", b"x"),
    "make_folder": lambda directory: directory.make_folder("logs/events"),
}


@pytest.fixture
def act(call: str, tmp_path: Path) -> Iterator[Act]:
    if call in IN_METADATA:
        with open_directory(str(tmp_path)) as directory:
            yield lambda: IN_METADATA[call](directory)
        return
    url = (tmp_path / "bookie").as_uri()
    (tmp_path / "bookie").mkdir()
    uri.storage(url).format(a_cookie())
    with uri.open_bookie(BookieAddress("b1", INCARNATION, CLUSTER, url)).open_root() as root:
        yield IN_BOOKIE[call](root)


@pytest.mark.parametrize("call", [*IN_BOOKIE, *IN_METADATA])
def test_each_sync_but_the_last_is_a_sign(act: Act, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit begins anew with each, so one call may take as long as many syncs take."""
    posix_calls.forget_durable_folders()
    real, syncs, seen = os.fsync, list[int](), Progress()

    def fsync(descriptor: int) -> None:
        syncs.append(seen.count)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with reported_to(seen):
        act()
    assert len(syncs) > 1
    assert syncs == sorted(set(syncs))
