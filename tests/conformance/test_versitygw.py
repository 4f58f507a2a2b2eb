"""A server that keeps objects as files holds bookies and metadata as S3 does."""

from collections.abc import Iterator

import pytest

from bkspark.testing.bookie_conformance import BookieTests
from tests.kit.s3 import S3Server

from .bucket_tests import ClusterOnServer, RecordsOnServer, marks
from .s3_place import S3Place
from .versitygw import missing, versitygw

pytestmark = marks(missing())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        yield server


class TestBookie(BookieTests):
    @pytest.fixture
    def place(self, server: S3Server) -> S3Place:
        return S3Place(server)


class TestMetadataStore(RecordsOnServer): ...


class TestCluster(ClusterOnServer): ...
