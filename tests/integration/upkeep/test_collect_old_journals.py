"""Journals in which nothing counts any more: of terms that own no entry of a ledger."""

from collections import Counter
from collections.abc import Callable

import pytest

from bkspark import NoSuchEntryError, verbs
from bkspark.bookie import posix
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout
from bkspark.ledger.deleting import truncate_ledger
from bkspark.ledger.handles.write_handle import WriteHandle
from tests.integration.going_on import add, begun, successor, those_from, values
from tests.integration.rig import Rig

from .garbage import collected


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="file", metadata="memory", bookie_count=4)


def journals(cluster: Cluster, rig: Rig, ledger_id: int) -> Counter[int]:
    """How many there are of each term, on all bookies."""
    folder = layout.journal_folder(ledger_id)
    names = (name for bookie_id in rig.urls for name in rig.names(bookie_id))
    return Counter(layout.journal_term(name) for name in names if name.startswith(folder))


def three_terms(cluster: Cluster) -> WriteHandle:
    """The third writer of a ledger, each of whom has added four entries in two fragments."""
    handle = begun(cluster)
    add(handle, rolls=1)
    for _ in range(2):
        handle.release()
        handle = successor(cluster, handle.ledger_id)
        add(handle, rolls=1)
    return handle


def test_journals_of_terms_that_own_nothing_go_and_no_others(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster, BookKeeper(rig.uri) as keeper:
        handle = three_terms(cluster)
        ledger_id = handle.ledger_id
        late = keeper.open_ledger(ledger_id, recovery=False)
        before = journals(cluster, rig, ledger_id)
        assert sorted(before) == [1, 2, 3]
        truncate_ledger(cluster, ledger_id, 3)
        assert collected(rig).plan["journals"] == 0
        truncate_ledger(cluster, ledger_id, 6)
        plan = verbs.collect(rig.uri, dry_run=True)
        assert plan.plan["journals"] == plan.plan["files"] == before[1]
        assert journals(cluster, rig, ledger_id) == before
        report = collected(rig)
        assert report.done["files"] == before[1]
        assert {row["reason"] for row in report.details["ledgers"]} == {
            "no entry of these journals counts any more"
        }
        assert sorted(journals(cluster, rig, ledger_id)) == [2, 3]
        with pytest.raises(NoSuchEntryError, match="begins at entry 6"):
            list(late.read(0))
        assert handle.append(b"12") == 12
        handle.close()
        assert values(keeper, ledger_id) == those_from(6, 13)
        truncate_ledger(cluster, ledger_id, 100)
        assert collected(rig).plan["journals"] == before[2]
        assert sorted(journals(cluster, rig, ledger_id)) == [3]
        assert collected(rig).plan["journals"] == 0
        assert values(keeper, ledger_id) == those_from(10, 13)


def test_who_takes_over_behind_a_collection_finds_all_that_is_left(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster, BookKeeper(rig.uri) as keeper:
        handle = three_terms(cluster)
        truncate_ledger(cluster, handle.ledger_id, 100)
        assert collected(rig).plan["journals"] > 0
        handle.release()
        with successor(cluster, handle.ledger_id) as fourth:
            assert fourth.append(b"12") == 12
        assert values(keeper, handle.ledger_id) == those_from(8, 13)


def test_of_one_that_has_its_beginning_all_journals_stay(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster:
        handle = three_terms(cluster)
        handle.close()
        assert collected(rig).plan["journals"] == 0
        assert sorted(journals(cluster, rig, handle.ledger_id)) == [1, 2, 3]


def test_a_bookie_that_does_not_answer_keeps_them_for_the_next_time(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster:
        handle = three_terms(cluster)
        handle.close()
        truncate_ledger(cluster, handle.ledger_id, 100)
        away = rig.lose("bookie-1")
        assert [one.subject for one in verbs.collect(rig.uri, no_lease=True).left] == [
            "bookie bookie-1"
        ]
        rig.bring_back("bookie-1", away)
        assert set(journals(cluster, rig, handle.ledger_id)) > {3}
        collected(rig)
        assert sorted(journals(cluster, rig, handle.ledger_id)) == [3]


def test_they_stay_where_a_bookie_cannot_forget_them_for_good(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(rig.uri) as cluster:
        handle = three_terms(cluster)
        handle.close()
        truncate_ledger(cluster, handle.ledger_id, 100)
        before = journals(cluster, rig, handle.ledger_id)
        assert set(before) > {3}
        monkeypatch.setattr(posix.PosixRoot, "forget_journal", lambda *_: False)
        assert collected(rig).done["files"] == 0
        assert journals(cluster, rig, handle.ledger_id) == before
