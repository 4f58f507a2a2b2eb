"""Maintenance verbs that are killed at random moments, beside a log's writer and a stream.

Each round something is lost and something is to do, and mostly a bookie is away meanwhile; every
verb is begun, by some two at once and by clocks that are hours off, and killed. Then the bookie
comes back, all of them are run until nothing is left, and every entry and every row is compared.

    BKSPARK_SOAK_KILLS=500 pytest -s -n0 -m soak tests/integration/upkeep/test_kill_loops.py
"""

import os
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pytest

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError
from bkspark.log.rolling import RollPolicy
from tests.integration.rig import LOG, Rig
from tests.integration.stream_driver import Driver, expected, settled_rows

from .killed_verbs import Verb

WAL = "wal"
BOOKIES = 6
KILLS = 21
SOAK_KILLS = int(os.environ.get("BKSPARK_SOAK_KILLS", "500"))
TRIES = 6
"""So often a verb is run at most until nothing is left: others make work for it."""
VERBS = {
    "recover": ("recover", "--all", "--open-grace", "0"),
    "repair": ("repair", "--yes"),
    "scrub": ("scrub",),
    "collect": ("collect", "--abandoned-after", "0"),
    "decommission": ("bookie", "decommission", "--yes"),
    "rebalance": ("rebalance", "--threshold", "0.01"),
    "compact wal": ("compact", WAL, "--target-bytes", "2000"),
    "compact stream": ("compact", LOG, "--target-bytes", "20000"),
}
FINISHED_AT = {"collect": 25}
"""So many hours later: what was compacted is kept for a day, and no bookie is removed meanwhile."""
HAVE_LEASES = {"recover", "repair", "scrub", "collect", "rebalance"}


