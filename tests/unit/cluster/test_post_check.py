"""A record counts on a bookie only if four facts are seen there after it is durable (R6)."""

import logging
import secrets
from collections.abc import Callable

import pytest

from bkspark.bookie import memory, uri
from bkspark.bookie.contract import BookieAddress, Journal
from bkspark.cluster.bookie_client import post_check
from bkspark.errors import BookieUnavailableError, LedgerFencedError
from bkspark.format import layout
from bkspark.format.cluster import Cookie, encode_cookie
from tests.kit.faulty import StorageFaults

LEDGER, TERM = 5, 2
TOKEN = "a" * 32
JOURNAL = layout.journal(LEDGER, TERM, TOKEN)
FENCE = layout.term_marker(LEDGER, TERM + 1)
PERMISSION = layout.permission(LEDGER, TERM, TOKEN)


class Place:
    """A bookie in memory on which a writer of term 2 has written its record."""

    def __init__(self) -> None:
        url = f"memory://{secrets.token_hex(8)}"
        self.address = BookieAddress("b1", "1" * 32, "c" * 32, url)
        uri.storage(url).format(encode_cookie(Cookie("c" * 32, "b1", "1" * 32)))
        with uri.open_bookie(self.address).open_root() as root:
            root.put_new(PERMISSION, b"")
            self.journal: Journal = root.open_journal(JOURNAL)
        self.journal.append([b"record"])

    @property
    def files(self) -> dict[str, memory.MemoryFile]:
        disk = memory.find_disk(self.address.url)
        assert disk is not None
        return disk.files

    def check(self) -> None:
        post_check(self.address, self.journal, ledger_id=LEDGER, term=TERM, token=TOKEN)


@pytest.fixture
def place() -> Place:
    return Place()


def test_what_is_in_order_counts(place: Place) -> None:
    place.check()


def test_the_next_term_s_marker_is_a_fence(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bkspark")
    place.files[FENCE] = memory.MemoryFile()
    with pytest.raises(LedgerFencedError):
        place.check()
    where = f"on bookie {place.address.bookie_id}"
    assert f"ledger {LEDGER}: the writer of term {TERM} is fenced {where}" in caplog.text


def test_the_own_marker_must_be_there(place: Place) -> None:
    del place.files[PERMISSION]
    with pytest.raises(LedgerFencedError):
        place.check()


@pytest.mark.parametrize(
    "other", [layout.term_marker(LEDGER, TERM), layout.permission(LEDGER, TERM, "b" * 32)]
)
def test_no_other_marker_is_as_good_as_the_own(place: Place, other: str) -> None:
    place.files[other] = place.files.pop(PERMISSION)
    with pytest.raises(LedgerFencedError):
        place.check()


@pytest.mark.parametrize(
    "change",
    [
        lambda files: files.pop(JOURNAL),
        lambda files: files.update({JOURNAL: memory.MemoryFile(b"record")}),
        lambda files: files[JOURNAL].data.pop(),
    ],
    ids=["gone", "another", "cut"],
)
def test_the_journal_must_be_the_one_that_was_written(
    place: Place, change: Callable[[dict[str, memory.MemoryFile]], object]
) -> None:
    change(place.files)
    with pytest.raises(BookieUnavailableError, match="does not show"):
        place.check()


def test_the_cookie_must_be_the_one_of_the_fragment(place: Place) -> None:
    place.files[layout.COOKIE] = memory.MemoryFile(encode_cookie(Cookie("c" * 32, "b1", "2" * 32)))
    with pytest.raises(BookieUnavailableError, match="initialised again"):
        place.check()


def test_the_order_of_its_looks(place: Place) -> None:
    """Next marker before own: the other way round, a wipe between them would go unseen."""
    faults = StorageFaults()
    with faults.installed():
        place.check()
    assert [(op.call, op.name) for op in faults.trace] == [
        ("open_root", "b1"),
        ("has_journal", JOURNAL),
        ("size", FENCE),
        ("size", PERMISSION),
    ]
