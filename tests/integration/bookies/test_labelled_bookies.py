"""Ledgers that insist on labels: who gets into their write sets, now and after every change."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from bkspark import verbs
from bkspark.admin.absent_bookies import declare_lost
from bkspark.admin.bookies.closing import set_labels
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import ensembles
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.log.batch import commit as batch_commit
from bkspark.protocol.apart import Apart
from tests.integration.ledger.test_ensemble_changes import names_of, replace_by_failing
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, the_log
from tests.integration.waiting import wait_for_all_copies

MakeRig = Callable[..., Rig]
TWO = {"rack": 2}


@pytest.fixture
def labelled(make_rig: MakeRig) -> Callable[..., Rig]:
    """A cluster with one bookie for each letter, which is its rack; a dot has none."""

    def made(racks: str) -> Rig:
        rig = make_rig(kind="memory", metadata="memory", bookie_count=len(racks))
        with Cluster(rig.uri) as cluster:
            for name, rack in zip(rig.urls, racks, strict=True):
                if rack != ".":
                    set_labels(cluster, name, labels={"rack": rack})
        return rig

    return made


@pytest.fixture
def rig(labelled: Callable[..., Rig]) -> Rig:
    return labelled("aaaab")


@pytest.fixture
def keeper(rig: Rig) -> Iterator[BookKeeper]:
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        yield keeper


def racks_of(rig: Rig, ledger_id: int) -> list[str]:
    """The racks of each fragment's members, in their order."""
    with Cluster(rig.uri) as cluster:
        known = {name: record.labels.get("rack", ".") for name, record in cluster.bookies().items()}
        fragments = cluster.ledger(ledger_id).value.fragments
        return ["".join(known[m.bookie_id] for m in one.ensemble) for one in fragments]


def has_two(racks: list[str]) -> bool:
    return all(len(set(one) - {"."}) >= 2 for one in racks)


# --- new ledgers ---------------------------------------------------------------------------------


def test_every_new_ledger_has_two_racks(rig: Rig, keeper: BookKeeper) -> None:
    for _ in range(10):
        with keeper.create_ledger(ensemble_size=2, write_quorum_size=2, min_distinct=TWO) as handle:
            handle.append(b"one")
        assert has_two(racks_of(rig, handle.ledger_id))
        assert rig.ledger(handle.ledger_id).settings.min_distinct == TWO


def test_none_is_made_where_the_bookies_are_not_so(labelled: Callable[..., Rig]) -> None:
    rig = labelled("aaa.")
    with BookKeeper(rig.uri) as keeper:
        with pytest.raises(NotEnoughBookiesError, match="3 rack=a, 1 without rack"):
            keeper.create_ledger(min_distinct=TWO)
        log = keeper.create_log("wal", min_distinct=TWO)
        with pytest.raises(NotEnoughBookiesError, match="minDistinct rack:2"):
            log.writer()
        assert keeper.list_ledgers() == []
        with Cluster(rig.uri) as cluster:
            set_labels(cluster, "bookie-4", labels=["rack=b"])
        with log.writer() as writer:
            writer.append(b"one")
        [ledger_id] = log.record.listed_ids
        assert has_two(racks_of(rig, ledger_id))


def test_a_bookie_that_does_not_join_is_not_stood_in_for_by_its_neighbours(rig: Rig) -> None:
    rig.lose("bookie-5")
    with BookKeeper(rig.uri) as keeper:
        with pytest.raises(NotEnoughBookiesError, match="4 rack=a"):
            keeper.create_ledger(min_distinct=TWO)
        keeper.create_ledger().close()


def test_a_number_that_no_write_set_can_have_is_refused(keeper: BookKeeper) -> None:
    with pytest.raises(InvalidRequestError, match="4 values of label rack"):
        keeper.create_ledger(min_distinct={"rack": 4})
    for bad in ("rack", {"rack": "2"}, 2, "rack:2,rack:3", "rack:1e9"):
        with pytest.raises(InvalidRequestError, match=r"min_?[dD]istinct"):
            keeper.create_log("wal", min_distinct=bad)  # type: ignore[arg-type]
    assert keeper.list_logs() == []


# --- logs ----------------------------------------------------------------------------------------


def test_a_log_keeps_what_its_first_write_insists_on(rig: Rig) -> None:
    sizes = (2, 2, 2)
    rig.write(partitions_of(3, 4), sizes, min_distinct=TWO)
    for _ in range(4):
        rig.write(partitions_of(3, 4))
    log = rig.log()
    assert log is not None
    assert log.settings.min_distinct == TWO
    assert all(has_two(racks_of(rig, ledger_id)) for ledger_id in log.listed_ids)
    with pytest.raises(InvalidRequestError, match="created with minDistinct rack:2, not rack:1"):
        rig.write(partitions_of(3), min_distinct={"rack": 1})
    assert len(rig.rows()) == 5 * len(flat(partitions_of(3, 4)))


