"""A year in the life of a cluster: what is in its logs is what a plain list says, every day.

Each day something is written and something goes wrong; each night the schedule that is shipped
runs (``conf``). Every morning every row is compared; every week nothing may be missing, and nothing
left of what was deleted.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from bkspark import verbs
from bkspark.admin.lost_bookies import declare_lost
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.rig import Rig, Row, flat, partitions_of

WAL = "wal"
BOOKIES = 8


@dataclass
class Life:
    """A cluster, and lists of what is in its logs.

    Attributes:
        rows: of the log of DataFrames, from ``first_row`` on.
        entries: of the log of a driver, from ``first_entry`` on.
        hurt: id of the bookie that something has befallen since the last night.
        away: disks that are mounted again tonight.
    """

    rig: Rig
    chance: random.Random
    rows: list[Row] = field(default_factory=list)
    entries: list[bytes] = field(default_factory=list)
    first_entry: int = 0
    written: int = 0
    hurt: set[str] = field(default_factory=set)
    away: dict[str, object] = field(default_factory=dict)

    # --- what people do -----------------------------------------------------------------------

    def append_rows(self) -> None:
        partitions = partitions_of(*self.counts(), first=self.written)
        self.rig.write(partitions)
        self.rows += flat(partitions)
        self.written += 100

    def overwrite(self) -> None:
        partitions = partitions_of(*self.counts(), first=self.written)
        self.rig.write(partitions, is_overwrite=True)
        self.rows = flat(partitions)
        self.written += 100

    def abort_rows(self) -> None:
        """Tasks write, and the job dies before its commit."""
        self.rig.tasks(self.rig.target(), partitions_of(*self.counts()))

    def append_entries(self) -> None:
        with BookKeeper(self.rig.uri) as keeper, keeper.open_log(WAL).writer() as writer:
            for _ in range(self.chance.randint(1, 9)):
                value = b"%d" % self.chance.randrange(10**9)
                writer.append(value)
                self.entries.append(value)

    def append_and_die(self) -> None:
        """A driver that is killed: nobody closes its ledger."""
        with BookKeeper(self.rig.uri) as keeper:
            writer = keeper.open_log(WAL).writer(roll_entries=4)
            for _ in range(self.chance.randint(1, 9)):
                value = b"%d" % self.chance.randrange(10**9)
                writer.append(value)
                self.entries.append(value)
            writer.release()

    def truncate(self) -> None:
        """Whole ledgers go, up to somewhere."""
        with BookKeeper(self.rig.uri) as keeper:
            log = keeper.open_log(WAL)
            before = self.chance.randint(self.first_entry, log.record.end_offset)
            log.truncate(before)
            del self.entries[: before - self.first_entry]
            self.first_entry = before

    def make_and_delete(self) -> None:
        with BookKeeper(self.rig.uri) as keeper:
            with keeper.create_ledger() as ledger:
                ledger.append(b"x" * 100)
            keeper.delete_ledger(ledger.ledger_id)

    def counts(self) -> list[int]:
        return [self.chance.randint(1, 20) for _ in range(self.chance.randint(1, 3))]

    # --- what befalls it ----------------------------------------------------------------------

    def lose_bookie(self) -> None:
        """A disk dies, somebody says so and adds another one."""
        victim = self.victim()
        self.rig.lose(victim)
        del self.rig.urls[victim]
        with Cluster(self.rig.uri) as cluster:
            declare_lost(cluster, victim)
            url = f"{self.rig.urls[min(self.rig.urls)]}{self.chance.randrange(10**9)}"
            record = cluster.add_bookie("", url, accepts_risk=True)
        self.rig.urls[record.bookie_id] = url

    def lose_folder(self) -> None:
        victim = self.victim()
        names = [name for name in self.rig.names(victim) if name.startswith("ledgers/")]
        folders = sorted({"/".join(name.split("/")[:3]) for name in names})
        if folders:
            folder = self.chance.choice(folders)
            for name in names:
                if name.startswith(f"{folder}/"):
                    self.rig.replace_file(victim, name, None)

    def turn_a_bit(self) -> None:
        victim = self.victim()
        names = [n for n in self.rig.names(victim) if "/entries/" in n or "/journal/" in n]
        names = [name for name in names if self.rig.file_bytes(victim, name)]
        if names:
            name = self.chance.choice(names)
            data = bytearray(self.rig.file_bytes(victim, name))
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
            self.rig.replace_file(victim, name, bytes(data))

    def be_away(self) -> None:
        """Until tomorrow."""
        victim = self.victim()
        self.away[victim] = self.rig.lose(victim)

    def victim(self) -> str:
        """One bookie a day: more may be too many."""
        if not self.hurt:
            self.hurt.add(self.chance.choice(sorted(self.rig.urls)))
        return next(iter(self.hurt))

    # --- days and nights ----------------------------------------------------------------------

    def day(self) -> None:
        people = (
            *(self.append_rows, self.append_entries, self.append_and_die, self.make_and_delete),
            *(self.abort_rows, self.truncate, self.overwrite),
        )
        accidents = (self.lose_bookie, self.lose_folder, self.turn_a_bit, self.be_away)
        deeds = [*self.chance.choices(people, weights=(5, 5, 4, 2, 2, 2, 1), k=3)]
        deeds.insert(self.chance.randrange(4), self.chance.choice(accidents))
        for deed in deeds:
            deed()

    def night(self) -> None:
        """The disk that was away is mounted again, and the schedule runs."""
        for victim, disk in self.away.items():
            self.rig.bring_back(victim, disk)
        self.away.clear()
        self.hurt.clear()
        verbs.recover(self.rig.uri, open_grace=0)
        verbs.scrub(self.rig.uri)
        verbs.repair(self.rig.uri)
        verbs.collect(self.rig.uri, open_grace=0)

    def morning(self) -> None:
        assert self.rig.rows() == self.rows
        with BookKeeper(self.rig.uri) as keeper:
            log = keeper.open_log(WAL)
            assert (log.first_offset, log.end_offset) == (
                self.first_entry,
                self.first_entry + len(self.entries),
            )
            assert [bytes(entry.value) for entry in log.read()] == self.entries


def left_behind(rig: Rig) -> list[str]:
    """Files on bookies of which no ledger wants anything any more."""
    with Cluster(rig.uri) as cluster:
        seen = {
            ledger_id: cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids()
        }
    wanted = {i for i, one in seen.items() if one and one.value.state is not LedgerState.DELETING}
    names = [name for bookie_id in rig.urls for name in rig.names(bookie_id)]
    return [n for n in names if layout.ledger_of_folder(n.split("/")[2]) not in wanted]


def live(make_rig: Callable[..., Rig], days: int, seed: int) -> None:
    life = Life(make_rig(kind="memory", bookie_count=BOOKIES), random.Random(seed))
    with BookKeeper(life.rig.uri) as keeper:
        keeper.create_log(WAL)
    life.append_rows()
    for number in range(1, days + 1):
        life.day()
        life.night()
        life.morning()
        if number % 7 == 0:
            report = verbs.audit(life.rig.uri)
            assert (report.left, report.details["copies"]) == ([], [])
            assert left_behind(life.rig) == []


@pytest.mark.thorough
def test_seven_weeks(make_rig: Callable[..., Rig]) -> None:
    live(make_rig, 49, seed=3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_a_year(make_rig: Callable[..., Rig], seed: int) -> None:
    live(make_rig, 365, seed)
