"""The end of a journal, as a recovery reads it: torn, damaged, forged; never all of it."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from bkspark.bookie.contract import BookieRoot
from bkspark.bookie.memory import MemoryRoot
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import NotEnoughBookiesError, OutcomeUnknownError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.ledger.journals import journal_reader
from bkspark.ledger.recovery import fencing, running
from bkspark.ledger.recovery.fencing import JournalTail, Since, newest_record, read_tail
from bkspark.ledger.recovery.recoverer import WriteCopies
from bkspark.ledger.recovery.running import in_threads
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.record import AddRecord, confirmation
from bkspark.protocol.recovery.steps import Silence
from tests.integration.hand_writer import HandWriter, one_by_one, stop_at, stop_behind, violations
from tests.integration.rig import Rig
from tests.thorough import always

DIGESTER = Digester(DigestSpec(), None)


def journal_of(writer: HandWriter) -> str:
    return layout.journal(writer.ledger_id, 1, writer.metadata.token)


def newest_of(
    root: BookieRoot, writer: HandWriter, entry_id: int, beat: Heartbeat = no_heartbeat
) -> AddRecord | None:
    return newest_record(
        root,
        journal_of(writer),
        DIGESTER,
        ledger_id=writer.ledger_id,
        fragments=writer.metadata.fragments,
        entry_id=entry_id,
        beat=beat,
    )


def tail_of(root: BookieRoot, writer: HandWriter) -> JournalTail:
    place = {"ledger_id": writer.ledger_id, "fragments": writer.metadata.fragments}
    return read_tail(root, journal_of(writer), DIGESTER, **place, since=Since(-1, -1))


def firsts(tail: JournalTail) -> list[int]:
    return [stored.record.first_entry_id for stored in tail.records]


@pytest.mark.parametrize("chunk_bytes", always([40], [40, 700, 64 * 1024]))
def test_a_journal_cut_at_any_byte_is_read_from_its_end_as_from_its_start(
    chunk_bytes: int,
    writer: HandWriter,
    root: BookieRoot,
    memory_rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_reader, "CHUNK_BYTES", chunk_bytes)
    name, whole = writer.names[0], memory_rig.file_bytes(writer.names[0], journal_of(writer))
    step = 1 if chunk_bytes > 40 else 17
    for length in range(0, len(whole) + 1, step):
        memory_rig.replace_file(name, journal_of(writer), whole[:length])
        content = journal.decode_journal(whole[:length], DIGESTER, ledger_id=writer.ledger_id)
        tail = tail_of(root, writer)
        confirmed = content.last_add_confirmed
        expected = [r.first_entry_id for r in content.records if r.first_entry_id > confirmed]
        assert (firsts(tail), tail.tail) == (expected, content.tail), length
        assert tail.last_add_confirmed == confirmed
        last = content.records[-1].last_entry_id if content.records else -1
        found = newest_of(root, writer, last)
        assert (-1 if found is None else found.last_entry_id) == last
        in_front = newest_of(root, writer, last - 1)
        assert (-1 if in_front is None else in_front.last_entry_id) == max(-1, last - 1)


def test_what_the_way_back_has_met_is_not_read_again_unless_it_is_much(
    writer: HandWriter, root: BookieRoot, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, whole = writer.names[0], memory_rig.file_bytes(writer.names[0], journal_of(writer))
    real, looks = journal_reader.JournalReader.stored, list[int]()

    def stored(self: Any, begin: int, end: int | None = None) -> Any:
        looks.append(begin)
        return real(self, begin, end)

    monkeypatch.setattr(journal_reader.JournalReader, "stored", stored)
    counts: dict[int, list[int]] = {0: [], 2**20: []}
    for length in range(len(whole) - 300, len(whole) + 1, 7):
        memory_rig.replace_file(name, journal_of(writer), whole[:length])
        found: list[JournalTail] = []
        for limit, seen in counts.items():
            monkeypatch.setattr(fencing, "MET_BYTES_MAX", limit)
            looks.clear()
            found.append(tail_of(root, writer))
            seen.append(len(looks) - len(set(looks)))
        assert found[0] == found[1], length
    assert min(counts[0]) >= 2
    assert max(counts[2**20]) <= 1  # a damaged one, which each way looks at


def test_a_journal_with_any_byte_damaged_gives_nothing_wrong_and_hides_nothing_in_silence(
    writer: HandWriter, root: BookieRoot, memory_rig: Rig
) -> None:
    name, whole = writer.names[0], memory_rig.file_bytes(writer.names[0], journal_of(writer))
    sent = journal.decode_journal(whole, DIGESTER, ledger_id=writer.ledger_id).records
    for at in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        memory_rig.replace_file(name, journal_of(writer), bytes(damaged))
        tail = tail_of(root, writer)
        assert all(stored.record in sent for stored in tail.records), at
        if tail.tail is Tail.CLEAN:
            assert (firsts(tail), tail.last_add_confirmed) == ([9, 10, 11], 8), at


@pytest.mark.parametrize("is_token_known", [False, True])
def test_what_an_entry_holds_is_not_taken_for_a_record(
    is_token_known: bool, writer: HandWriter, root: BookieRoot, memory_rig: Rig
) -> None:
    """A torn record whose rows look like records, up to the crash: entries 9 to 11 are not hidden.

    They would be, if the rows could name the writer's random token: nothing else guards this.
    """
    name, whole = writer.names[0], memory_rig.file_bytes(writer.names[0], journal_of(writer))
    torn_at = len(whole)
    head = bytearray(b"".join(map(bytes, writer._records[11].frame(0, torn_at))))
    del head[journal.PREFIX_BYTES :]
    head[12:20] = (10**6).to_bytes(8, "little")  # it says that a long record begins
    head[-4:] = journal._checksum(bytes(head[:-4]), torn_at)
    place = torn_at + len(head)
    lie = confirmation(
        ledger_id=writer.ledger_id,
        term=1,
        token=writer.metadata.token if is_token_known else "f" * 32,
        last_add_confirmed=11,
        length_bytes=0,
        quorum=writer.metadata.quorum,
    )
    rows = b"".join(map(bytes, journal.encode(lie, DIGESTER).frame(0, place)))
    memory_rig.replace_file(name, journal_of(writer), whole + bytes(head) + rows)
    tail = tail_of(root, writer)
    if is_token_known:
        assert (firsts(tail), tail.last_add_confirmed) == ([], 11)
    else:
        assert (firsts(tail), tail.last_add_confirmed) == ([9, 10, 11], 8)
        assert tail.tail is Tail.INCOMPLETE


@pytest.mark.thorough
@pytest.mark.parametrize("damage", always(["cut"], ["cut", "flipped", "zeroed", "damaged before"]))
def test_what_is_read_of_a_torn_journal_does_not_grow_with_it(
    damage: str, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_read, amounts = MemoryRoot.read, list[int]()

    def counted(self: MemoryRoot, *args: Any) -> bytes | None:
        data = real_read(self, *args)
        amounts[-1] += len(data or b"")
        return data

    for count in (400, 4000):
        writer = HandWriter(memory_rig)
        for _ in range(count):
            writer.add(0, 1, 2, acknowledges=True)
        for name in writer.names:
            data = bytearray(memory_rig.file_bytes(name, journal_of(writer)))
            torn = {
                "cut": data[:-50],
                "flipped": data[:-60] + bytes([data[-60] ^ 1]) + data[-59:],
                "zeroed": data + bytes(4096),
                "damaged before": data[:-700] + bytes(10) + data[-690:],
            }[damage]
            memory_rig.replace_file(name, journal_of(writer), bytes(torn))
        amounts.append(0)
        with monkeypatch.context() as patch:
            patch.setattr(MemoryRoot, "read", counted)
            try:
                writer.recover(run=one_by_one())
            except NotEnoughBookiesError:
                assert damage == "damaged before"
    assert amounts[1] < 1.2 * amounts[0]


@pytest.mark.parametrize("piece_bytes", [1, 100, 2**20])
def test_a_long_journal_is_read_in_pieces_with_a_sign_of_life_behind_each(
    piece_bytes: int, writer: HandWriter, root: BookieRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal that takes longer than a bookie may be silent is no bookie that hangs."""
    expected = tail_of(root, writer)
    monkeypatch.setattr(journal_reader, "CHUNK_BYTES", min(piece_bytes, 64 * 1024))
    monkeypatch.setattr(journal_reader, "CHUNK_BYTES_MAX", piece_bytes)
    beats: list[int] = []
    found = read_tail(
        root,
        journal_of(writer),
        DIGESTER,
        ledger_id=writer.ledger_id,
        fragments=writer.metadata.fragments,
        since=Since(-1, -1),
        beat=lambda: beats.append(1),
    )
    assert found == expected
    size = sum(len(part) for stored in found.records for part in stored.messages.values())
    assert len(beats) > size // piece_bytes
    beats.clear()
    newest_of(root, writer, 5, lambda: beats.append(1))
    assert len(beats) > size // piece_bytes


