"""A question that could not be asked leaves open what was sent before it."""

from types import SimpleNamespace
from typing import Any

from bkspark.errors import NotEnoughBookiesError, NothingSentError, OutcomeUnknownError
from bkspark.ledger.handles.writer import known
from bkspark.log.recovering import Undecided, with_outcome

LEDGER: Any = SimpleNamespace(ledger_id=7)


def test_a_writer_that_cannot_ask_leaves_its_entries_in_doubt() -> None:
    told = known(LEDGER, NothingSentError("no descriptor", hint="raise the limit"))
    assert type(told) is OutcomeUnknownError
    assert str(told) == "ledger 7: no descriptor; raise the limit"
    other = NotEnoughBookiesError("too few")
    assert known(LEDGER, other) is other


def test_entries_that_were_sent_are_undecided_whatever_ended_the_writer() -> None:
    error = NothingSentError("no descriptor", hint="raise the limit")
    assert with_outcome(error, "log", None) is error
    told = with_outcome(error, "log", Undecided(7, 0, 5, 2))
    assert type(told) is OutcomeUnknownError
    assert "offsets 5 to 6 are undecided" in str(told)
    assert told.__cause__ is error