def test_a_write_that_cannot_be_apart_leaves_nothing(labelled: Callable[..., Rig]) -> None:
    rig = labelled("aaaa")
    with pytest.raises(NotEnoughBookiesError, match="4 rack=a"):
        rig.write(partitions_of(3), min_distinct=TWO)
    assert rig.log() is None


def test_a_stream_makes_a_log_that_insists(rig: Rig) -> None:
    driver = Driver(rig, quorum=(2, 2, 2), options={"min_distinct": TWO})
    assert driver.run(0, 1) == [True, True]
    assert driver.with_new_process().run(2, 3) == [True, True]
    log = the_log(rig)
    assert log.settings.min_distinct == TWO
    assert len(log.tail) == 1
    assert all(has_two(racks_of(rig, one)) for one in (*log.listed_ids, *log.tail))


def test_a_stream_adopts_no_ledger_that_insists_on_less_than_the_log(rig: Rig) -> None:
    """Another client has created the log since the micro-batch was planned."""
    driver = Driver(rig)
    batch = driver.planned(0)
    with BookKeeper(rig.uri) as keeper:
        keeper.create_log(rig.log_name, schema=SCHEMA, min_distinct=TWO)
    assert driver.commit(batch)
    assert [rig.ledger(one).settings.min_distinct for one in the_log(rig).tail] == [TWO]


def test_a_write_joins_no_log_that_insists_on_more(rig: Rig) -> None:
    target = rig.target()
    reports = rig.tasks(target, partitions_of(3))
    with BookKeeper(rig.uri) as keeper:
        keeper.create_log(rig.log_name, schema=SCHEMA, min_distinct=TWO)
    with pytest.raises(InvalidRequestError, match="has minDistinct"):
        batch_commit.commit(target, reports)
    assert rig.rows() == []


def test_a_compaction_keeps_it(rig: Rig) -> None:
    rig.write(partitions_of(3), (2, 2, 2), min_distinct=TWO)
    rig.write(partitions_of(3))
    assert verbs.compact(rig.uri, log=rig.log_name).done
    log = rig.log()
    assert log is not None
    assert all(rig.ledger(one).settings.min_distinct == TWO for one in log.listed_ids)


# --- changes of an ensemble ----------------------------------------------------------------------


def member_of_rack(rig: Rig, handle: WriteHandle, rack: str) -> int:
    return racks_of(rig, handle.ledger_id)[-1].index(rack)


def test_a_failed_bookie_is_replaced_from_its_own_side(labelled: Callable[..., Rig]) -> None:
    rig = labelled("aaaabb")
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(min_distinct=TWO, ack_quorum_size=2)
        only_one = racks_of(rig, handle.ledger_id)[-1].count("b") == 1
        handle.append(b"one")
        assert replace_by_failing(handle, member_of_rack(rig, handle, "b"))
        handle.append(b"two")
        wait_for_all_copies(handle)
        assert has_two(racks_of(rig, handle.ledger_id)) or not only_one
        handle.close()


def test_none_replaces_it_if_that_brings_copies_together(rig: Rig, keeper: BookKeeper) -> None:
    handle = keeper.create_ledger(min_distinct=TWO)
    handle.append(b"one")
    index = member_of_rack(rig, handle, "b")
    name = names_of(handle)[index]
    assert not replace_by_failing(handle, index)
    handle.append(b"two")  # an ack quorum is left
    assert names_of(handle)[index] == name
    other = next(k for k in range(3) if k != index)
    assert replace_by_failing(handle, other)
    handle.close()
    assert has_two(racks_of(rig, handle.ledger_id))


def test_a_new_fragment_has_two_racks(rig: Rig, keeper: BookKeeper) -> None:
    handle = keeper.create_ledger(ensemble_size=2, write_quorum_size=2, min_distinct=TWO)
    for number in range(12):
        handle.append(b"%d" % number)
        wait_for_all_copies(handle)
        handle.begin_fragment().result(60)
    handle.close()
    racks = racks_of(rig, handle.ledger_id)
    assert len(racks) == 12
    assert has_two(racks)


def test_a_new_fragment_of_a_striped_ledger_has_them_in_each_write_set(
    labelled: Callable[..., Rig],
) -> None:
    rig = labelled("aabbab")
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        sizes = {"ensemble_size": 4, "write_quorum_size": 2, "ack_quorum_size": 1}
        handle = keeper.create_ledger(**sizes, min_distinct=TWO)  # type: ignore[arg-type]
        for number in range(12):
            handle.append(b"%d" % number)
            wait_for_all_copies(handle)
            handle.begin_fragment().result(60)
        handle.close()
    assert set(racks_of(rig, handle.ledger_id)) <= {"abab", "baba"}


