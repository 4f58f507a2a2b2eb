"""A recovery that is overtaken finds what the winner has removed: it says of no bookie that it lost
data, and nothing is concluded from it."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookieUnavailableError
from bkspark.ledger.handles import how_far
from bkspark.ledger.handles.read_handle import ReadHandle
from bkspark.ledger.recovery.recover import recover, take_over
from bkspark.ledger.recovery.recoverer import Opener, Recoverer
from tests.integration.going_on import DIGESTER, begun, successor
from tests.integration.rig import Rig


@pytest.fixture
def cluster(memory_rig: Rig) -> Iterator[Cluster]:
    with Cluster(memory_rig.uri) as found:
        yield found


def once(work: Callable[[], Any]) -> Callable[[], None]:
    """``work``, the first time only."""
    left = [work]

    def call() -> None:
        if left:
            left.pop()()

    return call


def overtake(cluster: Cluster, ledger_id: int) -> None:
    """Another writer takes over, writes, and ends."""
    writer = successor(cluster, ledger_id)
    writer.append(b"of the other one")
    writer.leave()


def require_no_word_of_a_loss(caplog: pytest.LogCaptureFixture) -> None:
    told = [record.getMessage() for record in caplog.records]
    assert not [line for line in told if "lost data" in line or "lacks" in line]
    assert any("displaced" in line for line in told)


@pytest.mark.parametrize("opens", [True, False], ids=["to write", "to close"])
def test_one_that_was_overtaken_after_its_change_says_nothing_of_losses(
    opens: bool,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Markers and journals of the writer before are gone when it looks for them."""
    caplog.set_level(logging.INFO, logger="bkspark")
    first = begun(cluster)
    first.append(b"a")
    first.leave()
    intrude = once(lambda: overtake(cluster, first.ledger_id))
    real = Recoverer.take_over

    def overtaken(self: Recoverer) -> Any:
        event = real(self)
        intrude()
        return event

    monkeypatch.setattr(Recoverer, "take_over", overtaken)
    if opens:
        taken = take_over(cluster, first.ledger_id, Password())
        taken.begun.close()
        end = taken.standing.last_entry_id
    else:
        end = recover(cluster, first.ledger_id, Password()).last_entry_id
    assert end == 1
    require_no_word_of_a_loss(caplog)


def test_one_that_was_overtaken_before_its_last_look_says_nothing_of_losses(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The winner has removed what the new writer's bookies had taken."""
    caplog.set_level(logging.INFO, logger="bkspark")
    first = begun(cluster)
    first.append(b"a")
    first.leave()
    intrude = once(lambda: [overtake(cluster, first.ledger_id) for _ in range(2)])
    real = Opener.look_again

    def overtaken(self: Opener, *args: Any) -> Any:
        intrude()
        return real(self, *args)

    monkeypatch.setattr(Opener, "look_again", overtaken)
    taken = take_over(cluster, first.ledger_id, Password())
    taken.begun.close()
    assert taken.standing.last_entry_id == 2
    require_no_word_of_a_loss(caplog)


def test_a_reader_that_is_overtaken_in_every_look_says_so(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(how_far, "PAUSES", (0.0, 0.0))
    first = begun(cluster)
    first.append(b"a")
    first.leave()
    real = cluster.ledgers.is_current

    def overtaken(*args: Any) -> bool:
        overtake(cluster, first.ledger_id)
        return real(*args)

    monkeypatch.setattr(cluster.ledgers, "is_current", overtaken, raising=False)
    with pytest.raises(BookieUnavailableError) as error:
        ReadHandle(cluster, first.ledger_id, DIGESTER)
    assert "other clients changed its metadata during each of 3 attempts; read again" in str(
        error.value
    )
