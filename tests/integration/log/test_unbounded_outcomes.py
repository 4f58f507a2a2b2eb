"""What became of entries of a writer of an unbounded log who was overtaken."""

from collections.abc import Iterator

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import (
    InvalidTermError,
    NoSuchEntryError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
)
from bkspark.ledger.deleting import truncate_ledger
from bkspark.log.recovering import Undecided
from tests.integration.log_scenes import NAME, SILENT, one_ledger, unbounded, values
from tests.integration.rig import Rig


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def test_one_that_is_overtaken_is_told_by_whom_and_what_is_undecided(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    log = unbounded(keeper)
    first = log.writer(settings=SILENT)
    first.append(b"a")
    with log.writer() as second:
        late = first.append_async(b"late").exception(60)
        assert isinstance(late, InvalidTermError)
        assert late.newer_term > late.term == 1
        assert "offset 1 is undecided" in str(late)
        assert second.append(b"b") == 1
        undecided = first.undecided
        assert undecided is not None
        assert log.resolve_outcome(undecided) == range(1, 1)
        assert second.append(b"c") == 2
    with pytest.raises(InvalidTermError):
        first.close()
    assert values(log) == [b"a", b"b", b"c"]


def test_what_a_recovery_kept_of_it_is_the_map_of_terms_s_to_say(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """However many went on behind it, and whether the ledger was closed for good since."""
    log = unbounded(keeper)
    writer = log.writer(settings=SILENT)
    writer.append(b"a")
    term = writer._segment.handle.metadata.term
    for number in range(3):
        with log.writer() as other:
            other.append(b"%d" % number)
    undecided = Undecided(writer.ledger_id, 0, 0, 3, term)
    assert log.resolve_outcome(undecided) == range(1)
    before = one_ledger(log)
    log.seal()
    assert log.resolve_outcome(undecided) == range(1)
    last = Undecided(writer.ledger_id, 3, 3, 2, before.term)
    assert log.resolve_outcome(last) == range(3, 4)
    keeper.delete_log(NAME)
    assert log.resolve_outcome(undecided) == range(1)
    writer.release()


def test_what_is_undecided_in_front_of_a_truncation_is_nobody_s_to_tell(
    keeper: BookKeeper,
) -> None:
    """The fragments that said whose it was are gone."""
    log = unbounded(keeper)
    for number in range(4):
        with log.writer() as writer:
            writer.append_many([b"%d" % number] * 2)
    truncate_ledger(keeper._cluster, writer.ledger_id, 4)
    with pytest.raises(NoSuchEntryError, match="begins at entry 4 now: earlier entries of term"):
        log.resolve_outcome(Undecided(writer.ledger_id, 1, 1, 1, 1))
    kept = one_ledger(log).fragments[0]
    assert log.resolve_outcome(Undecided(writer.ledger_id, 5, 5, 3, kept.owner)) == range(5, 6)


def test_what_nobody_has_decided_yet_is_decided_and_the_ledger_is_open_again(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    log = unbounded(keeper)
    writer = log.writer(settings=SILENT)
    assert writer.append_many([b"a", b"b"]) == (0, 1)
    writer.release()
    undecided = Undecided(writer.ledger_id, 1, 1, 2, writer._segment.handle.metadata.term)
    assert log.resolve_outcome(undecided) == range(1, 2)
    assert one_ledger(log).term > undecided.term
    assert values(log) == [b"a", b"b"]
    with log.writer() as other:
        assert other.append(b"c") == 2
    assert log.resolve_outcome(undecided) == range(1, 2)


def test_what_is_undecided_is_of_its_writer_s_term(memory_rig: Rig, keeper: BookKeeper) -> None:
    log = unbounded(keeper)
    with log.writer() as first:
        first.append(b"a")
    second = log.writer(settings=SILENT)
    second.append(b"b")
    memory_rig.faults.down = set(memory_rig.urls)
    with pytest.raises(NotEnoughBookiesError, match="offset 2 is undecided"):
        second.append(b"c")
    memory_rig.faults.forget()
    undecided = second.undecided
    assert undecided is not None
    assert undecided.term == second._segment.handle.metadata.term > 1
    with log.writer() as third:
        third.append(b"d")
    assert log.resolve_outcome(undecided) == range(2, 2)
    assert values(log) == [b"a", b"b", b"d"]


def test_what_is_undecided_in_a_ledger_that_was_deleted_before_is_nobodys_to_tell(
    keeper: BookKeeper,
) -> None:
    log = unbounded(keeper)
    with log.writer() as writer:
        writer.append(b"a")
    keeper.delete_log(NAME)
    with pytest.raises(NoSuchLedgerError):
        log.resolve_outcome(Undecided(writer.ledger_id, 0, 0, 1, 1))
