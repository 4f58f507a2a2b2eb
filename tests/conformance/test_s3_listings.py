"""H21 on S3: listings show no journal and no record of one; objects are found by name."""

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.recovery.recover import recover
from tests.kit.s3 import S3Proxy, S3Server

pytestmark = pytest.mark.thorough

IN_JOURNALS = "journal%2F"
"""What requests for such listings name."""


def test_a_recovery_and_readers_lose_nothing(server: S3Server, proxy: S3Proxy) -> None:
    uri = server.url()
    init_cluster(uri, [server.url() for _ in range(3)])
    with BookKeeper(uri) as keeper:
        settings = WriterSettings(explicit_lac_ms=0)
        ledger = keeper.create_ledger(settings=settings)
        values = [f"entry {number}".encode() for number in range(3)]
        for value in values:
            ledger.append(value)
        ledger.release()
        proxy.fail("GET", IN_JOURNALS, status=200, code="")
        reader = keeper.open_ledger(ledger.ledger_id, recovery=False)
        assert reader.last_add_confirmed == 1
        assert [entry.value for entry in reader.read(0, 1)] == values[:2]
        with Cluster(uri) as cluster:
            assert recover(cluster, ledger.ledger_id, Password()).last_entry_id == 2
        closed = keeper.open_ledger(ledger.ledger_id)
        assert [entry.value for entry in closed.read()] == values
    assert any(IN_JOURNALS in path for _, path, _ in proxy.seen)
