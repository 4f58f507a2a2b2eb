"""``BookKeeper``: ledgers from Python, without Spark."""

from collections.abc import Mapping
from secrets import token_hex

import pyarrow as pa

from bkspark.client.cluster import BookieStatus, Cluster, now_ms
from bkspark.client.handles.entries import VALUE_SCHEMA
from bkspark.client.handles.read_handle import ReadHandle
from bkspark.client.handles.write_handle import WriteHandle
from bkspark.client.password import Password, make_digester
from bkspark.client.placing import place
from bkspark.client.recovery.recover import RecoveryReport, recover
from bkspark.client.upkeep.maintenance import delete_ledger
from bkspark.format import arrow_schema, digest
from bkspark.protocol.ledger import (
    FIRST_TERM,
    Fragment,
    LedgerMetadata,
    LedgerState,
    Member,
)
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
    ) -> WriteHandle:
        """Make a new ledger and become its one writer.

        Args:
            schema: of its rows; None for a ledger of bytes.

        Raises:
            InvalidRequestError: the quorum sizes or the digest type are not possible.
            NotEnoughBookiesError: too few usable bookies.
        """
        quorum = Quorum(ensemble_size, write_quorum_size, ack_quorum_size)
        spec = digest.new_spec(digest_type, password)
        ledger_id = self._cluster.new_ledger_id()
        ensemble, _ = place(self._cluster, ledger_id, quorum)
        members = tuple(Member(address.bookie_id, address.incarnation) for address in ensemble)
        seen = self._cluster.ledgers.create(
            str(ledger_id),
            LedgerMetadata(
                ledger_id=ledger_id,
                quorum=quorum,
                state=LedgerState.OPEN,
                term=FIRST_TERM,
                token=token_hex(16),
                fragments=(Fragment(0, FIRST_TERM, members),),
                schema=arrow_schema.encode(schema or VALUE_SCHEMA),
                digest=spec,
                custom_metadata=dict(custom_metadata or {}),
                created_ms=now_ms(),
            ),
        )
        digester = make_digester(spec, Password(literal=password or ""))
        return WriteHandle(self._cluster, seen, digester)

    def open_ledger(
        self, ledger_id: int, *, recovery: bool = True, password: str | None = None
    ) -> ReadHandle:
        """Open a ledger for reading.

        Args:
            recovery: True fences its writer and closes it first; False never disturbs the writer
                and reads what is confirmed.

        Raises:
            NoSuchLedgerError: there is no such ledger.
            UnauthorizedError: the password is missing or wrong; nothing was fenced.
            NotEnoughBookiesError: it cannot be recovered yet; says why.
        """
        secret = Password(literal=password or "")
        digester = make_digester(self._cluster.ledger(ledger_id).value.digest, secret)
        if recovery:
            recover(self._cluster, ledger_id, secret)
        return ReadHandle(self._cluster, ledger_id, digester)

    def recover_ledger(self, ledger_id: int, *, password: str | None = None) -> RecoveryReport:
        """Fence the ledger's writer and close it; see ``bkspark.client.recovery.recover``."""
        return recover(self._cluster, ledger_id, Password(literal=password or ""))

    def delete_ledger(self, ledger_id: int) -> None:
        """Mark a ledger that is in no log as deleted; its id is never used again."""
        delete_ledger(self._cluster, ledger_id)

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
