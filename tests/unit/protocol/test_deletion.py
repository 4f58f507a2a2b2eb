"""Who is owed a deletion before the record of a deleted ledger goes."""

from dataclasses import replace

from bkspark.protocol.ledger.deletion import needs_fence, owing
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum

OLD, SECOND, THIRD = (Member(name, "1") for name in ("old", "second", "third"))
EVERYBODY = {OLD, SECOND, THIRD}
OPEN = LedgerMetadata(
    ledger_id=7,
    quorum=Quorum(2, 2, 2),
    state=LedgerState.OPEN,
    term=1,
    token="a" * 32,
    fragments=(Fragment(0, 1, (OLD, SECOND)), Fragment(5, 1, (SECOND, THIRD))),
)
DELETED = OPEN.deleting()


def owed(cleaned: set[Member], **changes: set[Member]) -> set[Member]:
    values = {"registered": EVERYBODY, "lost": set[Member]()} | changes
    return owing(DELETED, cleaned=cleaned, **values)


def test_each_member_of_each_fragment_has_to_be_cleaned() -> None:
    assert owed(set()) == EVERYBODY
    assert owed({SECOND, THIRD}) == {OLD}
    assert owed(EVERYBODY) == set()


def test_who_was_cleaned_as_another_is_owed_it_still() -> None:
    assert owed({SECOND, THIRD, replace(OLD, incarnation="2")}) == {OLD}


def test_who_will_not_come_back_as_it_was_is_owed_nothing() -> None:
    """Removed, or set up anew, or declared lost."""
    assert owed({SECOND}, registered={SECOND, THIRD}) == {THIRD}
    anew = {SECOND, THIRD, replace(OLD, incarnation="2")}
    assert owed({SECOND, THIRD}, registered=anew) == set()
    assert owed({SECOND}, lost={OLD}) == {THIRD}


def test_a_writer_is_fenced_unless_the_ledger_was_closed() -> None:
    closed = OPEN.closed(last_entry_id=8, length_bytes=1, term=1, token="a" * 32)
    assert needs_fence(DELETED)
    assert not needs_fence(closed.deleting())
    assert not needs_fence(OPEN)
