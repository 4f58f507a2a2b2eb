"""A process that cannot open another file says so, and gives no bookie up for it."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bkspark.bookie.checks import TooManyOpenFilesError
from bkspark.bookie.contract import BookieAddress
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.enlisting import Begun, Joining
from bkspark.cluster.ensembles import Regrouping, regroup
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookieUnavailableError, NothingSentError, OutcomeUnknownError
from bkspark.ledger.handles import lane
from bkspark.log.batch.commit import commit
from bkspark.protocol.apart import Apart
from bkspark.protocol.ledger.metadata import Member
from tests.integration.rig import Rig, partitions_of
from tests.integration.waiting import wait_for_all_copies
from tests.unit.starving import starved

REASON = "Too many open files (raise the limit of open files (ulimit -n))"
TOLD = r"Too many open files \(raise the limit of open files \(ulimit -n\)\)"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Four bookies on disk; the metadata is in memory, so that it needs no file."""
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [(tmp_path / f"b{n}").as_uri() for n in range(1, 5)], accepts_risk=True)
    return uri


@pytest.fixture
def keeper(uri: str) -> Iterator[BookKeeper]:
    with BookKeeper(uri) as keeper:
        yield keeper


@pytest.fixture
def blamed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The bookies that were blamed."""
    found = set[str]()

    def note_failure(_cluster: Cluster, member: Member) -> None:
        found.add(member.bookie_id)

    monkeypatch.setattr(Cluster, "note_failure", note_failure)
    return found


def without_files(
    monkeypatch: pytest.MonkeyPatch, when: Callable[[str], bool] = lambda _name: True
) -> None:
    """Bookies for which ``when`` is true cannot be asked to join: no file can be opened."""
    real = Joining.taken_by

    def taken_by(
        joining: Joining, address: BookieAddress, index: int, *, is_found: bool = False
    ) -> object:
        name = address.bookie_id
        if when(name):
            raise TooManyOpenFilesError(f"bookie {name}: cannot open it: {REASON}")
        return real(joining, address, index, is_found=is_found)

    monkeypatch.setattr(Joining, "taken_by", taken_by)


def break_bookie(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """The post-check on ``broken`` fails."""
    real = lane.post_check

    def post_check(address: BookieAddress, *rest: Any, **whose: Any) -> None:
        if address.bookie_id == broken:
            raise BookieUnavailableError("it is broken")
        real(address, *rest, **whose)

    monkeypatch.setattr(lane, "post_check", post_check)


def test_what_was_sent_is_undecided(keeper: BookKeeper, blamed: set[str]) -> None:
    handle = keeper.create_ledger()
    assert handle.append(b"a") == 0
    wait_for_all_copies(handle)  # a post-check that ends later would give its files back
    ensemble = handle.metadata.last_fragment.ensemble
    with starved(), pytest.raises(OutcomeUnknownError, match=TOLD) as caught:
        handle.append(b"b")
    assert type(caught.value) is OutcomeUnknownError
    assert handle.faults == {}
    assert handle.metadata.last_fragment.ensemble == ensemble
    read = [entry.value for entry in keeper.open_ledger(handle.ledger_id).read()]
    assert read[:1] == [b"a"]
    assert blamed == set()


def test_a_ledger_is_not_made(keeper: BookKeeper, blamed: set[str]) -> None:
    with starved(), pytest.raises(NothingSentError, match=TOLD):
        keeper.create_ledger()
    assert blamed == set()


def test_nor_a_smaller_one_on_the_bookies_that_were_asked_in_time(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch, blamed: set[str]
) -> None:
    without_files(monkeypatch, lambda name: name != "bookie-1")
    with pytest.raises(NothingSentError, match=TOLD):
        keeper.create_ledger()
    assert blamed == set()


def test_no_bookie_is_tried_in_the_place_of_a_failed_one(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch, blamed: set[str]
) -> None:
    handle = keeper.create_ledger()
    broken = handle.metadata.last_fragment.ensemble[0].bookie_id
    break_bookie(monkeypatch, broken)
    without_files(monkeypatch)

    def append_until_the_search_has_ended() -> None:
        while True:
            handle.append(b"a")

    with pytest.raises(OutcomeUnknownError, match=TOLD):
        append_until_the_search_has_ended()
    assert blamed == {broken}


def test_no_bookie_is_tried_after_the_one_that_was_not_asked_for_a_fragment(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch, uri: str, blamed: set[str]
) -> None:
    """But it may have been asked, so that this writer does not ask it again."""
    ledger = keeper.create_ledger().metadata
    ensemble = ledger.last_fragment.ensemble
    without_files(monkeypatch)
    whose = (
        ledger.ledger_id,
        Joining.last_writer(ledger, make_digester(ledger.settings.digest, Password())),
    )
    with Cluster(uri) as cluster:
        [fourth] = {one.bookie_id for one in cluster.bookies().values()}.difference(
            member.bookie_id for member in ensemble
        )
        wanted = Regrouping(
            *whose, ensemble, {0}, {ensemble[0].bookie_id}, Begun(), Apart.of(ledger)
        )
        found = regroup(cluster, wanted)
    assert found.ensemble == ()
    assert list(found.failed) == [fourth]
    assert REASON in found.failed[fourth]
    assert blamed == set()


def test_a_ledger_is_not_taken_over(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch, blamed: set[str]
) -> None:
    log = keeper.create_log("log", unbounded=True)
    with log.writer() as writer:
        assert writer.append(b"a") == 0
    with monkeypatch.context() as patch:
        without_files(patch)
        with pytest.raises(NothingSentError, match=TOLD):
            log.writer()
    with log.writer() as writer:
        assert writer.append(b"b") == 1
    assert [entry.value for entry in log.read(0)] == [b"a", b"b"]
    assert blamed == set()


def test_rows_of_a_dataframe_are_not_committed(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch, blamed: set[str]
) -> None:
    target = memory_rig.target((3, 3, 2))
    reports = memory_rig.tasks(target, partitions_of(3, 5))

    def post_check(address: BookieAddress, *_: object, **__: object) -> None:
        raise TooManyOpenFilesError(f"bookie {address.bookie_id}: cannot look: {REASON}")

    with monkeypatch.context() as patch:
        patch.setattr(lane, "post_check", post_check)
        with pytest.raises(OutcomeUnknownError, match=TOLD):
            commit(target, reports)
    assert memory_rig.rows() == []
    assert blamed == set()
