"""Elections: one leads at a time, and a log is not taken back by a process that leads no longer."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest

import bkspark
from bkspark import environment
from bkspark.cluster import lease
from bkspark.cluster.election import Election
from bkspark.cluster.lease import Leases, this_process
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    LedgerFencedError,
    MetadataVersionError,
    NotLeaderError,
    OutcomeUnknownError,
)
from bkspark.format.upkeep_records import Lease
from tests.integration.rig import Rig
from tests.kit.own_clock import OwnClock

NAME = "ingest"


@pytest.fixture
def bk(make_rig: Callable[..., Rig]) -> Iterator[bkspark.BookKeeper]:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    with bkspark.BookKeeper(rig.uri) as bookkeeper:
        yield bookkeeper


def elect_elsewhere(bk: bkspark.BookKeeper) -> None:
    """Another host's process was elected while this one was paused."""
    holder = replace(this_process(), host="far-away", machine="another one", pid=77)
    other = Lease(f"election.{NAME}", "ab" * 16, holder, 1_700_000_000_000)
    for _ in range(1_000):
        with suppress(MetadataVersionError):  # this process renews meanwhile
            Leases(bk._cluster, other.verb)._records.write_over(other.verb, other)
            return
    raise AssertionError("this process was faster each time")


def test_one_leads_and_the_next_leads_after_it(bk: bkspark.BookKeeper) -> None:
    first, second = bk.election(NAME), bk.election(NAME)
    assert first.leader() is None
    elected = environment.inbox()

    def wait() -> None:
        with second:
            elected.put((second.is_leader, first.is_leader))

    with first:
        assert (first.is_leader, second.is_leader) == (True, False)
        assert [one.process_id for one in second.contenders()] == [this_process().pid]
        with pytest.raises(NotLeaderError, match="still leads after 0 s; wait longer"):
            bk.election(NAME, timeout=0).__enter__()
        task = environment.start(wait, "second")
        assert elected.empty()
    assert elected.get(timeout=60) == (True, False)
    task.join()
    assert second.leader() is None


def test_a_process_may_lead_again_but_not_twice_at_once(bk: bkspark.BookKeeper) -> None:
    election = bk.election(NAME)
    for _ in range(2):
        with election as entered:
            assert entered.is_leader
            with pytest.raises(InvalidRequestError, match="already"):
                election.__enter__()
        assert not election.is_leader


