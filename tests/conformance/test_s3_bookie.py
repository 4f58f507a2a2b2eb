"""The S3 backend keeps the contract."""

import pytest

from bkspark.bookie.contract import Bookie
from bkspark.ledger.journals.journal_reader import find_journals
from bkspark.storage.objects import Objects
from bkspark.testing.bookie_conformance import BookieTests
from bkspark.testing.bookie_place import JOURNAL, LEDGER
from tests.kit.s3 import S3Server

from .s3_place import S3Place

pytestmark = pytest.mark.thorough


class TestS3Bookie(BookieTests):
    @pytest.fixture
    def place(self, server: S3Server) -> S3Place:
        return S3Place(server)

    def test_records_without_their_head_are_no_absence(
        self, bookie: Bookie, place: S3Place
    ) -> None:
        """Whoever deletes the oldest objects first takes the head first."""
        folder, _, last = JOURNAL.rpartition("/")
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
            journal.append([b"ab"])
            place.remove(JOURNAL)
            assert root.list(folder) == [f"{last}/"]
            assert find_journals(root, "b1", LEDGER, ()).problem.startswith("bookie b1: ")

    def test_a_journal_that_is_made_during_a_listing_has_its_head(
        self, bookie: Bookie, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder, _, last = JOURNAL.rpartition("/")
        with bookie.open_root() as root:
            root.open_journal(JOURNAL).append([b"ab"])
            monkeypatch.setattr(Objects, "entries", lambda *_: {f".{last}/": ""})
            assert root.list(folder) == [last]
