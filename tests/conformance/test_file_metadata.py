"""The store in a folder keeps the contract."""

from pathlib import Path

import pytest

from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store
from bkspark.testing.metadata_conformance import MetadataStoreTests


class TestFileMetadataStore(MetadataStoreTests):
    @pytest.fixture
    def store(self, tmp_path: Path) -> MetadataStore:
        return format_store((tmp_path / "meta data").as_uri())
