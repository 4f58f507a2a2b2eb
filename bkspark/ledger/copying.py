"""Copies ledger data to another bookie: entry logs byte for byte, and a journal for the records.

A failed copy reports whether the target or the sources failed. A failed target gets no copy; the
caller may choose another target. A source without a good copy, or without an answer, counts as no
holder for any target.
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
    """The target has a damaged copy under the log's name; no copy overwrites it."""


def new_journal(root: BookieRoot, ledger_id: int, term: int, token: str) -> Journal:
    """Create a journal for this attempt alone.

    Spark may run an instruction twice, in sequence or at once. The second attempt takes its own
    journal name (R3). The copies are the same, and each attempt answers for its own writes.
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
    """Run ``copy_entry_log``, and run it again if the target failed.

    If another attempt made the copy meanwhile, the second run finds the copy in place.
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
    """Make a durable copy of ``log`` on ``target`` from the first good replica among ``sources``.

    A good copy found in place counts, because only this log has the name. Each wait for a bookie is
    bounded (``BookieClient``).

    Args:
        beat: called after each block, as a sign that storage answers.

    Returns:
        Bookie ids of sources without a good replica, each with the reason.

    Raises:
        BookieUnavailableError: ``target`` fails.
        DamagedInPlaceError: ``target`` has a damaged copy.
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
    """Check every byte of the copy in place and sync it: its maker may have died before (H23)."""
    try:
        replica = EntryLogFile(into.storage(), log, digester, ledger_id=ledger_id)
        for _piece in replica.pieces():
            beat()
        name = layout.entry_log(ledger_id, log.attempt_id, log.stripe)
        into.ask(lambda: into.root().sync(name), seconds_to_store(log.length_bytes))
    except CorruptDataError as error:
        raise DamagedInPlaceError(f"a damaged copy is in its place: {error}") from error


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
