"""What the stream writer's edges do, without a query around them."""

import secrets
from pickle import PickleError

import pyarrow as pa
import pytest
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.types import LongType, StructField, StructType

from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import InvalidRequestError
from bkspark.log.creating import create_log
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LogSettings
from bkspark.spark.options import parse
from bkspark.spark.writer import BookKeeperStreamWriter


def test_a_micro_batch_without_partitions_commits_nothing() -> None:
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [f"memory://{secrets.token_hex(8)}" for _ in range(3)])
    options = parse({"metadataServiceUri": uri, "path": "events"})
    schema = StructType([StructField("id", LongType())])
    BookKeeperStreamWriter(options, schema, overwrite=False).commit([], 0)
    with Cluster(uri) as cluster:
        assert cluster.logs.get("events") is None
        assert cluster.ledger_ids() == []


def test_what_is_refused_in_planning_comes_through_pickling_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """pyspark prints other errors, and ends in one of its own that words them anew."""
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [f"memory://{secrets.token_hex(8)}" for _ in range(3)])
    options = parse({"metadataServiceUri": uri, "path": "events"})
    schema = StructType([StructField("value", LongType())])
    with Cluster(uri) as cluster:
        other = pa.schema([("value", pa.string())])  # of a log without one any schema would do
        create_log(cluster, "events", LogSettings(Quorum(3, 3, 2)), other)
    writer = BookKeeperStreamWriter(options, schema, overwrite=False)
    with pytest.raises(InvalidRequestError, match="value") as caught:
        CloudPickleSerializer().dumps(writer)
    assert isinstance(caught.value, PickleError)
    assert type(caught.value).__name__ == "InvalidRequestError"
    assert type(caught.value).__module__ == "bkspark.errors"
    assert caught.value.hint
    assert capsys.readouterr().err == ""
