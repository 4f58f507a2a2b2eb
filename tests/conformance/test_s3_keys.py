"""No key is a folder of another key: servers that keep objects as files refuse that."""

from pathlib import Path

import pytest

from bkspark.bookie.object_store import journal_of, records_folder
from bkspark.metadata.uri import format_store
from bkspark.storage import connection
from bkspark.storage.address import parse
from bkspark.storage.clients import Clients
from bkspark.storage.connection import StoreDoubt
from bkspark.storage.objects import Objects
from bkspark.testing.bookie_place import JOURNAL
from tests.kit.s3 import Keys, S3Server
from tests.unit.storage.s3.stand_in import BUCKET, S3Store

from .bucket_rig import BucketRig, maintain, write_and_read

KINDS = ("/terms/", "/journal/.", "/entries/", "/logs/", "/cursors/")


def test_such_keys_are_told() -> None:
    keys = Keys()
    assert [keys.add(key) for key in ("a/b", "a/b", "a/bc", "d", "ab")] == [True] * 5
    assert [keys.add(key) for key in ("a", "a/b/c", "d/e/f")] == [False] * 3


def test_the_records_of_a_journal_lie_beside_it() -> None:
    folder, last = records_folder(JOURNAL), JOURNAL.rpartition("/")[2]
    keys = Keys()
    assert keys.add(JOURNAL)
    assert keys.add(f"{folder}/{0:016x}")
    assert journal_of(f"{folder.rpartition('/')[2]}/") == last
    assert journal_of(last) is None
    assert journal_of("a-folder/") is None


@pytest.mark.thorough
def test_no_key_of_a_whole_scenario_is_a_folder_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what is deleted in the end, too. The store refuses such a key."""
    store = S3Store()
    monkeypatch.setattr(connection, "_filesystems", Clients(connection._connect, {"": store}))
    rig = BucketRig(tmp_path, place=f"s3://{BUCKET}/place")
    write_and_read(rig)
    maintain(rig)
    change_often(f"s3://{BUCKET}/records")
    assert [kind for kind in KINDS if not any(kind in key for key in store.made.all)] == []


def change_often(url: str) -> None:
    """Change a record often, and then delete it."""
    store = format_store(url)
    for version in range(12):
        store.put("logs/often", b"x", version or None)
    store.delete("logs/often")


@pytest.mark.thorough
def test_the_server_for_tests_refuses_such_keys(server: S3Server) -> None:
    objects = Objects(parse(server.url()))
    assert objects.create("a/b", b"x") is not None
    for name in ("a", "a/b/c"):
        with pytest.raises(StoreDoubt, match="ParentIsObject"):
            objects.create(name, b"x")
    objects.delete("a/b")
    with pytest.raises(StoreDoubt, match="ParentIsObject"):
        objects.create("a/b/c", b"x")
    assert objects.create("a/c", b"x") is not None
