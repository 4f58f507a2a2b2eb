"""What members of an open ledger lack, told by two looks at their journals."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import repeat

import pytest

from bkspark import environment
from bkspark.admin.auditing.audit import OpenEnd, OpenEnds, lacking_at_ends
from bkspark.admin.auditing.copies import Copies
from bkspark.cluster.bookie_client import STORE_SECONDS
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum

A, B, C = (Member(f"bookie-{n}", "1") for n in "123")


QUORUM = Quorum(3, 3, 2)


def open_ledger(quorum: Quorum = QUORUM) -> LedgerMetadata:
    return LedgerMetadata(7, quorum, LedgerState.OPEN, 1, "0" * 32, (Fragment(0, 1, (A, B, C)),))


def found(ledger: LedgerMetadata, *looks: dict[Member, OpenEnd]) -> list[tuple[Member, object]]:
    left: Iterator[dict[Member, OpenEnd]] = iter(looks)

    def look(ledgers: Iterable[LedgerMetadata]) -> OpenEnds:
        return {(m, one.ledger_id): end for one in ledgers for m, end in next(left).items()}

    gaps = lacking_at_ends([ledger], look).get(ledger.ledger_id, [])
    assert {gap.copies for gap in gaps} <= {Copies.BELOW_WRITE_QUORUM}
    return [(gap.member, gap.entries) for gap in gaps]


class Clock:
    """Time that passes only while the audit sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(environment, "monotonic", lambda: clock.now)
    monkeypatch.setattr(environment, "sleep", clock.sleep)
    return clock


WHOLE = {A: OpenEnd(7, 6), B: OpenEnd(7, 6), C: OpenEnd(6, 5)}
SHORT = WHOLE | {C: OpenEnd(3, 2)}


def test_what_stays_behind_lacks_what_is_acknowledged() -> None:
    assert found(open_ledger(), *repeat(SHORT, 100)) == [(C, (4, 6))]


def test_a_bookie_that_gets_on_lacks_nothing(clock: Clock) -> None:
    assert found(open_ledger(), SHORT, SHORT | {C: OpenEnd(4, 3)}) == []
    assert clock.now < STORE_SECONDS / 2  # there is nothing to wait for


def test_a_bookie_that_needs_seconds_for_a_record_lacks_nothing() -> None:
    assert found(open_ledger(), *repeat(SHORT, 10), SHORT | {C: OpenEnd(4, 3)}) == []


def test_entries_without_an_ack_are_not_counted() -> None:
    assert found(open_ledger(), WHOLE) == []


def test_one_that_gives_no_answer_is_not_told_of() -> None:
    assert found(open_ledger(), {A: OpenEnd(7, 6), B: OpenEnd(7, 6)}) == []
    assert found(open_ledger(), SHORT, {A: OpenEnd(7, 6)}) == []


def test_a_member_has_its_own_entries_only() -> None:
    """With two copies on three bookies, entry 5 is not on the second of them."""
    ends = {A: OpenEnd(6, 5), B: OpenEnd(4, 3), C: OpenEnd(5, 4)}
    assert found(open_ledger(Quorum(3, 2, 2)), ends) == []


def test_only_open_ledgers_are_looked_at() -> None:
    assert found(replace(open_ledger(), state=LedgerState.IN_RECOVERY)) == []
