"""Bookies that are taken out of the cluster, also while somebody is about to use them.

In the races one client does all its work at one operation of the other, at each in turn.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from bkspark.admin import bookies
from bkspark.admin.maintenance import Report
from bkspark.bookie import memory
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.format.cluster import BookieRecord
from bkspark.log.batch import commit as batch_commit
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.writer.steps import Failed
from tests.integration.hand_writer import HandWriter
from tests.integration.rig import Rig, flat, partitions_of
from tests.integration.waiting import wait_for_all_copies, wait_until
from tests.kit.faulty import Fault, Operation, no_fault

VICTIM = "bookie-1"


def all_of(rig: Rig) -> list[LedgerMetadata]:
    """Ledgers that are not deleted."""
    with Cluster(rig.uri) as cluster:
        seen = [cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids()]
    found = [one.value for one in seen if one is not None]
    return [ledger for ledger in found if ledger.state is not LedgerState.DELETING]


def names_it(ledger: LedgerMetadata) -> bool:
    return VICTIM in {m.bookie_id for m in ledger.last_fragment.ensemble}


def is_registered(rig: Rig) -> bool:
    with Cluster(rig.uri) as cluster:
        return VICTIM in cluster.bookies()


def is_going(rig: Rig) -> bool:
    with Cluster(rig.uri) as cluster:
        seen = cluster.registrations.get(VICTIM)
        return seen is not None and seen.value.is_going


def rig_of(make_rig: Callable[..., Rig], count: int) -> Rig:
    """Bookies in memory, of which the victim is chosen more often than others."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=count)
    disk = memory.find_disk(rig.urls[VICTIM])
    assert disk is not None
    disk.free_bytes, disk.total_bytes = disk.free_bytes * 4, disk.total_bytes * 4
    return rig


def put_others_together(rig: Rig) -> None:
    """All but the victim fail together: it is the one that joins beside any of them."""
    with Cluster(rig.uri) as cluster:
        for other in rig.urls.keys() - {VICTIM}:
            cluster.registrations.update(other, in_one_rack)


def in_one_rack(record: BookieRecord | None) -> BookieRecord:
    assert record is not None
    return replace(record, domain="rack")


@contextmanager
def at_operation(rig: Rig, number: int, work: Callable[[Rig], object]) -> Iterator[list[object]]:
    """Do ``work`` in front of an operation of others; yields what came of it, once it was done."""
    came: list[object] = []
    left = iter(range(number, -1, -1))

    def decide(_number: int, _operation: Operation) -> Fault | None:
        if next(left, None) == 0:
            came.append(work(rig))
        return None

    rig.faults.decide = decide
    try:
        yield came
    finally:
        rig.faults.decide = no_fault


def removed(rig: Rig) -> Report:
    return bookies.remove(rig.uri, VICTIM)


# --- what it asks for -----------------------------------------------------------------------------


def test_a_bookie_that_no_ledger_names_is_removed_and_its_id_is_never_given_again(rig: Rig) -> None:
    report = removed(rig)
    assert (report.done, report.left) == ({"steps": 1}, ())
    assert not is_registered(rig)
    assert rig.names(VICTIM) == []
    with Cluster(rig.uri) as cluster:
        assert VICTIM not in {c.member.bookie_id for c in cluster.refresh_candidates()}
        record = cluster.add_bookie("", f"{rig.urls[VICTIM]}-new", accepts_risk=True)
        assert record.bookie_id == "bookie-6"
        for url, bookie_id in ((f"{rig.urls[VICTIM]}-x", VICTIM), (rig.urls[VICTIM], "")):
            with pytest.raises(InvalidRequestError, match="a removed bookie"):
                cluster.add_bookie(bookie_id, url, accepts_risk=True)
    for again in (removed, lambda rig: bookies.readonly(rig.uri, VICTIM)):
        with pytest.raises(InvalidRequestError, match="no bookie"):
            again(rig)


def test_one_that_ledgers_name_stays_and_they_are_counted(rig: Rig) -> None:
    for _ in range(2):
        rig.write(partitions_of(10), (5, 3, 2))
    report = removed(rig)
    assert (report.plan["steps"], report.done, report.exit_status) == ([], {}, 1)
    assert report.left[0].reason == "2 ledgers name it: 0, 1"
    assert is_registered(rig)
    assert not is_going(rig)


def test_a_deleted_ledger_needs_it_no_more(keeper: BookKeeper, rig: Rig) -> None:
    with keeper.create_ledger(ensemble_size=5) as ledger:
        ledger.append(b"x")
    assert removed(rig).left
    keeper.delete_ledger(ledger.ledger_id)
    assert not removed(rig).left


