"""How often a recovery asks the metadata store, which may be far away."""

from dataclasses import replace

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import NoSuchLedgerError
from bkspark.ledger.recovery.recover import recover
from bkspark.ledger.recovery.recoverer import Recoverer
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.testing.faulty_cluster import METADATA
from tests.integration.hand_writer import HandWriter
from tests.integration.rig import Rig


def test_it_reads_the_ledger_once_and_writes_it_twice(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    with memory_rig.faults.installed(), Cluster(memory_rig.uri) as cluster:
        memory_rig.faults.forget()
        recover(cluster, writer.ledger_id, Password())
    calls = [one for one in memory_rig.faults.trace if one.place == METADATA]
    assert [one.call for one in calls if one.name.startswith("ledgers/")] == ["get", "put", "put"]
    assert [one.call for one in calls if one.name.startswith("lost")] == ["list"]
    assert len([one for one in calls if one.name.startswith("bookies")]) == 1 + len(memory_rig.urls)


def meddled(cluster: Cluster, ledger_id: int, **changes: object) -> LedgerMetadata:
    """Somebody else's change of a ledger."""
    return cluster.ledgers.update(str(ledger_id), lambda seen: replace(seen, **changes)).value  # type: ignore[type-var]


@pytest.mark.parametrize("step", ["take_over", "close"])
def test_what_was_changed_since_it_was_read_is_what_counts(
    step: str, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    real, left = getattr(Recoverer, step), []
    with Cluster(memory_rig.uri) as cluster:
        member = cluster.ledger(writer.ledger_id).value.last_fragment.ensemble[0]

        def later(recoverer: Recoverer, *given: object) -> object:
            stranger = replace(member, bookie_id="gone", incarnation="9" * 32)
            if not left:
                left.append(meddled(cluster, writer.ledger_id, left=frozenset({stranger})).left)
            return real(recoverer, *given)

        monkeypatch.setattr(Recoverer, step, later)
        recover(cluster, writer.ledger_id, Password())
        after = cluster.ledger(writer.ledger_id).value
    assert (after.state, after.last_entry_id, after.left) == (LedgerState.CLOSED, 0, left[0])


@pytest.mark.parametrize("step", ["take_over", "close"])
def test_a_ledger_that_is_deleted_meanwhile_is_not_brought_back(
    step: str, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    real = getattr(Recoverer, step)
    with Cluster(memory_rig.uri) as cluster:

        def later(recoverer: Recoverer, *given: object) -> object:
            cluster.store.delete(cluster.ledgers.key(str(writer.ledger_id)))
            return real(recoverer, *given)

        monkeypatch.setattr(Recoverer, step, later)
        with pytest.raises(NoSuchLedgerError):
            recover(cluster, writer.ledger_id, Password())
        assert cluster.ledgers.get(str(writer.ledger_id)) is None
