"""Giving copies to another bookie: entry logs byte for byte, and a journal for the records.

A copy that fails says whose fault it is. A target that fails gets no copy, and another one may; a
source that has no good copy, or does not answer, is no holder, whoever the copy is for.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from bkspark import environment
from bkspark.bookie.contract import BookieAddress, BookieRoot, EntryFile, Journal
from bkspark.cluster.bookie_client import BookieClient, seconds_to_store
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError, CorruptDataError
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.ledger.entry_log_reader import EntryLogFile, EntryLogReader
from bkspark.protocol.ledger.record import EntryLog


class DamagedInPlaceError(BookieUnavailableError):
    """The target has a damaged copy under the log's name, which nothing writes over."""


def new_journal(root: BookieRoot, ledger_id: int, term: int, token: str) -> Journal:
    """A journal of this attempt alone.

    Spark may run an instruction twice, one after the other or both at once. Whoever comes second
    takes a name of its own (R3): the copies are the same, and each attempt answers for what it
    wrote.
    """
    try:
        return root.open_journal(layout.journal(ledger_id, term, token))
    except BookieUnavailableError:
        return root.open_journal(layout.journal(ledger_id, term, environment.token()))


def have_entry_log(
    log: EntryLog,
    sources: Sequence[BookieAddress],
    target: BookieAddress,
    digester: Digester,
    *,
    ledger_id: int,
    beat: Heartbeat = no_heartbeat,
) -> dict[str, str]:
    """``copy_entry_log``, of which another attempt may have made the copy just now.

    The second look finds it in place.
    """
    copy = partial(copy_entry_log, log, sources, target, digester, ledger_id=ledger_id, beat=beat)
    try:
        return copy()
    except BookieUnavailableError:
        return copy()


def copy_entry_log(
    log: EntryLog,
    sources: Sequence[BookieAddress],
    target: BookieAddress,
    digester: Digester,
    *,
    ledger_id: int,
    beat: Heartbeat = no_heartbeat,
) -> dict[str, str]:
    """Make a durable copy of ``log`` on ``target`` from the first of ``sources`` that is good.

    A copy found in place counts if it is good, because the name is the log's alone. No bookie is
    waited for longer than a question to it takes (``BookieClient``).

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
    into = BookieClient(target)
    try:
        if into.ask(lambda: into.root().size(name)) is not None:
            _require_good(into, log, digester, ledger_id, beat)
            return {}
        source = EntryLogReader(log, sources, digester, ledger_id=ledger_id)
        _copy(name, source.read(EntryLogFile.pieces), into, beat)
        return source.problems
    finally:
        into.close()


def _require_good(
    into: BookieClient,
    log: EntryLog,
    digester: Digester,
    ledger_id: int,
    beat: Heartbeat,
) -> None:
    """Check every byte of the copy in place, and make it durable: its maker may have died (H23)."""
    try:
        replica = EntryLogFile(into.storage(), log, digester, ledger_id=ledger_id)
        for _piece in replica.pieces():
            beat()
        name = layout.entry_log(ledger_id, log.attempt_id, log.stripe)
        into.ask(lambda: into.root().sync(name), seconds_to_store(log.length_bytes))
    except CorruptDataError as error:
        raise DamagedInPlaceError(f"there is a damaged copy in place: {error}") from error


def _copy(name: str, pieces: Iterator[bytes], into: BookieClient, beat: Heartbeat) -> None:
    def create() -> EntryFile:
        file = into.root().create(name)
        into.cleanup.callback(file.discard)
        return file

    copy, length = into.ask(create, seconds_to_store(0)), 0
    for piece in pieces:
        length += len(piece)
        into.ask(partial(copy.write, piece), seconds_to_store(length))
        beat()
    into.ask(copy.finish, seconds_to_store(length))