def test_nothing_is_removed_while_a_recovery_may_be_about_to_name_it(
    make_rig: Callable[..., Rig],
) -> None:
    rig = rig_of(make_rig, 5)
    bookies.readonly(rig.uri, VICTIM)
    writer = HandWriter(rig)
    bookies.readonly(rig.uri, VICTIM, off=True)
    writer.cluster.ledgers.update(str(writer.ledger_id), lambda m: m.in_recovery("a" * 32))
    assert removed(rig).left[0].subject == "recoveries"
    writer.recover()
    assert not removed(rig).left


def test_a_ledger_that_cannot_be_read_may_name_it(make_rig: Callable[..., Rig]) -> None:
    rig = rig_of(make_rig, 5)
    with Cluster(rig.uri) as cluster:
        cluster.store.put(layout.ledger_key(7), b"?", None)
    assert [left.subject for left in removed(rig).left] == ["metadata"]
    assert not is_going(rig)


def test_by_force_only_what_was_declared_lost_and_does_not_answer(
    rig: Rig, keeper: BookKeeper
) -> None:
    rows = partitions_of(10)
    rig.write(rows, (5, 3, 2))
    with pytest.raises(InvalidRequestError, match="not declared lost"):
        bookies.remove(rig.uri, VICTIM, force=True)
    disk = rig.lose(VICTIM)
    keeper.declare_bookie_lost(VICTIM)
    rig.bring_back(VICTIM, disk)
    with pytest.raises(InvalidRequestError, match="can be read"):
        bookies.remove(rig.uri, VICTIM, force=True)
    rig.lose(VICTIM)
    assert bookies.remove(rig.uri, VICTIM, force=True).done
    assert not is_registered(rig)
    assert rig.rows() == flat(rows)


def test_a_dry_run_removes_nothing(rig: Rig) -> None:
    report = bookies.remove(rig.uri, VICTIM, dry_run=True)
    assert (len(report.plan["steps"]), report.done) == (1, {})
    assert is_registered(rig)
    assert not is_going(rig)


def _going(record: BookieRecord | None) -> BookieRecord:
    assert record is not None
    return replace(record, is_read_only=True, is_leaving=True)


def test_killed_half_way_it_goes_on_or_is_taken_back(rig: Rig) -> None:
    for off in (True, False):
        with Cluster(rig.uri) as cluster:
            cluster.registrations.update(VICTIM, _going)
            assert VICTIM not in {c.member.bookie_id for c in cluster.refresh_candidates()}
        if off:
            bookies.readonly(rig.uri, VICTIM, off=True)
            assert not is_going(rig)
    assert removed(rig).done


def test_who_takes_it_back_meanwhile_keeps_it(make_rig: Callable[..., Rig]) -> None:
    """At each operation of the removal in turn: it is removed, or taken back, and never both."""
    outcomes = set()
    for number in range(100):
        rig = rig_of(make_rig, 5)
        with rig.faults.installed(), at_operation(rig, number, taken_back) as came:
            report = removed(rig)
        outcomes.add(bool(report.done))
        assert is_going(rig) is bool(report.done)
        if not came:
            break
    assert outcomes == {True, False}


def taken_back(rig: Rig) -> bool:
    return bool(bookies.readonly(rig.uri, VICTIM, off=True))


def written(rig: Rig) -> bool:
    with (
        BookKeeper(rig.uri) as keeper,
        keeper.create_ledger(ensemble_size=4, write_quorum_size=3) as ledger,
    ):
        ledger.append(b"x")
    return True


# --- races ----------------------------------------------------------------------------------------


def test_a_ledger_that_is_made_at_that_moment_does_not_name_it(
    make_rig: Callable[..., Rig],
) -> None:
    outcomes = set()
    for number in range(200):
        rig = rig_of(make_rig, 5)
        with (
            rig.faults.installed(),
            BookKeeper(rig.uri) as keeper,
            at_operation(rig, number, removed) as came,
        ):
            keeper.create_ledger(ensemble_size=4, write_quorum_size=3).release()
        if not came:
            break
        [ledger] = all_of(rig)
        assert not (names_it(ledger) and not is_registered(rig))
        outcomes.add((is_registered(rig), ledger.ledger_id > 0))
    assert number > 10
    assert {(False, False), (False, True)} <= outcomes  # it was chosen, and given up for another


def test_a_removal_in_whose_midst_a_ledger_is_made_finds_it(make_rig: Callable[..., Rig]) -> None:
    outcomes = set()
    for number in range(100):
        rig = rig_of(make_rig, 5)
        with rig.faults.installed(), at_operation(rig, number, written) as came:
            report = removed(rig)
        if not came:
            break
        [ledger] = all_of(rig)
        assert not (names_it(ledger) and not is_registered(rig))
        assert is_going(rig) is bool(report.done)
        outcomes.add(bool(report.done))
    assert outcomes == {True, False}


