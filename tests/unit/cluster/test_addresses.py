"""Addresses are looked up by member, and remembered; new ledgers look at a part of many bookies."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pytest

from bkspark import environment
from bkspark.bookie.memory import MemoryStorage
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import ensembles
from bkspark.cluster.cluster import DOMAINS_READ_MAX, Cluster, init_cluster
from bkspark.cluster.hanging import HangMemory
from bkspark.cluster.log_messages import leave_out
from bkspark.errors import BookieUnavailableError
from bkspark.format import arrow_schema
from bkspark.format.cluster import BookieRecord
from bkspark.ledger.creating import create_ledger
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.log.reading.ledger_files import OpenBookies
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.memory import MemoryMetadataStore
from bkspark.protocol.ledger.metadata import DigestSpec, Member
from bkspark.protocol.ledger.quorum import Quorum

MANY = 100
T = TypeVar("T")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the metadata store was asked, in order."""
    found: list[str] = []
    get, names = MemoryMetadataStore.get, MemoryMetadataStore.list

    def noted_get(self: MemoryMetadataStore, key: str) -> VersionedBytes | None:
        found.append(key)
        return get(self, key)

    def noted_list(self: MemoryMetadataStore, prefix: str) -> list[str]:
        found.append(f"list {prefix}")
        return names(self, prefix)

    monkeypatch.setattr(MemoryMetadataStore, "get", noted_get)
    monkeypatch.setattr(MemoryMetadataStore, "list", noted_list)
    return found


def cluster_of(count: int) -> Cluster:
    name = secrets.token_hex(6)
    uri = f"memory://{name}-metadata"
    init_cluster(uri, [f"memory://{name}-{n}" for n in range(count)], accepts_risk=True)
    return Cluster(uri)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with cluster_of(4) as cluster:
        yield cluster


def members_of(cluster: Cluster) -> list[Member]:
    return sorted(cluster.addresses(), key=lambda member: member.bookie_id)


def move(cluster: Cluster, member: Member, url: str) -> None:
    def moved(record: BookieRecord | None) -> BookieRecord:
        assert record is not None
        return replace(record, url=url)

    cluster.registrations.update(member.bookie_id, moved)


def test_each_member_is_looked_up_once(cluster: Cluster, asked: list[str]) -> None:
    one, two, three, _ = members_of(cluster)
    asked.clear()
    assert [*cluster.addresses_of([one, two])] == [one, two]
    assert asked == ["bookies/bookie-1", "bookies/bookie-2"]
    assert [*cluster.addresses_of([two, three, one])] == [two, three, one]
    assert asked[2:] == ["bookies/bookie-3"]
    assert cluster.addresses_of([one]) == {one: cluster.addresses()[one]}


def test_a_member_of_another_incarnation_is_gone(cluster: Cluster) -> None:
    one = members_of(cluster)[0]
    assert cluster.addresses_of([Member(one.bookie_id, "0" * 32), Member("none", "0" * 32)]) == {}


def test_a_bookie_that_is_left_out_or_removed_is_gone(cluster: Cluster) -> None:
    one, two, *_ = members_of(cluster)
    cluster.left_out = frozenset({one.bookie_id})
    record = cluster.bookie(two.bookie_id)
    cluster.registrations.replace(two.bookie_id, replace(record.value, is_removed=True), record)
    assert cluster.addresses_of([one, two]) == {}


def test_what_was_remembered_can_be_looked_up_anew(cluster: Cluster) -> None:
    one = members_of(cluster)[0]
    before = cluster.addresses_of([one])
    move(cluster, one, "memory://elsewhere")
    assert cluster.addresses_of([one]) == before
    assert cluster.addresses_of([one], is_anew=True)[one].url == "memory://elsewhere"
    move(cluster, one, "memory://home")
    cluster.forget_address(one)
    assert cluster.addresses_of([one])[one].url == "memory://home"


def test_a_reader_finds_a_bookie_that_was_moved(cluster: Cluster) -> None:
    """Though it remembers the old place."""
    one, two, *_ = members_of(cluster)
    places = {member: cluster.addresses()[member].url for member in (one, two)}
    for member in (one, two):
        move(cluster, member, "memory://nothing-is-here")
    cluster.addresses_of([one, two])
    for member, url in places.items():
        move(cluster, member, url)
    with OpenBookies(cluster) as bookies:
        assert bookies.root(one) is not None
        answers = bookies.ask([one, two], lambda root, _: root.size("COOKIE"))
    assert all(isinstance(answer, int) for answer in answers.values())


def test_a_bookie_that_is_silent_where_it_is_stays_silent(cluster: Cluster) -> None:
    one = members_of(cluster)[0]
    move(cluster, one, "memory://nothing-is-here")
    with OpenBookies(cluster) as bookies:
        with pytest.raises(BookieUnavailableError):
            bookies.root(one)
        answers = bookies.ask([one], lambda root, _: root.size("COOKIE"))
    assert isinstance(answers[one], BookieUnavailableError)


