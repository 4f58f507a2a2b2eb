"""Ranges of a journal that is many objects: only what they need is fetched."""

import pytest

from bkspark.bookie.contract import Bookie
from bkspark.bookie.object_store import records_folder
from bkspark.errors import BookieUnavailableError
from bkspark.storage.objects import Objects

pytestmark = pytest.mark.thorough

JOURNAL = "ledgers/00/1/journal/j"
RECORDS = [bytes([65 + number]) * (10 + number) for number in range(12)]
WHOLE = b"".join(RECORDS)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the records that were read whole."""
    real, names = Objects.read, list[str]()

    def noted(self: Objects, name: str, begin: int = 0, length: int | None = None) -> object:
        if length is None and "/." in name:
            names.append(name)
        return real(self, name, begin, length)

    monkeypatch.setattr(Objects, "read", noted)
    return names


def test_every_range_is_what_a_file_would_give(s3_bookie: Bookie, fetched: list[str]) -> None:
    with s3_bookie.open_root() as root:
        journal = root.open_journal(JOURNAL)
        for record in RECORDS:
            journal.append([record])
        for begin in (0, 1, 9, 10, 50, len(WHOLE) - 1, len(WHOLE), len(WHOLE) + 5):
            for length in (0, 1, 10, 11, 40, len(WHOLE) * 2):
                found = root.read(JOURNAL, begin, length)
                assert found == WHOLE[begin : begin + length], (begin, length)
        fetched.clear()
        assert root.read(JOURNAL, 60, 20) == WHOLE[60:80]
        assert len(fetched) <= 3


def test_the_length_is_asked_for_as_a_whole(
    s3_bookie: Bookie, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record of 16 bytes is looked at: a listing may show an empty one so."""
    with s3_bookie.open_root() as root:
        journal = root.open_journal(JOURNAL)
        for record in (*RECORDS, b""):
            journal.append([record])
        real, looks = Objects.look, list[str]()
        monkeypatch.setattr(Objects, "look", lambda s, name: looks.append(name) or real(s, name))
        assert root.size(JOURNAL) == len(WHOLE)
        assert looks == [JOURNAL, *(f"{records_folder(JOURNAL)}/{n:016x}" for n in (6, 12, 13))]


@pytest.mark.parametrize("missing", [2, 5, 10])
def test_a_record_that_is_missing_anywhere_is_in_doubt(s3_bookie: Bookie, missing: int) -> None:
    """Also one in front of or behind the range, whose neighbours are as long as it was.

    A question that has listed it goes on; the next one is in doubt.
    """
    with s3_bookie.open_root() as root:
        journal = root.open_journal(JOURNAL)
        for number in range(12):
            journal.append([b"%010d" % number])
        assert root.read(JOURNAL, 50, 10) == b"0000000005"
        record = f"{records_folder(JOURNAL)}/{missing:016x}"
        root._objects.delete(record)  # type: ignore[attr-defined]
    with s3_bookie.open_root() as root, pytest.raises(BookieUnavailableError):
        root.read(JOURNAL, 50, 10)
    with s3_bookie.open_root() as root, pytest.raises(BookieUnavailableError):
        root.size(JOURNAL)
