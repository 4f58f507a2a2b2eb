"""Handles one behind the other in a ledger that goes on in later terms."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bkspark import environment
from bkspark.bookie.memory import MemoryRoot
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import (
    InvalidRequestError,
    InvalidTermError,
    LedgerClosedError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
    UnauthorizedError,
)
from bkspark.format import arrow_schema, digest, layout
from bkspark.ledger.creating import create_ledger
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.ledger.recovery import recoverer
from bkspark.ledger.recovery.recover import LedgerTakeover, take_over
from bkspark.ledger.recovery.recoverer import Opener
from bkspark.protocol.ledger.metadata import (
    CommitTimes,
    ConfirmedEnd,
    DigestSpec,
    LedgerMetadata,
    LedgerState,
)
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM
from bkspark.protocol.writer import steps
from tests.integration.hand_writer import one_by_one, violations
from tests.integration.rig import Rig


class Scene:
    """A ledger, and whoever writes to it."""

    def __init__(self, rig: Rig, spec: DigestSpec | None = None, password: str = "") -> None:
        self.rig, self.cluster = rig, Cluster(rig.uri)
        self.spec, self.password = spec or DigestSpec(), Password(literal=password)

    def first(self, *, goes_on: bool = True, is_full: bool = False) -> WriteHandle:
        created = create_ledger(
            self.cluster,
            quorum=DEFAULT_QUORUM,
            digest=self.spec,
            schema=arrow_schema.encode(VALUE_SCHEMA),
            custom_metadata={},
            digester=self._digester,
            goes_on=goes_on,
            guarantees_write_quorum=is_full,
        )
        self.ledger_id = created.seen.value.ledger_id
        return WriteHandle(self.cluster, created.seen, self._digester, begun=created.begun)

    def take(self) -> LedgerTakeover:
        return take_over(self.cluster, self.ledger_id, self.password)

    def next(self, taken: LedgerTakeover | None = None) -> WriteHandle:
        taken = taken or self.take()
        return WriteHandle(
            self.cluster,
            taken.seen,
            self._digester,
            begun=taken.begun,
            standing=taken.standing,
            unjoined=taken.unjoined,
        )

    @property
    def _digester(self) -> digest.Digester:
        return make_digester(self.spec, self.password)

    @property
    def ledger(self) -> LedgerMetadata:
        return self.rig.ledger(self.ledger_id)

    def left_in(self, folder: str) -> set[str]:
        """What is there, on whatever bookie, without tokens: in "terms", or in "journal"."""
        found = (name for one in self.rig.urls for name in self.rig.names(one))
        last = (name.rpartition("/")[2] for name in found if f"/{folder}/" in name)
        return {name.partition("-")[0] for name in last}


@pytest.fixture
def scene(memory_rig: Rig) -> Iterator[Scene]:
    scene = Scene(memory_rig)
    yield scene
    scene.cluster.store.close()


def died(handle: WriteHandle) -> None:
    """It ends as one that is killed: nobody is told how far it is acknowledged."""
    handle._writer._bring(steps.Stop(OutcomeUnknownError("it was killed")))
    handle.release()


def values(rig: Rig, ledger_id: int) -> list[bytes]:
    with BookKeeper(rig.uri) as keeper:
        return [entry.value for entry in keeper.open_ledger(ledger_id).read()]


def test_each_goes_on_behind_the_one_before(scene: Scene, memory_rig: Rig) -> None:
    first = scene.first()
    assert [first.append(value) for value in (b"a", b"bc")] == [0, 1]
    second = scene.next()
    assert (second.last_add_confirmed, second.last_add_pushed) == (1, 1)
    assert second.append_many([b"d", b"e"]) == (2, 3)
    with pytest.raises(InvalidTermError) as ended:
        first.append(b"x")
    assert (ended.value.term, ended.value.newer_term) == (1, 2)
    third = scene.next()
    assert third.append(b"f") == 4
    third.close()
    assert [(f.first_entry_id, f.owner) for f in scene.ledger.fragments] == [(0, 1), (2, 2), (4, 3)]
    sent = dict(enumerate([b"a", b"bc", b"d", b"e", b"f"]))
    assert not violations(memory_rig, scene.ledger_id, sent, sent)
    first.release()
    second.release()


def test_who_never_wrote_leaves_nothing_behind(scene: Scene) -> None:
    """However many they are: one fragment, one permission, one journal."""
    first = scene.first()
    first.append(b"a")
    died(first)
    for term in range(2, 8):
        assert scene.take().seen.value.term == term
        assert [f.term for f in scene.ledger.fragments] == [1, term]
        assert scene.left_in("terms") == {f"{term:08x}"}
        copied = {"00000002"} - {f"{term:08x}"}  # by the recovery, unless it was confirmed before
        assert scene.left_in("journal") - copied == {"00000001", f"{term:08x}"}
    last = scene.next()
    assert last.append(b"b") == 1
    last.close()
    assert values(scene.rig, scene.ledger_id) == [b"a", b"b"]


def test_who_is_displaced_waits_for_no_writer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.first().leave()
    slept: list[float] = []

    def another_writes(seconds: float) -> None:
        slept.append(seconds)
        scene.next().leave()

    monkeypatch.setattr(environment, "sleep", another_writes)
    seen = recoverer.wait_for_others(scene.cluster, scene.ledger_id, 0).value
    assert (seen.state, len(slept)) == (LedgerState.OPEN, 1)


def test_a_reader_follows_over_terms(scene: Scene, memory_rig: Rig) -> None:
    first = scene.first()
    first.append(b"a")
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(scene.ledger_id, recovery=False)
        for number in range(1, 4):
            writer = scene.next()
            writer.append(b"%d" % number)
            writer.append(b"unsaid")
            assert reader.read_last_add_confirmed() >= 2 * number - 1
            writer.release()
        found = [entry.value for entry in reader.read()]
    assert found[:6] == [b"a", b"1", b"unsaid", b"2", b"unsaid", b"3"]
    first.release()


def test_one_that_says_nothing_of_later_terms_has_one_writer(scene: Scene) -> None:
    first = scene.first(goes_on=False)
    before = scene.ledger
    with pytest.raises(InvalidRequestError, match="takes no second writer"):
        scene.take()
    assert scene.ledger == before
    assert first.append(b"a") == 0
    first.close()


def test_one_that_is_closed_stays_closed(scene: Scene) -> None:
    with scene.first() as first:
        first.append(b"a")
    before = scene.ledger
    with pytest.raises(LedgerClosedError, match="closed at entry 0"):
        scene.take()
    assert scene.ledger == before


def test_a_recovery_closes_it_for_good(scene: Scene) -> None:
    scene.first().release()
    second = scene.next()
    second.append(b"a")
    with BookKeeper(scene.rig.uri) as keeper:
        assert keeper.recover_ledger(scene.ledger_id).last_entry_id == 0
    assert (scene.ledger.state, scene.ledger.length_bytes) == (LedgerState.CLOSED, 1)
    with pytest.raises(InvalidTermError):
        second.append(b"b")
    second.release()


def test_a_wrong_password_changes_nothing(memory_rig: Rig) -> None:
    scene = Scene(memory_rig, digest.new_spec("MAC", "secret"), "secret")
    first = scene.first()
    before = scene.ledger
    for password in ("", "other"):
        with pytest.raises(UnauthorizedError):
            take_over(scene.cluster, scene.ledger_id, Password(literal=password))
    assert (scene.ledger, first.append(b"a")) == (before, 0)
    first.release()
    assert scene.next().append(b"b") == 1


def test_what_was_committed_before_is_said_by_all_later_records(scene: Scene) -> None:
    """Else a recovery, which has it from the last record, forgets it (exactly once)."""
    scene.first().release()
    taken = scene.take()
    standing = ConfirmedEnd(-1, 0, 0, {"app": 7})
    handle = WriteHandle(
        scene.cluster, taken.seen, scene._digester, begun=taken.begun, standing=standing
    )
    handle.append(b"a")
    died(handle)
    again = scene.take()
    assert replace(again.standing, times=CommitTimes()) == ConfirmedEnd(0, 1, 0, {"app": 7})
    assert again.standing.times.last_ms > 0
    last = scene.next(again)
    last.close()
    assert scene.ledger.transactions == {"app": 7}


def test_it_is_not_written_to_with_fewer_than_all_members(scene: Scene) -> None:
    """It is recovered all the same, and the next one has it."""
    first = scene.first()
    first.append(b"a")
    names = [member.bookie_id for member in scene.ledger.last_fragment.ensemble]
    first.release()
    memory_rig = scene.rig
    memory_rig.faults.down = set(memory_rig.urls) - set(names[:2])
    with memory_rig.faults.installed(), pytest.raises(NotEnoughBookiesError, match="needs 3"):
        take_over(scene.cluster, scene.ledger_id, Password(), run=one_by_one())
    assert scene.ledger.state is LedgerState.IN_RECOVERY
    assert scene.next().append(b"b") == 1


def test_who_may_have_taken_it_and_is_no_member_is_not_asked_by_the_writer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R19: what it took, or takes late, would hide what it lost."""
    scene.first().release()
    victim = scene.ledger.last_fragment.ensemble[0].bookie_id
    asked = list[str]()
    real = Opener.take

    def refused(self: Opener, takes: list, *args: object) -> list:  # type: ignore[type-arg]
        asked.extend(take.member.bookie_id for take in takes)
        found = real(self, takes, *args)  # type: ignore[arg-type]
        return [
            type(one)(one.to, "its answer is lost") if one.to.member.bookie_id == victim else one
            for one in found
        ]

    monkeypatch.setattr(Opener, "take", refused)
    taken = scene.take()
    assert asked.count(victim) == 1
    assert taken.unjoined == {victim}
    handle = scene.next(taken)
    assert victim in handle._writer.machine.changes._unjoined
    assert handle.append(b"a") == 0
    handle.close()


