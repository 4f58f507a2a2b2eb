"""The write handle: how one writer adds entries to an open ledger, from a driver, without Spark.

While one group of entries is being stored, the next one gathers (group commit). What is decided,
and when, is in ``committer``.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType

import pyarrow as pa

from bkspark.client.cluster import Cluster
from bkspark.client.handles.committer import Committer, Stop, Submitted
from bkspark.client.handles.entries import VALUE_SCHEMA
from bkspark.client.records import Seen
from bkspark.client.runtime import THREADS, Runtime
from bkspark.errors import InvalidRequestError, LedgerFencedError
from bkspark.format import arrow_schema
from bkspark.format.digest import Digester
from bkspark.protocol.ledger import LedgerMetadata


class WriteHandle:
    """Adds entries to one ledger; made by ``BookKeeper.create_ledger``.

    A ``with`` block closes the ledger at its end, or, if it ends by an exception, only releases
    resources: the ledger stays open for recovery.
    """

    def __init__(
        self,
        cluster: Cluster,
        seen: Seen[LedgerMetadata],
        digester: Digester,
        runtime: Runtime = THREADS,
    ) -> None:
        self.ledger_id = seen.value.ledger_id
        self._cluster = cluster
        self._schema = arrow_schema.decode(seen.value.schema)
        self._committer = Committer(cluster, seen, digester, self._schema, runtime)
        self._is_sealed = False
        self._last: Future[int] | None = None
        self._task = runtime.start(self._committer.run, f"ledger-{self.ledger_id}")

    @property
    def last_add_confirmed(self) -> int:
        """The last acknowledged entry, -1 if there is none."""
        return self._committer.pending.last_add_confirmed

    @property
    def last_add_pushed(self) -> int:
        """The last entry that was given an id, -1 if there is none."""
        return self._committer.pending.last_add_pushed

    @property
    def metadata(self) -> LedgerMetadata:
        """The ledger's metadata as this writer knows it."""
        return self._committer.metadata

    def append(self, value: bytes) -> int:
        """Add one entry and return its id once it is durable on an ack quorum.

        Raises:
            LedgerFencedError: another client recovers the ledger; the outcome is unknown.
            NotEnoughBookiesError: too few bookies; the outcome is unknown until recovery.
            LedgerClosedError: the handle is closed.
        """
        return self.append_async(value).result()

    def append_async(self, value: bytes) -> "Future[int]":
        """Add one entry; the future completes, in entry order, with its id."""
        self._require_bytes([value])
        return self._submit([value], 1, len(value))

    def append_many(self, entries: Sequence[bytes] | pa.Table) -> tuple[int, int]:
        """Add all of ``entries`` as one atomic group; returns its first and last id.

        Raises:
            InvalidRequestError: there are none, or they do not have the ledger's schema.
        """
        if not len(entries):
            raise InvalidRequestError("there is nothing to append")
        if isinstance(entries, pa.Table):
            rows = arrow_schema.relabel(pa.concat_batches(entries.to_batches()), self._schema)
            last = self._submit(rows, rows.num_rows, rows.nbytes).result()
        else:
            values = list(entries)
            self._require_bytes(values)
            last = self._submit(values, len(values), sum(map(len, values))).result()
        return last - len(entries) + 1, last

    def force(self) -> None:
        """Return once everything added so far is acknowledged; raise if it cannot be."""
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """Wait for what was added, then seal the ledger at its last acknowledged entry.

        Raises:
            LedgerFencedError: another client recovers the ledger.
            LedgerClosedError: it was closed at another entry.
            BookKeeperError: what ended the writer; the ledger is left to recovery.
        """
        self.release()
        if self._committer.error is not None:
            raise self._committer.error
        if self._is_sealed:
            return
        ledger = self._committer.metadata
        self._cluster.ledgers.update(str(self.ledger_id), self._sealed(ledger.term, ledger.token))
        self._is_sealed = True

    def release(self) -> None:
        """Wait for what was added, without sealing: whoever opens the ledger next recovers it."""
        if self._task.is_alive():
            self._committer.inbox.put(Stop())
        self._task.join()

    def __enter__(self) -> "WriteHandle":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.release()

    def _submit(
        self, rows: Sequence[bytes] | pa.RecordBatch, row_count: int, byte_count: int
    ) -> "Future[int]":
        future: Future[int] = Future()
        future.set_running_or_notify_cancel()  # what was submitted cannot be taken back
        self._committer.submit(Submitted(rows, row_count, byte_count, future))
        self._last = future
        return future

    def _require_bytes(self, values: Sequence[bytes]) -> None:
        if self._schema != VALUE_SCHEMA:
            raise InvalidRequestError(
                "this ledger holds rows, not bytes", hint="append a pyarrow.Table by append_many"
            )
        if not all(isinstance(value, bytes) for value in values):
            raise InvalidRequestError("an entry of this ledger is bytes, and nothing else")

    def _sealed(self, term: int, token: str) -> Callable[[LedgerMetadata | None], LedgerMetadata]:
        def transform(metadata: LedgerMetadata | None) -> LedgerMetadata:
            if metadata is None:
                raise LedgerFencedError(f"ledger {self.ledger_id} is gone")
            return metadata.closed(
                last_entry_id=self.last_add_confirmed,
                length_bytes=self._committer.length_bytes,
                term=term,
                token=token,
            )

        return transform
