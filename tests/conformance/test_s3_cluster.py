"""A cluster with nothing but a bucket: rows go in and come back, without Spark."""

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import boto3
import pyarrow as pa
import pytest

from bkspark.admin import bookies, views
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError
from bkspark.format.layout import COOKIE
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.commit import commit
from bkspark.log.batch.preparing import prepare
from bkspark.log.batch.target import BatchTarget, BlockSettings, WriteRequest
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.batch import AttemptReport
from tests.kit.s3 import S3Server

LOG = "numbers"
SCHEMA = pa.schema([("number", pa.int64()), ("name", pa.string())])


@pytest.fixture
def uri(server: S3Server) -> str:
    """A cluster of three bookies, metadata and all in one bucket."""
    uri = server.url()
    init_cluster(uri, [f"{server.url()}/b{number}" for number in (1, 2, 3)])
    return uri


def rows(begin: int, end: int) -> pa.Table:
    numbers = range(begin, end)
    return pa.table({"number": numbers, "name": map(str, numbers)}, schema=SCHEMA)


def begin_write(uri: str) -> BatchTarget:
    return prepare(
        WriteRequest(
            metadata_uri=uri,
            log_name=LOG,
            schema=SCHEMA,
            quorum=Quorum(3, 3, 2),
            digest_type=None,
            password=Password(),
            blocks=BlockSettings(rows_per_block=8, target_bytes=2**20, compression="none"),
        )
    )


def write_partition(target: BatchTarget, partition: int) -> AttemptReport:
    return AttemptWriter(target, partition).write(
        rows(partition * 50, partition * 50 + 50).to_batches()
    )


def append(uri: str) -> None:
    """One batch of two partitions, each written in a process of its own."""
    target = begin_write(uri)
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        reports = [pool.submit(write_partition, target, number) for number in range(2)]
        commit(target, [report.result(timeout=60) for report in reports])


def read(uri: str) -> tuple[Counter[int], SliceReader]:
    """How often each number is there, and the reader that found it so."""
    reader = SliceReader(SCHEMA)
    with Cluster(uri) as cluster:
        log = cluster.log(LOG).value
        tasks = plan_log(cluster, log, OffsetRange(0, log.end_offset), Password(), 2**20)
    found = [
        number
        for task in tasks
        for batch in reader.read(task)
        for number in batch["number"].to_pylist()
    ]
    return Counter(found), reader


def lose(server: S3Server, url: str) -> None:
    """Every object of the bookie at ``url``."""
    client = boto3.client("s3", endpoint_url=server.endpoint)
    prefix = url.removeprefix(f"s3://{server.bucket}/")
    found = client.list_objects_v2(Bucket=server.bucket, Prefix=f"{prefix}/")
    for entry in found["Contents"]:
        client.delete_object(Bucket=server.bucket, Key=entry["Key"])


def test_nobody_says_how_much_room_a_bucket_has(uri: str) -> None:
    assert {row["free_bytes"] for row in views.bookies(Cluster(uri), None)} == {None}


@pytest.mark.thorough
def test_rows_survive_the_loss_of_a_bookie(server: S3Server, uri: str) -> None:
    append(uri)
    append(uri)
    found, reader = read(uri)
    assert found == Counter(list(range(100)) * 2)
    assert reader.faults == []
    with Cluster(uri) as cluster:
        records = cluster.bookies()
    [domain] = {record.domain for record in records.values()}
    assert domain.startswith(f"bucket-{server.bucket}@")

    lose(server, records["bookie-1"].url)

    found, reader = read(uri)
    assert found == Counter(list(range(100)) * 2)
    with Cluster(uri) as cluster:
        assert {status.record.bookie_id for status in cluster.probe() if status.problem} == {
            "bookie-1"
        }


def test_an_empty_prefix_is_no_cluster(server: S3Server) -> None:
    with pytest.raises(InvalidRequestError, match="bkspark init"), Cluster(server.url()):
        pass


def test_a_cluster_is_made_once(server: S3Server, uri: str) -> None:
    with pytest.raises(InvalidRequestError):
        init_cluster(uri, [server.url()])


@pytest.mark.thorough
def test_a_bookie_of_a_bucket_is_moved_and_begun_anew(
    uri: str, server: S3Server, back_door: Any
) -> None:
    """Objects cannot be moved, so there are two copies until the old place has no cookie."""
    append(uri)
    with Cluster(uri) as cluster:
        old = cluster.bookie("bookie-1").value
    new = f"{server.url()}/moved"
    for name in back_door.keys(old.url):
        back_door.put(new, name, back_door.get(old.url, name))
    with pytest.raises(InvalidRequestError, match="in other storage"):
        bookies.move(uri, "bookie-1", new)
    back_door.remove(old.url, COOKIE)
    assert bookies.move(uri, "bookie-1", new).done
    assert read(uri)[0] == Counter(range(100))
    with pytest.raises(InvalidRequestError, match="has a cookie"):
        bookies.reinit(uri, "bookie-1")
    back_door.remove(new, COOKIE)
    with pytest.raises(InvalidRequestError, match="not empty"):
        bookies.reinit(uri, "bookie-1")
    for name in back_door.keys(new):
        back_door.remove(new, name)
    report = bookies.reinit(uri, "bookie-1")
    assert report.plan["incarnation"] != old.incarnation
    assert "1 ledger names" in report.plan["steps"][1]
    assert read(uri)[0] == Counter(range(100))
