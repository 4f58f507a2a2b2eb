"""What the stream writer's edges do, without a query around them."""

import secrets

from pyspark.sql.types import LongType, StructField, StructType

from bkspark.client.cluster import Cluster, init_cluster
from bkspark.spark.options import parse
from bkspark.spark.stream_writer import BookKeeperStreamWriter


def test_a_micro_batch_without_partitions_commits_nothing() -> None:
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [f"memory://{secrets.token_hex(8)}" for _ in range(3)])
    options = parse({"metadataServiceUri": uri, "path": "events"})
    schema = StructType([StructField("id", LongType())])
    BookKeeperStreamWriter(options, schema, overwrite=False).commit([], 0)
    with Cluster(uri) as cluster:
        assert cluster.logs.get("events") is None
        assert cluster.ledger_ids() == []
