"""Copies that are appended while the next ones are read: what is known of them at the end."""

from collections.abc import Sequence

import pytest

from bkspark.admin.maintenance import Pace
from bkspark.admin.repairing import fill
from bkspark.admin.repairing.fill import CopiedJournal
from bkspark.bookie import memory
from bkspark.bookie.contract import BookieAddress, BookieRoot, Journal
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import no_heartbeat
from bkspark.errors import BookieUnavailableError
from bkspark.format import journal
from bkspark.format.digest import Buffer, Digester
from bkspark.ledger.copying import new_journal
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.quorum import Quorum
from tests.integration.rig import Rig
from tests.protocol.recovery_scene import record_of

DIGESTER = Digester(DigestSpec(), None)
TOKEN = "a" * 32
RECORDS = [
    journal.encode(record_of(Quorum(1, 1, 1), number, number), DIGESTER, {0: b"0123456789"})
    for number in range(4)
]


class Failing:
    """A journal one of whose appends fails.

    Args:
        at: number of the append.
    """

    def __init__(self, file: Journal, at: int) -> None:
        self.appended = 0
        self._file = file
        self._at = at

    def append(self, pieces: Sequence[Buffer]) -> None:
        self.appended += 1
        if self.appended == self._at:
            raise BookieUnavailableError("the disk is full")
        self._file.append(pieces)

    def close(self) -> None:
        self._file.close()


def target(rig: Rig) -> BookieAddress:
    with Cluster(rig.uri) as cluster:
        return next(iter(cluster.addresses().values()))


def begin(root: BookieRoot) -> Journal:
    return new_journal(root, 7, 1, TOKEN)


@pytest.fixture(autouse=True)
def each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fill, "FLUSH_BYTES", 1)


@pytest.mark.parametrize("at", [1, 2, len(RECORDS)])
def test_nothing_is_put_behind_what_failed(memory_rig: Rig, at: int) -> None:
    """It may be there all the same, and what comes behind it would lie elsewhere (H24)."""
    made: list[Failing] = []

    def failing(root: BookieRoot) -> Journal:
        made.append(Failing(begin(root), at))
        return made[0]  # type: ignore[return-value]

    copies = CopiedJournal(target(memory_rig), failing, 0, Pace(None, no_heartbeat))

    def copy_all() -> None:
        for record in RECORDS:
            copies.add(record)
        copies.finish()

    with pytest.raises(BookieUnavailableError, match="is full"):
        copy_all()
    copies.close()
    assert made[0].appended == at


def test_what_the_bookie_does_not_show_was_not_copied(memory_rig: Rig) -> None:
    address = target(memory_rig)
    copies = CopiedJournal(address, begin, 0, Pace(None, no_heartbeat))
    copies.add(RECORDS[0])
    copies._settle()
    disk = memory.find_disk(address.url)
    assert disk is not None
    for name in [name for name in disk.files if name.startswith("ledgers/")]:
        del disk.files[name]
    with pytest.raises(BookieUnavailableError, match="does not show the journal"):
        copies.finish()
    copies.close()


def test_nobody_makes_a_journal_for_nothing(memory_rig: Rig) -> None:
    made: list[BookieRoot] = []

    def counted(root: BookieRoot) -> Journal:
        made.append(root)
        return begin(root)

    copies = CopiedJournal(target(memory_rig), counted, 0, Pace(None, no_heartbeat))
    copies.finish()
    copies.close()
    assert not made
