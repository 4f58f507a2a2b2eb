"""What a DataFrame write commits."""

import pickle
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import EntryLog
from bkspark.protocol.log.batch import AttemptReport, CommitPlan, WrittenLog, plan_commit

QUICK = settings(max_examples=120, derandomize=True, database=None, deadline=None)


def members(names: str) -> list[Member]:
    return [Member(name, f"{name}-1") for name in names]


def ids(plan: CommitPlan) -> str:
    return "".join(member.bookie_id for member in plan.ensemble)


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
    reports: Sequence[AttemptReport | None],
    sizes: tuple[int, int, int] = (3, 3, 2),
    ensemble: str = "abc",
    spares: str = "xyz",
    failed: str = "",
) -> CommitPlan:
    return plan_commit(
        reports,
        quorum=Quorum(*sizes),
        ensemble=members(ensemble),
        spares=members(spares),
        failed=set(failed),
    )


# --- attempts and ids --------------------------------------------------------------------------


def test_ids_are_dense_in_partition_order() -> None:
    plan = plan_of([report(2, 5, "abc"), report(0, 3, "abc"), report(1, 0), report(7, 1, "abc")])
    assert [(a.first_entry_id, a.row_count) for a in plan.attempts] == [(0, 3), (3, 5), (8, 1)]
    assert [a.entry_logs[0].attempt_id[-1] for a in plan.attempts] == ["0", "2", "7"]
    assert (plan.row_count, plan.length_bytes, plan.copies) == (9, 90, ())


def test_ids_go_on_from_the_first_one_given() -> None:
    plan = plan_commit(
        [report(0, 3, "abc"), report(1, 2, "abc")],
        quorum=Quorum(3, 3, 2),
        ensemble=members("abc"),
        spares=(),
        first_entry_id=40,
    )
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
    plan = plan_of(reports)
    assert plan == CommitPlan(tuple(members("abc")), (), (), 0, 0)
    assert plan_of(reports, failed="abcxyz") == plan


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
    assert plan_of([GOOD], (4, 2, 1), "abcd").row_count == 5
    with pytest.raises(InvalidRequestError, match="entry logs hold"):
        plan_of([replace(GOOD, logs=logs)], (4, 2, 1), "abcd")


def test_a_short_attempt_has_no_log_for_the_stripes_it_does_not_reach() -> None:
    plan = plan_of([report(0, 2, "ab", "bc", "", "")], (4, 2, 2), "abcd")
    assert [log.stripe for log in plan.attempts[0].entry_logs] == [0, 1]


# --- the ensemble ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("holders", "failed", "spares", "ensemble"),
    [
        ("abc", "", "xyz", "abc"),
        ("ab", "", "xyz", "abc"),
        ("abx", "", "xyz", "abx"),
        ("aby", "", "xyz", "aby"),
        ("abc", "c", "xyz", "abx"),
        ("aby", "c", "xyz", "aby"),
        ("abx", "cx", "xyz", "aby"),
        ("abc", "c", "", "abc"),
        ("abc", "cxyz", "xyz", "abc"),
        ("axy", "", "xyz", "axy"),
    ],
)
def test_a_position_goes_to_whoever_holds_most_of_it(
    holders: str, failed: str, spares: str, ensemble: str
) -> None:
    assert ids(plan_of([report(0, 3, holders)], spares=spares, failed=failed)) == ensemble


def test_of_two_spares_for_one_position_the_one_with_more_bytes_stays() -> None:
    reports = [report(0, 1, "abx"), report(1, 9, "aby"), report(2, 2, "abx")]
    plan = plan_of(reports)
    assert ids(plan) == "aby"
    assert [(c.entry_log.attempt_id[-1], c.target_id) for c in plan.copies] == [
        ("0", "y"),
        ("2", "y"),
    ]


def test_a_spare_that_is_in_the_ensemble_already_is_not_used_twice() -> None:
    plan = plan_of([report(0, 3, "bx")], ensemble="abx", spares="xyx", failed="a")
    assert ids(plan) == "ybx"


def test_a_member_of_another_incarnation_does_not_stand_beside_itself() -> None:
    plan = plan_commit(
        [report(0, 3, "ab")],
        quorum=Quorum(3, 3, 2),
        ensemble=members("abc"),
        spares=[Member("b", "b-2"), *members("x")],
        failed={"c"},
    )
    assert ids(plan) == "abx"


def test_a_failed_member_gets_a_spare_before_one_that_lives() -> None:
    plan = plan_of([report(0, 3, "bcx")], (3, 3, 3), spares="x", failed="c")
    assert ids(plan) == "abx"
    assert [(c.target_id, c.source_ids) for c in plan.copies] == [("a", ("b", "x"))]


def test_the_ensemble_given_is_left_as_it_is() -> None:
    ensemble = members("abc")
    plan_commit(
        [report(0, 3, "abx")], quorum=Quorum(3, 3, 2), ensemble=ensemble, spares=[*members("x")]
    )
    assert ensemble == members("abc")


# --- copies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("holders", "failed", "copies"),
    [
        ("abc", "", []),
        ("ab", "", [("c", "ab")]),
        ("a", "", [("b", "a"), ("c", "a")]),
        ("ab", "b", [("c", "a")]),
        ("ab", "c", []),
    ],
)
def test_what_is_missing_on_the_window_is_copied(
    holders: str, failed: str, copies: list[tuple[str, str]]
) -> None:
    plan = plan_of([report(0, 3, holders)], spares="", failed=failed)
    made = [(c.target_id, "".join(c.source_ids)) for c in plan.copies]
    assert made == copies


