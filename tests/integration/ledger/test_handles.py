"""Write and read handles: what a caller is told, in which order, and how a ledger ends."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import (
    BookieUnavailableError,
    CorruptDataError,
    InvalidRequestError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchEntryError,
    OutcomeUnknownError,
    UnauthorizedError,
)
from bkspark.format import journal, layout
from bkspark.ledger.handles import backlog
from bkspark.ledger.handles.lane import Lanes
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from tests.integration.hand_writer import Gate, HandWriter
from tests.integration.rig import SCHEMA, Rig, rows_from

SILENT = WriterSettings(explicit_lac_ms=0)


def values(keeper: BookKeeper, ledger_id: int, **options: object) -> list[bytes]:
    return [entry.value for entry in keeper.open_ledger(ledger_id, **options).read()]


def journal_of(handle: WriteHandle) -> str:
    return layout.journal(handle.ledger_id, handle.metadata.term, handle.metadata.token)


# --- adding ------------------------------------------------------------------------------------


def test_what_was_appended_is_read_back_in_order(keeper: BookKeeper) -> None:
    with keeper.create_ledger() as handle:
        assert (handle.last_add_confirmed, handle.last_add_pushed) == (-1, -1)
        assert handle.append(b"a") == 0
        assert handle.append_async(b"b").result(120) == 1
        assert handle.append_many([b"c", b"", b"e"]) == (2, 4)
        handle.force()
        assert (handle.last_add_confirmed, handle.last_add_pushed) == (4, 4)
    reader = keeper.open_ledger(handle.ledger_id)
    assert [(e.entry_id, e.value) for e in reader.read(1, 3)] == [(1, b"b"), (2, b"c"), (3, b"")]
    assert (reader.is_closed, reader.metadata.length_bytes) == (True, 4)


def test_futures_complete_in_entry_order(rig: Rig) -> None:
    """Who is told of them is told in order too: nothing is, before the last has been asked."""
    order: list[int] = []
    gate = Gate(rig.faults)
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper, keeper.create_ledger() as handle:
        gate.close(*rig.urls)
        futures: list[Future[int]] = [handle.append_async(b"%d" % n) for n in range(300)]
        for future in futures:
            future.add_done_callback(lambda done: order.append(done.result()))
        assert order == []
        gate.open()
        handle.force()
        assert [future.result() for future in futures] == list(range(300))
    assert order == list(range(300))


def test_what_was_submitted_cannot_be_taken_back(keeper: BookKeeper) -> None:
    with keeper.create_ledger() as handle:
        future = handle.append_async(b"a")
        assert not future.cancel()
        assert handle.append(b"b") == 1
    assert values(keeper, handle.ledger_id) == [b"a", b"b"]


def test_a_request_that_makes_no_sense_leaves_the_writer_alone(keeper: BookKeeper) -> None:
    with keeper.create_ledger() as handle:
        for wrong in ("text", [1, 2], bytearray(b"a")):
            with pytest.raises(InvalidRequestError):
                handle.append(wrong)
            with pytest.raises(InvalidRequestError):
                handle.append_many([b"a", wrong])
        with pytest.raises(InvalidRequestError):
            handle.append_many([])
        assert handle.append(b"a") == 0
    assert values(keeper, handle.ledger_id) == [b"a"]


def test_callers_wait_while_too_much_has_no_ack(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "OUTSTANDING_BYTES_MAX", 10)
    gate = Gate(rig.faults)
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper, keeper.create_ledger() as handle:
        gate.close(*rig.urls)
        handle.append_async(b"0123456789")
        last: list[int] = []
        caller = threading.Thread(target=lambda: last.append(handle.append(b"a")), daemon=True)
        caller.start()
        caller.join(0.2)
        assert caller.is_alive()
        assert handle.last_add_pushed <= 0
        gate.open()
        caller.join(120)
        assert last == [1]


def test_callers_that_never_fall_silent_get_their_acknowledgements(keeper: BookKeeper) -> None:
    with keeper.create_ledger() as handle:
        first = handle.append_async(b"a")
        others = itertools.takewhile(lambda _: not first.done(), range(1_000_000))
        assert sum(handle.append_async(b"x") == 0 for _ in others) == 0
        assert first.result(0) == 0


def test_an_interrupted_append_ends_the_writer(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever appends runs the writer: what he had half sent nobody goes on with."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    handle = keeper.create_ledger()
    handle.append(b"a")
    with monkeypatch.context() as patch:
        patch.setattr(Lanes, "send", interrupted)
        with pytest.raises(KeyboardInterrupt):
            handle.append(b"b")
    for work in (lambda: handle.append(b"c"), handle.close):
        with pytest.raises(OutcomeUnknownError, match="KeyboardInterrupt"):
            work()
    assert handle.last_add_confirmed == 0
    assert values(keeper, handle.ledger_id) == [b"a"]


@pytest.mark.parametrize("is_ended_by_error", [True, False])
def test_nobody_waits_for_ever_at_the_end_of_a_writer(
    is_ended_by_error: bool, memory_rig: Rig
) -> None:
    """Whatever is submitted while the writer ends is acknowledged or refused."""
    for _ in range(10):
        with BookKeeper(memory_rig.uri) as keeper:
            handle, futures = keeper.create_ledger(), list[Future[int]]()

            def submit(handle: WriteHandle = handle, futures: list = futures) -> None:
                try:
                    while len(futures) < 3_000:
                        futures.append(handle.append_async(b"a"))
                except (LedgerClosedError, LedgerFencedError):
                    pass

            caller = threading.Thread(target=submit, daemon=True)
            caller.start()
            if is_ended_by_error:
                keeper.recover_ledger(handle.ledger_id)
            handle.release()
            caller.join(120)
            for future in futures:
                assert future.exception(120) is None or future.done()


def test_tables_are_entries_too(keeper: BookKeeper) -> None:
    table = pa.Table.from_batches([rows_from(0, 5), rows_from(5, 4)])
    with keeper.create_ledger(schema=SCHEMA) as handle:
        assert handle.append_many(table) == (0, 8)
        assert handle.append_many(table.slice(2, 1)) == (9, 9)
        with pytest.raises(InvalidRequestError):
            handle.append(b"a")
    found = keeper.open_ledger(handle.ledger_id).read_arrow(1, 9)
    assert found.column("n").to_pylist() == [1, 2, 3, 4, 5, 6, 7, 8, 2]
    assert found.column("_entry_id").to_pylist() == list(range(1, 10))


@pytest.mark.parametrize("sizes", [(4, 2, 2), (5, 3, 2), (3, 1, 1)])
def test_striped_entries_lie_on_their_own_write_sets_only(
    sizes: tuple[int, int, int], rig: Rig, keeper: BookKeeper
) -> None:
    names = ("ensemble_size", "write_quorum_size", "ack_quorum_size")
    sent = [b"value of entry %04d" % n for n in range(11)]
    with keeper.create_ledger(**dict(zip(names, sizes, strict=True))) as handle:
        handle.append_many(sent[:7])
        for value in sent[7:]:
            handle.append(value)
    assert values(keeper, handle.ledger_id) == sent
    ledger = rig.ledger(handle.ledger_id)
    for index, member in enumerate(ledger.last_fragment.ensemble):
        data = b"".join(rig.file_bytes(member.bookie_id, n) for n in rig.names(member.bookie_id))
        having = [n for n, value in enumerate(sent) if value in data]
        assert having == [n for n in range(11) if index in ledger.quorum.write_set(n)]


# --- closing -----------------------------------------------------------------------------------


def test_a_closed_handle_takes_nothing_more_and_closes_twice(keeper: BookKeeper) -> None:
    handle = keeper.create_ledger()
    handle.append(b"a")
    handle.close()
    handle.close()
    with pytest.raises(LedgerClosedError):
        handle.append(b"b")
    assert values(keeper, handle.ledger_id) == [b"a"]


def test_a_block_that_ends_by_an_exception_does_not_seal(rig: Rig, keeper: BookKeeper) -> None:
    handle = keeper.create_ledger()
    handle.append(b"a")
    with pytest.raises(ZeroDivisionError), handle:
        raise ZeroDivisionError
    assert rig.ledger(handle.ledger_id).state is LedgerState.OPEN
    assert values(keeper, handle.ledger_id) == [b"a"]


def changed_by(
    rig: Rig, ledger_id: int, change: Callable[[LedgerMetadata], LedgerMetadata]
) -> None:
    with BookKeeper(rig.uri) as other:
        other._cluster.ledgers.update(str(ledger_id), change)


@pytest.mark.parametrize(
    ("state", "end", "error"),
    [
        (LedgerState.OPEN, None, None),
        (LedgerState.IN_RECOVERY, None, LedgerFencedError),
        (LedgerState.CLOSED, 1, None),
        (LedgerState.CLOSED, 2, LedgerClosedError),
    ],
)
def test_rb_19_closing_a_ledger_that_somebody_has_changed(
    state: LedgerState, end: int | None, error: type[Exception] | None, rig: Rig, keeper: BookKeeper
) -> None:
    handle = keeper.create_ledger()
    handle.append_many([b"a", b"b"])

    def change(ledger: LedgerMetadata) -> LedgerMetadata:
        if state is LedgerState.OPEN:
            settings = replace(ledger.settings, custom_metadata={"by": "a job"})
            return replace(ledger, settings=settings)
        if state is LedgerState.IN_RECOVERY:
            return ledger.in_recovery("b" * 32)
        assert end is not None
        term, token = ledger.term, ledger.token
        return ledger.closed(last_entry_id=end, length_bytes=end + 1, term=term, token=token)

    changed_by(rig, handle.ledger_id, change)
    if error is not None:
        for _ in range(2):
            with pytest.raises(error):
                handle.close()
        return
    handle.close()
    assert rig.ledger(handle.ledger_id).last_entry_id == 1
    if state is LedgerState.OPEN:
        assert rig.ledger(handle.ledger_id).settings.custom_metadata == {"by": "a job"}


def test_a_writer_learns_that_it_was_fenced_with_its_next_entry(keeper: BookKeeper) -> None:
    handle = keeper.create_ledger()
    handle.append(b"a")
    reader = keeper.open_ledger(handle.ledger_id)
    for _ in range(2):
        with pytest.raises(LedgerFencedError):
            handle.append(b"b")
    assert [entry.value for entry in reader.read()] == [b"a"]


# --- reading -----------------------------------------------------------------------------------


def test_a_tail_reader_follows_the_last_add_confirmed_and_disturbs_nobody(
    rig: Rig, keeper: BookKeeper
) -> None:
    with keeper.create_ledger(settings=SILENT) as handle:
        before = rig.ledger(handle.ledger_id)
        reader = keeper.open_ledger(handle.ledger_id, recovery=False)
        assert (reader.last_add_confirmed, list(reader.read())) == (-1, [])
        seen = [-1]
        for number in range(4):
            handle.append(b"%d" % number)
            seen.append(reader.read_last_add_confirmed())
        assert seen == sorted(seen)
        assert reader.last_add_confirmed == 2
        assert [entry.value for entry in reader.read()] == [b"0", b"1", b"2"]
        with pytest.raises(NoSuchEntryError):
            list(reader.read(0, 3))
        assert [entry.value for entry in reader.read_unconfirmed(3, 3)] == [b"3"]
        assert not reader.wait_for(3, timeout=0.1)
        assert rig.ledger(handle.ledger_id) == before
    assert reader.wait_for(3, timeout=20)
    assert [entry.value for entry in reader.read(3)] == [b"3"]


def test_rb_13_a_last_add_confirmed_never_goes_back(rig: Rig, keeper: BookKeeper) -> None:
    with keeper.create_ledger(settings=SILENT) as handle:
        for number in range(3):
            handle.append(b"%d" % number)
        reader = keeper.open_ledger(handle.ledger_id, recovery=False)
        away = {name: rig.lose(name) for name in rig.urls}
        with pytest.raises(
            BookieUnavailableError, match="the last confirmed entry of ledger 0 is not known"
        ):
            reader.read_last_add_confirmed()
        assert reader.last_add_confirmed == 1
        for name, disk in away.items():
            rig.bring_back(name, disk)


@pytest.mark.parametrize("damage", ["missing", "cut", "corrupt", "away"])
def test_a_reader_steps_over_a_bad_copy_and_says_so(
    damage: str, rig: Rig, keeper: BookKeeper
) -> None:
    with keeper.create_ledger() as handle:
        for number in range(5):
            handle.append(b"%d" % number)
    members = [m.bookie_id for m in handle.metadata.last_fragment.ensemble]
    for count, name in enumerate(members, start=1):
        data = rig.file_bytes(name, journal_of(handle))
        if damage == "away":
            rig.lose(name)
        else:
            at = 99 + (journal.frame_length(data, 0, position=0) or 0)  # behind the header
            corrupt = data[:at] + b"?" + data[at + 1 :]
            broken = {"missing": None, "cut": data[: at + 51], "corrupt": corrupt}
            rig.replace_file(name, journal_of(handle), broken[damage])
        reader = keeper.open_ledger(handle.ledger_id)
        if count < 3:
            assert [entry.value for entry in reader.read()] == [b"%d" % n for n in range(5)]
        else:
            with pytest.raises(CorruptDataError, match="no bookie gives entry"):
                list(reader.read())
        assert set(reader.faults) == set(members[:count])


@pytest.mark.parametrize("count", [0, 1])
def test_rb_40_an_empty_ledger_and_one_with_a_single_entry(count: int, keeper: BookKeeper) -> None:
    for is_closed in (True, False):
        handle = keeper.create_ledger(schema=SCHEMA)
        if count:
            handle.append_many(pa.Table.from_batches([rows_from(7, 1)]))
        handle.close() if is_closed else handle.release()
        found = keeper.open_ledger(handle.ledger_id).read_arrow()
        assert (found.num_rows, found.schema.names) == (count, ["n", "s", "_entry_id"])


def test_only_the_password_reads(rig: Rig, keeper: BookKeeper) -> None:
    with keeper.create_ledger(digest_type="MAC", password="right") as handle:
        handle.append(b"a")
    with pytest.raises(UnauthorizedError):
        keeper.open_ledger(handle.ledger_id, recovery=False, password="wrong")
    assert values(keeper, handle.ledger_id, password="right") == [b"a"]


def test_rb_41_a_last_add_confirmed_counts_whichever_bookie_knows_it(memory_rig: Rig) -> None:
    """RB-12 and RB-23 too: whoever reads later sees no less, also across a change of bookies."""
    writer = HandWriter(memory_rig, (3, 2, 2))
    writer.add(0, 1, acknowledges=True)
    writer.add(1, 2, acknowledges=True)
    writer.replace(0, next(name for name in memory_rig.urls if name not in writer.names))
    writer.add(2)
    with BookKeeper(memory_rig.uri) as keeper:
        for _ in range(2):
            reader = keeper.open_ledger(writer.ledger_id, recovery=False)
            assert reader.last_add_confirmed == 1
            assert [entry.value for entry in reader.read()] == [b"entry 0", b"entry 1"]


def test_a_writer_whose_bookies_hang_fails_in_the_end(
    memory_rig: Rig,
) -> None:
    settings = WriterSettings(add_entry_quorum_timeout_seconds=0.3)
    gate = Gate(memory_rig.faults)
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        handle = keeper.create_ledger(settings=settings)
        gate.close(*memory_rig.urls)
        future = handle.append_async(b"a")
        assert isinstance(future.exception(120), OutcomeUnknownError)
        gate.open()
        with pytest.raises(OutcomeUnknownError):
            handle.close()
