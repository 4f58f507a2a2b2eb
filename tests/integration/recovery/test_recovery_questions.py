"""How often a recovery asks the metadata store, which may be far away."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import NoSuchLedgerError
from bkspark.ledger.recovery.recover import recover
from bkspark.ledger.recovery.recoverer import Recoverer
from bkspark.protocol.ledger.metadata import LedgerState, Member
from tests.integration.hand_writer import HandWriter
from tests.integration.rig import Rig
from tests.kit.faulty import METADATA


def test_it_reads_the_ledger_once_and_writes_it_twice(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    with memory_rig.faults.installed(), Cluster(memory_rig.uri) as cluster:
        memory_rig.faults.forget()
        recover(cluster, writer.ledger_id, Password())
    calls = [one for one in memory_rig.faults.trace if one.place == METADATA]
    assert [one.call for one in calls if one.name.startswith("ledgers/")] == ["get", "put", "put"]
    assert [one.call for one in calls if one.name.startswith("lost")] == ["list"]
    assert len([one for one in calls if one.name.startswith("bookies")]) == 3  # its own alone


Meddle = Callable[[Cluster, int], None]


def recovered_beside(rig: Rig, step: str, meddle: Meddle, patch: pytest.MonkeyPatch) -> HandWriter:
    """Recover a ledger of one acknowledged entry while somebody else, just before ``step``, meddles
    with it: once."""
    writer = HandWriter(rig)
    writer.add(0, 1, 2, acknowledges=True)
    real, left = getattr(Recoverer, step), [meddle]
    with Cluster(rig.uri) as cluster:

        def later(recoverer: Recoverer, *given: object) -> object:
            if left:
                left.pop()(cluster, writer.ledger_id)
            return real(recoverer, *given)

        patch.setattr(Recoverer, step, later)
        recover(cluster, writer.ledger_id, Password())
    return writer


@pytest.mark.parametrize("step", ["take_over", "close"])
def test_what_was_changed_since_it_was_read_is_what_counts(
    step: str, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = frozenset({Member("gone", "9" * 32)})

    def leaves(cluster: Cluster, ledger_id: int) -> None:
        cluster.ledgers.update(str(ledger_id), lambda seen: replace(seen, left=gone))  # type: ignore[type-var]

    writer = recovered_beside(memory_rig, step, leaves, monkeypatch)
    after = memory_rig.ledger(writer.ledger_id)
    assert (after.state, after.last_entry_id, after.left) == (LedgerState.CLOSED, 0, gone)


@pytest.mark.parametrize("step", ["take_over", "close"])
def test_a_ledger_that_is_deleted_meanwhile_is_not_brought_back(
    step: str, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = list[str]()

    def deletes(cluster: Cluster, ledger_id: int) -> None:
        keys.append(cluster.ledgers.key(str(ledger_id)))
        cluster.store.delete(keys[0])

    with pytest.raises(NoSuchLedgerError):
        recovered_beside(memory_rig, step, deletes, monkeypatch)
    with Cluster(memory_rig.uri) as cluster:
        assert cluster.store.get(keys[0]) is None
