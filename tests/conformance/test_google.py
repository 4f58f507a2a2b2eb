"""Google Cloud Storage holds bookies and metadata as S3 does."""

from collections.abc import Iterator

import pytest

from bkspark.testing.bookie_conformance import BookieTests

from .bucket_tests import ClusterOnServer, RecordsOnServer, marks
from .fake_gcs import GooglePlace, GoogleServer, fake_gcs, missing

pytestmark = marks(missing())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServer]:
    with fake_gcs(tmp_path_factory.mktemp("fake-gcs")) as server:
        yield server


class TestBookie(BookieTests):
    @pytest.fixture
    def place(self, server: GoogleServer) -> GooglePlace:
        return GooglePlace(server)


class TestMetadataStore(RecordsOnServer): ...


class TestCluster(ClusterOnServer): ...
