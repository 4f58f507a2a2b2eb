"""Ledgers of which something is taken away, and what an audit says of them."""

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from bkspark import verbs
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout
from bkspark.metadata.memory import MemoryMetadataStore
from tests.integration.rig import Rig, partitions_of
from tests.integration.waiting import wait_for_all_copies

PARTITIONS = partitions_of(11, 5)
ENTRIES = 12
CHECKED = "NUM_LEDGERS_CHECKED"


def audited(rig: Rig, **options: Any) -> Report:
    return verbs.audit(rig.uri, **options)


def written(rig: Rig, sizes: tuple[int, int, int] = (3, 3, 2), **options: Any) -> int:
    """A closed ledger of bytes, one entry to a record; its id."""
    ensemble, write, ack = sizes
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(
            ensemble_size=ensemble, write_quorum_size=write, ack_quorum_size=ack, **options
        )
        for number in range(ENTRIES):
            handle.append(b"%d" % number)
        wait_for_all_copies(handle)
        handle.close()
    return handle.ledger_id


def members(rig: Rig, ledger_id: int) -> list[str]:
    return [member.bookie_id for member in rig.ledger(ledger_id).last_fragment.ensemble]


def take(rig: Rig, bookie_id: str, word: str, ledger_id: int | None = None) -> list[str]:
    """Remove the files of a bookie whose names have ``word``; those that were removed."""
    folder = "" if ledger_id is None else layout.ledger_folder(ledger_id)
    found = [n for n in rig.names(bookie_id) if word in n and n.startswith(folder)]
    for name in found:
        rig.replace_file(bookie_id, name, None)
    assert found
    return found


def copies(report: Report) -> list[tuple[Any, ...]]:
    """(bookie, first, last, class, whether that is unknown) of all that is missing."""
    keys = ("bookie_id", "first_entry_id", "last_entry_id", "copies", "is_unknown")
    return sorted(tuple(row[key] for key in keys) for row in report.details["copies"])


def copied_records(rig: Rig, like: int, count: int) -> list[int]:
    """Make more ledgers with the record of another one, without any file; return their ids."""
    with Cluster(rig.uri) as cluster:
        record = cluster.ledger(like).value
        ids = [cluster.new_ledger_id() for _ in range(count)]
        for ledger_id in ids:
            cluster.ledgers.create(str(ledger_id), replace(record, ledger_id=ledger_id))
    return ids


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, asked: Counter[str]) -> Any:
    """Count the calls of the metadata store while the block runs, by call and kind of record."""
    with monkeypatch.context() as patch:
        for call in ("get", "put", "list", "delete", "is_current"):
            inner = getattr(MemoryMetadataStore, call)

            def noting(
                store: Any, key: str, *rest: Any, call: str = call, inner: Any = inner
            ) -> Any:
                asked[f"{call} {key.partition('/')[0]}"] += 1
                return inner(store, key, *rest)

            patch.setattr(MemoryMetadataStore, call, noting)
        yield
