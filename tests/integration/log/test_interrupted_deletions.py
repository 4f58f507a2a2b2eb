"""A log is deleted, and perhaps made anew, at any operation of whoever has to do with it.

Deletions that are killed at any of their operations, and who meant the log as it was: what he does
reaches that log or none, never the one that was made in its place.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    MetadataVersionError,
    NoSuchLedgerError,
    OutcomeUnknownError,
    UnauthorizedError,
)
from bkspark.format import arrow_schema
from bkspark.ledger.deleting import delete_log
from bkspark.log.batch.commit import commit
from bkspark.log.log_handle import LogHandle
from bkspark.log.log_writer import LogWriter
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.log_scenes import NAME, SENT, SILENT, fill, tell_story, values
from tests.integration.rig import SCHEMA, Rig, partitions_of
from tests.kit.faulty import Crash, Fault, Moment, Operation, crash_at

MOMENTS = pytest.mark.parametrize(
    "moment", [Moment.BEFORE, Moment.AFTER], ids=lambda moment: moment.name
)


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


def states(keeper: BookKeeper) -> set[LedgerState]:
    cluster = keeper._cluster
    found = (cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids())
    return {seen.value.state for seen in found if seen is not None}


@contextmanager
def beside_another(rig: Rig) -> Iterator[tuple[BookKeeper, BookKeeper]]:
    """A client, and one whose metadata store alone is faulty.

    It is opened before the first one does anything: a bookie that nobody has waited for is opened
    at any time, and what one client does must not count for the other.
    """
    with BookKeeper(rig.uri) as keeper, ExitStack() as stack:
        with rig.faults.installed():
            faulty = stack.enter_context(BookKeeper(rig.uri))
        rig.faults.forget()
        yield keeper, faulty


# --- a deletion that is killed --------------------------------------------------------------------


@MOMENTS
def test_a_deletion_killed_at_any_operation_is_none_or_is_finished_by_the_next(
    make_rig: Callable[..., Rig], moment: Moment
) -> None:
    """The log is whole, and its writer at most fenced; or it is gone, and nobody gets an ack."""
    number, seen = 0, set()
    while True:
        rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
        with beside_another(rig) as (keeper, faulty):
            log = keeper.create_log(NAME)
            fill(log, 2, 1)
            writer = log.writer(settings=SILENT)
            assert writer.append(b"entry 3") == 3
            rig.faults.decide = crash_at(number, moment)
            try:
                delete_log(faulty._cluster, NAME)
                is_over = True
            except (Crash, BookKeeperError):
                is_over = False
            rig.faults.forget()
            outcome = what_became_of(keeper, writer.append, is_over=is_over)
            writer.release()
            seen.add(outcome)
            assert states(keeper) == {LedgerState.DELETING}
            again = keeper.create_log(NAME)
            assert (again.record.generation, fill(again, 1)) == (2, values(again))
        if is_over:
            break
        number += 1
    assert seen == {"untouched", "fenced", "deleted"}
    assert number > 8


def what_became_of(keeper: BookKeeper, append: Callable[[bytes], int], *, is_over: bool) -> str:
    """Of a log with 4 entries and of its writer; afterwards it is deleted for good."""
    try:
        log = keeper.open_log(NAME)
    except NoSuchLedgerError:
        with pytest.raises((NoSuchLedgerError, LedgerFencedError)):
            append(b"nowhere")
        if not is_over and states(keeper) != {LedgerState.DELETING}:
            delete_log(keeper._cluster, NAME)
        return "deleted"
    assert not is_over
    try:
        assert append(b"entry 4") == 4
        outcome, count = "untouched", 5
    except LedgerFencedError:
        outcome, count = "fenced", 4
    log.writer(settings=SILENT).close()
    assert values(log)[:count] == [f"entry {offset}".encode() for offset in range(count)]
    delete_log(keeper._cluster, NAME)
    return outcome


# --- a log that is deleted, or made anew, at any operation ---------------------------------------


@dataclass
class Renewal:
    """Deletes the log ``name``, at one operation of somebody else's, and makes it anew.

    Attributes:
        at: the number of the operation.
        schema: of the new log.
        is_done: whether it came to that.
    """

    keeper: BookKeeper
    name: str
    at: int
    schema: pa.Schema | None = None
    is_done: bool = False
    kept: list[bytes] = field(default_factory=list)

    def decide(self, number: int, _operation: Operation) -> Fault | None:
        if number == self.at and not self.is_done:
            self.is_done = True
            with suppress(NoSuchLedgerError):
                delete_log(self.keeper._cluster, self.name)
            log = self.keeper.create_log(self.name, schema=self.schema)
            if self.schema is None:
                self.kept = fill(log, 3, 1)
        return None


def beside_a_renewal(
    rig: Rig,
    keeper: BookKeeper,
    act: Callable[[LogHandle], object],
    *,
    stride: int = 1,
    schema: pa.Schema | None = None,
) -> Iterator[tuple[LogHandle, Renewal, object]]:
    """``act`` on a log with 9 entries that is made anew at each of its operations in turn.

    Args:
        stride: 3 for each third operation only.
        schema: of the new log.
    """
    number = 0
    while True:
        name = f"log-{number}"
        log = keeper.create_log(name)
        fill(log, 5, 4)
        with rig.faults.installed(), BookKeeper(rig.uri) as own:
            mine = own.open_log(name)
            rig.faults.forget()
            renewal = Renewal(keeper, name, number, schema)
            rig.faults.decide = renewal.decide
            result: object
            try:
                result = act(mine)
            except BookKeeperError as error:
                result = error
            rig.faults.forget()
        yield log, renewal, result
        if not renewal.is_done:
            break
        number += stride


@pytest.mark.thorough
def test_a_writer_of_the_log_as_it_was_gets_no_ack_behind_its_deletion(
    rig: Rig, keeper: BookKeeper
) -> None:
    acks = set()
    for log, renewal, told in beside_a_renewal(rig, keeper, tell_story, stride=4):
        assert isinstance(told, dict)
        acks.add(len(told))
        if renewal.is_done:
            own = [(at, value) for at, value in told.items() if at < 9]
            assert [value for _, value in own] == SENT[: len(own)] or not own
            found = values(log)
            assert found[:4] == renewal.kept
            assert all(found[at] == value for at, value in told.items() if at < len(found))
            assert set(found[4:]) <= set(SENT)
    # Not each count: an ack may come within fewer operations than lie between two renewals.
    assert len(acks) > 2
    assert max(acks) == len(SENT)


def test_a_truncation_does_not_reach_a_log_made_anew(rig: Rig, keeper: BookKeeper) -> None:
    refused = 0
    for log, renewal, error in beside_a_renewal(rig, keeper, lambda log: log.truncate(3)):
        if isinstance(error, MetadataVersionError):
            refused += 1
            assert "generation 2, not 1" in str(error)
            assert (log.first_offset, values(log)) == (0, renewal.kept)
    assert refused > 1


def test_a_seal_does_not_reach_a_log_made_anew(rig: Rig, keeper: BookKeeper) -> None:
    refused = 0
    for log, _, error in beside_a_renewal(rig, keeper, lambda log: log.seal()):
        refused += isinstance(error, MetadataVersionError)
        assert log.is_sealed == (error is None)
    assert refused > 1


def test_a_deletion_does_not_reach_a_log_made_anew(rig: Rig, keeper: BookKeeper) -> None:
    refused = 0
    for log, renewal, error in beside_a_renewal(
        rig, keeper, lambda log: delete_log(log._cluster, log.name)
    ):
        assert not isinstance(error, BookKeeperError) or values(log) == renewal.kept
        refused += isinstance(error, MetadataVersionError)
    assert refused


@dataclass
class Roll:
    """Of ``writer``, at one operation of somebody else's."""

    writer: LogWriter
    at: int
    is_done: bool = False

    def decide(self, number: int, _operation: Operation) -> None:
        if number == self.at and not self.is_done:
            self.is_done = True
            with suppress(BookKeeperError):
                self.writer.roll()


