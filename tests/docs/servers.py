"""What stands for the stores of the pages that say how to deploy: a server with their names."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import boto3

from tests.conformance.azurite import azurite
from tests.conformance.fake_gcs import fake_gcs
from tests.kit.s3 import s3_server
from tests.kit.zookeeper import zookeeper

ROOT = Path(__file__).parents[2]
BUCKETS = tuple(f"example-{name}" for name in ("meta", "a", "b", "c"))
Places = Mapping[str, str]
"""Words of a page, and what stands for them here."""


@contextmanager
def s3(_: Path) -> Iterator[Places]:
    with s3_server() as server:
        client = boto3.client("s3", endpoint_url=server.endpoint)
        for name in BUCKETS:
            client.create_bucket(Bucket=name)
        yield {}


@contextmanager
def google(folder: Path) -> Iterator[Places]:
    with fake_gcs(folder) as server:
        for name in BUCKETS:
            server.make_bucket(name)
        yield {}


@contextmanager
def azure(folder: Path) -> Iterator[Places]:
    with azurite(folder) as server:
        for name in BUCKETS:
            server.make_container(name)
        yield {}


@contextmanager
def servers_of_zookeeper(folder: Path) -> Iterator[Places]:
    own = folder / "zookeeper"
    own.mkdir()
    with zookeeper(own) as servers:
        yield {"localhost:2181": servers.hosts}


SERVERS: dict[str, Callable[[Path], AbstractContextManager[Places]]] = {
    "docs/deploying-on/s3.md": s3,
    "docs/deploying-on/google.md": google,
    "docs/deploying-on/azure.md": azure,
    "docs/deploying-on/zookeeper.md": servers_of_zookeeper,
}


def own_places(page: str, places: Places, folder: Path) -> Path:
    """The page, word for word but for ``places``."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for word, place in places.items():
        text = text.replace(word, place)
    own = folder / Path(page).name
    own.write_text(text, encoding="utf-8")
    return own