@pytest.mark.parametrize(
    "given", [{"name": "../x"}, {"name": NAME, "timeout": -1}, {"name": NAME, "timeout": "soon"}]
)
def test_wrong_elections_are_refused(bk: bkspark.BookKeeper, given: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        bk.election(**given)  # type: ignore[arg-type]
    bk.create_log("wal")
    with pytest.raises(InvalidRequestError, match="makes one"):
        bk.open_log("wal").writer(election=NAME)  # type: ignore[arg-type]


@pytest.mark.parametrize("unbounded", [False, True])
def test_who_was_paused_does_not_take_the_log_back(
    bk: bkspark.BookKeeper, *, unbounded: bool
) -> None:
    """It wakes up, and does not know yet: its own lease would still be alive."""
    log = bk.create_log("wal", unbounded=unbounded)
    with bk.election(NAME) as election:
        paused = log.writer(election=election)
        paused.append(b"before")
        elect_elsewhere(bk)
        with log.writer() as leaders:
            leaders.append(b"the new leader's")
            with pytest.raises(LedgerFencedError):
                paused.append(b"too late")
            assert election.is_leader
            before = records(bk)
            with pytest.raises(NotLeaderError, match=r"77 on far-away.* leads now.*enter it again"):
                log.writer(election=election)
            assert records(bk) == before
            leaders.append(b"and it goes on")
    said = [entry.value for entry in log.read()]
    assert said == [b"before", b"the new leader's", b"and it goes on"]


def records(bk: bkspark.BookKeeper) -> dict[str, object]:
    store, found = bk._cluster.store, {}
    for prefix in ("ledgers", "logs", "counters"):
        keys = [f"{prefix}/{name}" for name in store.list(prefix)]
        found.update({key: store.get(key) for key in keys})
    return found


class ResignedError(BookKeeperError):
    """What a test's election says."""


@pytest.mark.parametrize("unbounded", [False, True])
def test_each_change_of_a_takeover_asks_before(
    bk: bkspark.BookKeeper, monkeypatch: pytest.MonkeyPatch, *, unbounded: bool
) -> None:
    """The leadership ends before any one of them: that change is not made, and nothing is lost."""
    log = bk.create_log("wal", unbounded=unbounded)
    events: list[str] = []
    refused = 0
    put = bk._cluster.store._inner.put

    def noted(key: str, *given: object) -> int:
        events.append(key)
        return put(key, *given)  # type: ignore[arg-type]

    def ask(_: Election) -> None:
        events.append("?")
        if events.count("?") > refused:
            raise ResignedError("another process leads")

    monkeypatch.setattr(bk._cluster.store._inner, "put", noted)
    monkeypatch.setattr(Election, "require_leader", ask)
    writer = None
    while writer is None:
        before = log.writer()
        before.append(b"before")
        events.clear()
        try:
            writer = log.writer(election=bk.election(NAME))
        except ResignedError:
            up_to_refusal = events[: len(events) - events[::-1].index("?")]
            assert asked_changes(up_to_refusal) <= refused
            assert refused or events == ["?"]
            assert set(bk.list_ledgers()) == {place.ledger_id for place in log.ledgers}
            if not refused:
                before.append(b"still the writer")
            before.release()
        refused += 1
    assert events[0] == "?"
    assert events.count("?") == asked_changes(events) >= 3
    with writer:
        writer.append(b"the new leader's")
    values = [entry.value for entry in log.read()]
    assert values == [b"before", b"still the writer", *[b"before"] * (refused - 1), values[-1]]


def asked_changes(events: list[str]) -> int:
    """How many changes were made, each directly after a question."""
    changes = [(asked, key) for asked, key in pairwise(events) if key != "?"]
    assert all(asked == "?" for asked, _ in changes)
    return len(changes)


def test_a_leader_that_cannot_renew_knows_by_its_own_clock(
    bk: bkspark.BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    clock, told = OwnClock(), environment.inbox()

    def away(*_: object, **__: object) -> bool:
        raise OutcomeUnknownError("away")

    with environment.use(clock), bk.election(NAME, on_lost=lambda: told.put("lost")) as election:
        with monkeypatch.context() as patched:
            patched.setattr(Leases, "_seen", away)
            assert election.is_leader
            clock.ahead += lease.DEAD_SECONDS
            assert not election.is_leader
            assert told.get(timeout=60) == "lost"
        with pytest.raises(NotLeaderError):
            election.require_leader()
    assert told.empty()
    assert bk.election(NAME).leader() is None


def test_a_lease_counts_from_before_it_was_stored(
    bk: bkspark.BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may have seen it long before this one got the answer."""
    clock, put = OwnClock(), Leases._put

    def slow(self: Leases, seen: object) -> None:
        put(self, seen)  # type: ignore[arg-type]
        clock.ahead += lease.DEAD_SECONDS

    with monkeypatch.context() as patched, environment.use(clock):
        patched.setattr(Leases, "_put", slow)
        election = bk.election(NAME).__enter__()
        assert not election.is_leader
        election.__exit__()


def test_who_lost_the_leadership_is_told_once(
    bk: bkspark.BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    told = environment.inbox()
    with bk.election(NAME, on_lost=lambda: told.put("lost")) as election:
        elect_elsewhere(bk)
        assert told.get(timeout=60) == "lost"
        assert not election.is_leader
    assert told.empty()
    leader = bk.election(NAME).leader()
    assert leader is not None
    assert str(leader) == "process 77 on far-away, since 2023-11-14 22:13:20Z"


def test_a_candidate_waits_while_the_store_is_away(
    bk: bkspark.BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, answers = Leases._seen, iter([OutcomeUnknownError("away")] * 2)

    def back_later(self: Leases) -> object:
        for error in answers:
            raise error
        return seen(self)

    monkeypatch.setattr(Leases, "_seen", back_later)
    with environment.use(OwnClock()), bk.election(NAME) as election:
        assert election.is_leader


def test_a_dead_leader_is_replaced(bk: bkspark.BookKeeper) -> None:
    elect_elsewhere(bk)
    clock = OwnClock()
    with environment.use(clock), bk.election(NAME) as election:
        assert election.is_leader
    assert lease.DEAD_SECONDS <= clock.ahead <= lease.DEAD_SECONDS + lease.LOOK_SECONDS
