"""What the description of unbounded ledgers says of terms and requests, on the real code.

A bookie there is a server that answers; here it is a folder, in which a marker is what it remembers
and a look-up behind the request is its answer.
"""

import pickle

import pytest

from bkspark import InvalidTermError
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import LedgerFencedError, OutcomeUnknownError
from bkspark.format import layout
from bkspark.ledger.recovery import recoverer
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.hand_writer import HandWriter, one_by_one, stop_at, violations
from tests.integration.recovery.successor import Successor
from tests.integration.rig import Rig

ALL = (0, 1, 2)


@pytest.fixture
def first(memory_rig: Rig) -> HandWriter:
    """The writer of term 1, whose only entry is acknowledged."""
    writer = HandWriter(memory_rig, goes_on=True)
    writer.add(*ALL, acknowledges=True)
    writer.confirm(*ALL)
    return writer


def test_a_higher_term_is_accepted_and_remembered(first: HandWriter, memory_rig: Rig) -> None:
    """Whoever comes later sees it there."""
    assert Successor(first).metadata.term == 2
    fence = layout.term_marker(first.ledger_id, 2)
    assert all(fence in memory_rig.names(name) for name in first.names)


def test_an_equal_term_is_accepted(first: HandWriter, memory_rig: Rig) -> None:
    """Who has fenced the bookies in his term adds to them in that term."""
    second = Successor(first)
    second.add(*ALL, acknowledges=True)
    assert second.acked == [0, 1]
    second.recover()
    assert not violations(memory_rig, first.ledger_id, second.sent, second.acked)


def test_a_normal_add_in_an_older_term_is_refused(first: HandWriter) -> None:
    """By each bookie on its own."""
    Successor(first)
    for index in ALL:
        with pytest.raises(InvalidTermError) as refused:
            first.put(0, index)
        assert (refused.value.term, refused.value.newer_term) == (1, 2)


def test_a_bookie_that_lost_its_permission_names_no_term(
    first: HandWriter, memory_rig: Rig
) -> None:
    memory_rig.replace_file(first.names[0], first.permission, None)
    with pytest.raises(LedgerFencedError) as refused:
        first.put(0, 0)
    assert not isinstance(refused.value, InvalidTermError)


def test_recovery_adds_and_reads_in_an_older_term_come_to_nothing(
    first: HandWriter, memory_rig: Rig
) -> None:
    """They count by one change of the metadata, and that is refused (here it begins anew)."""
    first.add(0)
    newer: list[Successor] = []

    def overtaken(instruction: object) -> None:
        if isinstance(instruction, recoverer.WriteCopies) and not newer:
            newer.append(Successor(first))
            newer[0].add(*ALL, acknowledges=True)

    report = first.recover(run=one_by_one(before=overtaken))
    [second] = newer
    assert report.last_entry_id == 2
    assert memory_rig.ledger(first.ledger_id).term > second.metadata.term
    assert not violations(memory_rig, first.ledger_id, second.sent, second.acked)


def test_normal_reads_do_not_care_about_terms(first: HandWriter, memory_rig: Rig) -> None:
    """Before, amid and behind a change of terms; and they leave nothing behind on a bookie."""
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(first.ledger_id, recovery=False)
        for _ in range(2):
            before = [memory_rig.names(name) for name in first.names]
            assert [entry.value for entry in reader.read(0, 0)] == [first.sent[0]]
            fresh = keeper.open_ledger(first.ledger_id, recovery=False)
            assert [entry.value for entry in fresh.read()] == [first.sent[0]]
            assert [memory_rig.names(name) for name in first.names] == before
            with pytest.raises(OutcomeUnknownError):
                first.recover(run=one_by_one(before=stop_at(object)))
        assert memory_rig.ledger(first.ledger_id).state is LedgerState.IN_RECOVERY


def test_a_writer_disengages_and_says_what_overtook_it(memory_rig: Rig) -> None:
    """Nothing more is sent; to go on is to be a new writer."""
    with BookKeeper(memory_rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"1")
        keeper.open_ledger(handle.ledger_id)
        for _ in range(2):
            with pytest.raises(InvalidTermError) as ended:
                handle.append(b"2")
            assert (ended.value.term, ended.value.newer_term) == (1, 2)
        told = pickle.loads(pickle.dumps(ended.value)).reworded("in short", hint="so")
        assert str(told) == "in short; so"
        assert (told.term, told.newer_term) == (1, 2)
