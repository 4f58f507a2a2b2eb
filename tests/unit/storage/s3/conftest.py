"""A stand-in for an S3 store, and a clock that only moves while somebody sleeps."""

import pytest

from bkspark import environment
from bkspark.storage import connection
from bkspark.storage.address import parse
from bkspark.storage.clients import Clients
from bkspark.storage.connection import Pressures
from bkspark.storage.objects import Objects

from .stand_in import BUCKET, S3Store


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> S3Store:
    store = S3Store()
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(connection, "_filesystems", Clients(connection._connect, {"": store}))
    monkeypatch.setattr(environment, "monotonic", lambda: now[0])
    monkeypatch.setattr(environment, "sleep", sleep)
    monkeypatch.setattr(environment, "draw", lambda: 1.0)
    monkeypatch.setattr(environment.the_one(Pressures), "_of", {})
    return store


@pytest.fixture
def objects(s3: S3Store) -> Objects:
    return Objects(parse(f"s3://{BUCKET}/place"))
