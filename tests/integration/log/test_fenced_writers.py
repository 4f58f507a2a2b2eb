"""A fenced writer of an unbounded log gets ``InvalidTermError``, whatever it meets first."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    InvalidTermError,
)
from bkspark.format import layout
from bkspark.ledger.creating import CreatedLedger
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.writer import WriterRunner
from bkspark.ledger.recovery.recover import recover
from bkspark.log.log_handle import LogHandle
from bkspark.log.log_writer import LogWriter
from bkspark.log.recovering import close_tail
from bkspark.log.tail import LogTail
from bkspark.protocol.ledger.metadata import LedgerMetadata
from tests.integration.log_scenes import NAME, SILENT, unbounded
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies

SECONDS = 60
DELAYED = WriterSettings(explicit_lac_ms=0, is_change_delayed=True)
AGAIN = 2
"""Takeovers behind the writer: the second removes the permission and the fence of the first."""


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def log(keeper: BookKeeper) -> LogHandle:
    return unbounded(keeper)


def overtake(log: LogHandle, count: int = AGAIN) -> None:
    for _ in range(count):
        with log.writer(settings=SILENT) as other:
            other.append(b"of another")


def require_fenced(call: Callable[[], Any]) -> None:
    with pytest.raises(BookKeeperError) as refused:
        call()
    assert isinstance(refused.value, InvalidTermError), repr(refused.value)
    assert refused.value.newer_term > refused.value.term >= 1


def require_all_fenced(writer: LogWriter) -> None:
    require_fenced(lambda: writer.append(b"late"))
    require_fenced(lambda: writer.append_many([b"late"]))
    require_fenced(writer.roll)
    require_fenced(writer.force)
    require_fenced(writer.close)


@pytest.mark.parametrize("count", [1, AGAIN])
@pytest.mark.parametrize("settings", [SILENT, DELAYED], ids=["at once", "delayed"])
@pytest.mark.parametrize("wrote", [False, True])
def test_it_was_overtaken(
    log: LogHandle, count: int, settings: WriterSettings, wrote: bool
) -> None:
    """One that wrote nothing has lost its journals to the takeovers, too."""
    first = log.writer(settings=settings)
    if wrote:
        first.append(b"a")
    overtake(log, count)
    require_all_fenced(first)


def test_a_writer_that_ended_without_entries_on_their_way_cannot_force(log: LogHandle) -> None:
    first = log.writer(settings=SILENT)
    first.append(b"a")
    overtake(log)
    require_fenced(first.roll)
    require_fenced(first.force)


def seal(log: LogHandle, _keeper: BookKeeper) -> None:
    log.seal()


def delete(_log: LogHandle, keeper: BookKeeper) -> None:
    keeper.delete_log(NAME)


def forget(log: LogHandle, keeper: BookKeeper) -> None:
    """As ``delete``, and a collection has removed the record."""
    [ledger_id] = log.record.tail
    keeper.delete_log(NAME)
    keeper._cluster.store.delete(layout.ledger_key(ledger_id))


def convert(log: LogHandle, keeper: BookKeeper) -> None:
    log.convert(unbounded=False)
    log.writer(settings=SILENT).close()


@pytest.mark.parametrize("end", [seal, delete, forget, convert])
def test_its_log_ended(log: LogHandle, keeper: BookKeeper, end: Callable[..., None]) -> None:
    first = log.writer(settings=SILENT)
    first.append(b"a")
    end(log, keeper)
    require_fenced(lambda: first.append(b"late"))
    require_fenced(first.roll)
    require_fenced(first.close)


def test_between_the_end_and_its_reason(log: LogHandle, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is appended then is refused at once, for the same reason."""
    first = log.writer(settings=SILENT)
    first.append(b"a")
    wait_for_all_copies(first._segment.handle)  # a late copy would find the fence
    overtake(log)
    ends, goes_on, real = threading.Event(), threading.Event(), WriterRunner._finish

    def finish(self: WriterRunner) -> None:
        ends.set()
        goes_on.wait(SECONDS)
        real(self)

    monkeypatch.setattr(WriterRunner, "_finish", finish)
    late: Future[int] = first.append_async(b"late")
    assert ends.wait(SECONDS)
    require_fenced(lambda: first.append_async(b"later"))
    require_fenced(first.roll)
    goes_on.set()
    assert isinstance(late.exception(SECONDS), InvalidTermError)


def of_another_ledger(*_: object) -> bool:
    return False


def test_it_rolls_to_another_ledger(log: LogHandle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogTail, "begin_fragment", of_another_ledger)
    first = log.writer(settings=SILENT)
    first.append(b"a")
    close_tail(log._cluster, NAME, Password())
    overtake(log)
    require_fenced(first.roll)
    first.release()


def test_its_ledger_is_closed_amid_a_roll(
    keeper: BookKeeper, log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind an entry that was not acknowledged, so not where this writer would close it."""
    monkeypatch.setattr(LogTail, "begin_fragment", of_another_ledger)
    first = log.writer(settings=SILENT)
    first.append(b"a")
    real = LogTail.roll

    def listed(self: LogTail, own: LedgerMetadata) -> CreatedLedger:
        made = real(self, own)
        ledger_id = own.ledger_id
        recover(keeper._cluster, ledger_id, self._password)

        def longer(ledger: LedgerMetadata | None) -> LedgerMetadata:
            assert ledger is not None
            return replace(ledger, last_entry_id=5)

        keeper._cluster.ledgers.update(str(ledger_id), longer)
        return made

    monkeypatch.setattr(LogTail, "roll", listed)
    require_fenced(first.roll)
    require_fenced(lambda: first.append(b"late"))


def test_no_bookie_takes_a_new_fragment(
    log: LogHandle, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bookies refuse because a later term has begun, after the metadata was asked."""
    first = log.writer(settings=SILENT)
    first.append(b"a")
    members = first._segment.handle._members
    real, calls = members._still_mine, list[int]()

    def still_mine() -> LedgerMetadata:
        calls.append(1)
        mine = real()
        if len(calls) == 1:
            overtake(log)
        return mine

    def refuse(*_args: object, **_options: object) -> None:
        raise BookieUnavailableError("has lost data that it had stored")

    monkeypatch.setattr(members, "_still_mine", still_mine)
    monkeypatch.setattr("bkspark.cluster.ensembles._Pool.choose_up_to", lambda *_, **__: [])
    monkeypatch.setattr("bkspark.cluster.enlisting.Joining.require_shown", refuse)
    monkeypatch.setattr("bkspark.protocol.bookies.in_place", lambda *_: {})
    require_fenced(first.roll)
    first.release()
