"""A bookie that was wiped, begun anew under its own id: what it lacks proves nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from bkspark import verbs
from bkspark.admin import bookies
from bkspark.admin.bookies import reinitialising
from bkspark.bookie.uri import storage
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import ensembles
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookieUnavailableError, InvalidRequestError, NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from tests.integration.hand_writer import HandWriter
from tests.integration.rig import Rig, flat, partitions_of
from tests.integration.upkeep.scenes import audited, copies, written


def incarnation(rig: Rig, bookie_id: str = "bookie-1") -> str:
    with Cluster(rig.uri) as cluster:
        return cluster.bookie(bookie_id).value.incarnation


def problem(rig: Rig, bookie_id: str = "bookie-1") -> str:
    with Cluster(rig.uri) as cluster:
        return next(s.problem for s in cluster.probe() if s.record.bookie_id == bookie_id)


def test_3_5_it_is_another_bookie_under_the_same_id(rig: Rig) -> None:
    rows = partitions_of(40)
    rig.write(rows, (5, 3, 2))
    before = incarnation(rig)
    bookies.readonly(rig.uri, "bookie-1")
    rig.wipe("bookie-1")
    report = bookies.reinit(rig.uri, "bookie-1")
    assert report.plan["incarnation"] == incarnation(rig) != before
    assert report.done == {"steps": 2}
    assert "which 1 ledger names" in report.plan["steps"][1]
    assert problem(rig) == ""
    with Cluster(rig.uri) as cluster:
        assert cluster.bookie("bookie-1").value.is_read_only
    bookies.readonly(rig.uri, "bookie-1", off=True)
    assert rig.rows() == flat(rows)
    with Cluster(rig.uri) as cluster:
        placed = ensembles.choose(cluster, cluster.new_ledger_id(), Quorum(5, 3, 2))
    assert report.plan["incarnation"] in {address.incarnation for address in placed.ensemble}


def test_rb_09_what_it_lacks_proves_nothing(memory_rig: Rig) -> None:
    """With one other member away, the entry that both had could have been acknowledged."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    wiped, away = writer.names[:2]
    memory_rig.wipe(wiped)
    bookies.reinit(memory_rig.uri, wiped)
    disk = memory_rig.lose(away)
    with pytest.raises(NotEnoughBookiesError):
        writer.recover()
    memory_rig.bring_back(away, disk)
    writer.recover()
    ledger = memory_rig.ledger(writer.ledger_id)
    assert (ledger.state, ledger.last_entry_id) == (LedgerState.CLOSED, 0)
    with BookKeeper(memory_rig.uri) as keeper:
        found = list(keeper.open_ledger(writer.ledger_id).read())
    assert [entry.value for entry in found] == [writer.sent[0]]


