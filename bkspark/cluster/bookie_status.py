"""The state of a bookie as just observed, and the part noted in the bookie's record.

A bookie whose disk has passed the upper mark gets no new ledgers until usage is below the lower
mark (``protocol.bookies.fullness``). The record holds the mark passed last. A client that looks for
bookies to write to updates the record when fullness changes; a failed update fails no write. A
recovery, which reads only the records, takes a full bookie if there is no other.
"""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from bkspark.bookie.checks import TooManyOpenFilesError
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.records import Records
from bkspark.errors import BookieUnavailableError, BookKeeperError
from bkspark.format.cluster import BookieRecord
from bkspark.protocol import bookies
from bkspark.protocol.bookies import Candidate
from bkspark.protocol.ledger.metadata import Member

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BookieStatus:
    """A registered bookie, and whether it can be used now.

    Attributes:
        problem: empty if the bookie can be read, else the reason in one line.
        free_bytes, total_bytes: both 0 if unknown (``tells_space``); a full disk has none free.
        write_problem: empty if the bookie can probably be written to as well, else the reason.
    """

    record: BookieRecord
    problem: str = ""
    free_bytes: int = 0
    write_problem: str = ""
    total_bytes: int = 0

    @property
    def member(self) -> Member:
        return Member(self.record.bookie_id, self.record.incarnation)

    @property
    def may_join(self) -> bool:
        """Whether a new ensemble may include the bookie, unless the bookie was declared lost."""
        is_closed = self.record.is_read_only or self.is_full
        return not (self.problem or self.write_problem or is_closed)

    @property
    def tells_space(self) -> bool:
        """Whether the disk's size is known; unknown for an object store."""
        return self.total_bytes > 0

    @property
    def is_full(self) -> bool:
        """Whether disk usage is above the bookie's mark."""
        was_full = self.record.is_full
        return bookies.is_full(
            self.record.marks, self.free_bytes, self.total_bytes, was_full=was_full
        )

    @property
    def full_note(self) -> str:
        """The consequence of being full, in one line; empty if not full."""
        if not self.is_full:
            return ""
        return bookies.told(self.record.marks, self.free_bytes, self.total_bytes)


class Usable(list[Candidate]):
    """Bookies that may join an ensemble.

    Attributes:
        problem: why the first excluded bookie is unusable, in one line; empty if all are usable.
        others: ids of other bookies, which were not looked at.
        addresses: of the bookies looked at, usable or not.
    """

    problem = ""

    def __init__(self, found: Iterable[Candidate] = ()) -> None:
        super().__init__(found)
        self.addresses: dict[Member, BookieAddress] = {}
        self.others: list[str] = []


def usable(statuses: Iterable[BookieStatus], lost: Collection[Member]) -> Usable:
    """The bookies that may join an ensemble, without those declared lost."""
    found = Usable()
    for status in statuses:
        if status.may_join and status.member not in lost:
            record = status.record
            found.append(Candidate(status.member, record.domain, status.free_bytes, record.labels))
        elif status.member not in lost:
            found.problem = found.problem or status.problem or status.write_problem
    return found


def look_at(record: BookieRecord, address: BookieAddress) -> BookieStatus:
    """Observe a bookie now.

    Raises:
        TooManyOpenFilesError: this process cannot look.
    """
    try:
        with open_bookie(address).open_root() as root:
            free, total = root.free_bytes(), root.total_bytes()
            return BookieStatus(record, "", free, root.write_problem(), total)
    except TooManyOpenFilesError:
        raise
    except BookieUnavailableError as error:
        return BookieStatus(record, str(error))


def note_fullness(registrations: Records[BookieRecord], status: BookieStatus) -> None:
    """Store in the bookie's record that the bookie became full, or has room again."""
    if status.is_full == status.record.is_full:
        return
    bookie_id, is_full = status.record.bookie_id, status.is_full

    def noted(now: BookieRecord | None) -> BookieRecord:
        assert now is not None  # registrations are never removed
        is_same = (now.incarnation, now.marks) == (status.record.incarnation, status.record.marks)
        return replace(now, is_full=is_full) if is_same else now

    logger.warning(
        "bookie %s: %s", bookie_id, status.full_note or "it has room again, and gets new ledgers"
    )
    try:
        registrations.update(bookie_id, noted)
    except BookKeeperError as error:
        logger.warning("bookie %s: that could not be stored: %s", bookie_id, error.args[0])
