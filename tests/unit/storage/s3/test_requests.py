"""What calls cost in a cluster that is in a bucket, in requests."""

from collections.abc import Callable

import pytest

from bkspark import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.ledger.handles.settings import WriterSettings

from .stand_in import BUCKET, S3Store

SILENT = WriterSettings(explicit_lac_ms=0)
URI = f"s3://{BUCKET}/meta"


@pytest.fixture
def keeper(s3: S3Store) -> BookKeeper:
    init_cluster(URI, [f"s3://{BUCKET}/b{number}" for number in (1, 2, 3)])
    return BookKeeper(URI)


def test_requests_of_calls_that_use_metadata(s3: S3Store, keeper: BookKeeper) -> None:
    def count(call: Callable[[], object]) -> int:
        s3.requests.clear()
        call()
        return len(s3.requests)

    with keeper:
        assert count(lambda: keeper.create_log("a")) <= 4
        with keeper.create_ledger(ack_quorum_size=3, settings=SILENT) as ledger:
            ledger.append(b"x")
            assert count(ledger.close) <= 3
        assert count(lambda: keeper.open_ledger(ledger.ledger_id)) <= 10
        for number in range(20):
            keeper.create_log(f"log-{number}")
            keeper.delete_log(f"log-{number}")
        assert count(keeper.list_logs) <= 1 + 1 + 21
