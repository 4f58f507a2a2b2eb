"""Journals of writers who never wrote, in a ledger that goes on in later terms: they are gone soon.

Rule 7 of ``reopening``, from the side of whoever could still want one of them.
"""

from collections.abc import Callable, Iterator

import pytest

from bkspark import verbs
from bkspark.bookie import memory
from bkspark.bookie.contract import BookieRoot
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import BookieUnavailableError, InvalidTermError, OutcomeUnknownError
from bkspark.format import layout
from bkspark.ledger.journals.journal_pages import JournalPage, JournalPages
from bkspark.ledger.recovery.recover import take_over
from bkspark.ledger.recovery.recoverer import Opener
from bkspark.protocol.recovery.conclusions import Decision
from tests.integration.hand_writer import HandWriter, one_by_one, violations
from tests.integration.recovery.successor import Successor
from tests.integration.recovery.test_taking_over import Scene, values
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies

ALL = (0, 1, 2)


@pytest.fixture
def scene(memory_rig: Rig) -> Iterator[Scene]:
    scene = Scene(memory_rig)
    yield scene
    scene.cluster.store.close()


def journals(rig: Rig, ledger_id: int, bookie_id: str = "") -> list[tuple[int, str]]:
    """Term and token of each that is there, on a bookie or on any."""
    folder = f"{layout.journal_folder(ledger_id)}/"
    names = {
        name.removeprefix(folder)
        for one in ([bookie_id] if bookie_id else rig.urls)
        for name in rig.names(one)
        if name.startswith(folder)
    }
    return sorted((layout.journal_term(name), name.partition("-")[2]) for name in names)


def terms(rig: Rig, ledger_id: int, bookie_id: str = "") -> list[int]:
    return [term for term, _ in journals(rig, ledger_id, bookie_id)]


def test_what_recoveries_have_copied_in_the_term_of_one_who_never_wrote_stays(
    memory_rig: Rig,
) -> None:
    """It is of the same term as his journal, under another name: some of the copies there are."""
    first = HandWriter(memory_rig, goes_on=True)
    first.add(*ALL, acknowledges=True)
    first.add(0)
    second = Successor(first, prunes=True)
    assert second.end == 1
    copies = [one for one in journals(memory_rig, first.ledger_id) if one[0] == 2]
    assert len(copies) == 2
    third = Successor(second, prunes=True)
    left = journals(memory_rig, first.ledger_id)
    assert [term for term, _ in left] == [1, 2, 3]
    assert left[1][1] != second.metadata.token
    third.recover()
    memory_rig.faults.down = {first.names[0]}
    with memory_rig.faults.installed():
        assert values(memory_rig, first.ledger_id) == [b"entry 0", b"entry 1"]
    memory_rig.faults.down = set()
    assert not violations(memory_rig, first.ledger_id, third.sent, {0, 1})


def test_of_a_writer_whose_entries_count_all_stays_whoever_has_his_place(memory_rig: Rig) -> None:
    """Also where all that he wrote lies on other members than his last ones."""
    first = HandWriter(memory_rig, goes_on=True)
    first.add(*ALL, acknowledges=True)
    other = min(set(memory_rig.urls) - set(first.names))
    first.replace(2, other)
    second = Successor(first, prunes=True)
    assert terms(memory_rig, first.ledger_id) == [1, 2]
    second.recover()
    assert not violations(memory_rig, first.ledger_id, second.sent, {0})


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_who_wakes_up_in_mid_append_counts_nothing_and_takes_nothing(
    kind: str, make_rig: Callable[..., Rig]
) -> None:
    """He has the journals open, writes on in them, and no bookie of the others is asked by him."""
    rig = make_rig(kind=kind, bookie_count=6)
    scene = Scene(rig)
    first = scene.first()
    second = scene.next()
    assert terms(rig, scene.ledger_id) == [2]
    before = {one: rig.names(one) for one in rig.urls}
    with pytest.raises(InvalidTermError) as ended:
        first.append(b"x")
    assert (ended.value.term, ended.value.newer_term) == (1, 2)
    assert {one: rig.names(one) for one in rig.urls} == before
    assert second.append(b"a") == 0
    second.close()
    assert values(rig, scene.ledger_id) == [b"a"]
    first.release()


