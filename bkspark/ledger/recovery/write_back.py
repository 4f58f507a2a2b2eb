"""What a recovery gives back to one bookie: its copies of what is kept.

A picklable instruction, as those of ``fencing``.
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
from bkspark.ledger.journals.journal_folder import find_journals
from bkspark.ledger.recovery.writer import Writer
from bkspark.protocol.ledger.metadata import Member
from bkspark.protocol.ledger.record import Piece
from bkspark.protocol.ledger.settings import DigestSpec
from bkspark.protocol.recovery.steps import (
    Displaced,
    Failure,
    KeptGroup,
    Unreadable,
    WrittenBack,
)


@dataclass(frozen=True, slots=True)
class WriteBack:
    """Give one bookie its copies of the groups that a recovery keeps.

    Records keep their own term and LAC, byte for byte: a recovery's own LAC in them would let a
    reader see what the ledger may yet be closed below (H8). They go to a journal of the recovery's
    own, so nothing is appended behind what somebody else wrote, and no fence refuses them (RB-26).
    Where an earlier recovery, which came to nothing, has left the very same bytes, they are made
    durable and count: else every one of them would leave a journal for all later ones to read.

    Attributes:
        term, token: of the recovery.
        writer: who is fenced there.
        holders: where the holders of the groups are.
        must_fence: whether the bookie has no fence yet: it was silent before, or joins the ensemble
            only now. It comes before anything else is written.
    """

    ledger_id: int
    term: int
    token: str
    writer: Writer
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
        """Returns those that are damaged here, and why: the others count all the same."""
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
        """Whether an earlier recovery has left ``records``, which are durable by now.

        They are looked for anew behind that, like those that are written (R6).
        """
        with open_bookie(self.address).open_root() as root:
            # Copies that are not listed are written anew.
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
        """Whether journal ``name`` begins with the bytes that would be written for ``records``."""
        position = 0
        for encoded in records:
            frame = b"".join(encoded.frame(self.ensemble_index, position))
            if root.read(name, position, len(frame)) != frame:
                return False
            position += len(frame)
            beat()
        return True

    def _require_kept(self, file: Journal) -> None:
        """The copies count for the closing, so they are looked for as a writer's records are (R6).

        A fence that is gone fences nobody: what was decided behind it is to be decided anew.
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
