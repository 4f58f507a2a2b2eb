"""Copying an entry log to another bookie: byte for byte, every block checked on the way."""

from collections.abc import Callable, Iterator, Sequence

from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.client.entry_log_file import EntryLogFile
from bkspark.errors import BookieUnavailableError, CorruptDataError
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.protocol.record import EntryLog


def copy_entry_log(
    log: EntryLog,
    sources: Sequence[BookieAddress],
    target: BookieAddress,
    digester: Digester,
    *,
    ledger_id: int,
    beat: Callable[[], None] = lambda: None,
) -> None:
    """Make a durable copy of ``log`` on ``target`` from the first of ``sources`` that is good.

    A copy found in place counts if it is good, because the name is the log's alone.

    Args:
        beat: called after each block, as a sign that storage answers.

    Raises:
        BookieUnavailableError: ``target`` fails, or no source is good.
    """
    name = layout.entry_log(ledger_id, log.attempt_id, log.stripe)
    problems: list[str] = []
    with open_bookie(target).open_root() as into:
        if into.size(name) is not None:
            _require_good(into, log, digester, ledger_id, beat)
            return
        for source in sources:
            try:
                _copy(name, _checked_bytes(source, log, digester, ledger_id), into, beat)
                return
            except _SourceError as error:
                problems.append(f"{source.bookie_id}: {error}")
    raise BookieUnavailableError(
        f"no good copy of {name} to give to {target.bookie_id} ({'; '.join(problems)})"
    )


def _require_good(
    root: BookieRoot,
    log: EntryLog,
    digester: Digester,
    ledger_id: int,
    beat: Callable[[], None],
) -> None:
    """Check every byte of the copy in place, and make it durable: its maker may have died (H23)."""
    try:
        replica = EntryLogFile(root, log, digester, ledger_id=ledger_id)
        for block in replica.blocks:
            replica.block_bytes(block)
            beat()
        root.sync(replica.name)
    except CorruptDataError as error:
        raise BookieUnavailableError(f"there is a damaged copy in place: {error}") from error


class _SourceError(Exception):
    """The source has no good copy, or does not answer; another source may."""


def _checked_bytes(
    source: BookieAddress, log: EntryLog, digester: Digester, ledger_id: int
) -> Iterator[bytes]:
    """The whole file from ``source``, piece by piece, each checked before it is given out."""
    try:
        with open_bookie(source).open_root() as root:
            replica = EntryLogFile(root, log, digester, ledger_id=ledger_id)
            yield replica.head
            for block in replica.blocks:
                yield replica.block_bytes(block)
            yield replica.end
    except (CorruptDataError, BookieUnavailableError) as error:
        raise _SourceError(str(error)) from error


def _copy(name: str, pieces: Iterator[bytes], into: BookieRoot, beat: Callable[[], None]) -> None:
    copy = into.create(name)
    try:
        for piece in pieces:
            copy.write(piece)
            beat()
        copy.finish()
    finally:
        copy.discard()