def test_what_he_stores_late_is_on_no_bookie(memory_rig: Rig) -> None:
    first = HandWriter(memory_rig, goes_on=True)
    entry_id = first.add()
    for index in ALL:
        first.store(entry_id, index)
    second = Successor(first, prunes=True, lost=first.names[1:2])
    assert second.end == entry_id  # what is there counts, and then all of it stays
    late = second.add()
    third = Successor(second, prunes=True)
    for index in ALL:
        second.store(late, index)
        with pytest.raises(BookieUnavailableError, match="does not show the journal"):
            second.check(late, index)
    assert 2 not in [
        term
        for term, token in journals(memory_rig, first.ledger_id)
        if token == second.metadata.token
    ]
    assert third.end == 0


def test_a_bookie_that_was_away_keeps_it_and_is_in_nobodys_way(memory_rig: Rig) -> None:
    first = HandWriter(memory_rig, goes_on=True)
    first.add(*ALL, acknowledges=True)
    second = Successor(first, prunes=True)
    away = second.names[1]
    third = Successor(second, prunes=True, lost=[away])
    assert away not in third.names
    own = (2, second.metadata.token)
    assert own in journals(memory_rig, first.ledger_id, away)
    assert own not in journals(memory_rig, first.ledger_id, second.names[0])
    third.add(*ALL, acknowledges=True)
    fourth = Successor(third, prunes=True)
    fourth.recover()
    assert not violations(memory_rig, first.ledger_id, third.sent, third.acked)
    assert verbs.audit(memory_rig.uri).left == []


def test_nothing_is_forgotten_before_the_ledger_is_open_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recovery that dies right there leaves the next one all that it knows by its name."""
    scene.first().release()
    before = journals(scene.rig, scene.ledger_id)

    def dies(*_: object) -> None:
        raise OutcomeUnknownError("died")

    with monkeypatch.context() as patch:
        patch.setattr(Opener, "open", dies)
        with pytest.raises(OutcomeUnknownError):
            scene.take()
    assert set(before) <= set(journals(scene.rig, scene.ledger_id))
    assert scene.next().append(b"a") == 0


def test_where_something_is_given_up_nothing_is_forgotten(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.first().release()
    real = Decision.__init__

    def loses(self: Decision, *args: object, **options: object) -> None:
        real(self, *args, **{**options, "given_up": ("entry 0",)})  # type: ignore[arg-type]

    monkeypatch.setattr(Decision, "__init__", loses)
    scene.take()
    assert 1 in terms(scene.rig, scene.ledger_id)
    assert scene.left_in("terms") == {"00000002"}


def test_where_part_of_it_could_appear_again_it_stays(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on object storage: there it is one name more to list, as it was."""
    monkeypatch.setattr(memory.MemoryRoot, "forget_journal", lambda *_: False)
    scene.first().release()
    for _ in range(3):
        scene.take()
    assert terms(scene.rig, scene.ledger_id)[:3] == [1, 2, 3]
    assert scene.left_in("terms") == {"00000004"}
    assert scene.next().append(b"a") == 0


def test_a_reader_that_has_it_open_reads_on(scene: Scene, memory_rig: Rig) -> None:
    """It looked while the journals were there, and finds them gone, and others in their place."""
    first = scene.first()
    first.append(b"a")
    second = scene.next()
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(scene.ledger_id, recovery=False)
        assert [entry.value for entry in reader.read()] == [b"a"]
        for _ in range(3):
            scene.take().begun.close()
            assert reader.read_last_add_confirmed() == 0
        last = scene.next()
        last.append(b"b")
        last.append(b"c")
        memory_rig.faults.down = {scene.ledger.last_fragment.ensemble[0].bookie_id}
        assert reader.read_last_add_confirmed() >= 1
        assert [entry.value for entry in reader.read(0, 1)] == [b"a", b"b"]
    first.release()
    second.release()
    last.release()


def test_a_recovery_that_is_overtaken_while_it_looks_decides_nothing(
    scene: Scene, memory_rig: Rig
) -> None:
    """It fenced one bookie; another one opens the ledger and prunes; it goes on and finds gaps."""
    first = scene.first()
    first.append(b"a")
    first.release()
    scene.next().release()  # the journals of term 2 are what is pruned
    overtaken = list[int]()

    def overtake(_: object) -> None:
        if not overtaken:
            overtaken.append(0)
            taken = take_over(scene.cluster, scene.ledger_id, Password())
            taken.begun.close()
            overtaken.append(taken.seen.value.term)

    taken = take_over(scene.cluster, scene.ledger_id, Password(), run=one_by_one(before=overtake))
    assert taken.seen.value.term > overtaken[1]
    handle = scene.next(taken)
    assert handle.append(b"b") == 1
    handle.close()
    assert values(memory_rig, scene.ledger_id) == [b"a", b"b"]


