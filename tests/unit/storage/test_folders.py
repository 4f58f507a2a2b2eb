"""Folders of other programs: "absent" is certain, and a bucket is asked for what is needed."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from bkspark.errors import InvalidRequestError
from bkspark.storage import folders
from bkspark.storage.folders import Folder, RangedFile, fetch_ahead, folder_url, open_folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "a").mkdir()
    for name in ("a/1", "a/2", "a/3", "a b%"):
        (tmp_path / name).write_bytes(name.encode())
    return open_folder(str(tmp_path))


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("s3a://lake/events/", "s3://lake/events"),
        ("S3://lake/events", "s3://lake/events"),
        ("s3a://lake/events?store=east", "s3://lake/events?store=east"),
        ("/data//events/", "file:///data/events"),
    ],
)
def test_a_folder_has_one_address(given: str, url: str) -> None:
    assert folder_url(given) == url


def test_files_are_listed_with_their_sizes(folder: Folder) -> None:
    assert folder.sizes("a") == {"1": 3, "2": 3, "3": 3}
    assert folder.sizes("a", after="2") == {"3": 3}
    assert folder.sizes("b") == {}


def test_a_file_that_is_removed_during_a_listing_is_absent(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "a/2").unlink()
    (tmp_path / "a/2").symlink_to("nowhere")
    assert folder.sizes("a") == {"1": 3, "3": 3}


def test_a_range_is_read(folder: Folder) -> None:
    assert folder.read("a b%") == b"a b%"
    assert folder.read("a b%", 1, 2) == b" b"
    assert folder.read("a b%", 3, 9) == b"%"
    assert folder.read("a b%", 9, 9) == b""
    with folder.open("a b%", 4) as file:
        assert file.read() == b"a b%"
        fetch_ahead(file, [(0, 1)])


def test_what_is_absent_is_said_and_what_is_no_file_proves_nothing(folder: Folder) -> None:
    for call in (folder.read, lambda name: folder.open(name, 1)):
        with pytest.raises(FileNotFoundError):
            call("b")
        with pytest.raises(OSError, match="is not a file") as doubt:
            call("a")
        assert not isinstance(doubt.value, FileNotFoundError)


def test_a_file_of_another_length_is_refused(folder: Folder) -> None:
    with pytest.raises(folders.SizeDiffersError, match="it has 4 bytes, and 5 were expected"):
        folder.open("a b%", 5)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a\0"])
def test_a_name_stays_in_its_folder(folder: Folder, name: str) -> None:
    with pytest.raises(InvalidRequestError, match="does not name a file of the folder"):
        folder.read(name)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("/a b/c/", "file:///a%20b/c"),
        ("file:/a/b", "file:///a/b"),
        ("file:///a/b/", "file:///a/b"),
        ("s3a://bucket/a b/c%/", "s3://bucket/a b/c%"),
        ("s3://bucket", "s3://bucket"),
        ("S3A://bucket/a?store=east", "s3://bucket/a?store=east"),
    ],
)
def test_a_place_has_one_spelling(given: str, url: str) -> None:
    assert open_folder(given).url == url


@pytest.mark.parametrize(
    "given",
    [
        "relative/path",
        "hdfs://host/a",
        "s3a://",
        "s3://key:secret@bucket/a",
        "s3://bucket/a?versionId=3",
        "s3://bucket/a#b",
        "file://host/a",
        "/a/../b",
        "",
    ],
)
def test_other_places_are_refused(given: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        open_folder(given)
    assert "secret" not in str(refused.value)


# --- ranges --------------------------------------------------------------------------------------


class Noted:
    """A folder of one file, and the ranges that were read of it."""

    url = "s3://bucket/place"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ranges: list[tuple[int, int]] = []

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        assert name == "file"
        end = len(self.data) if length is None else begin + length
        self.ranges.append((begin, end))
        return self.data[begin:end]


DATA = os.urandom(10_000)


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    monkeypatch.setattr(folders, "_GAP_BYTES", 100)
    return Noted(DATA)


def opened(noted: Noted) -> RangedFile:
    return RangedFile(noted, "file", len(DATA))  # type: ignore[arg-type]


def test_each_range_of_a_file_is_right(noted: Noted) -> None:
    file = opened(noted)
    file.keep(5_000, DATA[5_000:6_000])
    for begin in (0, 4_990, 5_000, 5_999, 6_000, 9_999, 10_000):
        for length in (0, 1, 500, 1_500, 20_000):
            file.seek(begin)
            assert file.read(length) == DATA[begin : begin + length]
    assert (file.seek(-5, os.SEEK_END), file.tell(), file.read()) == (9_995, 9_995, DATA[-5:])
    assert pa.PythonFile(file, mode="r").size() == len(DATA)


def test_what_was_fetched_is_not_asked_for_again(noted: Noted) -> None:
    file = opened(noted)
    fetch_ahead(file, [(4_000, 5_000), (0, 900), (950, 2_000)])
    assert sorted(noted.ranges) == [(0, 2_000), (4_000, 5_000)]
    file.seek(100)
    assert file.read(1_900) == DATA[100:2_000]
    assert len(noted.ranges) == 2
    assert file.read(3_000) == DATA[2_000:5_000]
    assert noted.ranges[2:] == [(2_000, 4_000)]


def test_a_long_range_is_several_requests(noted: Noted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "READ_BYTES", 1_000)
    file = opened(noted)
    fetch_ahead(file, [(0, 2_500)])
    assert sorted(noted.ranges) == [(0, 1_000), (1_000, 2_000), (2_000, 2_500)]
    assert file.read(2_500) == DATA[:2_500]


def test_a_file_that_becomes_shorter_is_an_error(noted: Noted) -> None:
    file = opened(noted)
    noted.data = DATA[:500]
    with pytest.raises(folders.SizeDiffersError, match="it became shorter"):
        file.read(1_000)