@dataclass
class Life:
    """A cluster with a log's writer and a stream, which go on whatever befalls them.

    Attributes:
        sent: entries that were given to the writer; each once.
        acked: those of them that were acknowledged.
        batches: of the stream, how many were committed.
        seconds: how long a verb took when nobody killed it.
        leaving: the bookie that is to be emptied.
        victim: the one that loses folders.
    """

    rig: Rig
    chance: random.Random
    sent: int = 0
    acked: list[int] = field(default_factory=list)
    batches: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    leaving: str = ""
    victim: str = ""
    kills: int = 0

    # --- who is not to be disturbed -------------------------------------------------------------

    def write(self, end: threading.Event) -> None:
        """Add entries until told to stop; whoever is fenced opens the log anew."""
        with BookKeeper(self.rig.uri) as keeper:
            log = keeper.open_log(WAL)
            while not end.is_set():
                with suppress(BookKeeperError), log.writer(roll_entries=5) as writer:
                    while not end.is_set():
                        number, self.sent = self.sent, self.sent + 1
                        writer.append(b"%d" % number)
                        self.acked.append(number)
                        end.wait(0.02)

    def stream(self, end: threading.Event) -> None:
        """Run batches until told to stop; one that failed is run again by another process."""
        driver = Driver(self.rig, limits=RollPolicy(max_records=3))
        while not end.is_set():
            try:
                driver.run(self.batches)
                self.batches += 1
            except BookKeeperError:
                driver = driver.with_new_process()
            end.wait(0.05)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        end = threading.Event()
        threads = [threading.Thread(target=work, args=[end]) for work in (self.write, self.stream)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            end.set()
            for thread in threads:
                thread.join()

    # --- what there is to do --------------------------------------------------------------------

    def make_work(self) -> None:
        """Garbage, a ledger whose writer is gone, a bookie that leaves, one that loses folders."""
        with BookKeeper(self.rig.uri) as keeper:
            with keeper.create_ledger() as ledger:
                ledger.append(b"x" * 100)
            left = keeper.create_ledger()
            left.append(b"left")
            left.release()
            keeper.delete_ledger(ledger.ledger_id)
        self.leaving, self.victim = self.chance.sample(sorted(self.rig.urls), 2)
        with Cluster(self.rig.uri) as cluster:
            url = (self.rig.folder / f"disk-{self.kills}").as_uri()
            record = cluster.add_bookie("", url, accepts_risk=True)
        self.rig.urls[record.bookie_id] = url
        names = [name for name in self.rig.names(self.victim) if name.startswith("ledgers/")]
        folders = sorted({"/".join(name.split("/")[:3]) for name in names})
        lost = set(self.chance.sample(folders, min(2, len(folders))))
        for name in names:
            if "/".join(name.split("/")[:3]) in lost:
                with suppress(FileNotFoundError):  # somebody collects it
                    self.rig.replace_file(self.victim, name, None)

    def words(self, verb: str) -> tuple[str, ...]:
        return (*VERBS[verb], self.leaving) if verb == "decommission" else VERBS[verb]

    # --- what befalls the verbs -----------------------------------------------------------------

    def kill(self, verb: str) -> None:
        """Begin it, once or twice, and kill it within the time that it may take."""
        words = self.words(verb)
        if verb == "repair" and self.chance.random() < 0.5:
            words += ("--watch", "0.1")
        count = self.chance.choice((1, 1, 2))
        if count == 2 and verb in HAVE_LEASES:
            words += ("--no-lease",)
        running = [
            Verb(self.rig.folder, self.rig.uri, words, self.skew(), f"killed{number}")
            for number in range(count)
        ]
        for one in running:
            time.sleep(self.chance.uniform(0, self.seconds.get(verb, 0.5)))
            self.kills += one.kill()

    def skew(self) -> int:
        return self.chance.choice((0, 0, -5, 5))

    def finish(self, verb: str) -> None:
        """Run it until nothing is left."""
        for _ in range(TRIES):
            began = time.monotonic()
            running = Verb(
                self.rig.folder, self.rig.uri, self.words(verb), FINISHED_AT.get(verb, 0)
            )
            status = running.status()
            self.seconds[verb] = time.monotonic() - began
            assert status in (0, 1), (verb, status, running.said())
            if status == 0:
                return
        raise AssertionError(f"{verb} leaves something:\n{running.said()}")

    def round(self) -> None:
        with self.going_on():
            self.make_work()
            # Who has lost something already is away: what both lack is no more than one can.
            away = self.rig.lose(self.victim) if self.chance.random() < 0.7 else None
            for verb in self.chance.sample(sorted(VERBS), len(VERBS)):
                self.kill(verb)
            if away is not None:
                self.rig.bring_back(self.victim, away)
        for verb in VERBS:
            self.finish(verb)
        del self.rig.urls[self.leaving]
        self.compare()

    def compare(self) -> None:
        with BookKeeper(self.rig.uri) as keeper:
            found = [int(entry.value) for entry in keeper.open_log(WAL).read()]
        assert found == sorted(set(found))
        assert set(self.acked) <= set(found) <= set(range(self.sent))
        rows = settled_rows(self.rig)
        assert rows in (expected(*range(self.batches)), expected(*range(self.batches + 1)))
        report = verbs.audit(self.rig.uri)
        assert (report.left, report.details["copies"]) == ([], [])


@pytest.fixture
def life(make_rig: Callable[..., Rig]) -> Life:
    seed = secrets.randbelow(2**32)
    print(f"seed {seed}")
    rig = make_rig(kind="file", bookie_count=BOOKIES)
    with BookKeeper(rig.uri) as keeper:
        keeper.create_log(WAL)
    return Life(rig, random.Random(seed))


def live(life: Life, kills: int) -> None:
    while life.kills < kills:
        life.round()
        print(f"{life.kills} kills, {len(life.acked)} entries, {life.batches} batches", flush=True)
    assert life.acked
    assert life.batches


@pytest.mark.thorough
def test_killed_verbs_lose_nothing_and_are_finished_by_the_next(life: Life) -> None:
    live(life, KILLS)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_many_killed_verbs(life: Life) -> None:
    live(life, SOAK_KILLS)
