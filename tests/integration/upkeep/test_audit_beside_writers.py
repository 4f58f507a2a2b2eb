"""Beside writers, recoveries and deletions nothing that is whole is called missing or damaged."""

import threading
from collections.abc import Callable

import pytest

from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from tests.integration.rig import Rig, partitions_of

from .flipping import scrubbed
from .scenes import audited

AUDITS = 6


@pytest.fixture
def busy(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="file", bookie_count=5)


@pytest.mark.parametrize(("look", "table"), [(audited, "copies"), (scrubbed, "damage")])
def test_nothing_that_is_there_is_missing_or_damaged(
    busy: Rig, look: Callable[[Rig], Report], table: str
) -> None:
    is_over, errors = threading.Event(), list[Exception]()

    def write(keeper: BookKeeper) -> None:
        handle = keeper.create_ledger(ack_quorum_size=3)
        for number in range(15):
            handle.append(b"%d" % number)
        handle.close()
        if handle.ledger_id % 3 == 0:
            keeper.delete_ledger(handle.ledger_id)

    def take_over(keeper: BookKeeper) -> None:
        handle = keeper.create_ledger(ack_quorum_size=3)
        handle.append(b"0")
        keeper.recover_ledger(handle.ledger_id)
        handle.release()

    def append(_keeper: BookKeeper) -> None:
        busy.write(partitions_of(11, 5), (3, 3, 3))

    def go_on(work: Callable[[BookKeeper], None]) -> None:
        try:
            with BookKeeper(busy.uri) as keeper:
                while not is_over.is_set():
                    work(keeper)
        except Exception as error:
            errors.append(error)

    works = [threading.Thread(target=go_on, args=(work,)) for work in (write, take_over, append)]
    for thread in works:
        thread.start()
    try:
        reports = [look(busy) for _ in range(AUDITS)]
    finally:
        is_over.set()
        for thread in works:
            thread.join()
    assert errors == []
    reports.append(look(busy))
    assert [row for report in reports for row in report.details[table]] == []
    assert reports[-1].left == []
