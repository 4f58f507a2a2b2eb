"""A store that asks for fewer requests, or is slow, is waited for and not given up."""

from pathlib import Path

import pyarrow as pa
import pytest

import bkspark
from bkspark import environment
from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.cluster import bookie_client
from bkspark.cluster.cluster import init_cluster
from bkspark.errors import BookieUnavailableError
from bkspark.log.batch.commit import commit
from bkspark.log.batch.target import BlockSettings
from bkspark.storage import connection
from bkspark.storage.connection import Pressures
from bkspark.testing.bookie_place import ENTRIES, MARKER
from tests.integration.rig import SCHEMA, flat
from tests.kit.s3 import S3Proxy, S3Server

from .bucket_rig import BucketRig

pytestmark = pytest.mark.thorough

BUSY = [(503, "SlowDown"), (429, "TooManyRequests"), (503, ""), (400, "RequestLimitExceeded")]
BLOCKS = BlockSettings(rows_per_block=1000, target_bytes=2**20, compression="none")


@pytest.fixture(autouse=True)
def no_pressure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of what other tests have met, and little of what is met here."""
    monkeypatch.setattr(connection, "_LONGEST_INTERVAL", 0.01)
    environment.the_one(Pressures)._of.clear()


@pytest.mark.parametrize(("status", "code"), BUSY)
def test_a_busy_store_is_asked_again_until_it_has_time(
    root: BookieRoot, proxy: S3Proxy, status: int, code: str
) -> None:
    proxy.fail("PUT", times=20, status=status, code=code)
    assert root.put_new(MARKER, b"mine")
    proxy.fail("GET", times=20, status=status, code=code)
    assert root.read(MARKER) == b"mine"


def test_each_step_of_an_upload_is_repeated(root: BookieRoot, proxy: S3Proxy) -> None:
    proxy.fail("POST", "uploads", times=5, status=503, code="SlowDown")
    proxy.fail("PUT", "partNumber", times=5, status=503, code="SlowDown")
    proxy.fail("POST", "uploadId", times=5, status=503, code="SlowDown")
    file = root.create(ENTRIES)
    file.write(bytes(20 * 2**20))
    file.finish()
    assert root.size(ENTRIES) == 20 * 2**20


def test_the_end_of_an_upload_whose_answer_is_lost_happens_once(
    root: BookieRoot, proxy: S3Proxy
) -> None:
    proxy.fail("POST", "uploadId", times=2, status=503, reaches_store=True)
    file = root.create(ENTRIES)
    file.write(bytes(9 * 2**20))
    file.finish()
    assert root.size(ENTRIES) == 9 * 2**20


def test_what_is_sent_once_is_sent_once_to_a_busy_store_too(
    root: BookieRoot, proxy: S3Proxy
) -> None:
    proxy.fail("PUT", times=1, status=503, code="SlowDown")
    with pytest.raises(BookieUnavailableError, match="503 SlowDown"):
        root.put_new(MARKER, b"mine", once=True)
    assert proxy.statuses("PUT") == [0]


def test_it_is_given_up_by_time_and_says_what_to_do(root: BookieRoot, proxy: S3Proxy) -> None:
    proxy.fail("GET", status=503, code="SlowDown")
    with pytest.raises(BookieUnavailableError, match=r"503 SlowDown.*BKSPARK_OBJECT_STORE"):
        root.read(MARKER)


def test_the_store_says_how_long_to_wait(
    root: BookieRoot, proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(connection, "rest", slept.append)
    proxy.fail("GET", times=1, status=503, code="SlowDown", retry_after=7)
    root.read(MARKER)
    assert slept[0] == 7.0  # then each request waits for its turn


def test_a_dozen_refusals_give_no_bookie_up(server: S3Server, proxy: S3Proxy) -> None:
    uri = server.url()
    init_cluster(uri, [server.url() for _ in range(3)])
    with bkspark.BookKeeper(uri) as bk, bk.create_log("log").writer() as writer:
        for number in range(4):
            proxy.fail("PUT", ".0000", times=12, status=503, code="SlowDown")
            writer.append(b"%d" % number)
        assert writer.faults == {}


def test_a_slow_store_holds_its_writer_back(root: BookieRoot, proxy: S3Proxy) -> None:
    """It takes 16 s to send or to fetch what has 10 s without a sign of progress.

    What the system has taken in to send, some MiB, shows no progress: it has its time too.
    """
    size = 32 * 2**20
    proxy.bytes_per_second = 2 * 2**20
    client = bookie_client.BookieClient(_address())
    assert client.ask(lambda: root.put_new(MARKER, bytes(size)), 10.0)
    assert client.ask(lambda: len(root.read(MARKER) or b""), 10.0) == size


def test_a_slow_store_holds_a_batch_back_and_keeps_its_bookies(
    server: S3Server, proxy: S3Proxy, tmp_path: Path
) -> None:
    """The rows of each bookie take 16 s, and have 12 s without a sign of progress."""
    rig = BucketRig(tmp_path, place=server.url(), blocks=BLOCKS)
    proxy.bytes_per_second = 1.5e6
    rows = _rows(24)
    assert rig.write([[rows]], (3, 3, 2)).failures == {}
    proxy.heal()
    assert rig.rows() == flat([[rows]])


def test_a_store_that_hangs_is_given_up(server: S3Server, proxy: S3Proxy, tmp_path: Path) -> None:
    rig = BucketRig(tmp_path, place=server.url(), blocks=BLOCKS)
    target = rig.target((3, 3, 2))
    rows = _rows(1)
    proxy.fail("PUT", "/b1/", status=None)
    assert set(commit(target, rig.tasks(target, [[rows]])).failures) == {"bookie-1"}
    proxy.heal()
    assert rig.rows() == flat([[rows]])


def _rows(megabytes: int) -> pa.RecordBatch:
    texts = pa.array(["x" * 1000] * megabytes * 1000)
    return pa.record_batch([pa.array(range(len(texts)), pa.int64()), texts], schema=SCHEMA)


def _address() -> BookieAddress:
    return BookieAddress("b1", "a" * 32, "c" * 32, "s3://bucket/place")
