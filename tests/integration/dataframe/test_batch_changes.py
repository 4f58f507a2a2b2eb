"""A DataFrame's commit changes its ensemble more than once."""

from collections.abc import Callable

from bkspark.log.batch import commit as batch_commit
from bkspark.testing.faulty import Fault
from bkspark.testing.faulty_cluster import Operation
from tests.integration.rig import Rig, flat, partitions_of


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
