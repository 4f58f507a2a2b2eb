"""A DataFrame's commit changes its ensemble more than once."""

from collections.abc import Callable
from unittest.mock import patch

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.errors import LedgerFencedError
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.record_writer import RecordWriter
from tests.integration.rig import Rig, flat, partitions_of
from tests.kit.faulty import Fault, Operation


def test_two_members_fail_and_each_place_is_taken(make_rig: Callable[..., Rig]) -> None:
    """The second change begins with what the first has made of the ensemble."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, partitions_of(3, 4))
    first, second, staying = [address.bookie_id for address in target.ensemble]
    bad = {first, second}

    def two_fail(_number: int, operation: Operation) -> Fault | None:
        return Fault() if operation.call == "append" and operation.place in bad else None

    rig.faults.decide = two_fail
    with rig.faults.installed():
        batch_commit.commit(target, reports)
    ensemble = [m.bookie_id for m in rig.ledger(target.ledger_id).last_fragment.ensemble]
    assert ensemble[2] == staying
    assert set(ensemble) == rig.urls.keys() - bad
    rows = flat(partitions_of(3, 4))
    holders = set(map(frozenset, rig.good_copies(target.ledger_id).values()))
    assert holders == {frozenset(ensemble)}
    assert rig.assert_survives_losses(rows, 2, set(ensemble)) == 3


def test_a_bookie_that_stepped_in_fails_too_and_another_takes_its_place(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, partitions_of(3, 4))
    first, *staying = [address.bookie_id for address in target.ensemble]
    stepped_in: list[str] = []

    def two_fail(_number: int, operation: Operation) -> Fault | None:
        if operation.call != "append" or operation.place in staying:
            return None
        if operation.place != first and operation.place not in stepped_in:
            stepped_in.append(operation.place)
        return Fault() if operation.place in (first, *stepped_in[:1]) else None

    rig.faults.decide = two_fail
    with rig.faults.installed():
        batch_commit.commit(target, reports)
    assert len(stepped_in) == 2
    ledger = rig.ledger(target.ledger_id)
    names = {member.bookie_id for member in ledger.last_fragment.ensemble}
    assert names == {stepped_in[1], *staying}
    assert len(ledger.fragments) == 1
    rows = flat(partitions_of(3, 4))
    assert set(map(frozenset, rig.good_copies(target.ledger_id).values())) == {frozenset(names)}
    assert rig.assert_survives_losses(rows, 2, names) == 3


def test_a_commit_that_was_interrupted_is_not_gone_on_with(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, partitions_of(3))
    with Cluster(rig.uri) as cluster:
        seen, place = cluster.ledger(target.ledger_id), (target.digester(), target.ensemble)
        with RecordWriter(cluster, seen, *place, term=target.term, token=target.token) as writer:
            interrupted = patch.object(RecordWriter, "_append", side_effect=KeyboardInterrupt)
            with interrupted, pytest.raises(KeyboardInterrupt):
                writer.write(reports, spares=(), transaction=None)
            with pytest.raises(LedgerFencedError):
                writer.write(reports, spares=(), transaction=None)
    assert writer.last_add_confirmed == -1
