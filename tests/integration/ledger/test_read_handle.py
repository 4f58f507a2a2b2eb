"""The read handle: whom it asks, how long it waits, and what it makes of the answers."""

from collections import Counter
from collections.abc import Iterator

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import (
    BookieUnavailableError,
    CorruptDataError,
    InvalidRequestError,
    NoSuchEntryError,
)
from bkspark.ledger.handles.settings import ReaderSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from tests.integration.hand_writer import Gate, HandWriter
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies, wait_until
from tests.kit.faulty import Fault, Operation
from tests.stopwatch import Stopwatch

QUICK = ReaderSettings(read_timeout_seconds=0.3)


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def gate(memory_rig: Rig) -> Iterator[Gate]:
    gate = Gate(memory_rig.faults, "read")
    yield gate
    gate.open()


def written(keeper: BookKeeper, count: int, sizes: tuple[int, int, int] = (3, 3, 2)) -> WriteHandle:
    """A closed ledger of one record per entry, whose values are the ids as text."""
    e, qw, qa = sizes
    with keeper.create_ledger(ensemble_size=e, write_quorum_size=qw, ack_quorum_size=qa) as handle:
        for number in range(count):
            handle.append(b"%d" % number)
    return handle


def members(handle: WriteHandle) -> list[str]:
    return [member.bookie_id for member in handle.metadata.last_fragment.ensemble]


def journal_on(rig: Rig, bookie_id: str) -> str:
    [name] = [name for name in rig.names(bookie_id) if "/journal/" in name]
    return name


def readers_of(rig: Rig) -> Counter[str]:
    """How often the journals on each bookie were read, since the trace was cleared."""
    return Counter(
        operation.place
        for operation in rig.faults.trace
        if operation.call == "read" and "/journal/" in operation.name
    )


