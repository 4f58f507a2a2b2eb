"""While the record of a bookie cannot be read, maintenance does what does not concern it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark import verbs
from bkspark.admin import bookies
from bkspark.admin.absent_bookies import leave_out_unreadable
from bkspark.admin.maintenance import Report
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.ensembles import stand_ins
from bkspark.errors import CorruptDataError
from bkspark.format import layout
from bkspark.ledger.deleting import make_tombstone
from bkspark.protocol.ledger.metadata import Member
from tests.integration.rig import Rig

from .scenes import members, written
from .test_rebalance import added

DAMAGE = b"\xff" * 100


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    """Five bookies, whose metadata records are files."""
    return make_rig(kind="memory", bookie_count=5)


def damaged(rig: Rig, bookie_id: str) -> dict[Path, bytes]:
    """Make the record of a bookie unreadable; what it was."""
    paths = list((rig.folder / "metadata").rglob(f"bookies/{bookie_id}/*"))
    before = {path: path.read_bytes() for path in paths}
    assert before
    for path in paths:
        path.write_bytes(DAMAGE)
    return before


def named_and_other(rig: Rig) -> tuple[int, int, str]:
    """A ledger with a bookie, one without it, and that bookie."""
    first = written(rig)
    one = members(rig, first)[0]
    bookies.readonly(rig.uri, one)
    second = written(rig)
    assert one not in members(rig, second)
    return first, second, one


def reasons(report: Report) -> dict[str, str]:
    return {left.subject: left.reason for left in report.left}


def test_deletions_wait_for_an_unreadable_bookie_and_others_go_on(rig: Rig) -> None:
    named, other, unreadable = named_and_other(rig)
    before = damaged(rig, unreadable)
    with Cluster(rig.uri) as cluster:
        assert make_tombstone(cluster, named)
        assert make_tombstone(cluster, other)
        report = verbs.collect(rig.uri, no_lease=True)
        assert (report.exit_status, report.done["ledgers"]) == (1, 1)
        left = reasons(report)
        assert f"metadata record bookies/{unreadable}" in left
        assert left[f"ledger {named}"] == f"to be freed on {unreadable}"
        assert cluster.ledgers.get(str(other)) is None
        assert cluster.ledgers.get(str(named)) is not None
    for path, data in before.items():
        path.write_bytes(data)
    report = verbs.collect(rig.uri, no_lease=True)
    assert (report.exit_status, report.done["ledgers"]) == (0, 1)
    assert not [n for n in rig.names(unreadable) if n.startswith(layout.ledger_folder(named))]


def test_a_rebalance_moves_nothing_of_ledgers_that_name_an_unreadable_bookie(rig: Rig) -> None:
    for bookie_id in ("bookie-4", "bookie-5"):
        bookies.readonly(rig.uri, bookie_id)
    named = [written(rig) for _ in range(3)]  # on bookies 1 to 3
    bookies.readonly(rig.uri, "bookie-1")
    bookies.readonly(rig.uri, "bookie-4", off=True)
    others = [written(rig) for _ in range(6)]  # on bookies 2 to 4
    bookies.readonly(rig.uri, "bookie-1", off=True)
    new = added(rig)
    damaged(rig, "bookie-1")
    report = verbs.rebalance(rig.uri, no_lease=True)
    assert (
        report.plan["left_alone"]["bookie-1"] == "the metadata record of the bookie cannot be read"
    )
    assert "metadata record bookies/bookie-1" in reasons(report)
    assert [sorted(members(rig, one)) for one in named] == [
        ["bookie-1", "bookie-2", "bookie-3"]
    ] * 3
    assert report.exit_status == 1
    assert [one for one in others if new in members(rig, one)]


def test_a_decommission_moves_what_does_not_concern_an_unreadable_bookie(rig: Rig) -> None:
    named, other, unreadable = named_and_other(rig)
    leaving = next(one for one in members(rig, named) if one in members(rig, other))
    before = members(rig, named)
    damaged(rig, unreadable)
    report = verbs.decommission(rig.uri, bookies=[leaving])
    left = reasons(report)
    assert leaving not in members(rig, other)
    assert members(rig, named) == before
    assert left[f"ledger {named}"] == f"it names {unreadable}, whose metadata record cannot be read"
    assert f"metadata record bookies/{unreadable}" in left
    with Cluster(rig.uri) as cluster:
        assert cluster.bookie(leaving).value.is_read_only


def test_a_recovery_writes_to_no_bookie_that_may_be_lost(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster:
        cluster.store.put("lost/bookie-2", DAMAGE, None)
        found = stand_ins(cluster, 5, exclude=(), near=())
    assert sorted(one.bookie_id for one in found) == [
        "bookie-1",
        "bookie-3",
        "bookie-4",
        "bookie-5",
    ]


def test_an_unreadable_bookie_itself_is_not_decommissioned(rig: Rig) -> None:
    damaged(rig, "bookie-1")
    with pytest.raises(CorruptDataError, match="bookies/bookie-1"):
        verbs.decommission(rig.uri, bookies=["bookie-1"])


def test_only_what_was_unreadable_at_the_start_is_left_out(rig: Rig) -> None:
    damaged(rig, "bookie-1")
    with Cluster(rig.uri) as cluster:
        member = Member("bookie-1", "any")
        assert list(leave_out_unreadable(cluster)) == ["bookies/bookie-1"]
        assert len(cluster.addresses()) == 4
        assert cluster.is_going(member)  # for all that is known
        damaged(rig, "bookie-2")
        with pytest.raises(CorruptDataError, match="bookies/bookie-2"):
            cluster.addresses()
