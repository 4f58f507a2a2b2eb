"""A cluster that is lived with: what people do, what befalls it, and the schedule that is shipped.

Plain lists say what is in its logs. Days are those of a calendar of its own: all that goes by the
clock (how long a writer was silent, what was compacted when) goes by that.
"""

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bkspark import environment, verbs
from bkspark.admin import bookies
from bkspark.admin.absent_bookies import declare_lost
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from tests.integration.rig import SCHEMA, Rig, Row, flat, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows
from tests.small_pages import pages_of

WAL, SURE, STREAM = "wal", "sure", "stream"
BOOKIES = 8
HOUR = 3600.0
DAY = 24 * HOUR


PAGE_LENGTH = 2
"""Logs of a few ledgers have pages, and pages of pages."""


class Calendar(environment.RealEnvironment):
    """The real environment, but that time passes when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self._passed_ms

    def wait(self, seconds: float) -> None:
        self._passed_ms += int(seconds * 1000)


@dataclass
class Journal:
    """A log of a driver, and what is in it from ``first`` on."""

    name: str
    first: int = 0
    entries: list[bytes] = field(default_factory=list)


@dataclass
class Life:
    """A cluster, and lists of what is in its logs.

    Attributes:
        rows: of the log of DataFrames.
        batches: of the log of a stream, how many were committed.
        hurt: id of the bookie that something has befallen since the last night.
        tonight: what is to be done before the schedule runs: disks that are mounted again, by
            bookie; None for one that has come back empty.
        leaving: ids of bookies that are to go.
        has_new: whether bookies were added since the last night.
    """

    rig: Rig
    chance: random.Random
    calendar: Calendar
    rows: list[Row] = field(default_factory=list)
    written: int = 0
    batches: int = 0
    journals: tuple[Journal, ...] = field(default_factory=lambda: (Journal(WAL), Journal(SURE)))
    hurt: set[str] = field(default_factory=set)
    tonight: dict[str, object] = field(default_factory=dict)
    leaving: set[str] = field(default_factory=set)
    has_new: bool = False

    def __post_init__(self) -> None:
        with BookKeeper(self.rig.uri) as keeper:
            keeper.create_log(WAL)
            keeper.create_log(SURE, guarantees_write_quorum=True)
            keeper.create_log(STREAM, schema=SCHEMA, guarantees_write_quorum=True)
        self.append_rows()
        for _ in range(4):
            self.append_entries()

    # --- what people do -----------------------------------------------------------------------

    def append_rows(self) -> None:
        partitions = partitions_of(*self.counts(), first=self.written)
        self.rig.write(partitions)
        self.rows += flat(partitions)
        self.written += 1000

    def overwrite(self) -> None:
        partitions = partitions_of(*self.counts(), first=self.written)
        self.rig.write(partitions, is_overwrite=True)
        self.rows = flat(partitions)
        self.written += 1000

    def abort_rows(self) -> None:
        """Tasks write, and the job dies before its commit."""
        self.rig.tasks(self.rig.target(), partitions_of(*self.counts()))

    def append_batches(self) -> None:
        """A query is started anew; its driver may be killed in the end."""
        count = self.chance.randint(1, 4)
        driver = Driver(self.streamed)
        assert driver.run(*range(self.batches, self.batches + count)) == [True] * count
        self.batches += count
        if self.chance.random() < 0.5:
            driver.held.rest()

    def append_entries(self) -> None:
        journal = self.chance.choice(self.journals)
        with BookKeeper(self.rig.uri) as keeper, keeper.open_log(journal.name).writer() as writer:
            for value in self.values():
                writer.append(value)
                journal.entries.append(value)

    def append_and_die(self) -> None:
        """A driver that is killed: nobody closes its ledger."""
        journal = self.chance.choice(self.journals)
        with BookKeeper(self.rig.uri) as keeper:
            writer = keeper.open_log(journal.name).writer(roll_entries=4)
            for value in self.values():
                writer.append(value)
                journal.entries.append(value)
            writer.release()

    def truncate(self) -> None:
        """Whole ledgers go, up to somewhere."""
        journal = self.chance.choice(self.journals)
        with BookKeeper(self.rig.uri) as keeper:
            log = keeper.open_log(journal.name)
            before = self.chance.randint(journal.first, log.record.end_offset)
            log.truncate(before)
            del journal.entries[: before - journal.first]
            journal.first = before

    def make_and_delete(self) -> None:
        with BookKeeper(self.rig.uri) as keeper:
            with keeper.create_ledger() as ledger:
                ledger.append(b"x" * 100)
            keeper.delete_ledger(ledger.ledger_id)

    def replace_bookie(self) -> None:
        """One is added, another is to go."""
        self.add_bookie()
        others = sorted(self.rig.urls.keys() - self.hurt - self.leaving)
        self.leaving.add(self.chance.choice(others))
        self.decommission()

    def compact(self, target_bytes: int = 20_000) -> None:
        for name in (self.rig.log_name, STREAM, *(one.name for one in self.journals)):
            done(verbs.compact(self.rig.uri, log=name, target_bytes=target_bytes))

    def counts(self) -> list[int]:
        return [self.chance.randint(1, 200) for _ in range(self.chance.randint(1, 3))]

    def values(self) -> Iterator[bytes]:
        for _ in range(self.chance.randint(1, 40)):
            yield self.chance.randbytes(self.chance.choice((10, 100, 2000)))

    @property
    def streamed(self) -> Rig:
        """The same cluster, for the stream's log."""
        rig = copy.copy(self.rig)
        rig.log_name = STREAM
        return rig

    # --- what befalls it ----------------------------------------------------------------------

    def lose_bookie(self) -> None:
        """A disk dies, somebody says so and adds another one."""
        victim = self.victim()
        if victim in self.tonight:
            return
        self.rig.lose(victim)
        with Cluster(self.rig.uri) as cluster:
            declare_lost(cluster, victim)
        self.leaving.discard(victim)
        self.add_bookie()
        del self.rig.urls[victim]

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
        """Until tonight."""
        victim = self.victim()
        self.tonight.setdefault(victim, self.rig.lose(victim))

    def wipe(self) -> None:
        """A disk comes back empty, and is begun anew tonight."""
        victim = self.victim()
        if victim not in self.tonight:
            self.rig.wipe(victim)
            self.tonight[victim] = None

    def victim(self) -> str:
        """One bookie a day: more may be too many."""
        if not self.hurt:
            self.hurt.add(self.chance.choice(sorted(self.rig.urls)))
        return next(iter(self.hurt))

    # --- days and nights ----------------------------------------------------------------------

    def day(self) -> None:
        people = {
            self.append_rows: 5,
            self.append_entries: 5,
            self.append_and_die: 4,
            self.append_batches: 4,
            self.make_and_delete: 2,
            self.abort_rows: 2,
            self.truncate: 2,
            self.overwrite: 1,
            self.replace_bookie: 1,
            self.compact: 1,
        }
        accidents = (self.lose_bookie, self.lose_folder, self.turn_a_bit, self.be_away, self.wipe)
        deeds = [*self.chance.choices([*people], weights=[*people.values()], k=3)]
        deeds.insert(self.chance.randrange(4), self.chance.choice(accidents))
        for deed in deeds:
            deed()
            self.calendar.wait((DAY - HOUR) / len(deeds))
            verbs.collect(self.rig.uri, abandoned_after=DAY)

    def night(self) -> None:
        """What was away is there again, and the schedule runs."""
        for victim, disk in self.tonight.items():
            if disk is None:
                done(bookies.reinit(self.rig.uri, victim, accepts_risk=True))
            else:
                self.rig.bring_back(victim, disk)
        self.tonight.clear()
        self.hurt.clear()
        verbs.recover(self.rig.uri)
        self.calendar.wait(HOUR)
        verbs.scrub(self.rig.uri)
        verbs.audit(self.rig.uri)
        done(verbs.repair(self.rig.uri))
        self.decommission()
        if self.has_new:
            done(verbs.rebalance(self.rig.uri))
        self.has_new = False
        done(verbs.collect(self.rig.uri, abandoned_after=DAY))

    def rest(self) -> None:
        """The seventh day: logs are compacted, and a day later what they were is garbage.

        What is read of logs meanwhile keeps a bookie from being empty; now it is.
        """
        self.compact(2**20)
        self.calendar.wait(DAY + HOUR)
        done(verbs.repair(self.rig.uri))
        done(verbs.collect(self.rig.uri, abandoned_after=DAY))
        self.decommission()
        assert not self.leaving
        done(verbs.collect(self.rig.uri, abandoned_after=DAY))

    def morning(self) -> None:
        assert self.rig.rows() == self.rows
        assert settled_rows(self.streamed) == expected(*range(self.batches))
        with BookKeeper(self.rig.uri) as keeper:
            for journal in self.journals:
                log = keeper.open_log(journal.name)
                end = journal.first + len(journal.entries)
                assert (log.first_offset, log.end_offset) == (journal.first, end)
                assert [bytes(entry.value) for entry in log.read()] == journal.entries

    # --- parts of the above -------------------------------------------------------------------

    def add_bookie(self) -> None:
        with Cluster(self.rig.uri) as cluster:
            url = f"{self.rig.urls[min(self.rig.urls)]}-{self.chance.randrange(10**9)}"
            record = cluster.add_bookie("", url, accepts_risk=True)
        self.rig.urls[record.bookie_id] = url
        self.has_new = True

    def decommission(self) -> None:
        """Empty those that are to go; what stands in the way is no matter before tonight."""
        if self.leaving:
            report = verbs.decommission(self.rig.uri, bookies=sorted(self.leaving))
            with Cluster(self.rig.uri) as cluster:
                gone = self.leaving - cluster.bookies().keys()
            assert gone or report.left
            for bookie_id in gone:
                del self.rig.urls[bookie_id]
            self.leaving -= gone


def done(report: Report) -> None:
    assert not report.left, report.left


@contextmanager
def begun(rig: Rig, seed: int) -> Iterator[Life]:
    """A new cluster by a calendar of its own."""
    calendar = Calendar()
    with environment.use(calendar), pages_of(PAGE_LENGTH):
        yield Life(rig, random.Random(seed), calendar)
