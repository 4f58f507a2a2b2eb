"""Instruction to one bookie: store its copies of the groups that a recovery keeps.

The instruction is picklable, like those of ``fencing``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bkspark.bookie.contract import BookieAddress, BookieRoot, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookieUnavailableError, CorruptDataError, LedgerFencedError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import EncodedRecord
from bkspark.ledger.copying import DamagedInPlaceError, have_entry_log, new_journal
from bkspark.ledger.entry_log_reader import NoGoodSourceError
from bkspark.ledger.journals.journal_reader import find_journals
from bkspark.ledger.recovery.fencing import LastWriter
from bkspark.protocol.ledger.metadata import DigestSpec, Member
from bkspark.protocol.ledger.record import Piece
from bkspark.protocol.recovery.steps import (
    Displaced,
    Failure,
    KeptGroup,
    Unreadable,
    WrittenBack,
)


@dataclass(frozen=True, slots=True)
class WriteCopies:
    """Give one bookie its copies of the groups that a recovery keeps.

    Records keep their own term and LAC, byte for byte. With the recovery's LAC, a reader would see
    entries below which the ledger may yet be closed (H8). The copies go to a journal of the
    recovery's own: nothing is appended to another client's journal, and no fence refuses the copies
    (RB-26). If an earlier, unfinished recovery has left the same bytes, the copies there are synced
    and count. Otherwise every recovery would leave a journal for all later recoveries to read.

    Attributes:
        term, token: of the recovery.
        writer: the fenced writer.
        holders: addresses of the groups' holders.
        must_fence: whether the bookie has no fence yet, because it was silent before or joins the
            ensemble only now. The fence is written first.
    """

    ledger_id: int
    term: int
    token: str
    writer: LastWriter
    ensemble_index: int
    address: BookieAddress
    digest: DigestSpec
    password: Password
    groups: tuple[KeptGroup, ...]
    holders: Mapping[Member, BookieAddress]
    must_fence: bool = False

    def run(self, beat: Heartbeat = no_heartbeat) -> WrittenBack | Displaced | Unreadable | Failure:
        """Runs on: driver thread | executor."""
        digester = make_digester(self.digest, self.password)
        try:
            if self.must_fence:
                with open_bookie(self.address).open_root() as root:
                    root.put_new(self.writer.fence, b"")
            damaged: list[tuple[Piece, str]] = []
            for group in self.groups:
                damaged += self._copy_entry_logs(group, digester, beat)
            self._write_records(digester, beat)
        except LedgerFencedError as error:
            return Displaced(str(error))
        except NoGoodSourceError as error:
            return Unreadable(str(error.args[0]))
        except (BookieUnavailableError, CorruptDataError) as error:
            return Failure(str(error))
        return WrittenBack(len(self.groups), tuple(damaged))

    def _copy_entry_logs(
        self, group: KeptGroup, digester: Digester, beat: Heartbeat
    ) -> list[tuple[Piece, str]]:
        """Copy entry logs; return those damaged in place, with reasons. The rest count all the
        same.
        """
        damaged: list[tuple[Piece, str]] = []
        sources = [self.holders[member] for member in group.holders]
        for log in group.record.entry_logs:
            if self.ensemble_index in group.record.quorum.write_set(log.stripe):
                try:
                    have_entry_log(
                        log, sources, self.address, digester, ledger_id=self.ledger_id, beat=beat
                    )
                except DamagedInPlaceError as error:
                    damaged.append(((log.attempt_id, log.stripe), str(error)))
        return damaged

    def _write_records(self, digester: Digester, beat: Heartbeat) -> None:
        records = [journal.encode(group.record, digester, group.parts) for group in self.groups]
        if self.term > self.writer.term + 1 and self._are_there(records, beat):
            return
        with open_bookie(self.address).open_root() as root:
            file = new_journal(root, self.ledger_id, self.term, self.token)
        try:
            for encoded in records:
                file.append(encoded.frame(self.ensemble_index, file.end))
            self._require_kept(file)
        finally:
            file.close()

    def _are_there(self, records: Sequence[EncodedRecord], beat: Heartbeat) -> bool:
        """Return whether an earlier recovery has left ``records``, and sync them.

        After the sync, the records are looked up again, like newly written records (R6).
        """
        with open_bookie(self.address).open_root() as root:
            # Unlisted copies are written again.
            found = find_journals(root, self.address.bookie_id, self.ledger_id, ()).names
            earlier = [name for name in found if self._is_of_earlier_recovery(name)]
            shown = [name for name in earlier if self._shows(root, name, records, beat)]
            if not shown or not root.sync(shown[0]):
                return False
        with open_bookie(self.address).open_root() as root:
            self._require_fence(root)
            return self._shows(root, shown[0], records, beat)

    def _is_of_earlier_recovery(self, name: str) -> bool:
        return self.writer.term < layout.journal_term(name) < self.term

    def _shows(
        self, root: BookieRoot, name: str, records: Sequence[EncodedRecord], beat: Heartbeat
    ) -> bool:
        """Return whether journal ``name`` begins with exactly the bytes of ``records``."""
        position = 0
        for encoded in records:
            frame = b"".join(encoded.frame(self.ensemble_index, position))
            if root.read(name, position, len(frame)) != frame:
                return False
            position += len(frame)
            beat()
        return True

    def _require_kept(self, file: Journal) -> None:
        """Look the copies up again, as a writer does after an append (R6): the closing counts on
        them.

        A lost fence stops no writer: decisions made under the fence must be made again.
        """
        with open_bookie(self.address).open_root() as root:
            if not root.has_journal(file):
                raise BookieUnavailableError(
                    f"bookie {self.address.bookie_id} does not show the journal that was written "
                    "to it"
                )
            self._require_fence(root)

    def _require_fence(self, root: BookieRoot) -> None:
        if root.size(self.writer.fence) is None:
            raise LedgerFencedError(
                f"bookie {self.address.bookie_id} has lost its fence of ledger {self.ledger_id}"
            )
