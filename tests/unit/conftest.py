"""A small cluster on disk, written to without Spark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from bkspark.cluster.cluster import init_cluster
from bkspark.cluster.password import Password
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.commit import commit
from bkspark.log.batch.preparing import prepare
from bkspark.log.batch.target import BatchTarget, BlockSettings, WriteRequest
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import Transaction


@dataclass(frozen=True)
class SmallCluster:
    """Six bookies, ``bookie-1`` to ``bookie-6``, in folders of these names."""

    folder: Path
    uri: str

    def bookie(self, bookie_id: str) -> Path:
        return self.folder / bookie_id

    def prepare(
        self,
        name: str,
        schema: pa.Schema,
        *,
        password: Password | None = None,
        transaction: Transaction | None = None,
        is_overwrite: bool = False,
    ) -> BatchTarget:
        """Begin a write with E=5 Qw=3 Qa=2 and leave it open."""
        return prepare(
            WriteRequest(
                metadata_uri=self.uri,
                log_name=name,
                schema=schema,
                quorum=Quorum(5, 3, 2),
                digest_type="MAC" if password else None,
                password=password or Password(),
                blocks=BlockSettings(rows_per_block=8, target_bytes=2**20, compression="none"),
                transaction=transaction,
                is_overwrite=is_overwrite,
            )
        )

    def append(
        self,
        name: str,
        partitions: Sequence[pa.Table],
        *,
        password: Password | None = None,
        transaction: Transaction | None = None,
        is_overwrite: bool = False,
    ) -> int:
        """Write ``partitions`` as one batch; returns the ledger's id."""
        target = self.prepare(
            name,
            partitions[0].schema,
            password=password,
            transaction=transaction,
            is_overwrite=is_overwrite,
        )
        reports = [
            AttemptWriter(target, number).write(table.to_batches())
            for number, table in enumerate(partitions)
        ]
        return commit(target, reports).ledger_id


@pytest.fixture
def small_cluster(tmp_path: Path) -> SmallCluster:
    """A cluster without logs."""
    uri = (tmp_path / "metadata").as_uri()
    init_cluster(uri, [(tmp_path / f"bookie-{n}").as_uri() for n in range(1, 7)])
    return SmallCluster(tmp_path, uri)


@pytest.fixture
def numbers() -> Callable[[int, int], pa.Table]:
    """``numbers(begin, end)``: a table with a number and its name."""

    def table(begin: int, end: int) -> pa.Table:
        ids = range(begin, end)
        return pa.table({"n": pa.array(ids, pa.int64()), "name": [f"row {n}" for n in ids]})

    return table