def test_a_ledger_for_which_it_was_chosen_before_is_found_or_given_up(
    make_rig: Callable[..., Rig],
) -> None:
    """The ledger's record comes at each operation of the removal in turn; it was chosen before."""
    outcomes = set()
    for number in range(100):
        rig = rig_of(make_rig, 5)
        scene = _Scene(rig, number)
        with rig.faults.installed():
            rig.faults.decide = scene.decide
            maker = threading.Thread(target=written, args=(rig,))
            maker.start()
            wait_until(scene.has_chosen.is_set)
            scene.maker = maker
            report = removed(rig)
            scene.may_go_on.set()
            maker.join()
        [ledger] = all_of(rig)
        assert not (names_it(ledger) and not is_registered(rig)), number
        assert is_going(rig) is bool(report.done)
        outcomes.add((bool(report.done), ledger.ledger_id > 0))
        if scene.left > 0:
            break
    assert {(False, False), (True, True)} <= outcomes


class _Scene:
    """Who makes a ledger waits in front of its record until a removal has come so far."""

    def __init__(self, rig: Rig, number: int) -> None:
        self.rig, self.left = rig, number
        self.has_chosen, self.may_go_on = threading.Event(), threading.Event()
        self.maker: threading.Thread | None = None

    def decide(self, _number: int, operation: Operation) -> Fault | None:
        if operation.call == "put" and operation.name.startswith("ledgers/"):
            self.has_chosen.set()
            self.may_go_on.wait(60)
        elif self.maker is not None and not self.may_go_on.is_set():
            self.left -= 1
            if self.left < 0:
                self.may_go_on.set()
                self.maker.join()
        return None


def test_a_writer_that_is_about_to_put_it_in_anothers_place_counts_nothing_there(
    make_rig: Callable[..., Rig],
) -> None:
    """At each operation of an ensemble change in turn, the bookie that joins is removed.

    What is added amid the change may go to who has joined, or need it no more. What is added behind
    it does go there, so that it is found out whenever it is named.
    """
    named_and_given_up = 0
    for number in range(100):
        rig = rig_of(make_rig, 5)
        put_others_together(rig)
        bookies.readonly(rig.uri, VICTIM)
        with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
            ledger = keeper.create_ledger()
            ledger.append(b"first")
            wait_for_all_copies(ledger)
            bookies.readonly(rig.uri, VICTIM, off=True)
            old = ledger.metadata.last_fragment.ensemble[0].bookie_id
            with at_operation(rig, number, removed) as came:
                ledger._writer._report(Failed(0, old, BookieUnavailableError("it failed")))
                ledger.append(b"second")
                wait_until(lambda ledger=ledger: not ledger._writer.machine.changes.is_under_way)
                ledger.append(b"third")
                wait_for_all_copies(ledger)
            named_and_given_up += VICTIM in ledger.faults and not is_registered(rig)
            ledger.close()
        if not is_registered(rig):
            rig.lose(VICTIM)
            assert values_without(rig, ledger.ledger_id) == [b"first", b"second", b"third"]
        if not came:
            break
    assert named_and_given_up


def values_without(rig: Rig, ledger_id: int) -> list[bytes]:
    """What is read of a ledger with any one more bookie lost."""
    found: list[list[bytes]] = []
    for other in sorted(rig.urls.keys() - {VICTIM}):
        disk = rig.lose(other)
        with BookKeeper(rig.uri) as keeper:
            entries = keeper.open_ledger(ledger_id).read()
            found.append([bytes(entry.value) for entry in entries])
        rig.bring_back(other, disk)
    assert all(values == found[0] for values in found)
    return found[0]


def test_a_commit_that_is_about_to_put_it_in_anothers_place_counts_nothing_there(
    make_rig: Callable[..., Rig],
) -> None:
    rows, outcomes = partitions_of(20, 20), set()
    for number in range(300):
        rig = rig_of(make_rig, 5)
        bookies.readonly(rig.uri, VICTIM)
        with Cluster(rig.uri) as cluster:
            spare = cluster.address(cluster.bookie(VICTIM).value)
        target = replace(rig.target((4, 3, 2)), spares=(spare,))
        bookies.readonly(rig.uri, VICTIM, off=True)
        down = target.ensemble[0].bookie_id
        with rig.faults.installed():
            rig.faults.down = {down}
            reports = rig.tasks(target, rows)
            with at_operation(rig, number, removed) as came:
                batch_commit.commit(target, reports)
            rig.faults.down = set()
        if not came:
            break
        outcomes.add((is_registered(rig), any(map(names_it, all_of(rig)))))
        if not is_registered(rig):
            rig.lose(VICTIM)
            for other in rig.urls.keys() - {VICTIM, down}:
                disk = rig.lose(other)
                assert rig.rows() == flat(rows), (number, other)
                rig.bring_back(other, disk)
    assert {(True, True), (False, True)} <= outcomes  # named too late, too
