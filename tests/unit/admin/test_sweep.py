"""A sweep over ledgers, in batches and by member."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bkspark import BookKeeper
from bkspark.admin import sweep
from bkspark.cluster.cluster import init_cluster
from bkspark.protocol.ledger.locations import Locations


def test_progress_is_told_after_each_batch() -> None:
    told: list[object] = []
    for batch in sweep.batches([1, 2, 3], 2, lambda *done: told.append(done)):
        told.append(list(batch))
    assert told == [(0, 3), [1, 2], (2, 3), [3], (3, 3)]


def test_progress_counts_what_follows_too() -> None:
    told: list[tuple[int, int]] = []
    assert list(sweep.batches([], 2, lambda *done: told.append(done), total=5)) == []
    assert told == [(0, 5)]


def test_only_what_changed_is_looked_at_again_a_few_times() -> None:
    looks: list[Sequence[int]] = []

    def look(ids: Sequence[int]) -> Sequence[int]:
        looks.append(ids)
        return ids[1:]

    assert sweep.looked_at(look, [1, 2, 3, 4]) == [4]
    assert looks == [[1, 2, 3, 4], [2, 3, 4], [3, 4]]
    looks.clear()
    assert sweep.looked_at(look, [1]) == []
    assert looks == [[1]]


def test_a_ledger_has_changed_if_its_record_is_another_one_or_gone(tmp_path: Path) -> None:
    uri = (tmp_path / "metadata").as_uri()
    init_cluster(uri, [f"memory://{tmp_path.name}-{n}" for n in range(3)], accepts_risk=True)
    with BookKeeper(uri) as keeper:
        keeper.create_ledger().close()
        cluster = keeper._cluster
        (ledger,) = sweep.read_ledgers(cluster, [0, 1]).values()
        members = set(Locations(ledger).members)
        assert sweep.by_member([ledger]) == {member: [ledger] for member in members}
        assert not sweep.has_changed(cluster, ledger)
        assert sweep.has_changed(cluster, replace(ledger, term=ledger.term + 1))
        assert sweep.has_changed(cluster, replace(ledger, ledger_id=1))


def test_only_answers_by_ledger_are_answers_about_ledgers() -> None:
    class Asked:
        def __init__(self, member: str) -> None:
            self.address = self
            self.member = member

    found = sweep.answers_by_ledger(lambda _: [{7: "a"}, "silent", {}], list(map(Asked, "xyz")))  # type: ignore[arg-type]
    assert list(found) == [("x", 7, "a")]
