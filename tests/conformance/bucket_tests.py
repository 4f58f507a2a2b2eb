"""What every server of objects is tested for, beside a fixture ``server`` of its own.

A module of tests names its server, and inherits these classes.
"""

from pathlib import Path
from typing import Protocol

import pytest

from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store
from bkspark.testing.metadata_conformance import MetadataStoreTests

from .bucket_rig import BucketRig, maintain, write_and_read


class ObjectServer(Protocol):
    """A running server with an empty bucket or container."""

    def url(self) -> str:
        """A new place in it."""
        ...


def marks(missing: str) -> list[pytest.MarkDecorator]:
    """Marks of a module of tests.

    Args:
        missing: why the server cannot be had here; empty if it can.
    """
    return [
        pytest.mark.thorough,
        pytest.mark.download,
        pytest.mark.skipif(bool(missing), reason=missing),
        pytest.mark.timeout(1800),  # it may have to be built or installed first
    ]


class RecordsOnServer(MetadataStoreTests):
    # A put is two requests, one after the other.
    MANY = 33
    WRITES = 35
    RIVALS = 3
    ADDED_EACH = 8

    @pytest.fixture
    def store(self, server: ObjectServer) -> MetadataStore:
        return format_store(server.url())


class ClusterOnServer:
    def test_a_cluster_writes_reads_recovers_repairs_and_collects(
        self, server: ObjectServer, tmp_path: Path
    ) -> None:
        rig = BucketRig(tmp_path, place=server.url())
        write_and_read(rig)
        maintain(rig)
