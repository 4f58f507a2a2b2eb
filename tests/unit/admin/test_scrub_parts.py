"""What a scrub is made of: how fast it reads, what it holds, and what it marks."""

import secrets
from collections.abc import Iterator

import pytest

from bkspark import environment
from bkspark.admin import noted_damage
from bkspark.admin.maintenance import Pace
from bkspark.admin.noted_damage import News, NotedDamage
from bkspark.admin.scrubbing.look import joined
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import CorruptDataError
from bkspark.format import layout
from bkspark.format.upkeep_records import Mark
from bkspark.protocol.ledger.metadata import Member

TOKEN, OTHER = "0" * 32, "1" * 32
MEMBER = Member("bookie-1", TOKEN)


class Clock(environment.RealEnvironment):
    """Time passes only while somebody sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_no_more_is_read_than_may_be_and_whoever_waits_shows_signs_of_life() -> None:
    beats: list[float] = []
    clock = Clock()
    with environment.use(clock):
        pace = Pace(100, lambda: beats.append(clock.now))
        pace.passed(50)
        assert clock.now == 0.5
        clock.now += 3.0  # the work itself takes time too
        pace.passed(100)
        assert clock.now == 3.5
        pace.passed(500)
        assert clock.now == 6.5
    assert max(b - a for a, b in zip(beats, beats[1:])) <= 3.0
    assert len([beat for beat in beats if beat > 3.5]) == 3
    assert pace.byte_count == 650


def test_without_a_limit_nobody_waits() -> None:
    clock = Clock()
    with environment.use(clock):
        Pace(None, lambda: None).passed(2**40)
        Pace(0, lambda: None).passed(2**40)
    assert clock.now == 0.0


def test_ranges_that_follow_each_other_are_one_and_what_is_its_own_is_not_passed() -> None:
    held: list[tuple[tuple[int, int], int]] = []
    for entries in ((0, 0), (1, 4), (3, 5)):
        joined(held, entries, 1, lambda _between: False)
    assert held == [((0, 5), 1)]
    joined(held, (8, 9), 1, lambda between: between == (6, 7))
    assert held == [((0, 9), 1)]
    joined(held, (12, 12), 1, lambda _between: False)
    joined(held, (2, 2), 1, lambda _between: True)
    joined(held, (3, 3), 2, lambda _between: True)
    assert held == [((0, 9), 1), ((12, 12), 1), ((2, 2), 1), ((3, 3), 2)]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [f"memory://{secrets.token_hex(8)}"])
    with Cluster(uri) as opened:
        yield opened


def mark(ledger_id: int, *names: str, incarnation: str = TOKEN) -> Mark:
    return Mark(ledger_id, incarnation, entry_logs=names)


def test_marks_come_and_go(cluster: Cluster) -> None:
    noted = NotedDamage(cluster)
    noted.note(News(MEMBER, {}, good=[1]))
    assert cluster.store.list("damaged") == []
    noted.note(News(MEMBER, {1: mark(1, "a"), 2: mark(2, "b")}))
    noted.note(News(MEMBER, {1: mark(1, "c"), 2: mark(2, "d")}, partial={2}))
    assert noted.marks([MEMBER]) == {
        (MEMBER, 1): mark(1, "c"),
        (MEMBER, 2): mark(2, "b", "d"),
    }
    noted.note(News(MEMBER, {}, good=[1]))
    assert set(noted.marks([MEMBER])) == {(MEMBER, 2)}


def test_a_record_that_cannot_be_read_stops_only_who_would_change_it(cluster: Cluster) -> None:
    noted = NotedDamage(cluster)
    noted.note(News(MEMBER, {1: mark(1)}))
    stored = cluster.store.get(layout.damaged_key(MEMBER.bookie_id))
    assert stored is not None
    cluster.store.put(layout.damaged_key(MEMBER.bookie_id), b"garbage", stored.version)
    assert noted.marks([MEMBER]) == {}
    with pytest.raises(CorruptDataError):
        noted.note(News(MEMBER, {1: mark(1)}))


def test_what_was_initialised_anew_has_no_marks_of_before(cluster: Cluster) -> None:
    noted, anew = NotedDamage(cluster), Member("bookie-1", OTHER)
    noted.note(News(MEMBER, {1: mark(1)}))
    assert noted.marks([anew]) == {}
    noted.note(News(anew, {2: mark(2, incarnation=OTHER)}))
    assert set(noted.marks([anew])) == {(anew, 2)}
    assert noted.marks([MEMBER]) == {}


def test_there_is_room_for_so_many_and_the_others_are_counted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noted_damage, "LEDGERS_MAX", 3)
    noted = NotedDamage(cluster)
    assert noted.note(News(MEMBER, {n: mark(n) for n in range(5)})) == 2
    assert set(noted.marks([MEMBER])) == {(MEMBER, n) for n in range(3)}