def test_a_copy_outside_of_the_ensemble_counts_zero_but_serves_as_a_source() -> None:
    reports = [report(0, 9, "abx"), report(1, 1, "byz")]
    plan = plan_of(reports)
    assert ids(plan) == "abx"
    assert [("".join(c.source_ids), c.target_id) for c in plan.copies] == [
        ("byz", "a"),
        ("byz", "x"),
    ]


@pytest.mark.parametrize(
    ("holders", "spares", "failed"),
    [("ab", "", "ab"), ("ab", "", "bc"), ("ab", "xyz", "ab"), ("", "", "")],
)
def test_a_log_that_cannot_reach_qa_copies_stops_the_commit(
    holders: str, spares: str, failed: str
) -> None:
    with pytest.raises(NotEnoughBookiesError, match="nothing was committed"):
        plan_of([report(0, 3, holders)], spares=spares, failed=failed)


def test_the_error_names_the_log_and_the_failed_bookies() -> None:
    with pytest.raises(NotEnoughBookiesError, match=r"0-0 can have 0 copies.*\(a, b\)"):
        plan_of([report(0, 3, "ab")], failed="ba")


def test_the_record_needs_qa_live_members_in_every_window_whatever_rows_it_names() -> None:
    one_row = report(0, 1, "ab", "", "", "")
    with pytest.raises(NotEnoughBookiesError, match="the add record"):
        plan_of([one_row], (4, 2, 2), "abcd", spares="", failed="cd")
    assert ids(plan_of([one_row], (4, 2, 2), "abcd", spares="xy", failed="cd")) == "abxy"


def test_a_plan_can_be_pickled() -> None:
    plan = plan_of([report(0, 3, "ab")])
    assert pickle.loads(pickle.dumps(plan)) == plan


# --- any reports, any failures -----------------------------------------------------------------


@st.composite
def writes(draw: st.DrawFn) -> tuple[tuple[int, int, int], list[AttemptReport], str, str, str]:
    size = draw(st.integers(1, 6))
    write = draw(st.integers(1, size))
    sizes = (size, write, draw(st.integers(1, write)))
    stripe_count = 1 if write == size else size
    ensemble = "abcdef"[:size]
    spares = "".join(draw(st.lists(st.sampled_from("wxyzab"), max_size=5)))
    bookies = sorted(set(ensemble + spares))
    failed = "".join(draw(st.sets(st.sampled_from(bookies), max_size=3)))
    partitions = draw(st.lists(st.integers(0, 20), unique=True, max_size=5))
    reports = []
    for partition_id in partitions:
        holders = []
        for stripe in range(stripe_count):
            window = (ensemble * 2)[stripe : stripe + write]
            lost = draw(st.sets(st.sampled_from(sorted(window)), max_size=write))
            others = draw(st.sets(st.sampled_from(bookies), max_size=2))
            holders.append("".join(sorted((set(window) - lost) | others)))
        reports.append(report(partition_id, draw(st.integers(0, 12)), *holders))
    return sizes, reports, ensemble, spares, failed


@QUICK
@given(writes())
def test_a_plan_is_safe_or_refused(
    write: tuple[tuple[int, int, int], list[AttemptReport], str, str, str],
) -> None:
    sizes, reports, ensemble, spares, failed = write
    size, write_quorum, ack_quorum = sizes
    try:
        plan = plan_of(reports, sizes, ensemble, spares, failed)
    except NotEnoughBookiesError:
        rest = (set(ensemble) | set(spares)) - set(failed)
        sourceless = any(set(w.bookie_ids) <= set(failed) for r in reports for w in r.logs)
        assert sourceless or len(rest) < size
        return

    assert len(plan.ensemble) == size == len({member.bookie_id for member in plan.ensemble})
    assert set(ids(plan)) <= set(ensemble) | (set(spares) - set(failed))
    assert not {copy.target_id for copy in plan.copies} & set(failed)
    assert not {source for copy in plan.copies for source in copy.source_ids} & set(failed)

    by_partition = sorted((r for r in reports if r.row_count), key=lambda r: r.partition_id)
    next_id = 0
    for attempt, origin in zip(plan.attempts, by_partition, strict=True):
        assert attempt.first_entry_id == next_id
        assert attempt.row_count == origin.row_count
        assert attempt.entry_logs == tuple(w.entry_log for w in origin.logs)
        next_id += origin.row_count
    assert plan.row_count == next_id

    for written in (w for r in reports for w in r.logs):
        window = (ids(plan) * 2)[written.entry_log.stripe :][:write_quorum]
        present = set(window) & set(written.bookie_ids) - set(failed)
        copies = [copy for copy in plan.copies if copy.entry_log == written.entry_log]
        targets = {copy.target_id for copy in copies}
        assert len(targets) == len(copies)
        assert targets == set(window) - present - set(failed)
        assert len(present | targets) >= ack_quorum
        assert all(set(copy.source_ids) <= set(written.bookie_ids) for copy in copies)

    if next_id:
        for start in range(size):
            window = (ids(plan) * 2)[start : start + write_quorum]
            assert len(set(window) - set(failed)) >= ack_quorum
