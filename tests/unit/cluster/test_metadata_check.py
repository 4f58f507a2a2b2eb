"""The metadata check (R4): which newer versions of a ledger's record leave its writer alone."""

import logging
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from bkspark import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.metadata_check import still_current
from bkspark.cluster.records import Seen
from bkspark.errors import LedgerFencedError
from bkspark.protocol.ledger.metadata import LedgerMetadata

Change = Callable[[LedgerMetadata], LedgerMetadata]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [f"memory://{secrets.token_hex(8)}" for _ in range(4)])
    with Cluster(uri) as opened:
        yield opened


def new_ledger(cluster: Cluster) -> Seen[LedgerMetadata]:
    with BookKeeper(cluster.uri) as bookkeeper:
        return cluster.ledger(bookkeeper.create_ledger().ledger_id)


def change(cluster: Cluster, seen: Seen[LedgerMetadata], by: Change) -> Seen[LedgerMetadata]:
    def changed(metadata: LedgerMetadata | None) -> LedgerMetadata:
        assert metadata is not None
        return by(metadata)

    return cluster.ledgers.update(str(seen.value.ledger_id), changed)


def test_an_unchanged_record_is_current(cluster: Cluster) -> None:
    seen = new_ledger(cluster)
    assert still_current(cluster, seen, hint="") is seen


def test_a_version_that_leaves_the_writer_alone_is_adopted(cluster: Cluster) -> None:
    seen = new_ledger(cluster)
    newer = change(cluster, seen, lambda mine: replace(mine, custom_metadata={"note": "hello"}))
    assert still_current(cluster, seen, hint="").value == newer.value


@pytest.mark.parametrize("by", ["recovery", "close", "ensemble"])
def test_one_that_does_not_is_the_end(
    cluster: Cluster, by: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bkspark")
    seen = new_ledger(cluster)
    mine = seen.value
    spare = next(
        member for member in cluster.addresses() if member not in mine.last_fragment.ensemble
    )
    changes: dict[str, Change] = {
        "recovery": lambda ledger: ledger.in_recovery("f" * 32),
        "close": lambda ledger: ledger.closed(
            last_entry_id=-1, length_bytes=0, term=mine.term, token=mine.token
        ),
        "ensemble": lambda ledger: ledger.with_ensemble(
            0, (spare, *mine.last_fragment.ensemble[1:]), term=mine.term, token=mine.token
        ),
    }
    change(cluster, seen, changes[by])
    with pytest.raises(LedgerFencedError, match="taken over") as caught:
        still_current(cluster, seen, hint="open the ledger to see")
    assert caught.value.hint == "open the ledger to see"
    assert f"ledger {mine.ledger_id}: the writer of term {mine.term} is fenced" in caplog.text
