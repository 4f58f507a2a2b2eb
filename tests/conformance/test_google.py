"""Google Cloud Storage holds bookies and metadata as S3 does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store
from bkspark.testing.bookie_conformance import BookieTests
from bkspark.testing.metadata_conformance import MetadataStoreTests

from .bucket_rig import BucketRig, maintain, write_and_read
from .fake_gcs import GooglePlace, GoogleServer, fake_gcs, missing

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.download,
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.timeout(1800),  # it may have to be built first
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServer]:
    with fake_gcs(tmp_path_factory.mktemp("fake-gcs")) as server:
        yield server


class TestBookie(BookieTests):
    @pytest.fixture
    def place(self, server: GoogleServer) -> GooglePlace:
        return GooglePlace(server)


class TestMetadataStore(MetadataStoreTests):
    # A put is two requests, one after the other.
    MANY = 33
    WRITES = 35
    RIVALS = 3
    ADDED_EACH = 8

    @pytest.fixture
    def store(self, server: GoogleServer) -> MetadataStore:
        return format_store(server.url())


def test_a_cluster_writes_reads_recovers_repairs_and_collects(
    server: GoogleServer, tmp_path: Path
) -> None:
    rig = BucketRig(tmp_path, place=server.url())
    write_and_read(rig)
    maintain(rig)
