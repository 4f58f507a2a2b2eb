"""The table of what must be noticed is whole, and everything that it names exists."""

import re

import pytest

from ..simulation import counterexamples  # noqa: TID252
from ..simulation import mutants as simulated  # noqa: TID252
from ..simulation.term_mutants import MUTANTS as OF_LATER_TERMS  # noqa: TID252
from ..simulation.write_quorum_mutants import MUTANTS as OF_WRITE_QUORUM  # noqa: TID252
from .catalog import MUTANTS
from .places import ROOT
from .required import EQUIVALENT, REQUIRED, Killer
from .required_of_terms import OF_TERMS

COUNT = 62
MUTANTS_OF_TERMS = 30
CATALOGUE = {mutant.name for mutant in MUTANTS}


def exists(killer: Killer) -> bool:
    where, name = killer
    if where == "mutant":
        return name in CATALOGUE
    if where == "schedule":
        tables = (simulated.MUTANTS, simulated.LOSSES, OF_WRITE_QUORUM, OF_LATER_TERMS)
        return any(name in table for table in tables)
    if where == "script":
        return any(example.startswith(name) for example in counterexamples.EXAMPLES)
    if where == "test":
        file, _, function = name.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        return re.search(rf"def {function}\(", text) is not None
    return where == "none"


def test_every_number_is_there_once() -> None:
    assert list(REQUIRED) == list(range(1, COUNT + 1))


@pytest.mark.parametrize("number", REQUIRED)
def test_whatever_notices_it_exists(number: int) -> None:
    _, killers = REQUIRED[number]
    assert killers
    assert [killer for killer in killers if not exists(killer)] == []


@pytest.mark.parametrize("rule", OF_TERMS)
def test_whatever_notices_a_broken_rule_of_terms_exists(rule: str) -> None:
    assert [killer for killer in OF_TERMS[rule] if not exists(killer)] == []


def test_terms_are_broken_in_many_ways() -> None:
    named = {name for killers in OF_TERMS.values() for where, name in killers if where == "mutant"}
    assert len(named) >= MUTANTS_OF_TERMS


@pytest.mark.parametrize("rule", EQUIVALENT)
def test_what_no_schedule_notices_has_a_test_of_the_function(rule: str) -> None:
    assert [killer for killer in EQUIVALENT[rule] if not exists(killer)] == []
