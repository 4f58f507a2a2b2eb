"""The store in a bucket keeps the contract."""

import pytest

from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store
from bkspark.testing.metadata_conformance import MetadataStoreTests
from tests.kit.s3 import S3Server

pytestmark = pytest.mark.thorough


class TestS3MetadataStore(MetadataStoreTests):
    # A put is two requests, one after the other.
    MANY = 33
    WRITES = 35
    RIVALS = 3
    ADDED_EACH = 8

    @pytest.fixture
    def store(self, server: S3Server) -> MetadataStore:
        return format_store(server.url())
