"""A ledger that a writer of an older version has laid down: nobody writes to it any more."""

from dataclasses import replace

import pytest

from bkspark.errors import InvalidRequestError, LedgerFencedError
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.ledger.standing import ConfirmedEnd
from bkspark.protocol.writer.writing import LedgerWriter

from .test_ledger import fragment, ledger

STANDING = ConfirmedEnd(9, 90, 3, {"app": 4})
HELD = ledger(LedgerState.OPEN, fragment(0, "abc", 1), fragment(5, "abd", 2), term=2)
LAID_DOWN = replace(HELD, laid_down=STANDING)


def test_nobody_may_write_to_a_ledger_that_is_laid_down() -> None:
    assert HELD.is_writable_by(term=2, token="mine")
    assert not LAID_DOWN.is_writable_by(term=2, token="mine")
    with pytest.raises(LedgerFencedError):
        LAID_DOWN.with_ensemble(10, HELD.last_fragment.ensemble, term=2, token="mine")
    with pytest.raises(LedgerFencedError):
        LAID_DOWN.closed(last_entry_id=9, length_bytes=90, term=2, token="mine")


def test_it_is_closed_at_no_less_than_where_it_stood() -> None:
    taken = LAID_DOWN.in_recovery("theirs")
    assert (taken.laid_down, taken.last_confirmed, taken.term) == (None, 9, 3)
    for again in (taken, taken.in_recovery("yet another's")):
        whose = {"term": again.term, "token": again.token}
        with pytest.raises(InvalidRequestError, match="entries up to 9 were acknowledged"):
            again.closed(last_entry_id=8, length_bytes=80, **whose)
        assert again.closed(last_entry_id=9, length_bytes=90, **whose).last_entry_id == 9


@pytest.mark.parametrize("standing", [None, replace(STANDING, last_entry_id=4)])
def test_where_nothing_of_its_last_fragment_was_written_nothing_is_kept(
    standing: ConfirmedEnd | None,
) -> None:
    taken = replace(HELD, laid_down=standing).in_recovery("theirs")
    assert (taken.fragments, taken.last_confirmed) == (HELD.fragments, 4)


@pytest.mark.parametrize("end", ["in_recovery", "deleting"])
def test_a_recovery_or_a_deletion_ends_it(end: str) -> None:
    after: LedgerMetadata = (
        LAID_DOWN.in_recovery("x") if end == "in_recovery" else LAID_DOWN.deleting()
    )
    assert after.laid_down is None


def test_only_an_open_ledger_is_laid_down_behind_what_was_acknowledged() -> None:
    with pytest.raises(InvalidRequestError):
        replace(HELD, state=LedgerState.IN_RECOVERY, laid_down=STANDING)
    with pytest.raises(InvalidRequestError):
        replace(HELD, laid_down=replace(STANDING, last_entry_id=3))


def test_a_writer_closes_what_is_still_its_own() -> None:
    writer = LedgerWriter(HELD, last_add_confirmed=9, length_bytes=90)
    assert writer.closed(HELD).last_entry_id == 9
    with pytest.raises(LedgerFencedError, match="does not exist any more"):
        writer.closed(None)
    with pytest.raises(LedgerFencedError):
        writer.closed(LAID_DOWN)