def test_a_recovery_takes_any_bookie_and_an_audit_tells_it(rig: Rig, keeper: BookKeeper) -> None:
    silent = WriterSettings(explicit_lac_ms=3_600_000)  # the entry must be written back
    handle = keeper.create_ledger(min_distinct=TWO, ack_quorum_size=3, settings=silent)
    handle.append(b"one")
    victim = names_of(handle)[member_of_rack(rig, handle, "b")]
    rig.lose(victim)
    with Cluster(rig.uri) as cluster:
        declare_lost(cluster, victim, "")
    keeper.recover_ledger(handle.ledger_id, accepts_loss=True)
    assert [entry.value for entry in keeper.open_ledger(handle.ledger_id).read()] == [b"one"]
    assert "aaa" in racks_of(rig, handle.ledger_id)
    report = verbs.audit(rig.uri)
    assert report.counters["NUM_LEDGERS_NOT_ADHERING_TO_PLACEMENT_POLICY"] == 1
    [left] = [item for item in report.left if "minDistinct" in item.reason]
    assert "values of label rack in a write set: 1, and 2 are wanted" in left.reason


def test_a_recovery_prefers_a_bookie_that_keeps_the_copies_apart(
    make_rig: Callable[..., Rig],
) -> None:
    """Of a label that means nothing to the usual choice."""
    feeds = dict(zip([f"bookie-{n}" for n in range(1, 10)], "aaaaaaabb", strict=True))
    rig = make_rig(kind="memory", metadata="memory", bookie_count=len(feeds))
    with Cluster(rig.uri) as cluster:
        for name, feed in feeds.items():
            set_labels(cluster, name, labels={"feed": feed})
    silent = WriterSettings(explicit_lac_ms=3_600_000)  # the entry must be written back
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        while True:
            handle = keeper.create_ledger(
                min_distinct={"feed": 2}, ack_quorum_size=3, settings=silent
            )
            members = names_of(handle)
            if [feeds[name] for name in members].count("b") == 1:
                break
        handle.append(b"one")
        [victim] = [name for name in members if feeds[name] == "b"]
        rig.lose(victim)
        with Cluster(rig.uri) as cluster:
            declare_lost(cluster, victim, "")
        [other] = [name for name, feed in feeds.items() if feed == "b" and name != victim]
        with Cluster(rig.uri) as cluster:  # the usual choice takes it last
            member = cluster.address(cluster.bookie(other).value).member
            while other not in cluster.suspects():
                cluster.note_failure(member)
        keeper.recover_ledger(handle.ledger_id, accepts_loss=True)
        with Cluster(rig.uri) as cluster:
            fragments = cluster.ledger(handle.ledger_id).value.fragments
        for fragment in fragments:
            named = [member.bookie_id for member in fragment.ensemble]
            assert other in named
            assert victim not in named


# --- upkeep --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["repair", "decommission"])
@pytest.mark.parametrize("racks", ["aaaab", "aaaabb"])
def test_a_place_moves_only_to_where_the_copies_stay_apart(
    labelled: Callable[..., Rig], verb: str, racks: str
) -> None:
    rig = labelled(racks)
    with BookKeeper(rig.uri) as keeper:
        with keeper.create_ledger(ensemble_size=2, write_quorum_size=2, min_distinct=TWO) as handle:
            handle.append(b"one")
        members = [m.bookie_id for m in rig.ledger(handle.ledger_id).last_fragment.ensemble]
        victim = members[racks_of(rig, handle.ledger_id)[-1].index("b")]
        if verb == "repair":
            rig.lose(victim)
            with Cluster(rig.uri) as cluster:
                declare_lost(cluster, victim, "")
            report = verbs.repair(rig.uri)
        else:
            report = verbs.decommission(rig.uri, bookies=[victim])
        is_possible = racks == "aaaabb"
        assert has_two(racks_of(rig, handle.ledger_id))
        moved = victim not in {
            m.bookie_id for m in rig.ledger(handle.ledger_id).last_fragment.ensemble
        }
        assert moved is is_possible
        told = [item.reason for item in report.left if "minDistinct rack:2" in item.reason]
        assert bool(told) is not is_possible
        assert [entry.value for entry in keeper.open_ledger(handle.ledger_id).read()] == [b"one"]


def test_spares_are_taken_only_if_the_copies_stay_apart(rig: Rig) -> None:
    """A DataFrame's writer takes its spares from a list that was made before."""
    with Cluster(rig.uri) as cluster:
        quorum = ensembles.Quorum(2, 2, 1)
        placed = ensembles.choose(cluster, cluster.new_ledger_id(), quorum, distinct=TWO)
        racks = [address.labels["rack"] for address in placed.ensemble]
        index = racks.index("b")
        vacancy = ensembles.Vacancy(
            0,
            index,
            ensembles.Joining(""),
            [placed.ensemble[1 - index].member],
            (),
            [address.member for address in placed.ensemble],
            Apart(quorum, TWO),
            placed.spares,
        )
        assert list(ensembles._suited(cluster, vacancy, [])) == []
        free = replace(vacancy, wanted=Apart(quorum, {}))
        assert list(ensembles._suited(cluster, free, [])) == list(placed.spares)
