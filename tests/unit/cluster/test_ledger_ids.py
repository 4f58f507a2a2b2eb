"""Ids of new ledgers: ascending, each once, and few changes of the counter under competition."""

import secrets
import threading
from collections.abc import Callable
from typing import Any

import pytest

from bkspark import environment
from bkspark.cluster import ledger_ids
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.ledger_ids import IDS_MAX, KEPT_SECONDS
from bkspark.cluster.records import Records
from bkspark.format import layout


@pytest.fixture
def uri() -> str:
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [])
    return uri


class Rivals:
    """Raise the counter inside the compare-and-sets of a client, before its put."""

    def __init__(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.puts = 0, 0
        inner = cluster._ledger_ids.counters._put
        monkeypatch.setattr(
            cluster._ledger_ids.counters, "_put", self._competing(inner, cluster.uri)
        )

    def _competing(self, put: Callable[..., object], uri: str) -> Callable[..., object]:
        def competing(name: str, value: int, expected: int | None) -> object:
            self.puts += 1
            if self.left:
                self.left -= 1
                with Cluster(uri) as rival:
                    rival.new_ledger_id()
            return put(name, value, expected)

        return competing


def test_a_client_alone_takes_one_id_at_a_time(uri: str) -> None:
    with Cluster(uri) as one, Cluster(uri) as other:
        assert [one.new_ledger_id() for _ in range(3)] == [0, 1, 2]
        assert [other.new_ledger_id(), one.new_ledger_id(), other.new_ledger_id()] == [3, 4, 5]
        assert one.next_ledger_id() == 6


def test_a_client_that_loses_takes_more_ids_and_uses_them(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(uri) as cluster:
        rivals = Rivals(cluster, monkeypatch)
        rivals.left = 3  # attempts of 1, 1, 2 ids lose; the next one takes 4
        ids = [cluster.new_ledger_id() for _ in range(4)]
        assert ids == [3, 4, 5, 6]
        assert rivals.puts == 4
        assert cluster.next_ledger_id() == 7
        later = [cluster.new_ledger_id() for _ in range(4)]  # 2 ids, then one at a time
        assert (later, rivals.puts) == ([7, 8, 9, 10], 7)


def test_no_client_takes_more_than_the_bound(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bkspark.cluster.records.back_off", lambda _: None)
    with Cluster(uri) as cluster:
        rivals = Rivals(cluster, monkeypatch)
        rivals.left = 12
        first = cluster.new_ledger_id()
        assert (first, cluster.next_ledger_id()) == (12, 12 + IDS_MAX)


def test_ids_that_were_not_used_soon_are_left_out(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = environment.monotonic()
    monkeypatch.setattr(ledger_ids.environment, "monotonic", lambda: now)
    with Cluster(uri) as cluster:
        Rivals(cluster, monkeypatch).left = 3
        assert [cluster.new_ledger_id(), cluster.new_ledger_id()] == [3, 4]
        now += KEPT_SECONDS
        assert cluster.new_ledger_id() == 7


class Arriving:
    """The lock of a client's ids; tells that a task comes to it."""

    def __init__(self, arrived: threading.Event) -> None:
        self._lock = threading.Lock()
        self._arrived = arrived
        self._is_first = True

    def __enter__(self) -> None:
        if not self._is_first:
            self._arrived.set()
        self._is_first = False
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_tasks_of_one_client_take_ids_one_after_the_other(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second task comes while the first one asks the store; it would lose what that takes."""
    arrived = threading.Event()
    asking: list[str] = []

    with Cluster(uri) as cluster:
        ids = cluster._ledger_ids
        monkeypatch.setattr(ids, "_lock", Arriving(arrived))
        update = ids.counters.update

        def slow(*given: Any) -> Any:
            asking.append("begin")
            if len(asking) == 1:
                second.start()
                assert arrived.wait(60)
            else:
                arrived.set()
            found = update(*given)
            asking.append("end")
            return found

        monkeypatch.setattr(ids.counters, "update", slow)
        found: list[int] = []
        second = threading.Thread(target=lambda: found.append(cluster.new_ledger_id()))
        found.append(cluster.new_ledger_id())
        second.join(60)
    assert asking == ["begin", "end"] * 2
    assert sorted(found) == [0, 1]


def test_clients_that_compete_never_share_an_id(uri: str) -> None:
    found: list[list[int]] = [[] for _ in range(4)]

    def take(number: int) -> None:
        with Cluster(uri) as cluster:
            found[number] = [cluster.new_ledger_id() for _ in range(50)]

    threads = [threading.Thread(target=take, args=(number,)) for number in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [ledger_id for each in found for ledger_id in each]
    assert len(set(ids)) == len(ids) == 200
    assert all(each == sorted(each) for each in found)


def test_a_lost_answer_costs_ids_and_repeats_none(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(uri) as cluster:
        put = Records._put

        def lost(records: Records[int], name: str, value: int, expected: int | None) -> object:
            put(records, name, value, expected)
            raise OSError("the answer is lost")

        with monkeypatch.context() as patch:
            patch.setattr(Records, "_put", lost)
            with pytest.raises(OSError, match="lost"):
                cluster.new_ledger_id()
        assert cluster.store.get(layout.LEDGER_COUNTER_KEY) is not None
        assert cluster.new_ledger_id() == 1
