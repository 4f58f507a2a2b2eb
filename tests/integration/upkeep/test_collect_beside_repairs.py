"""Collections of copies beside repairs and each other, and killed at any operation."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from bkspark import environment, verbs
from bkspark.admin.collecting.collection import Collector
from bkspark.admin.collecting.planning import plan_collection
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError
from bkspark.ledger.recovery.running import in_threads
from tests.integration.rig import Rig, flat
from tests.kit.faulty import Crash, Moment, crash_at, fail_at
from tests.thorough import always

from .garbage import collected
from .scenes import PARTITIONS, audited, copies, members, written
from .test_collect_copies import committed_twice, give_away, lose, names_of, orphans
from .test_interrupted_collections import collect_before
from .test_repair import VALUES, repaired, values
from .test_repairs_between import at, naming

STEP = 27
EACH = always((0,), range(STEP))


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=5)


def left_and_next(rig: Rig) -> tuple[int, str, str]:
    """A ledger, who has no place in it any more, and who loses what it has next."""
    ledger_id = written(rig)
    old, victim, _ = members(rig, ledger_id)
    give_away(rig, old)
    return ledger_id, old, victim


def give_back(rig: Rig, ledger_id: int, old: str, victim: str) -> None:
    """A repair has no other choice for a place than who had one before."""
    [other] = set(rig.urls) - {old, *members(rig, ledger_id)}
    lose(rig, other)
    lose(rig, victim)
    assert repaired(rig).exit_status == 0


def assert_named_again(rig: Rig, ledger_id: int, old: str) -> None:
    assert old in members(rig, ledger_id)
    assert rig.ledger(ledger_id).left == set()
    assert copies(audited(rig)) == []
    assert values(rig, ledger_id) == VALUES


def test_a_bookie_that_is_named_meanwhile_keeps_what_it_has(rig: Rig) -> None:
    """The repair's compare-and-set comes between the collection's look and its own."""
    ledger_id, old, victim = left_and_next(rig)
    with rig.faults.installed():
        at(rig, naming(ledger_id), partial(give_back, rig, ledger_id, old, victim))
        verbs.collect(rig.uri, no_lease=True)
        rig.faults.forget()
    assert_named_again(rig, ledger_id, old)


def test_copies_that_are_named_behind_the_plan_stay(rig: Rig) -> None:
    ledger_id, old, victim = left_and_next(rig)
    with Cluster(rig.uri) as cluster:
        now_ms = environment.now_ms()
        plan = plan_collection(cluster, in_threads, made_before_ms=now_ms)
        assert [one.member.bookie_id for one in plan.unwanted] == [old]
        give_back(rig, ledger_id, old, victim)
        Collector(cluster, plan, in_threads).carry_out(lambda _done, _total: None)
    assert_named_again(rig, ledger_id, old)


# --- killed, and two at once ----------------------------------------------------------------------


def scene(make_rig: Callable[..., Rig]) -> tuple[Rig, int, str]:
    """Copies and entry logs that nobody wants; the ledger of bytes, and who has copies of it."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    committed_twice(rig)
    ledger_id = written(rig)
    old = members(rig, ledger_id)[0]
    give_away(rig, old)
    return rig, ledger_id, old


def assert_finished(rig: Rig, ledger_id: int, old: str) -> None:
    """By the next one: nothing unwanted is left, and all that is wanted is there."""
    collected(rig)
    assert (orphans(rig), copies(audited(rig))) == ((0, 0), [])
    assert names_of(rig, old, ledger_id) == []
    assert values(rig, ledger_id) == VALUES
    assert rig.rows() == flat(PARTITIONS)


@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
@pytest.mark.parametrize("first", EACH)
def test_a_collection_of_copies_that_is_killed_is_finished_by_the_next(
    make_rig: Callable[..., Rig], first: int, moment: Moment
) -> None:
    """Killed, or given no answer."""
    number, is_over = first, False
    while not is_over:
        rig, ledger_id, old = scene(make_rig)
        with rig.faults.installed():
            how = crash_at if moment is Moment.AFTER else fail_at
            rig.faults.decide = how(number, moment)
            with suppress(Crash, BookKeeperError):
                verbs.collect(rig.uri, no_lease=True)
            is_over = len(rig.faults.trace) <= number
        assert_finished(rig, ledger_id, old)
        number += STEP
    assert number > 50


@pytest.mark.parametrize("first", EACH)
def test_two_collections_of_copies_at_once_do_no_harm(
    make_rig: Callable[..., Rig], first: int
) -> None:
    number, is_over = first, False
    while not is_over:
        rig, ledger_id, old = scene(make_rig)
        with rig.faults.installed():
            reports = collect_before(rig, number)
            verbs.collect(rig.uri, no_lease=True)
        is_over = not reports
        assert_finished(rig, ledger_id, old)
        number += STEP
    assert number > 50


@pytest.mark.parametrize("first", EACH)
def test_a_collection_at_any_operation_of_a_repair_costs_no_copy(
    make_rig: Callable[..., Rig], first: int
) -> None:
    """Also where two bookies are free, and one of them is given copies."""
    number, is_over = first, False
    while not is_over:
        rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
        ledger_id, _, victim = left_and_next(rig)
        lose(rig, victim)
        with rig.faults.installed():
            reports = collect_before(rig, number)
            assert repaired(rig).left == []
        is_over = not reports
        assert victim not in members(rig, ledger_id)
        assert copies(audited(rig)) == []
        assert values(rig, ledger_id) == VALUES
        number += STEP
    assert number > 50
