"""The store in memory keeps the contract."""

import secrets

import pytest

from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store
from bkspark.testing.metadata_conformance import MetadataStoreTests


class TestMemoryMetadataStore(MetadataStoreTests):
    PARALLEL = "threads"

    @pytest.fixture
    def store(self) -> MetadataStore:
        return format_store(f"memory://{secrets.token_hex(8)}")