def test_the_confirmed_entry_in_front_of_an_ensemble_change_is_found_without_reading_it_all(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last fragment is empty: only the one before knows the ledger's length."""
    real_read, amounts = MemoryRoot.read, list[int]()

    def counted(self: MemoryRoot, *args: Any) -> bytes | None:
        data = real_read(self, *args)
        amounts[-1] += len(data or b"")
        return data

    for count in (400, 4000):
        writer = HandWriter(memory_rig, (1, 1, 1))
        for _ in range(count):
            writer.add(0, acknowledges=True)
        writer.replace(0, next(name for name in memory_rig.urls if name != writer.names[0]))
        amounts.append(0)
        with monkeypatch.context() as patch:
            patch.setattr(MemoryRoot, "read", counted)
            assert writer.recover(run=one_by_one()).last_entry_id == count - 1
        assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
    assert amounts[1] < 1.2 * amounts[0]


# --- damage ------------------------------------------------------------------------------------


def flip(rig: Rig, bookie_id: str, name: str, at: int, behind: bytes = b"") -> None:
    data = bytearray(rig.file_bytes(bookie_id, name))
    data[at] ^= 1
    rig.replace_file(bookie_id, name, bytes(data) + behind)


def test_what_stands_in_front_of_damage_is_kept(memory_rig: Rig) -> None:
    """Entry 0 has its ack from bookies 0 and 1: the one is damaged behind it, the other silent."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1)
    size = len(memory_rig.file_bytes(writer.names[0], journal_of(writer)))
    writer.acknowledge()
    writer.add(0)
    writer.add(0)
    flip(memory_rig, writer.names[0], journal_of(writer), size + 100)
    with pytest.raises(NotEnoughBookiesError, match="entry 1 is in doubt") as caught:
        writer.recover(run=one_by_one(lost=[writer.names[1]]))
    assert "ends in wrong bytes" in str(caught.value)
    assert writer.recover().last_entry_id == 0
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_rb_11_damage_on_every_bookie_that_has_an_entry_is_not_its_absence(
    memory_rig: Rig,
) -> None:
    """Everybody has answered; a torn end would count as an absence by now, and this is none."""
    writer = HandWriter(memory_rig)
    size = len(memory_rig.file_bytes(writer.names[0], journal_of(writer)))
    writer.add(0, 1)
    writer.add(0, 1)
    writer.acknowledge()
    for name in writer.names[:2]:
        flip(memory_rig, name, journal_of(writer), size + 100)
    with pytest.raises(NotEnoughBookiesError, match="entry 0 is in doubt"):
        writer.recover()


@pytest.mark.parametrize("is_of_writer", [False, True])
def test_damage_in_what_a_dead_recovery_wrote_silences_nobody(
    is_of_writer: bool, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer never counted anything there, so its own journal says what is absent.

    In the writer's journal the same damage is a doubt.
    """
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.add(0)
    with pytest.raises(OutcomeUnknownError):
        writer.recover(run=one_by_one(before=stop_behind(1)))
    [name] = [name for name in memory_rig.names(writer.names[0]) if layout.journal_term(name) == 2]
    flip(memory_rig, writer.names[0], name, 100, behind=bytes([1]) * 100)
    if is_of_writer:
        monkeypatch.setattr(fencing.layout, "journal_term", lambda _name: 1)
        with pytest.raises(NotEnoughBookiesError, match="entry 2 is in doubt"):
            writer.recover(run=one_by_one(lost=[writer.names[2]]))
        return
    assert writer.recover(run=one_by_one(lost=[writer.names[2]])).last_entry_id == 1
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


# --- bookies that hang -------------------------------------------------------------------------


class Instruction:
    """Answers when it is let go."""

    def __init__(self, address: Any, run: Callable[[Callable[[], None]], Any]) -> None:
        self.address = address
        self.run = run


def test_a_bookie_that_hangs_is_told_of_and_then_silent(
    writer: HandWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "TELLS_MAX", 3)
    hangs = threading.Event()
    address, told = writer._address(0), list[str]()
    work = (lambda _beat: hangs.wait(), lambda _beat: "answer")
    instructions = [Instruction(address, run) for run in work]
    try:
        silent, answer = in_threads(instructions, tell=told.append, tell_seconds=0.05)
    finally:
        hangs.set()
    assert answer == "answer"
    assert isinstance(silent, Silence)
    assert told == [f"still waiting for {writer.names[0]}"] * 3


def test_one_that_is_long_at_work_is_waited_for_and_one_that_hangs_is_not(
    writer: HandWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "TELLS_MAX", 2)
    hangs, told = threading.Event(), list[str]()

    def slow(beat: Callable[[], None]) -> str:
        while len(told) < 6:
            beat()
            hangs.wait(0.01)
        return "done"

    work = (slow, lambda _beat: hangs.wait())
    instructions = [Instruction(writer._address(0), run) for run in work]
    try:
        done, silent = in_threads(instructions, tell=told.append, tell_seconds=0.05)
    finally:
        hangs.set()
    assert done == "done"
    assert str(silent) == f"bookie {writer.names[0]} gave no answer within 0.1 s"


def test_an_error_of_an_instruction_is_raised(writer: HandWriter) -> None:
    def fail(_beat: Callable[[], None]) -> None:
        raise OutcomeUnknownError("on purpose")

    instructions = [Instruction(writer._address(0), fail)]
    with pytest.raises(OutcomeUnknownError, match="on purpose"):
        in_threads(instructions)
    assert in_threads([]) == []


def test_a_recovery_tells_whom_it_asks_and_leaves_its_reason(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, acknowledges=False)
    told: list[str] = []
    with pytest.raises(OutcomeUnknownError):
        writer.recover(run=one_by_one(before=stop_at(WriteCopies)), tell=told.append)
    assert told[1] == f"asking {', '.join(writer.names)}"
    assert writer.cluster.upkeep.recoveries.get(str(writer.ledger_id)) is None
    with pytest.raises(NotEnoughBookiesError) as caught:
        writer.recover(run=one_by_one(lost=writer.names[1:]))
    seen = writer.cluster.upkeep.recoveries.get(str(writer.ledger_id))
    assert seen is not None
    stuck = seen.value
    assert (stuck.term, stuck.entry_id) == (memory_rig.ledger(writer.ledger_id).term, 1)
    assert stuck.waiting_for == tuple(writer.names[1:])
    assert f"{stuck.reason}; {stuck.hint}" == str(caught.value)


def test_a_reason_that_cannot_be_stored_is_no_other_error(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0)
    told: list[str] = []

    def unstored(*_: object) -> None:
        raise OutcomeUnknownError("the store is away")

    writer.cluster.upkeep.recoveries.update = unstored  # type: ignore[method-assign,assignment]
    with pytest.raises(NotEnoughBookiesError, match="entry 1 is in doubt"):
        writer.recover(run=one_by_one(lost=writer.names[1:]), tell=told.append)
    assert "could not be stored" in told[-1]
