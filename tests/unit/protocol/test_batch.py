"""What a DataFrame write commits."""

import pickle
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import EntryLog
from bkspark.protocol.log.batch import AttemptReport, CommitPlan, Holders, WrittenLog, plan_commit


def members(names: str) -> list[Member]:
    return [Member(name, f"{name}-1") for name in names]


def report(partition_id: int, row_count: int, *holders: str) -> AttemptReport:
    """Rows dealt to the stripes in turn; ``holders`` has the bookies of each stripe's log."""
    rows = [len(range(row_count)[stripe :: len(holders)]) for stripe in range(len(holders))]
    logs = tuple(
        WrittenLog(EntryLog(f"{partition_id:032x}", s, rows[s], 100 * rows[s], 0, ""), tuple(on))
        for s, on in enumerate(holders)
        if rows[s]
    )
    return AttemptReport(partition_id, row_count, 10 * row_count, logs)


def plan_of(
    reports: Sequence[AttemptReport | None], sizes: tuple[int, int, int] = (3, 3, 2)
) -> CommitPlan:
    return plan_commit(reports, quorum=Quorum(*sizes))


def holders_of(*reports: AttemptReport, sizes: tuple[int, int, int] = (3, 3, 2)) -> Holders:
    return Holders(plan_of(reports, sizes).written, Quorum(*sizes))


# --- attempts and ids --------------------------------------------------------------------------


def test_ids_are_dense_in_partition_order() -> None:
    plan = plan_of([report(2, 5, "abc"), report(0, 3, "abc"), report(1, 0), report(7, 1, "abc")])
    assert [(a.first_entry_id, a.row_count) for a in plan.attempts] == [(0, 3), (3, 5), (8, 1)]
    assert [a.entry_logs[0].attempt_id[-1] for a in plan.attempts] == ["0", "2", "7"]
    assert (plan.row_count, plan.length_bytes, len(plan.written)) == (9, 90, 3)


def test_ids_go_on_from_the_first_one_given() -> None:
    reports = [report(0, 3, "abc"), report(1, 2, "abc")]
    plan = plan_commit(reports, quorum=Quorum(3, 3, 2), first_entry_id=40)
    assert [a.first_entry_id for a in plan.attempts] == [40, 43]
    assert plan.row_count == 5


@pytest.mark.parametrize(
    "reports",
    [
        [report(0, 3, "abc"), None],
        [None],
        [report(0, 3, "abc"), report(0, 4, "abc")],
        [report(0, 0), report(0, 4, "abc")],
    ],
)
def test_every_partition_reports_exactly_once(reports: list[AttemptReport | None]) -> None:
    with pytest.raises(InvalidRequestError, match="partitions were written"):
        plan_of(reports)


@pytest.mark.parametrize("reports", [[], [report(0, 0)], [report(1, 0), report(0, 0)]])
def test_a_write_without_rows_has_an_empty_plan(reports: list[AttemptReport]) -> None:
    assert plan_of(reports) == CommitPlan((), (), 0, 0)


GOOD = report(0, 5, "ab", "bc", "cd", "da")
LOGS = GOOD.logs


@pytest.mark.parametrize(
    "logs",
    [
        (),
        LOGS[:3],
        LOGS[1:],
        (*LOGS, LOGS[0]),
        (*LOGS[:3], LOGS[0]),
        (*LOGS[:3], replace(LOGS[3], entry_log=replace(LOGS[3].entry_log, stripe=4))),
        (*LOGS[:3], replace(LOGS[3], entry_log=replace(LOGS[3].entry_log, row_count=2))),
    ],
)
def test_an_attempt_without_exactly_its_rows_is_refused(logs: tuple[WrittenLog, ...]) -> None:
    assert plan_of([GOOD], (4, 2, 1)).row_count == 5
    with pytest.raises(InvalidRequestError, match="entry logs hold"):
        plan_of([replace(GOOD, logs=logs)], (4, 2, 1))


def test_a_short_attempt_has_no_log_for_the_stripes_it_does_not_reach() -> None:
    plan = plan_of([report(0, 2, "ab", "bc", "", "")], (4, 2, 2))
    assert [log.stripe for log in plan.attempts[0].entry_logs] == [0, 1]


# --- who has most of what belongs to a place ---------------------------------------------------


@pytest.mark.parametrize(
    ("holders", "ceding"),
    [
        ("abc", []),
        ("c", []),
        ("bc", []),
        ("ab", []),
        ("", []),
        ("abx", [2]),
        ("aby", [2]),
        ("axy", [1, 2]),
        ("xyz", [0, 1, 2]),
    ],
)
def test_a_member_cedes_its_place_to_whoever_holds_more_of_it(
    holders: str, ceding: list[int]
) -> None:
    assert [*holders_of(report(0, 3, holders)).ceding(members("abc"), members("xyzc"))] == ceding


def test_one_bookie_takes_one_place_only() -> None:
    assert holders_of(report(0, 3, "ax")).ceding(members("abc"), members("xy")) == (1,)


def test_a_place_counts_what_belongs_there_and_nothing_else() -> None:
    """Of four places with two copies of a row each, x holds the first stripe: those of a and b."""
    one = holders_of(report(0, 4, "ax", "bc", "cd", "da"), sizes=(4, 2, 1))
    assert one.ceding(members("abcd"), members("x")) == ()
    assert holders_of(report(0, 4, "ax", "cx", "cd", "da"), sizes=(4, 2, 1)).ceding(
        members("abcd"), members("x")
    ) == (1,)


def test_of_two_that_may_take_a_place_the_one_with_more_bytes_does() -> None:
    reports = [report(0, 1, "abx"), report(1, 9, "aby"), report(2, 2, "abx")]
    holders = holders_of(*reports)
    assert holders.preferred(2, members("zxyb")) == members("byxz")
    assert holders.preferred(2, members("zxy"), than=members("c")[0]) == members("yx")
    assert holders.preferred(2, members("zxy"), than=members("a")[0]) == []


# --- copies ------------------------------------------------------------------------------------


def test_what_is_missing_at_a_place_is_copied_from_whoever_has_it() -> None:
    first, second = report(0, 9, "abx"), report(1, 1, "byz")
    holders = holders_of(first, second)
    [log] = holders.missing(0, "a")
    assert log == second.logs[0].entry_log
    assert holders.sources(log, {"y"}) == ["b", "z"]
    assert len(holders.missing(2, "c")) == 2
    holders.copied(log, "a")
    assert holders.missing(0, "a") == []
    assert holders.sources(log, "byz") == ["a"]


def test_a_place_needs_the_entry_logs_of_its_own_write_sets() -> None:
    holders = holders_of(report(0, 4, "a", "b", "c", "d"), sizes=(4, 2, 1))
    assert [log.stripe for log in holders.missing(1, "x")] == [0, 1]
    assert [log.stripe for log in holders.missing(0, "x")] == [0, 3]


@pytest.mark.parametrize(("on", "failed"), [("ab", "ab"), ("ab", "bca"), ("", "")])
def test_an_entry_log_that_nobody_has_is_an_error_that_names_it(on: str, failed: str) -> None:
    written = report(0, 3, on)
    with pytest.raises(NotEnoughBookiesError, match=r"0-0 \(failed: (a, b|none)"):
        holders_of(written).sources(written.logs[0].entry_log, failed)


def test_a_plan_can_be_pickled() -> None:
    plan = plan_of([report(0, 3, "ab")])
    assert pickle.loads(pickle.dumps(plan)) == plan
