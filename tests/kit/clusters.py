"""Clusters for tests of processes: three bookies in folders, and metadata beside them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bkspark.cluster.cluster import init_cluster
from tests.kit.zookeeper import missing, zookeeper

KINDS = ("file", "zk")


@contextmanager
def cluster_in(folder: Path, kind: str) -> Iterator[str]:
    """Make ``bookie-1`` to ``bookie-3`` in ``disk1`` to ``disk3``; give the cluster's URI.

    Args:
        kind: of the metadata store, one of ``KINDS``; a server of ZooKeeper runs for the block.
    """
    bookies = [(folder / f"disk{number}").as_uri() for number in range(1, 4)]
    if kind == "file":
        uri = (folder / "metadata").as_uri()
        init_cluster(uri, bookies)
        yield uri
        return
    if missing():
        pytest.skip(missing())
    (folder / "zookeeper").mkdir()
    with zookeeper(folder / "zookeeper") as servers:
        uri = f"zk://{servers.hosts}/bk"
        init_cluster(uri, bookies)
        yield uri
