"""A log that was deleted and made anew, or overwritten, is another one under the same name."""

from dataclasses import replace

import pytest

from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerExistsError,
    MetadataVersionError,
)
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.ledger.quorum import Quorum

from .test_log import LOG, ledger, splice


def test_who_means_a_generation_gets_no_other() -> None:
    assert LOG.still_of(LOG.generation) is LOG
    with pytest.raises(MetadataVersionError, match="generation 1, not 2"):
        LOG.still_of(2)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_closed_ledger_of_other_quorum_sizes_never_joins(overwrite: bool) -> None:
    other = replace(ledger(9), quorum=Quorum(2, 2, 2))
    with pytest.raises(InvalidRequestError, match=r"quorum sizes \(2, 2, 1\), not \(2, 2, 2\)"):
        splice(LOG, other, overwrite=overwrite)


@pytest.mark.parametrize("is_guaranteed", [False, True])
def test_a_ledger_joins_only_a_log_that_guarantees_as_much(is_guaranteed: bool) -> None:
    log = replace(LOG, settings=replace(LOG.settings, guarantees_write_quorum=not is_guaranteed))
    for one in (ledger(9), ledger(9, state=LedgerState.OPEN)):
        settings = replace(one.settings, guarantees_write_quorum=is_guaranteed)
        other = replace(one, settings=settings)
        with pytest.raises(InvalidRequestError, match="guaranteed copies"):
            splice(log, other) if one.state is LedgerState.CLOSED else log.with_tail(other)


def test_an_open_ledger_of_other_quorum_sizes_is_no_tail() -> None:
    other = replace(ledger(9, state=LedgerState.OPEN), quorum=Quorum(2, 2, 2))
    with pytest.raises(InvalidRequestError, match="quorum sizes"):
        LOG.with_tail(other)


@pytest.mark.parametrize("is_unbounded", [False, True])
def test_who_says_that_a_log_is_unbounded_or_not_gets_no_other(is_unbounded: bool) -> None:
    log = replace(LOG, settings=replace(LOG.settings, is_unbounded=is_unbounded))
    other = ledger(9)
    for said in (None, is_unbounded):
        joined = log.with_ledger(other, schema=b"s", transaction=None, is_unbounded=said)
        assert joined.is_unbounded is is_unbounded
    with pytest.raises(InvalidRequestError) as refused:
        log.with_ledger(other, schema=b"s", transaction=None, is_unbounded=not is_unbounded)
    assert "bkspark log convert" in refused.value.hint
    made = log.vacated().with_ledger(other, schema=b"s", transaction=None, is_unbounded=True)
    assert made.is_unbounded
    assert not log.vacated().with_ledger(other, schema=b"s", transaction=None).is_unbounded


def test_a_log_is_converted_unless_it_is_sealed() -> None:
    unbounded = LOG.converted(is_unbounded=True)
    assert unbounded.is_unbounded
    assert unbounded.converted(is_unbounded=False) == LOG
    with pytest.raises(LedgerClosedError):
        LOG.sealed().converted(is_unbounded=True)


def test_who_creates_one_where_a_chained_one_is_is_told_how_to_convert() -> None:
    for log in (LOG, LOG.converted(is_unbounded=True)):
        for wanted in (LOG.settings, replace(LOG.settings, is_unbounded=True)):
            with pytest.raises(LedgerExistsError) as refused:
                log.created(wanted, b"s")
            is_told = wanted.is_unbounded and not log.is_unbounded
            assert ("bkspark log convert" in refused.value.hint) == is_told
