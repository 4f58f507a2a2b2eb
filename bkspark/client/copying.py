"""Copying an entry log to another bookie: byte for byte, every block checked on the way.

A copy that fails says whose fault it is. A target that fails gets no copy, and another one may; a
source that has no good copy, or does not answer, is no holder, whoever the copy is for.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from bkspark.bookie.contract import BookieAddress, EntryFile
from bkspark.client.channel import Channel, seconds_to_store
from bkspark.client.entry_log_file import EntryLogFile
from bkspark.client.stepping_over import BadCopy, step_over
from bkspark.errors import BookieUnavailableError, CorruptDataError, NotEnoughBookiesError
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.protocol.record import EntryLog

logger = logging.getLogger(__name__)


class DamagedInPlaceError(BookieUnavailableError):
    """The target has a damaged copy under the log's name, which nothing writes over."""


class NoGoodSourceError(NotEnoughBookiesError):
    """No source has a good copy; the target is not to blame.

    Attributes:
        problems: bookie id of each source -> why it gave none.
    """

    def __init__(self, name: str, problems: Mapping[str, str]) -> None:
        reasons = "; ".join(f"{bookie_id}: {reason}" for bookie_id, reason in problems.items())
        super().__init__(
            f"no bookie gives a good copy of {name} ({reasons})",
            hint="bring back one of these bookies",
        )
        self.problems = dict(problems)


def copy_entry_log(
    log: EntryLog,
    sources: Sequence[BookieAddress],
    target: BookieAddress,
    digester: Digester,
    *,
    ledger_id: int,
    beat: Callable[[], None] = lambda: None,
) -> dict[str, str]:
    """Make a durable copy of ``log`` on ``target`` from the first of ``sources`` that is good.

    A copy found in place counts if it is good, because the name is the log's alone. No bookie is
    waited for longer than a question to it takes (``Channel``).

    Args:
        beat: called after each block, as a sign that storage answers.

    Returns:
        Bookie ids of sources that turned out to be none, each with the reason.

    Raises:
        BookieUnavailableError: ``target`` fails.
        DamagedInPlaceError: it has a damaged copy.
        NoGoodSourceError: no source is good.
    """
    name = layout.entry_log(ledger_id, log.attempt_id, log.stripe)
    problems: dict[str, str] = {}
    into = Channel(target)
    try:
        if into.ask(lambda: into.root().size(name)) is not None:
            _require_good(into, log, digester, ledger_id, beat)
            return problems
        for source in sources:
            try:
                _copy(name, _checked_bytes(source, log, digester, ledger_id), into, beat)
                return problems
            except _SourceError as error:
                problems[source.bookie_id] = str(error)
                what = f"entry log {log.attempt_id}-{log.stripe}"
                copy = BadCopy(source.cluster_id, source.bookie_id, what)
                step_over(logger, copy, str(error))
    finally:
        into.close()
    raise NoGoodSourceError(name, problems)


def _require_good(
    into: Channel,
    log: EntryLog,
    digester: Digester,
    ledger_id: int,
    beat: Callable[[], None],
) -> None:
    """Check every byte of the copy in place, and make it durable: its maker may have died (H23)."""
    try:
        for _piece in _pieces(into, log, digester, ledger_id):
            beat()
        name = layout.entry_log(ledger_id, log.attempt_id, log.stripe)
        into.ask(lambda: into.root().sync(name), seconds_to_store(log.length_bytes))
    except CorruptDataError as error:
        raise DamagedInPlaceError(f"there is a damaged copy in place: {error}") from error


class _SourceError(Exception):
    """The source has no good copy, or does not answer; another source may."""


def _checked_bytes(
    source: BookieAddress, log: EntryLog, digester: Digester, ledger_id: int
) -> Iterator[bytes]:
    """The whole file from ``source``, piece by piece, each checked before it is given out."""
    channel = Channel(source)
    try:
        yield from _pieces(channel, log, digester, ledger_id)
    except (CorruptDataError, BookieUnavailableError) as error:
        raise _SourceError(str(error)) from error
    finally:
        channel.close()


def _pieces(channel: Channel, log: EntryLog, digester: Digester, ledger_id: int) -> Iterator[bytes]:
    replica = EntryLogFile(channel.storage(), log, digester, ledger_id=ledger_id)
    yield replica.head
    for block in replica.blocks:
        yield replica.block_bytes(block)
    yield replica.end


def _copy(name: str, pieces: Iterator[bytes], into: Channel, beat: Callable[[], None]) -> None:
    def create() -> EntryFile:
        file = into.root().create(name)
        into.cleanup.callback(file.discard)
        return file

    copy, length = into.ask(create, seconds_to_store(0)), 0
    try:
        for piece in pieces:
            length += len(piece)
            into.ask(partial(copy.write, piece), seconds_to_store(length))
            beat()
    except _SourceError:
        into.ask(copy.discard)
        raise
    into.ask(copy.finish, seconds_to_store(length))
