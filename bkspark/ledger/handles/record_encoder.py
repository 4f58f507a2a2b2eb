"""Encodes a writer's records from the machine's values and the submitted rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from bkspark.format import journal
from bkspark.format.digest import Digester
from bkspark.ledger.handles.entries import encode_parts
from bkspark.ledger.handles.grouping import Submission, batch_of
from bkspark.protocol.ledger.commit_times import TimeStep
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.record import AddRecord, AttemptLogs, Made, Rows, confirmation
from bkspark.protocol.writer.adding import PendingAdd, PendingAdds

NO_ROWS = pa.schema([])


class RecordEncoder:
    """Encodes the records of one writer; their bytes never change afterwards (R9).

    Args:
        schema: of submitted rows.
        transactions: the last version of each application committed by earlier writers. Records of
            rows repeat it, because the last record speaks for all (``record``).
    """

    def __init__(
        self,
        ledger: LedgerMetadata,
        digester: Digester,
        schema: pa.Schema = NO_ROWS,
        transactions: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._ledger = ledger
        self._digester = digester
        self._schema = schema
        self._transactions = transactions

    def encode(self, add: PendingAdd, taken: Sequence[Submission]) -> journal.EncodedRecord:
        """Encode the record of ``add`` with the submitted rows."""
        parts, messages = encode_parts(
            batch_of(taken, self._schema),
            self._digester,
            ledger_id=self._ledger.ledger_id,
            first_entry_id=add.first_entry_id,
            quorum=self._ledger.quorum,
            is_of_any_type=isinstance(taken[0].rows, pa.RecordBatch),
        )
        record = self._record(add, parts, self._transactions)
        return journal.encode(record, self._digester, messages)

    def name(
        self,
        add: PendingAdd,
        attempts: tuple[AttemptLogs, ...],
        transactions: Mapping[str, int],
        steps: tuple[TimeStep, ...] = (),
    ) -> journal.EncodedRecord:
        """Encode the record of ``add`` that names entry logs.

        Args:
            transactions: the last version of each application up to there.
            steps: when parts of the entries were committed, if they were committed before.
        """
        record = self._record(add, attempts, transactions)
        record = replace(record, made=record.made._replace(steps=steps)) if steps else record
        return journal.encode(record, self._digester)

    def _record(self, add: PendingAdd, rows: Rows, transactions: Mapping[str, int]) -> AddRecord:
        return AddRecord(
            ledger_id=self._ledger.ledger_id,
            term=self._ledger.term,
            token=self._ledger.token,
            first_entry_id=add.first_entry_id,
            last_entry_id=add.last_entry_id,
            last_add_confirmed=add.last_add_confirmed,
            length_bytes=add.length_bytes,
            quorum=self._ledger.quorum,
            made=Made(add.fragment_first_entry_id, add.times),
            transactions=transactions,
            rows=rows,
            stored=add.stored,
        )

    def confirm(
        self,
        pending: PendingAdds,
        *,
        fragment_first_entry_id: int,
        transactions: Mapping[str, int] | None = None,
    ) -> journal.EncodedRecord:
        """Encode a confirmation of all acknowledged entries.

        Args:
            transactions: as in ``name``; None if this writer commits none.
        """
        record = confirmation(
            ledger_id=self._ledger.ledger_id,
            term=self._ledger.term,
            token=self._ledger.token,
            last_add_confirmed=pending.last_add_confirmed,
            length_bytes=pending.length_bytes,
            quorum=self._ledger.quorum,
            made=Made(fragment_first_entry_id, pending.times),
            transactions=self._transactions if transactions is None else transactions,
            stored=pending.stored,
        )
        return journal.encode(record, self._digester)
