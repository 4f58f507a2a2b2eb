"""Pages of different lengths, with ledgers of different sizes, are one plain list."""

from bkspark.protocol.log.ledger_list import LoggedLedger
from tests.log_with import log_with

from .test_log import EMPTY, ledger, splice
from .test_paging import Shelf


def test_pages_of_one_log_may_have_different_lengths() -> None:
    shelf = Shelf()
    log = log_with(EMPTY, source=shelf)
    for number in range(60):
        shelf.length = (1, 4, 2)[number // 7 % 3]
        log = shelf.short(splice(log, ledger(number)).stamped(number + 1))
    assert [one.ledger_id for one in log.every_ledger()] == list(range(60))
    lengths = {len(shelf.contents(page).ledgers) for page in log.every_page()}
    assert lengths >= {1, 2, 4}
    before = shelf.short(log.truncated(4 * 31 + 1))
    assert [one.ledger_id for one in before.every_ledger()] == list(range(31, 60))


def test_bytes_within_a_page_are_those_of_its_ledgers() -> None:
    places = tuple(LoggedLedger(n, 4 * n, 4, 1000 * (1 + n % 3), 1) for n in range(30))
    plain = log_with(EMPTY, ledgers=places)
    log = Shelf().short(plain)
    assert log.older
    assert [log.bytes_in(0, n) for n in range(120)] == [plain.bytes_in(0, n) for n in range(120)]
