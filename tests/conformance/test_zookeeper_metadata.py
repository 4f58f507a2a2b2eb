"""The store in ZooKeeper keeps the contract, at a real server."""

import secrets
from collections.abc import Iterator

import pytest

from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.metadata.uri import format_store
from bkspark.metadata.zookeeper import VALUE_BYTES_MAX
from bkspark.testing.metadata_conformance import KEY, MetadataStoreTests
from tests.kit.zookeeper import missing

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(bool(missing()), reason=missing())]


class TestZooKeeperMetadataStore(MetadataStoreTests):
    @pytest.fixture
    def store(self, hosts: str) -> Iterator[MetadataStore]:
        store = format_store(f"zk://{hosts}/tests/{secrets.token_hex(8)}")
        yield store
        store.close()

    # The largest is less here: a server of ZooKeeper takes no packet of 1 MiB.
    @pytest.mark.parametrize("size", [0, 1, 4096, VALUE_BYTES_MAX])
    def test_value_comes_back_as_it_was(self, store: MetadataStore, size: int) -> None:
        super().test_value_comes_back_as_it_was(store, size)

    def test_largest_value_fits_with_the_longest_key(self, store: MetadataStore) -> None:
        key = "/".join(["k" * 199] * 5)
        value = secrets.token_bytes(VALUE_BYTES_MAX)
        for version in (1, 2):
            assert store.put(key, value, version - 1 or None) == version
        assert store.get(key) == VersionedBytes(value, 2)
        assert store.get(KEY) is None
