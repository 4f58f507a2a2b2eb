"""What was acknowledged by Qa bookies reaches Qw once it is closed, and nobody asks for the ledger.

Three bookies, 3/3/2: one of them fails or hangs late, and nobody can take its place. It is back
when an audit looks, which sees what it lacks, and a repair of all makes that again.
"""

import threading
from collections.abc import Callable, Iterator

import pytest

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import bookie_client
from bkspark.errors import BookieUnavailableError
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log.batch import commit as batch_commit
from tests.integration.rig import Rig, flat
from tests.integration.stream_driver import Driver, expected, settled_rows
from tests.integration.waiting import wait_for_all_copies
from tests.kit.faulty import Operation
from tests.stopwatch import patience

from .scenes import PARTITIONS, audited, copies
from .test_repair import values

LATE = "bookie-3"
QUICK = WriterSettings(add_entry_timeout_seconds=patience(0.5), explicit_lac_ms=0)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANSWER_SECONDS", "READ_SECONDS", "STORE_SECONDS"):
        monkeypatch.setattr(bookie_client, name, patience(0.5))


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Iterator[Rig]:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    with rig.faults.installed():
        yield rig


@pytest.fixture(params=["fails", pytest.param("hangs", marks=pytest.mark.thorough)])
def late(request: pytest.FixtureRequest, rig: Rig) -> Iterator[Callable[..., None]]:
    """``late(*calls)``: from now on ``LATE`` does not do them; ``late()``: it does all again.

    What hangs is not done in the end, as if its host had been switched off.
    """
    is_over, closed = threading.Event(), set[str]()

    def decide(_number: int, operation: Operation) -> None:
        if operation.place == LATE and operation.call in closed:
            if request.param == "hangs":
                is_over.wait(300)
            raise BookieUnavailableError("it is away")

    def late(*calls: str) -> None:
        closed.clear()
        closed.update(calls)
        if not calls:
            is_over.set()

    rig.faults.decide = decide
    yield late
    late()


def made_good(rig: Rig, ledger_id: int, first: int, last: int) -> None:
    """An audit has seen what is missing on one bookie; a repair of all makes it, for good."""
    found = [row for row in copies(audited(rig)) if row[0] == LATE]
    assert found == copies(audited(rig))
    assert (min(row[1] for row in found), max(row[2] for row in found)) == (first, last)
    assert {row[3:] for row in found} == {("below write quorum", False)}
    report = verbs.repair(rig.uri, no_lease=True)
    assert (report.left, [row["ledger_id"] for row in report.details["repaired"]]) == (
        [],
        [ledger_id],
    )
    assert copies(audited(rig)) == []
    assert verbs.scrub(rig.uri, no_lease=True).left == []


def test_entries_of_a_handle(rig: Rig, late: Callable[..., None]) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(settings=QUICK)
        for number in range(5):
            handle.append(b"%d" % number)
        wait_for_all_copies(handle)
        late("append")
        for number in range(5, 8):
            handle.append(b"%d" % number)
        handle.close()
    late()
    made_good(rig, handle.ledger_id, 5, 7)
    for bookie_id in set(rig.urls) - {LATE}:
        rig.lose(bookie_id)
    assert values(rig, handle.ledger_id) == [b"%d" % number for number in range(8)]


@pytest.mark.parametrize("calls", [("create", "write"), ("append", "open_journal")])
def test_rows_of_a_dataframe(rig: Rig, late: Callable[..., None], calls: tuple[str, ...]) -> None:
    """Of which it lacks the files, or only the records that name them."""
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, PARTITIONS) if "append" in calls else None
    late(*calls)
    result = batch_commit.commit(target, reports or rig.tasks(target, PARTITIONS))
    late()
    made_good(rig, result.ledger_id, 0, len(flat(PARTITIONS)) - 1)
    rig.assert_survives_losses(flat(PARTITIONS), 2, set(rig.urls))


def test_rows_of_a_stream(rig: Rig, late: Callable[..., None]) -> None:
    driver = Driver(rig, quorum=(3, 3, 2))
    assert driver.run(0) == [True]
    late("create", "write", "append")
    assert driver.run(1) == [True]
    late()
    assert settled_rows(rig) == expected(0, 1)
    made_good(rig, 0, len(expected(0)), len(expected(0, 1)) - 1)
    rig.assert_survives_losses(expected(0, 1), 2, set(rig.urls))


def test_what_it_missed_in_between(rig: Rig, late: Callable[..., None]) -> None:
    """It is back before the ledger ends, and takes the stream's next batches."""
    driver = Driver(rig, quorum=(3, 3, 2))
    assert driver.run(0) == [True]
    late("create", "write", "append")
    assert driver.run(1) == [True]
    late()
    assert driver.run(2, 3) == [True, True]
    assert settled_rows(rig) == expected(0, 1, 2, 3)
    missing = [row for row in copies(audited(rig)) if row[0] == LATE]
    assert missing
    assert missing[0][1] == len(expected(0))
    assert verbs.repair(rig.uri, no_lease=True).left == []
    assert copies(audited(rig)) == []
    rig.assert_survives_losses(expected(0, 1, 2, 3), 2, set(rig.urls))
