"""What the look at missing copies says of ledgers whose records lie in several journals."""

import secrets
from collections.abc import Iterator

import pytest

from bkspark import BookKeeper
from bkspark.admin import replication_check
from bkspark.admin.replication_check import MissingReplica, missing_replicas
from bkspark.bookie import memory
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.ledger.handles.write_handle import WriteHandle

ENTRIES = 12


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [f"memory://{secrets.token_hex(8)}" for _ in range(6)])
    with Cluster(uri) as opened:
        yield opened


def written(bookkeeper: BookKeeper) -> WriteHandle:
    """Striped over five bookies, so that no bookie has every record."""
    handle = bookkeeper.create_ledger(ensemble_size=5)
    for number in range(ENTRIES):
        handle.append(b"%d" % number)
    return handle


def missing_of(cluster: Cluster, ledger_id: int) -> list[MissingReplica]:
    return list(missing_replicas(cluster, [cluster.ledger(ledger_id).value]))


def journal_of_first_member(cluster: Cluster, ledger_id: int) -> memory.MemoryFile:
    member = cluster.ledger(ledger_id).value.fragments[0].ensemble[0]
    disk = memory.find_disk(cluster.bookies()[member.bookie_id].url)
    assert disk is not None
    [journal] = [file for name, file in disk.files.items() if "/journal/" in name]
    return journal


def test_nothing_is_missing_of_a_striped_ledger(cluster: Cluster) -> None:
    with BookKeeper(cluster.uri) as bookkeeper:
        handle = written(bookkeeper)
        handle.close()
        assert missing_of(cluster, handle.ledger_id) == []


def test_nothing_is_missing_of_a_recovered_one(cluster: Cluster) -> None:
    with BookKeeper(cluster.uri) as bookkeeper:
        handle = written(bookkeeper)
        handle.release()
        bookkeeper.recover_ledger(handle.ledger_id)
        assert missing_of(cluster, handle.ledger_id) == []


def test_a_journal_that_claims_to_be_long_is_not_read_whole(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros behind a bookie's records, as of a sparse file, cost no memory and hide no record."""
    with BookKeeper(cluster.uri) as bookkeeper:
        handle = written(bookkeeper)
        handle.close()
    journal_of_first_member(cluster, handle.ledger_id).data.extend(bytes(2**25))
    read: list[int] = []
    real = memory.MemoryRoot.read

    def measured(
        root: memory.MemoryRoot, name: str, begin: int = 0, length: int | None = None
    ) -> bytes | None:
        data = real(root, name, begin, length)
        read.append(len(data or b""))
        return data

    monkeypatch.setattr(memory.MemoryRoot, "read", measured)
    monkeypatch.setattr(replication_check, "find_records", lambda *_: ())
    assert missing_of(cluster, handle.ledger_id) == []
    assert max(read) <= 2**20


def test_damage_in_a_journal_is_named_with_the_entries_behind_it(cluster: Cluster) -> None:
    with BookKeeper(cluster.uri) as bookkeeper:
        handle = written(bookkeeper)
        handle.close()
    journal = journal_of_first_member(cluster, handle.ledger_id)
    journal.data[len(journal.data) // 2] ^= 1
    [missing] = missing_of(cluster, handle.ledger_id)
    assert "is corrupt, from entry" in missing.reason
