"""One record put together from several pages: never from two different records."""

from dataclasses import replace

from bkspark.ledger.handles.entry_reader import RecordReplies
from bkspark.ledger.journals.journal_pages import JournalPage
from bkspark.ledger.journals.journal_reader import StoredRecord
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, InlinePart

PARTS = tuple(InlinePart(stripe, 1, "00") for stripe in (0, 1))
FIRST = AddRecord(7, 1, "a" * 32, 4, 5, 3, 10, Quorum(2, 1, 1), (-1, -1), rows=PARTS)
LATER = replace(FIRST, term=2, token="b" * 32)
ENSEMBLE = tuple(Member(name, "1" * 32) for name in "ab")
OF_FIRST = Fragment(0, 1, ENSEMBLE, "a" * 32)
LEDGER = LedgerMetadata(7, Quorum(2, 1, 1), LedgerState.OPEN, 1, "a" * 32, (OF_FIRST,))
OF_LATER = Fragment(4, 2, ENSEMBLE, "b" * 32)
TAKEN = replace(LEDGER, term=2, token="b" * 32, fragments=(OF_FIRST, OF_LATER))


def page(record: AddRecord, *stripes: int) -> JournalPage:
    messages = dict.fromkeys(stripes, b"%d" % record.term)
    return JournalPage((StoredRecord(0, 100, record, messages),), 100)


def test_parts_from_several_pages_make_a_record() -> None:
    replies = RecordReplies(5, LEDGER)
    replies.take(page(FIRST, 0))
    assert not replies.is_whole
    replies.take(page(FIRST, 1))
    assert replies.is_whole


def test_of_two_records_the_owners_is_the_one_and_parts_are_not_mixed() -> None:
    for ledger, owned in ((TAKEN, LATER), (LEDGER, FIRST)):
        for order in ((FIRST, LATER), (LATER, FIRST)):
            replies = RecordReplies(5, ledger)
            for record, stripe in zip(order, (0, 1), strict=True):
                replies.take(page(record, stripe))
            assert replies.record == owned
            assert not replies.is_whole
            assert set(replies.messages.values()) == {b"%d" % owned.term}


def test_parts_of_two_records_of_one_term_are_not_mixed() -> None:
    replies = RecordReplies(5, LEDGER)
    replies.take(page(FIRST, 0))
    replies.take(page(replace(FIRST, length_bytes=11), 1))
    assert not replies.is_whole


def test_a_record_of_a_term_that_is_not_open_is_none() -> None:
    replies = RecordReplies(5, LEDGER)
    replies.take(page(LATER, 0, 1))
    assert replies.record is None


def test_an_entry_behind_the_record_is_not_in_it() -> None:
    for entry_id in (3, 6):
        replies = RecordReplies(entry_id, LEDGER)
        replies.take(page(FIRST, 0, 1))
        assert replies.record is None
