"""A record of another cluster, copied or restored to here, counts as one that cannot be read."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bkspark import BookKeeper
from bkspark.admin.damaged_records import find_damaged, look_at, set_aside, set_cluster_aside
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.log_records import LogPages
from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import layout, log_page, strict_json
from tests.small_pages import pages_of

Run = Callable[..., tuple[int, str, str]]

OTHER = "0f" * 16


def copy_from_another(cluster: Cluster, key: str) -> bytes:
    """Let the record be the one that another cluster has under this key."""
    stored = cluster.store.get(key)
    assert stored is not None
    theirs = strict_json.of_cluster(OTHER, key, stored.value)
    cluster.store.put(key, theirs, stored.version)
    return theirs


@pytest.fixture
def used(small_cluster: Any, numbers: Callable[[int, int], pa.Table]) -> Any:
    """Two logs with a cursor each; the first one has a page."""
    with pages_of(2):
        for name in ("one", "two", "one", "one", "one", "one"):
            small_cluster.append(name, [numbers(0, 30)])
    with BookKeeper(small_cluster.uri) as keeper:
        for name in ("one", "two"):
            keeper.open_log(name).cursor("reader")
    return small_cluster


def test_records_of_another_cluster_stop_no_verb_about_others_and_are_set_aside(
    run: Run, used: Any, numbers: Callable[[int, int], pa.Table]
) -> None:
    with Cluster(used.uri) as cluster:
        own, [page] = cluster.cluster_id, cluster.logs.pages("one").names()
        contents = cluster.logs.pages("one").found(page)
        assert contents is not None
        unnamed = layout.log_page_key("two", page)
        cluster.store.put(unnamed, log_page.encode("two", page, contents), None)
        keys = [
            "counters/ledger",
            "bookies/bookie-2",
            "cursors/one/reader",
            layout.ledger_key(0),
            layout.ledger_key(2),
            "logs/one",
            unnamed,
        ]
        theirs = {key: copy_from_another(cluster, key) for key in keys}
        found = {one.key: one.reason for one in find_damaged(cluster)}
        assert found.keys() == theirs.keys()
        for reason in found.values():
            assert f"it is of cluster {OTHER}, and this is cluster {own}" in reason
        one = look_at(cluster, "logs/one")
        assert one is not None
        assert one.reason == found["logs/one"]
    assert run("log", "read", "two")[1].count("\n") == 30
    with BookKeeper(used.uri) as keeper:
        with pytest.raises(CorruptDataError, match=f"it is of cluster {OTHER}"):
            keeper.open_log("one")
        assert keeper.open_log("two").cursor("reader").offset == 0
    with Cluster(used.uri) as cluster:
        url = used.bookie("bookie-2").as_uri()
        for key in keys:
            kept = set_aside(cluster, key, url=url if key.startswith("bookies") else "")
            assert cluster.store.get(kept).value == theirs[key]
    assert json.loads(run("metadata", "damaged", "--json")[1]) == []
    used.append("two", [numbers(30, 40)])
    assert run("log", "read", "two")[1].count("\n") == 40


def test_a_cluster_is_made_anew_by_none_but_a_bookie_that_its_own_record_names(used: Any) -> None:
    with Cluster(used.uri) as cluster:
        copy_from_another(cluster, "bookies/bookie-2")
        stored = cluster.store.get(layout.CLUSTER_KEY)
        assert stored is not None
        cluster.store.put(layout.CLUSTER_KEY, b"?", stored.version)
    with pytest.raises(InvalidRequestError, match="is not a bookie of the cluster"):
        set_cluster_aside(used.uri, used.bookie("bookie-2").as_uri())
    set_cluster_aside(used.uri, used.bookie("bookie-1").as_uri())


def test_a_page_that_was_seen_in_one_cluster_is_none_of_another_at_its_place(used: Any) -> None:
    with Cluster(used.uri) as cluster:
        log = cluster.log("one").value
        [page] = [one for one in log.older if hasattr(one, "name")]
        assert log.source.contents(page).ledgers
        elsewhere = LogPages(cluster.store, OTHER, "one")
        with pytest.raises(CorruptDataError, match="is not of this cluster"):
            elsewhere.contents(page)
