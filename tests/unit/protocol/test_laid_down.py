"""A ledger that its writer lays down, and that another one takes up in the next term."""

from dataclasses import replace

import pytest

from bkspark.errors import InvalidRequestError, LedgerClosedError, LedgerFencedError
from bkspark.protocol.ledger.metadata import (
    TAKEN_UP_TERM_MAX,
    LedgerMetadata,
    LedgerState,
)
from bkspark.protocol.ledger.standing import Standing
from bkspark.protocol.ledger.writing import LedgerWriter

from .test_ledger import CLOSED, fragment, ledger

STANDING = Standing(9, 90, 3, {"app": 4})
HELD = ledger(LedgerState.OPEN, fragment(0, "abc", 1), fragment(5, "abd", 2), term=2)
LAID_DOWN = HELD.put_down(STANDING, term=2, token="mine")


def test_nobody_may_write_to_a_ledger_that_is_laid_down() -> None:
    assert HELD.is_writable_by(term=2, token="mine")
    assert not LAID_DOWN.is_writable_by(term=2, token="mine")
    with pytest.raises(LedgerFencedError):
        LAID_DOWN.with_ensemble(10, HELD.last_fragment.ensemble, term=2, token="mine")
    with pytest.raises(LedgerFencedError):
        LAID_DOWN.closed(last_entry_id=9, length_bytes=90, term=2, token="mine")
    with pytest.raises(LedgerFencedError):
        LAID_DOWN.put_down(STANDING, term=2, token="mine")


def test_only_its_writer_lays_it_down() -> None:
    for term, token in ((1, "mine"), (2, "theirs")):
        with pytest.raises(LedgerFencedError):
            HELD.put_down(STANDING, term=term, token=token)
    with pytest.raises(LedgerClosedError):
        ledger(CLOSED).put_down(STANDING, term=2, token="mine")


@pytest.mark.parametrize("last", [4, 9])
def test_it_is_taken_up_in_the_next_term_and_in_a_fragment_behind_its_end(last: int) -> None:
    down = HELD.put_down(replace(STANDING, last_entry_id=last), term=2, token="mine")
    taken = down.taken_up("theirs")
    kept = HELD.fragments if last == 9 else HELD.fragments[:1]
    assert taken.fragments == (*kept, fragment(last + 1, "abd", 3, "theirs", has_headers=True))
    assert (taken.state, taken.term, taken.token, taken.laid_down) == (
        LedgerState.OPEN,
        3,
        "theirs",
        None,
    )
    assert taken.is_writable_by(term=3, token="theirs")
    assert not taken.may_be_taken_up


def test_an_empty_one_is_taken_up_from_its_start() -> None:
    empty = ledger(LedgerState.OPEN, fragment(0, "abc", 2))
    taken = empty.put_down(Standing(-1, 0, 0), term=2, token="mine").taken_up("theirs")
    assert taken.fragments == (fragment(0, "abc", 3, "theirs", has_headers=True),)


def test_what_is_not_laid_down_is_not_taken_up() -> None:
    assert not HELD.may_be_taken_up
    for metadata in (HELD, HELD.in_recovery("theirs"), LAID_DOWN.taken_up("theirs")):
        with pytest.raises(LedgerFencedError):
            metadata.taken_up("other")


@pytest.mark.parametrize(
    ("term", "may"), [(TAKEN_UP_TERM_MAX - 1, True), (TAKEN_UP_TERM_MAX, False)]
)
def test_terms_are_few(term: int, may: bool) -> None:
    down = replace(HELD, term=term).put_down(STANDING, term=term, token="mine")
    assert down.may_be_taken_up == may
    if not may:
        with pytest.raises(LedgerFencedError):
            down.taken_up("theirs")


@pytest.mark.parametrize("end", ["in_recovery", "deleting"])
def test_a_recovery_or_a_deletion_ends_it(end: str) -> None:
    after: LedgerMetadata = (
        LAID_DOWN.in_recovery("x") if end == "in_recovery" else LAID_DOWN.deleting()
    )
    assert after.laid_down is None
    assert not after.may_be_taken_up


def test_only_an_open_ledger_is_laid_down_behind_what_was_acknowledged() -> None:
    with pytest.raises(InvalidRequestError):
        replace(HELD, state=LedgerState.IN_RECOVERY, laid_down=STANDING)
    with pytest.raises(InvalidRequestError):
        HELD.put_down(replace(STANDING, last_entry_id=3), term=2, token="mine")


def test_a_writer_closes_or_lays_down_what_is_still_its_own() -> None:
    held = replace(HELD, token="mine")
    writer = LedgerWriter(held, last_add_confirmed=9, length_bytes=90)
    assert writer.closed(held).last_entry_id == 9
    assert writer.laid_down(held, STANDING).laid_down == STANDING
    with pytest.raises(LedgerFencedError, match="is gone"):
        writer.closed(None)