def test_a_bookie_whose_record_is_unreadable_is_silent(cluster: Cluster) -> None:
    one = members_of(cluster)[0]
    key = f"bookies/{one.bookie_id}"
    stored = cluster.store.get(key)
    assert stored is not None
    cluster.store.put(key, b"{", stored.version)
    with OpenBookies(cluster) as bookies:
        answers = bookies.ask([one], lambda root, _: root.size("COOKIE"))
        assert isinstance(answers[one], BookieUnavailableError)
        with pytest.raises(BookieUnavailableError):
            bookies.root(one)


def create(cluster: Cluster, size: int = 3) -> list[str]:
    """A ledger's ensemble, by bookie id."""
    created = create_ledger(
        cluster,
        quorum=Quorum(size, size, size - 1),
        digest=DigestSpec(),
        schema=arrow_schema.encode(VALUE_SCHEMA),
        custom_metadata={},
    )
    return [address.bookie_id for address in created.ensemble]


def test_the_cost_of_a_ledger_does_not_grow_with_the_bookies(asked: list[str]) -> None:
    costs = []
    for count in (ensembles.DRAWN_MIN, MANY):
        with cluster_of(count) as cluster:
            asked.clear()
            create(cluster)
            costs.append(len(asked))
            assert asked.count("list bookies") == 1
    assert costs[0] == costs[1] <= ensembles.DRAWN_MIN + 10


@pytest.fixture
def one_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """All bookies are in one failure domain, as those of one bucket or disk."""
    monkeypatch.setattr(MemoryStorage, "failure_domain", lambda _self: "one-bucket")


@pytest.mark.usefixtures("one_bucket")
def test_what_is_asked_does_not_grow_with_a_thousand_bookies(asked: list[str]) -> None:
    counts = list[list[int]]()
    for count in (3, 100, 1000):
        with cluster_of(count) as cluster:
            for _ in range(4):
                create(cluster)  # this process has met the bookies then
            counts.append(questions(cluster, asked))
    few, many, most = counts
    assert many == most
    assert many[0] <= few[0] + ensembles.DRAWN_MIN  # a look at some bookies drawn by chance
    assert many[1:] == few[1:]


def questions(cluster: Cluster, asked: list[str]) -> list[int]:
    """What the metadata store is asked by a new ledger, a reader that opens, a poll, a recovery."""
    with BookKeeper(cluster.uri) as keeper:
        found = list[int]()

        def counted(action: Callable[[], T]) -> T:
            asked.clear()
            done = action()
            found.append(len(asked))
            return done

        handle = counted(keeper.create_ledger)
        handle.append(b"one")
        opened = partial(keeper.open_ledger, handle.ledger_id)
        reader = counted(partial(opened, recovery=False))
        counted(reader.read_last_add_confirmed)
        counted(lambda: list(reader.read_unconfirmed(0, 0)))
        counted(partial(keeper.recover_ledger, handle.ledger_id))
        return found


@pytest.mark.usefixtures("one_bucket")
def test_a_search_for_other_domains_reads_some_records_at_once(asked: list[str]) -> None:
    """So a process that has met no bookie yet makes a ledger of a large cluster soon."""
    with cluster_of(400) as cluster:
        environment.the_one(HangMemory).domains(cluster.cluster_id).clear()
        asked.clear()
        create(cluster)
        own = len(asked)
        create(cluster)
    assert DOMAINS_READ_MAX <= own <= DOMAINS_READ_MAX + ensembles.DRAWN_MIN + 10
    assert len(asked) - own < own


def test_each_of_many_bookies_has_its_turn() -> None:
    with cluster_of(MANY) as cluster:
        used = {name for _ in range(40) for name in create(cluster)}
    assert len(used) > MANY // 2


def test_a_ledger_of_more_bookies_than_are_drawn_has_them_all() -> None:
    with cluster_of(MANY) as cluster:
        assert len(set(create(cluster, 60))) == 60


def test_a_failure_domain_that_was_not_drawn_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All bookies but the last two are in one domain, and these are drawn last."""
    with cluster_of(MANY) as cluster:
        names = cluster.store.list("bookies")
        for name in names[:-2]:
            relabel(cluster, name, "rack-a")
        monkeypatch.setattr(environment, "draw", lambda: 0.0)
        assert {*create(cluster)} >= {*names[-2:]}


def test_bookies_that_cannot_be_used_make_no_ledger_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that are drawn first are all closed to new ledgers."""
    with cluster_of(MANY) as cluster:
        names = cluster.store.list("bookies")
        for name in names[:-3]:
            record = cluster.bookie(name)
            closed = replace(record.value, is_read_only=True)
            cluster.registrations.replace(name, closed, record)
        monkeypatch.setattr(environment, "draw", lambda: 0.0)
        assert sorted(create(cluster)) == sorted(names[-3:])


def relabel(cluster: Cluster, name: str, domain: str) -> None:
    record = cluster.bookie(name)
    cluster.registrations.replace(name, replace(record.value, domain=domain), record)


def test_lost_marks_are_read_of_the_drawn_bookies_alone(cluster: Cluster, asked: list[str]) -> None:
    assert cluster.lost_members(leave_out, {"bookie-1"}) == frozenset()
    assert asked == ["list lost"]