def test_what_came_back_from_a_snapshot_is_read_by_nobody(scene: Scene, memory_rig: Rig) -> None:
    """The bookie has the pruned journal again, with its permission; and not what came since."""
    first = scene.first()
    first.append(b"a")
    first.release()
    second = scene.next()
    victim = scene.ledger.last_fragment.ensemble[0].bookie_id
    disk = memory.find_disk(memory_rig.urls[victim])
    assert disk is not None
    kept = {name: bytes(file.data) for name, file in disk.files.items()}
    third = scene.next()
    third.append(b"b")
    disk.files = {name: memory.MemoryFile(data) for name, data in kept.items()}
    with pytest.raises(InvalidTermError):
        second.append(b"x")
    last = scene.next()
    assert last.append(b"c") == 2
    last.close()
    assert values(memory_rig, scene.ledger_id) == [b"a", b"b", b"c"]
    second.release()
    third.release()


def test_what_a_takeover_left_that_died_goes_with_the_next(scene: Scene) -> None:
    """Rule 8: the ledger was open for it, and nothing was pruned."""
    first = scene.first()
    first.append(b"a")
    wait_for_all_copies(first)  # or the next one makes the last, and its journal stays
    first.release()
    for term in range(2, 6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Opener, "prune", lambda *_: None)
            scene.take()
        assert f"{term:08x}" in scene.left_in("journal")
    assert scene.left_in("terms") == {f"{term:08x}" for term in range(1, 6)}
    scene.take()
    assert scene.left_in("terms") == {f"{6:08x}"}
    assert scene.left_in("journal") == {f"{term:08x}" for term in (1, 6)}
    last = scene.next()
    last.append(b"b")
    last.close()
    assert values(scene.rig, scene.ledger_id) == [b"a", b"b"]


def test_a_journal_that_says_anything_stays_where_its_takeover_died(memory_rig: Rig) -> None:
    """Nobody knows any more whether something was given up; and who owns entries keeps it."""
    first = HandWriter(memory_rig, goes_on=True)
    first.add(*ALL, acknowledges=True)
    first.confirm(*ALL)
    second = Successor(first)
    second.add()
    second.add(0)  # behind a gap
    third = Successor(second)
    assert third.end == 0
    own = [(writer.metadata.term, writer.metadata.token) for writer in (first, second)]
    Successor(third, prunes=True)
    for name, left in zip(second.names, (own, own[:1], own[:1]), strict=True):
        assert [one for one in journals(memory_rig, first.ledger_id, name) if one in own] == left
        assert not {first.permission, second.permission} & set(memory_rig.names(name))


def test_a_journal_that_cannot_be_read_stays(scene: Scene) -> None:
    scene.first().release()
    ledger = scene.ledger
    name = layout.journal(scene.ledger_id, 1, ledger.token)
    victim = ledger.last_fragment.ensemble[0].bookie_id
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Opener, "prune", lambda *_: None)
        scene.take()
    data = scene.rig.file_bytes(victim, name)
    scene.rig.replace_file(victim, name, data[:-1])
    scene.take()
    assert [one for one in scene.rig.urls if name in scene.rig.names(one)] == [victim]


def test_who_reads_the_end_does_not_look_into_journals_of_earlier_terms(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = scene.first()
    for number in range(8):
        writer.append(b"%d" % number)
        writer.release()
        writer = scene.next()
    writer.append(b"8")
    writer.close()
    asked = list[int]()
    real = JournalPages.page_of

    def page_of(self: JournalPages, root: BookieRoot, entry_id: int) -> JournalPage | None:
        asked.append(layout.journal_term(self.name))
        return real(self, root, entry_id)

    monkeypatch.setattr(JournalPages, "page_of", page_of)
    with BookKeeper(scene.rig.uri) as keeper:
        reader = keeper.open_ledger(scene.ledger_id)
        assert [entry.value for entry in reader.read(7, 8)] == [b"7", b"8"]
        assert set(asked) <= {8, 9}
        assert [entry.value for entry in reader.read()] == [b"%d" % n for n in range(9)]