def test_journals_of_one_that_does_not_open_it_are_closed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.first().release()
    closed = list[Begun]()
    real = Begun.close

    def close(self: Begun) -> None:
        closed.append(self)
        real(self)

    def fails(*_: object) -> None:
        raise NotEnoughBookiesError("no")

    monkeypatch.setattr(Begun, "close", close)
    monkeypatch.setattr(Opener, "open", fails)
    with pytest.raises(NotEnoughBookiesError):
        scene.take()
    assert len(closed[-1].bookie_ids) == 3
    assert not closed[-1]._journals


def test_a_ledger_that_guarantees_its_write_quorum_goes_on_with_all_copies(
    scene: Scene, memory_rig: Rig
) -> None:
    first = scene.first(is_full=True)
    first.append(b"a")
    second = scene.next()
    second.append(b"b")
    assert second.last_add_fully_replicated is not None
    second.close()
    sent = {0: b"a", 1: b"b"}
    assert not violations(memory_rig, scene.ledger_id, sent, sent)
    first.release()


def test_the_permission_goes_before_the_fence(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R20: in the other order the writer before would look between both, and see neither gone.

    His journal goes before both: the permission tells that it may be there.
    """
    scene.first().release()
    gone = list[str]()
    real = MemoryRoot.delete

    def delete(self: MemoryRoot, name: str) -> bool:
        gone.append(name)
        return real(self, name)

    before = scene.ledger
    monkeypatch.setattr(MemoryRoot, "delete", delete)
    scene.take()
    in_order = (
        layout.journal(scene.ledger_id, 1, before.token),
        layout.permission(scene.ledger_id, 1, before.token),
        layout.term_marker(scene.ledger_id, 2),
    )
    assert sorted(gone) == sorted(in_order * 3)
    for n in range(9):
        counts = [gone[: n + 1].count(name) for name in in_order]
        assert counts == sorted(counts, reverse=True)


def test_who_loses_at_once_what_it_took_gets_no_place(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 3 of ``reopening``: the loss would count against the fragment from the start."""
    scene.first().release()
    victim = scene.ledger.last_fragment.ensemble[1].bookie_id
    real = Opener.take

    def take(self: Opener, *args: object) -> list:  # type: ignore[type-arg]
        found = real(self, *args)  # type: ignore[arg-type]
        mine = layout.permission(scene.ledger_id, 2, self.writer_token)
        if mine in scene.rig.names(victim):
            scene.rig.replace_file(victim, mine, None)
        return found

    monkeypatch.setattr(Opener, "take", take)
    taken = scene.take()
    members = {member.bookie_id for member in taken.seen.value.last_fragment.ensemble}
    assert (victim in members, taken.unjoined) == (False, {victim})
    assert scene.next(taken).append(b"a") == 0


def test_one_that_is_deleted_and_collected_meanwhile_is_no_more(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.first().release()
    real = Opener.open

    def late(self: Opener, *args: object) -> object:
        scene.cluster.store.delete(layout.ledger_key(scene.ledger_id))
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Opener, "open", late)
    with pytest.raises(NoSuchLedgerError):
        scene.take()


def test_it_reads_no_more_behind_many_others_than_behind_few(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing was written for long, so that the last record is an older writer's."""
    first = scene.first()
    first.append(b"a")
    died(first)
    reads = list[str]()
    real = MemoryRoot.read

    def read(
        self: MemoryRoot, name: str, begin: int = 0, length: int | None = None
    ) -> bytes | None:
        reads.append(name)
        return real(self, name, begin, length)

    monkeypatch.setattr(MemoryRoot, "read", read)
    monkeypatch.setattr(Opener, "prune", lambda *_: None)  # nor where what was left stays there
    counts = list[int]()
    for _ in range(12):
        reads.clear()
        assert scene.take().standing.length_bytes == 1
        counts.append(len(reads))
    assert len(set(counts[1:])) == 1, counts
