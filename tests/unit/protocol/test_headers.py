"""What says that a writer's journals were begun, and what the machines make of such things."""

import pytest

from bkspark.errors import LedgerFencedError
from bkspark.protocol.bookies import USUAL_MARKS
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import confirmation, header
from bkspark.protocol.writer.adding import PendingAdds

from .test_ledger import fragment, ledger

OPEN = ledger(LedgerState.OPEN, fragment(0, "abc", 2, token="mine"), term=2)


def test_only_the_writer_says_that_journals_are_begun() -> None:
    headed = OPEN.with_headers(term=2, token="mine")
    assert headed.last_fragment.has_headers
    assert not OPEN.last_fragment.has_headers
    with pytest.raises(LedgerFencedError):
        OPEN.with_headers(term=2, token="theirs")


def test_a_header_says_nothing() -> None:
    quorum = Quorum(3, 3, 2)
    begun = header(ledger_id=7, term=2, token="mine", quorum=quorum)
    assert begun.is_header
    assert begun.last_add_confirmed == -1
    said = confirmation(
        ledger_id=7, term=2, token="mine", last_add_confirmed=0, length_bytes=1, quorum=quorum
    )
    assert not said.is_header


def test_copies_are_of_one_record() -> None:
    pending = PendingAdds(Quorum(3, 3, 2))
    first, second = pending.push(2), pending.push(1)
    pending.copied(1, second.first_entry_id)
    assert (first.ready, second.ready) == (set(), {1})


def test_marks_are_shown_in_percent() -> None:
    assert "95" in USUAL_MARKS.shown
    assert "90" in USUAL_MARKS.shown