def test_a_deletion_that_meets_a_roll_goes_on(make_rig: Callable[..., Rig]) -> None:
    """The list changes under it, at any operation; the log is deleted as it is then."""
    number = 0
    while True:
        rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
        with beside_another(rig) as (keeper, faulty):
            writer = keeper.create_log(NAME).writer(settings=SILENT)
            writer.append(b"old")
            roll = Roll(writer, number)
            rig.faults.decide = roll.decide
            delete_log(faulty._cluster, NAME)
            rig.faults.forget()
            with pytest.raises((OutcomeUnknownError, NoSuchLedgerError, LedgerClosedError)):
                writer.append(b"nowhere")
            writer.release()
            assert states(keeper) == {LedgerState.DELETING}
        if not roll.is_done:
            break
        number += 1
    assert number > 5


def test_a_cursor_is_one_of_the_log_that_it_was_made_for(rig: Rig, keeper: BookKeeper) -> None:
    refused = 0
    for log, renewal, cursor in beside_a_renewal(rig, keeper, lambda log: log.cursor("mail", 2)):
        if isinstance(cursor, MetadataVersionError):
            refused += 1
            assert log.cursors == []
        elif renewal.is_done and [one.generation for one in log.cursors] == [2]:
            assert log.cursor("mail").offset == 2
    assert refused > 0


def test_who_opens_makes_its_ledger_for_the_log_as_it_is(rig: Rig, keeper: BookKeeper) -> None:
    """The log was made anew with other columns while a ledger was made for the old ones."""
    opened = 0

    def open_it(log: LogHandle) -> None:
        log.writer(settings=SILENT).release()

    for log, renewal, error in beside_a_renewal(rig, keeper, open_it, schema=SCHEMA):
        for ledger_id in log.record.tail if renewal.is_done else ():
            ledger = keeper._cluster.ledger(ledger_id).value
            assert arrow_schema.decode(ledger.settings.schema) == SCHEMA
            opened += error is None
    assert opened > 5


# --- who holds on to it ---------------------------------------------------------------------------


def test_a_writer_held_over_a_deletion_ends(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    writer = log.writer(settings=SILENT)
    writer.append(b"old")
    delete_log(keeper._cluster, NAME)
    keeper.create_log(NAME)
    with pytest.raises((OutcomeUnknownError, NoSuchLedgerError)):
        writer.append(b"new")
    with pytest.raises(BookKeeperError):
        writer.roll()
    with pytest.raises((BookKeeperError, LedgerClosedError)):
        writer.close()
    assert (values(log), log.record.listed_ids, log.record.generation) == ([], (), 2)


def test_a_batch_of_another_password_is_not_put_into_a_log_made_anew(
    rig: Rig, keeper: BookKeeper
) -> None:
    """Who can read the new log could not read these rows."""
    keeper.create_log(rig.log_name, schema=SCHEMA, digest_type="MAC", password="old")
    target = rig.target(password=Password(literal="old"))
    reports = rig.tasks(target, partitions_of(3))
    delete_log(keeper._cluster, rig.log_name)
    log = keeper.create_log(rig.log_name, schema=SCHEMA, digest_type="MAC", password="new")
    with pytest.raises(UnauthorizedError):
        commit(target, reports)
    assert log.record.listed_ids == ()
