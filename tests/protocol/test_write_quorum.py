"""A writer whose ledger guarantees its write quorum: what it owes, and how much of that."""

from random import Random

import pytest

from bkspark.errors import BookieUnavailableError, NotEnoughBookiesError
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.writer import adding
from bkspark.protocol.writer.adding import PendingAdds
from bkspark.protocol.writer.ensemble_change import gap
from bkspark.protocol.writer.steps import (
    Acknowledge,
    Checked,
    CheckMetadata,
    EndWriter,
    Enlisted,
    Failed,
    Stored,
    Submitted,
)
from bkspark.protocol.writer.writing import LedgerWriter

from .script import ledger_of
from .test_writer import Loop


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("sizes", [(3, 3, 2), (5, 3, 2), (2, 2, 1), (4, 3, 1)])
def test_a_guaranteed_write_quorum_is_there_in_front_of_each_fragment_and_at_the_end(
    sizes: tuple[int, int, int], seed: int
) -> None:
    broken = {"b0", "s0", f"b{sizes[0] - 1}"}
    loop = Loop(Random(seed), sizes, broken, guarantees_write_quorum=True)
    writer = loop.run(12)
    assert loop.acked == list(range(12))
    assert writer.pending.lagging is not None
    assert writer.pending.lagging.last_add_fully_replicated == 11
    assert [loop.copies_of(entry_id) for entry_id in range(12)] == [sizes[1]] * 12


def acknowledged_without_c(count: int) -> LedgerWriter:
    """A writer that guarantees its write quorum; ``c`` has failed, and nobody takes its place."""
    ledger = ledger_of(Quorum(3, 3, 2), ["a", "b", "c"], guarantees_write_quorum=True)
    writer = LedgerWriter(ledger)
    writer.receive(Failed(2, "c", BookieUnavailableError("it hangs")))
    writer.receive(Enlisted(None))
    for entry_id in range(count):
        writer.receive(Submitted(1, 1))
        writer.receive(Stored(0, "a", entry_id, entry_id))
        (check,) = writer.receive(Stored(1, "b", entry_id, entry_id))
        assert isinstance(check, CheckMetadata)
        done = writer.receive(Checked(check.ticket))
        assert isinstance(done[0], Acknowledge)
    return writer


def test_nobody_closes_a_ledger_that_owes_copies() -> None:
    writer = acknowledged_without_c(1)
    with pytest.raises(NotEnoughBookiesError, match=r"entries 0 to 0 are missing on c"):
        writer.closed(writer.metadata)
    writer = acknowledged_without_c(0)
    assert writer.closed(writer.metadata).last_entry_id == -1


def test_what_lacks_copies_does_not_grow_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody is looked for once more, and then the writer ends."""
    monkeypatch.setattr(adding, "LAGGING_ADDS_MAX", 3)
    writer = acknowledged_without_c(2)
    assert writer.may_submit
    writer = acknowledged_without_c(3)
    assert not writer.may_submit
    assert writer.changes.is_looking
    (_, end) = writer.receive(Enlisted(None))
    assert isinstance(end, EndWriter)
    assert isinstance(end.error, NotEnoughBookiesError)


def test_nothing_is_said_to_lack_where_nothing_does() -> None:
    pending = PendingAdds(Quorum(3, 3, 2))
    assert gap(ledger_of(Quorum(3, 3, 2), ["a", "b", "c"]), pending) == ""