def damage_record(rig: Rig, bookie_id: str, number: int) -> None:
    """Flip a bit in the header of one record of a journal."""
    file = journal_on(rig, bookie_id)
    data = rig.file_bytes(bookie_id, file)
    frames = [at for at in range(len(data)) if data.startswith(b"BKAR", at)]
    at = frames[number] + 60
    rig.replace_file(bookie_id, file, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def expected(*ids: int) -> list[tuple[int, bytes]]:
    return [(number, b"%d" % number) for number in ids]


def found(entries: object) -> list[tuple[int, bytes]]:
    return [(entry.entry_id, entry.value) for entry in entries]  # type: ignore[attr-defined]


def test_a_block_may_show_where_it_is_read(keeper: BookKeeper) -> None:
    """As of BookKeeper's; there is nothing to close."""
    with keeper.open_ledger(written(keeper, 2).ledger_id) as reader:
        assert [entry.value for entry in reader.read()] == [b"0", b"1"]
    assert len(list(reader.read())) == 2


# --- 2.3: the last-add-confirmed -----------------------------------------------------------------


def test_2_3_2_the_last_add_confirmed_needs_no_answer_of_a_bookie_that_hangs(
    memory_rig: Rig, keeper: BookKeeper, gate: Gate
) -> None:
    with keeper.create_ledger() as handle:
        reader = keeper.open_ledger(handle.ledger_id, recovery=False)
        handle.append(b"0")
        handle.append(b"1")
        wait_for_all_copies(handle)  # or two of three have not told
        gate.close(members(handle)[0])
        watch = Stopwatch()
        assert [reader.read_last_add_confirmed() for _ in range(3)][-1] >= 0
        assert watch.seconds < 5
        assert reader.faults == {}
        gate.open()


def last_of(keeper: BookKeeper, ledger_id: int) -> int | None:
    """The last add confirmed; None as long as it is not known."""
    try:
        return keeper.open_ledger(ledger_id, recovery=False).last_add_confirmed
    except BookieUnavailableError:
        return None


def test_2_3_2_it_waits_for_enough_of_every_write_set(memory_rig: Rig, keeper: BookKeeper) -> None:
    """With E > Qw some answers say nothing of the last entry: here only bookies 1 and 2 know it."""
    writer = HandWriter(memory_rig, (4, 2, 1))
    for first in range(5):
        writer.add(first % 4, acknowledges=True)
    writer.add(1)
    gate = Gate(memory_rig.faults, "read")
    late = [writer.names[1], writer.names[2]]
    gate.close(*late)
    settings = ReaderSettings(read_timeout_seconds=0.5)
    with pytest.raises(BookieUnavailableError, match="is not known") as error:
        keeper.open_ledger(writer.ledger_id, recovery=False, settings=settings)
    assert all(f"bookie {name} gave no answer" in str(error.value) for name in late)
    gate.open()
    wait_until(lambda: last_of(keeper, writer.ledger_id) == 4)


def test_2_3_6_a_closed_ledger_ends_where_its_metadata_says(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = written(keeper, 3)
    for name in memory_rig.urls:
        memory_rig.lose(name)
    reader = keeper.open_ledger(handle.ledger_id)
    assert reader.read_last_add_confirmed() == 2


def test_2_3_8_unconfirmed_entries_are_read_only_by_name(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.add(0, 1)
    reader = keeper.open_ledger(writer.ledger_id, recovery=False)
    assert reader.last_add_confirmed == 0
    with pytest.raises(NoSuchEntryError, match="the last confirmed entry is 0"):
        list(reader.read(0, 1))
    assert [entry.value for entry in reader.read_unconfirmed(0, 1)] == [b"entry 0", b"entry 1"]
    with pytest.raises(NoSuchEntryError, match="ledger 0 does not have entry 2"):
        list(reader.read_unconfirmed(2, 2))


def test_2_3_8_nobody_is_told_to_wait_for_what_will_never_come(keeper: BookKeeper) -> None:
    handle = keeper.create_ledger()
    handle.append(b"0")
    with pytest.raises(NoSuchEntryError, match=r"wait_for\(\) waits"):
        keeper.open_ledger(handle.ledger_id, recovery=False).read_arrow(2, 50)
    handle.close()
    with pytest.raises(NoSuchEntryError, match="the ledger is closed, so it gets no more entries"):
        keeper.open_ledger(handle.ledger_id).read_arrow(2, 50)


def test_2_3_10_what_lies_in_front_of_the_last_fragment_is_confirmed(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """RB-23: its bookies need not have a record yet for that to be known."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.add(0, 1, acknowledges=True)
    fresh = [name for name in memory_rig.urls if name not in writer.names]
    for index in range(3):
        writer.replace(index, fresh[index])
    reader = keeper.open_ledger(writer.ledger_id, recovery=False)
    assert reader.last_add_confirmed == 1
    assert [entry.value for entry in reader.read()] == [b"entry 0", b"entry 1"]


# --- 2.4: whom to ask ----------------------------------------------------------------------------


def test_2_4_1_copies_that_are_bad_in_different_places_make_a_whole(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = written(keeper, 3)
    for number, name in enumerate(members(handle)):
        damage_record(memory_rig, name, number)
    reader = keeper.open_ledger(handle.ledger_id)
    assert found(reader.read()) == expected(0, 1, 2)
    assert reader.faults
    assert all("is damaged at byte" in reason for reason in reader.faults.values())


def test_2_4_3_a_slow_bookie_is_not_waited_for(
    memory_rig: Rig, keeper: BookKeeper, gate: Gate
) -> None:
    handle = written(keeper, 4)
    settings = ReaderSettings(speculative_read_ms=30)
    reader = keeper.open_ledger(handle.ledger_id, settings=settings)
    gate.close(members(handle)[handle.ledger_id % 3])
    watch = Stopwatch()
    assert found(reader.read()) == expected(0, 1, 2, 3)
    assert watch.seconds < 5
    assert reader.faults == {}


def test_2_4_3_a_slow_answer_counts_if_no_other_is_good(
    memory_rig: Rig, keeper: BookKeeper, gate: Gate
) -> None:
    """Slow is never absent."""
    handle = written(keeper, 4)
    slow, *others = (members(handle) * 2)[handle.ledger_id % 3 :][:3]
    for name in others:
        memory_rig.replace_file(name, journal_on(memory_rig, name), None)
    reader = keeper.open_ledger(handle.ledger_id, settings=ReaderSettings(speculative_read_ms=20))
    gate.close(slow)

    def decide(number: int, operation: Operation) -> Fault | None:
        # The others have been asked, in vain, before the slow one answers.
        if operation.call == "list" and operation.place == others[-1]:
            gate.open()
        gate._wait(number, operation)
        return None

    memory_rig.faults.decide = decide
    assert found(reader.read()) == expected(0, 1, 2, 3)
    assert set(reader.faults) == set(others)


def test_2_4_3_without_the_option_the_next_is_asked_only_after_a_fault(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = written(keeper, 4)
    reader = keeper.open_ledger(handle.ledger_id)
    memory_rig.faults.trace.clear()
    assert found(reader.read()) == expected(0, 1, 2, 3)
    assert len(readers_of(memory_rig)) == 1


def test_a_bookie_that_hangs_is_stepped_over_and_named(
    memory_rig: Rig, keeper: BookKeeper, gate: Gate
) -> None:
    handle = written(keeper, 4)
    hanging = members(handle)[handle.ledger_id % 3]
    gate.close(hanging)
    reader = keeper.open_ledger(handle.ledger_id, settings=QUICK)
    assert found(reader.read()) == expected(0, 1, 2, 3)
    assert reader.faults == {hanging: f"bookie {hanging} gave no answer within 0.3 s"}
    memory_rig.faults.trace.clear()
    reader = keeper.open_ledger(handle.ledger_id, settings=QUICK)
    assert found(reader.read(3)) == expected(3)


def test_when_all_hang_the_reader_fails_in_time_and_later_goes_on(
    memory_rig: Rig, keeper: BookKeeper, gate: Gate
) -> None:
    handle = written(keeper, 2)
    gate.close(*members(handle))
    reader = keeper.open_ledger(handle.ledger_id, settings=QUICK)
    for _ in range(2):
        watch = Stopwatch()
        with pytest.raises(CorruptDataError, match=r"gave no answer within 0\.3 s"):
            list(reader.read())
        assert watch.seconds < 5
    gate.open()
    assert found(reader.read()) == expected(0, 1)


def test_2_4_4_a_bookie_that_failed_is_asked_last(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bkspark.ledger.handles.entry_reader.CACHE_BYTES", 1)
    monkeypatch.setattr("bkspark.ledger.journals.journal_pages.PAGE_BYTES", 500)
    monkeypatch.setattr("bkspark.ledger.journals.journal_reader.CHUNK_BYTES", 500)
    monkeypatch.setattr("bkspark.ledger.journals.journal_reader.CHUNK_BYTES_MAX", 500)
    handle = written(keeper, 30, (3, 2, 2))
    failing = members(handle)[0]
    memory_rig.faults.down = {failing}
    reader = keeper.open_ledger(handle.ledger_id)
    memory_rig.faults.trace.clear()
    assert found(reader.read()) == expected(*range(30))
    tries = [op for op in memory_rig.faults.trace if op.place == failing and op.call == "open_root"]
    assert len(tries) == 1


def test_2_4_5_one_bookie_is_kept_where_all_are_alike(memory_rig: Rig, keeper: BookKeeper) -> None:
    handle = written(keeper, 20)
    names = members(handle)
    reader = keeper.open_ledger(handle.ledger_id)
    memory_rig.faults.trace.clear()
    assert found(reader.read()) == expected(*range(20))
    assert set(readers_of(memory_rig)) == {names[handle.ledger_id % 3]}


def test_2_4_5_after_a_fault_the_next_good_one_is_kept(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bkspark.ledger.handles.entry_reader.CACHE_BYTES", 1)
    monkeypatch.setattr("bkspark.ledger.journals.journal_pages.PAGE_BYTES", 500)
    monkeypatch.setattr("bkspark.ledger.journals.journal_reader.CHUNK_BYTES", 500)
    monkeypatch.setattr("bkspark.ledger.journals.journal_reader.CHUNK_BYTES_MAX", 500)
    handle = written(keeper, 20)
    names = (members(handle) * 2)[handle.ledger_id % 3 :]
    reader = keeper.open_ledger(handle.ledger_id)
    damage_record(memory_rig, names[0], 5)
    assert found(reader.read(0, 9)) == expected(*range(10))
    assert set(reader.faults) == {names[0]}
    memory_rig.faults.trace.clear()
    assert found(reader.read(10)) == expected(*range(10, 20))
    assert set(readers_of(memory_rig)) == {names[1]}


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2)])
def test_2_4_5_reads_may_be_spread_over_the_write_sets(
    sizes: tuple[int, int, int], memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = written(keeper, 6, sizes)
    names = members(handle)
    for entry_id in range(6):
        reader = keeper.open_ledger(handle.ledger_id, settings=ReaderSettings(is_sticky=False))
        memory_rig.faults.trace.clear()
        assert found(reader.read(entry_id, entry_id)) == expected(entry_id)
        assert set(readers_of(memory_rig)) == {names[entry_id % 3]}


@pytest.mark.parametrize("settings", [{"speculative_read_ms": 0}, {"read_timeout_seconds": 0}])
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidRequestError):
        ReaderSettings(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("begin", [0, 5, 12])
def test_only_the_group_that_no_bookie_gives_is_left_out(
    begin: int, memory_rig: Rig, keeper: BookKeeper
) -> None:
    """Its header may be good everywhere, and say where it ends."""
    with keeper.create_ledger() as handle:
        for group in range(6):
            handle.append_many([b"%d" % n + bytes(200) for n in range(5 * group, 5 * group + 5)])
    for name in members(handle):
        file = journal_on(memory_rig, name)
        data = memory_rig.file_bytes(name, file)
        for lost in (b"13", b"22"):
            at = data.index(lost + bytes(200)) + 50
            data = data[:at] + b"?" + data[at + 1 :]
        memory_rig.replace_file(name, file, data)
    reader = keeper.open_ledger(handle.ledger_id)
    losses: list[tuple[int, int]] = []
    batches = reader.batches(begin, 29, lambda first, last, _error: losses.append((first, last)))
    ids = [n for first, batch in batches for n in range(first, first + batch.num_rows)]
    assert ids == [*range(begin, 10), *range(15, 20), *range(25, 30)]
    assert losses == [(max(begin, 10), 14), (20, 24)]
