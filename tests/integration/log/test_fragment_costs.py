"""What is asked of the metadata store of an unbounded log of some fragments, and of very many."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.metadata import FRAGMENTS_MAX, LedgerMetadata, LedgerState
from bkspark.protocol.log.ledger_list import LoggedLedger
from tests.integration.log_scenes import SILENT
from tests.integration.rig import Rig
from tests.kit.faulty import METADATA
from tests.log_with import log_with
from tests.small_pages import forget_pages

FIRST_ID = 10**6
SOME = 300


def template(keeper: BookKeeper) -> LedgerMetadata:
    """The record of a ledger that whoever takes it over goes on in."""
    log = keeper.create_log("template", unbounded=True)
    with log.writer(settings=SILENT) as writer:
        writer.append(b"one")
    return keeper._cluster.ledger(log.record.listed_ids[0]).value


def full(ledger_id: int, like: LedgerMetadata) -> LedgerMetadata:
    """A closed ledger of as many fragments as there may be, of an entry each."""
    firsts = range(FRAGMENTS_MAX)
    return replace(
        like,
        ledger_id=ledger_id,
        state=LedgerState.CLOSED,
        fragments=tuple(replace(like.fragments[0], first_entry_id=n, confirmed=-1) for n in firsts),
        last_entry_id=FRAGMENTS_MAX - 1,
        length_bytes=FRAGMENTS_MAX,
    )


def lengthened(keeper: BookKeeper, like: LedgerMetadata, first_id: int, count: int) -> LogHandle:
    """A log of ``count`` fragments: full ledgers that only have records, and one that is written.

    Its bookies have the entries of the last ledger alone.
    """
    log = keeper.create_log(f"log-{count}", unbounded=True)
    closed, rest = divmod(count, FRAGMENTS_MAX)
    for number in range(closed):
        keeper._cluster.ledgers.create(str(first_id + number), full(first_id + number, like))
    size = FRAGMENTS_MAX
    places = tuple(LoggedLedger(first_id + n, size * n, size, size, 1) for n in range(closed))
    keeper._cluster.logs.update(log.name, lambda record: log_with(record, ledgers=places))  # type: ignore[arg-type, return-value, type-var]
    with log.writer(settings=SILENT) as writer:
        for number in range(rest):
            if number:
                writer.roll()
            writer.append(b"%d" % number)
    return log


def costs(rig: Rig, log: LogHandle, count: int) -> list[Counter[tuple[str, str]]]:
    """Metadata operations, by call and kind of record, of each thing that is done at its end."""
    found = []

    def asked(what: Callable[[LogHandle], object]) -> None:
        forget_pages()
        rig.faults.forget()
        with rig.faults.installed(), BookKeeper(rig.uri) as faulty:
            what(faulty.open_log(log.name))
        trace = [one for one in rig.faults.trace if one.place == METADATA]
        found.append(Counter((one.call, one.name.split("/")[0]) for one in trace))

    def append(opened: LogHandle) -> None:
        with opened.writer(settings=SILENT) as writer:
            writer.append(b"last")

    def read(opened: LogHandle) -> None:
        assert [entry.value for entry in opened.read(count + 1)] == [b"last"]

    def look(opened: LogHandle) -> None:
        assert opened.end_offset == count + 2

    for what in (append, append, look, read):
        asked(what)
    return found


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.thorough)])
def test_a_log_of_very_many_fragments_costs_at_its_end_what_one_of_300_does(
    tmp_path: Path, count: int
) -> None:
    rig = Rig(tmp_path, metadata="memory")
    with BookKeeper(rig.uri) as keeper:
        like = template(keeper)
        some = lengthened(keeper, like, FIRST_ID, SOME)
        many = lengthened(keeper, like, 2 * FIRST_ID, count)
        assert [len(log.fragments) for log in (some, many)] == [SOME, count]
        assert len(many.record.listed_ids) == 1 + count // FRAGMENTS_MAX
        of_some, of_many = costs(rig, some, SOME), costs(rig, many, count)
    assert all(of_some)
    assert of_many == of_some
