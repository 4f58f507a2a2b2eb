"""``BookKeeper``: ledgers from Python, without Spark."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from bkspark.client.cluster import BookieStatus, Cluster
from bkspark.client.creating import create_ledger
from bkspark.client.handles.adv_handle import (
    GAP_TIMEOUT_SECONDS,
    WAITING_BYTES_MAX,
    AdvWriteHandle,
)
from bkspark.client.handles.entries import VALUE_SCHEMA
from bkspark.client.handles.hedging import USUAL_READS, ReaderSettings
from bkspark.client.handles.read_handle import ReadHandle
from bkspark.client.handles.settings import USUAL, WriterSettings
from bkspark.client.handles.write_handle import WriteHandle
from bkspark.client.logs.founding import found_log
from bkspark.client.logs.log_handle import LogHandle
from bkspark.client.password import Password, make_digester
from bkspark.client.recovery.recover import RecoveryReport, recover
from bkspark.client.upkeep.lost_bookies import declare_lost
from bkspark.client.upkeep.maintenance import delete_ledger
from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema, digest, layout
from bkspark.protocol.ledger import LedgerState
from bkspark.protocol.quorum import Quorum


class BookKeeper:
    """A connection to one cluster.

    Args:
        metadata_uri: for example ``file:///data/meta``.

    Raises:
        InvalidRequestError: the URI is malformed, or there is no cluster at it.
    """

    def __init__(self, metadata_uri: str) -> None:
        self._cluster = Cluster(metadata_uri)

    def __enter__(self) -> "BookKeeper":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the connection; handles made from it must not be used any more."""
        self._cluster.store.close()

    def create_ledger(
        self,
        *,
        ensemble_size: int = 3,
        write_quorum_size: int = 3,
        ack_quorum_size: int = 2,
        digest_type: str = digest.CRC32C,
        password: str | None = None,
        custom_metadata: Mapping[str, str] | None = None,
        schema: pa.Schema | None = None,
        settings: WriterSettings = USUAL,
    ) -> WriteHandle:
        """Make a new ledger and become its one writer.

        Args:
            schema: of its rows; None for a ledger of bytes.
            settings: how the writer behaves; not stored.

        Raises:
            InvalidRequestError: the quorum sizes or the digest type are not possible.
            NotEnoughBookiesError: too few usable bookies.
        """
        quorum = Quorum(ensemble_size, write_quorum_size, ack_quorum_size)
        spec = digest.new_spec(digest_type, password)
        created = create_ledger(
            self._cluster,
            quorum=quorum,
            digest=spec,
            schema=arrow_schema.encode(schema or VALUE_SCHEMA),
            custom_metadata=custom_metadata or {},
        )
        digester = make_digester(spec, Password(literal=password or ""))
        return WriteHandle(self._cluster, created.seen, digester, settings=settings)

    def create_ledger_adv(
        self,
        *,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
        gap_timeout_seconds: float = GAP_TIMEOUT_SECONDS,
        settings: WriterSettings = USUAL,
        **choices: Any,
    ) -> AdvWriteHandle:
        """Make a new ledger of bytes whose writer chooses the entry ids (BookKeeper's "adv").

        Args:
            waiting_bytes_max, gap_timeout_seconds: see ``AdvWriteHandle``.
            choices: as for ``create_ledger``, but ``schema``.

        Raises:
            As ``create_ledger``.
        """
        if "schema" in choices:
            raise InvalidRequestError(
                "entries of chosen ids are bytes", hint="use create_ledger for rows of a schema"
            )
        return AdvWriteHandle(
            self.create_ledger(settings=settings, **choices),
            waiting_bytes_max=waiting_bytes_max,
            gap_timeout_seconds=gap_timeout_seconds,
            wait_seconds_max=settings.wait_seconds_max,
        )

    def open_ledger(
        self,
        ledger_id: int,
        *,
        recovery: bool = True,
        password: str | None = None,
        settings: ReaderSettings = USUAL_READS,
    ) -> ReadHandle:
        """Open a ledger for reading.

        Args:
            recovery: True fences its writer and closes it first; False never disturbs the writer
                and reads what is confirmed.
            settings: how the reader treats its bookies; for example
                ``ReaderSettings(speculative_read_ms=20)``.

        Raises:
            NoSuchLedgerError: there is no such ledger.
            UnauthorizedError: the password is missing or wrong; nothing was fenced.
            NotEnoughBookiesError: it cannot be recovered yet; says why.
        """
        secret = Password(literal=password or "")
        digester = make_digester(self._cluster.ledger(ledger_id).value.digest, secret)
        if recovery:
            recover(self._cluster, ledger_id, secret)
        return ReadHandle(self._cluster, ledger_id, digester, settings=settings)

    def recover_ledger(
        self, ledger_id: int, *, password: str | None = None, accepts_loss: bool = False
    ) -> RecoveryReport:
        """Fence the ledger's writer and close it; see ``bkspark.client.recovery.recover``.

        Args:
            accepts_loss: the word that entries may be lost if only what was declared lost, or is
                damaged, could tell whether they were acknowledged; the report says which were.
        """
        secret = Password(literal=password or "")
        return recover(self._cluster, ledger_id, secret, accepts_loss=lambda _loss: accepts_loss)

    def declare_bookie_lost(self, bookie_id: str, *, incarnation: str = "") -> None:
        """Say that a bookie will never come back; see ``bkspark.client.upkeep.lost_bookies``."""
        declare_lost(self._cluster, bookie_id, incarnation)

    def delete_ledger(self, ledger_id: int) -> None:
        """Mark a ledger that is in no log as deleted; its id is never used again."""
        delete_ledger(self._cluster, ledger_id)

    def create_log(
        self,
        name: str,
        *,
        ensemble_size: int = 3,
        write_quorum_size: int = 3,
        ack_quorum_size: int = 2,
        digest_type: str = digest.CRC32C,
        password: str | None = None,
        schema: pa.Schema | None = None,
    ) -> LogHandle:
        """Found an empty log; all its ledgers will have these settings.

        Args:
            schema: of its rows; None for a log of bytes.

        Raises:
            LedgerExistsError: there is a log of this name.
            InvalidRequestError: the name, the quorum sizes or the digest type are not possible.
        """
        quorum = Quorum(ensemble_size, write_quorum_size, ack_quorum_size)
        secret = Password(literal=password or "")
        spec = digest.new_spec(digest_type, password)
        found_log(self._cluster, name, quorum, spec, schema or VALUE_SCHEMA)
        return LogHandle(self._cluster, name, secret)

    def open_log(self, name: str, *, password: str | None = None) -> LogHandle:
        """A log that there is; nobody is fenced by opening it.

        Raises:
            NoSuchLedgerError: there is no such log.
            UnauthorizedError: the password is missing or wrong.
        """
        secret = Password(literal=password or "")
        make_digester(self._cluster.log(layout.log_name(name)).value.digest, secret)
        return LogHandle(self._cluster, name, secret)

    def list_ledgers(self) -> list[int]:
        """Ids of all ledgers that are not deleted, ascending."""
        found = ((number, self._cluster.ledgers.get(str(number))) for number in self._ids())
        return [
            number
            for number, seen in found
            if seen is not None and seen.value.state is not LedgerState.DELETING
        ]

    def list_bookies(self) -> list[BookieStatus]:
        """All registered bookies, and whether each can be used now."""
        return self._cluster.probe()

    def _ids(self) -> list[int]:
        return self._cluster.ledger_ids()
