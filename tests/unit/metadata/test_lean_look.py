"""The lean look of the metadata check: it says yes only if every look-up of the full check does."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.metadata.directory import surely_shows
from bkspark.metadata.versioned_store import look_ups

KEY = "ledgers/1"
VALUE = b"the record"
NAMES = look_ups(KEY, 3)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "meta"
    for folder in (root, root / "ledgers", root / KEY):
        folder.mkdir(mode=0o700)
    (root / KEY / f"{3:016x}").write_bytes(VALUE)
    return root


def shows(root: Path) -> bool:
    return surely_shows(str(root), NAMES, VALUE)


def test_it_looks_for_what_the_full_check_looks_for_in_its_order(root: Path) -> None:
    assert shows(root)
    assert NAMES.above == ("ledgers",)
    assert NAMES.absent == (
        f"{4:016x}",
        *(f"pruned-{mark:016x}" for mark in (16, 256, 4096, 65536)),
    )
    assert (NAMES.folder, NAMES.beside, NAMES.own) == (KEY, "ledgers/~1", f"{3:016x}")


@pytest.mark.parametrize("name", [*NAMES.absent, "../~1"])
def test_any_sign_of_a_later_version_is_no_yes(root: Path, name: str) -> None:
    (root / KEY / name).touch()
    assert not shows(root)


@pytest.mark.parametrize("value", [None, b"", b"another", VALUE + b"x", VALUE[:-1]])
def test_other_bytes_are_no_yes(root: Path, value: bytes | None) -> None:
    own = root / KEY / NAMES.own
    own.unlink()
    if value is not None:
        own.write_bytes(value)
    assert not shows(root)


def _link_to_a_copy(place: Path) -> None:
    moved = place.rename(place.with_name("moved"))
    place.symlink_to(moved)


PLACES = ("", "ledgers", KEY, f"{KEY}/{NAMES.own}")
CHANGES: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "all may write it": (lambda place: place.chmod(0o777), PLACES),
    "it is a link": (_link_to_a_copy, PLACES[1:]),
    "it is a group's": (lambda place: place.chmod(0o2770), PLACES[:1]),
    "it is gone": (lambda place: place.rename(place.with_name("moved")), PLACES),
}


@pytest.mark.parametrize(
    ("what", "place"), [(what, place) for what, (_, places) in CHANGES.items() for place in places]
)
def test_what_others_may_have_changed_is_no_yes(root: Path, what: str, place: str) -> None:
    CHANGES[what][0](root / place)
    assert not shows(root)


@pytest.mark.parametrize("place", PLACES)
def test_what_belongs_to_another_user_is_no_yes(
    root: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    number, fstat, stat = (root / place).stat().st_ino, os.fstat, os.stat

    def owned(status: os.stat_result) -> os.stat_result:
        fields = [*status[:10]]
        fields[4] = 12345 if status.st_ino == number else status.st_uid
        return os.stat_result(fields)

    monkeypatch.setattr(os, "fstat", lambda descriptor: owned(fstat(descriptor)))
    monkeypatch.setattr(os, "stat", lambda *names, **how: owned(stat(*names, **how)))
    assert not shows(root)


def test_it_asks_the_disk_no_more_than_the_full_check(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def counted(name: str) -> Callable[..., object]:
        ask = getattr(os, name)

        def call(*given: object, **how: object) -> object:
            calls.append(name)
            return ask(*given, **how)

        return call

    for name in ("open", "stat", "fstat", "pread"):
        monkeypatch.setattr(os, name, counted(name))
    assert shows(root)
    assert (calls.count("open"), calls.count("stat"), len(calls)) == (3, 7, 14)


def test_descriptors_are_closed(root: Path) -> None:
    before = os.listdir("/proc/self/fd")
    assert shows(root)
    (root / KEY / NAMES.own).unlink()
    assert not shows(root)
    assert os.listdir("/proc/self/fd") == before


def test_a_check_of_a_wrong_key_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="is not allowed"):
        look_ups("../1", 3)