def test_rb_10_the_writer_whose_fence_it_forgot_is_not_acknowledged_by_it(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    memory_rig.wipe(writer.names[0])
    bookies.reinit(memory_rig.uri, writer.names[0])
    with pytest.raises(BookieUnavailableError):
        writer.add(0)


@pytest.mark.parametrize("left", ["all", "cookie", "data"])
def test_a_place_that_was_not_emptied_is_refused(rig: Rig, left: str) -> None:
    rig.write(partitions_of(10), (5, 3, 2))
    before = incarnation(rig)
    if left == "cookie":
        for name in rig.names("bookie-1"):
            rig.replace_file("bookie-1", name, None)
    if left == "data":
        rig.replace_file("bookie-1", "COOKIE", None)
    with pytest.raises(
        InvalidRequestError, match="not empty" if left == "data" else "has a cookie"
    ):
        bookies.reinit(rig.uri, "bookie-1")
    assert incarnation(rig) == before


def test_a_dry_run_changes_nothing(rig: Rig) -> None:
    rig.wipe("bookie-1")
    before = incarnation(rig)
    report = bookies.reinit(rig.uri, "bookie-1", dry_run=True)
    assert (len(report.plan["steps"]), report.done) == (2, {})
    assert incarnation(rig) == before
    assert "no cookie" in problem(rig)


def test_a_place_on_the_root_disk_that_was_on_another_is_refused(
    make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig(kind="file")
    rig.wipe("bookie-1")
    before = incarnation(rig)
    with Cluster(rig.uri) as cluster:
        now = cluster.bookie("bookie-1").value.domain
    monkeypatch.setattr(reinitialising, "domain_of", lambda _device: "disk-9:9")
    with pytest.raises(InvalidRequestError, match="on the root disk, and was on another"):
        bookies.reinit(rig.uri, "bookie-1")
    assert incarnation(rig) == before
    monkeypatch.setattr(reinitialising, "domain_of", lambda _device: now)
    bookies.reinit(rig.uri, "bookie-1")
    rig.wipe("bookie-1")
    monkeypatch.setattr(reinitialising, "domain_of", lambda _device: "disk-9:9")
    bookies.reinit(rig.uri, "bookie-1", makes_folder=True)
    assert problem(rig) == ""


class KilledError(BaseException):
    pass


def test_killed_in_between_it_is_no_bookie_and_the_same_call_goes_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_url: str) -> Any:
        class Place:
            failure_domain = staticmethod(storage(_url).failure_domain)
            read_cookie = staticmethod(storage(_url).read_cookie)
            require_suitable = staticmethod(storage(_url).require_suitable)

            def format(self, _cookie: bytes) -> None:
                raise KilledError

        return Place()

    rig.wipe("bookie-1")
    before = incarnation(rig)
    monkeypatch.setattr(reinitialising, "storage", killed)
    with pytest.raises(KilledError):
        bookies.reinit(rig.uri, "bookie-1")
    monkeypatch.undo()
    between = incarnation(rig)
    assert between != before
    assert "no cookie" in problem(rig)
    bookies.reinit(rig.uri, "bookie-1")
    assert incarnation(rig) not in (before, between)
    assert problem(rig) == ""


def test_an_old_disk_that_comes_back_is_not_taken_for_the_new_bookie(rig: Rig) -> None:
    rig.write(partitions_of(10), (5, 3, 2))
    disk = rig.lose("bookie-1")
    bookies.reinit(rig.uri, "bookie-1", makes_folder=True)
    rig.lose("bookie-1") if rig.kind == "memory" else rig.wipe("bookie-1")
    if rig.kind == "file":
        (rig.folder / "disk1").rmdir()
    rig.bring_back("bookie-1", disk)
    assert "initialised again" in problem(rig)
    with pytest.raises(InvalidRequestError, match="has a cookie"):
        bookies.reinit(rig.uri, "bookie-1")


def test_of_two_at_once_one_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.wipe("bookie-1")
    plan = reinitialising._plan

    def overtaken(*facts: Any) -> tuple[str, ...]:
        monkeypatch.setattr(reinitialising, "_plan", plan)
        bookies.reinit(rig.uri, "bookie-1")
        return plan(*facts)

    monkeypatch.setattr(reinitialising, "_plan", overtaken)
    with pytest.raises(InvalidRequestError, match="another command moved or initialised"):
        bookies.reinit(rig.uri, "bookie-1")
    assert problem(rig) == ""


def test_a_bookie_that_was_declared_lost_serves_again(keeper: BookKeeper, rig: Rig) -> None:
    rig.wipe("bookie-1")
    keeper.declare_bookie_lost("bookie-1")
    bookies.reinit(rig.uri, "bookie-1")
    with Cluster(rig.uri) as cluster:
        chosen = {c.member.bookie_id for c in cluster.refresh_candidates()}
    assert "bookie-1" in chosen


def test_it_gets_its_place_back_where_no_other_bookie_is_free(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", bookie_count=3)
    ledger_id = written(rig)
    before = rig.ledger(ledger_id).last_fragment.ensemble
    rig.wipe(before[0].bookie_id)
    bookies.reinit(rig.uri, before[0].bookie_id)
    assert verbs.repair(rig.uri, no_lease=True).exit_status == 0
    after = rig.ledger(ledger_id).last_fragment.ensemble
    assert [member.bookie_id for member in after] == [member.bookie_id for member in before]
    assert (after[0] != before[0], after[1:]) == (True, before[1:])
    assert copies(audited(rig)) == []
