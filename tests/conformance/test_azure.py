"""Azure Blob Storage holds bookies and metadata as S3 does."""

from collections.abc import Iterator

import pytest

from bkspark.testing.bookie_conformance import BookieTests

from .azurite import AzurePlace, AzureServer, azurite, missing
from .bucket_tests import ClusterOnServer, RecordsOnServer, marks

pytestmark = marks(missing())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    with azurite(tmp_path_factory.mktemp("azurite")) as server:
        yield server


class TestBookie(BookieTests):
    @pytest.fixture
    def place(self, server: AzureServer) -> AzurePlace:
        return AzurePlace(server)


class TestMetadataStore(RecordsOnServer): ...


class TestCluster(ClusterOnServer): ...
