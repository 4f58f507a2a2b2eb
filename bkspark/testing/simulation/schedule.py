"""One schedule: from a seed to what happened.

Rule: a schedule has three parts. A ledger is made, without faults. Clients use it, while everything
may fail. Then the faults end, and it must be possible to recover the ledger and, unless it was a
DataFrame's, to read every entry of it.
"""

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from random import Random

import pyarrow as pa

from bkspark.client.batch import plan as batch_plan
from bkspark.client.batch.plan import WriteRequest
from bkspark.client.batch.target import BatchTarget, BlockSettings
from bkspark.client.cluster import Cluster
from bkspark.client.creating import create_ledger
from bkspark.client.handles.entries import VALUE_SCHEMA
from bkspark.client.password import Password
from bkspark.client.records import Seen
from bkspark.format import arrow_schema
from bkspark.protocol.ledger import DigestSpec, LedgerMetadata
from bkspark.protocol.quorum import Quorum
from bkspark.testing.simulation.clients import Clients
from bkspark.testing.simulation.disks import URI
from bkspark.testing.simulation.faults import Chance, Kind
from bkspark.testing.simulation.oracle import Oracle
from bkspark.testing.simulation.runtime import determined
from bkspark.testing.simulation.scheduler import Policy, Scheduler, Violation
from bkspark.testing.simulation.storage import Storage

_QUORUMS = ((3, 3, 2), (3, 3, 2), (2, 2, 2), (3, 2, 2), (2, 2, 1), (3, 3, 3), (4, 3, 2), (3, 2, 1))
_BATCH_SHARE = 0.2
_DELETED_SHARE = 0.05
_ENTRY_COUNTS = (1, 2, 2, 3, 3, 4, 5, 8)
_LENGTHS = (60, 150, 400)
_BLOCKS = BlockSettings(rows_per_block=4, target_bytes=2**20, compression="none")
_ROWS = pa.schema([pa.field("n", pa.int64())])


@dataclass
class Outcome:
    """What a schedule did.

    Attributes:
        violation: what was found; empty if nothing.
        digest: of every step; equal for equal seeds.
        log: every step: (step, process, task, what).
    """

    seed: int
    violation: str = ""
    digest: str = ""
    steps: int = 0
    operations: int = 0
    acks: int = 0
    faults: Counter[Kind] = field(default_factory=Counter)
    setting: str = ""
    log: list[tuple[int, str, str, str]] = field(default_factory=list)

    def take(self, scheduler: Scheduler, storage: Storage, oracle: Oracle) -> None:
        """Note what they have counted by the end."""
        self.log = scheduler.log
        self.digest = blake2b("\n".join(map(str, self.log)).encode(), digest_size=16).hexdigest()
        self.steps, self.operations = scheduler.moves, storage.operations
        self.acks, self.faults = oracle.acks, storage.chance.counts
        self.faults[Kind.TIMED_OUT] = scheduler.time_outs


def run_schedule(seed: int, *, checks_reasons: bool = True) -> Outcome:
    """Run the schedule of ``seed``; a violation is in the outcome, not raised."""
    random = Random(seed)
    outcome = Outcome(seed)
    with determined(
        seed,
        sleep=lambda seconds: run.scheduler.sleep(seconds),
        clock=lambda: run.scheduler.seconds,
    ):
        run = _Run(random, outcome, checks_reasons)
        try:
            with run.storage.installed():
                run.play()
        except Violation as violation:
            outcome.violation = str(violation)
        finally:
            run.storage.clear()
    outcome.take(run.scheduler, run.storage, run.oracle)
    return outcome


class _Run:
    """A cluster, its clients and who goes next."""

    def __init__(self, random: Random, outcome: Outcome, checks_reasons: bool) -> None:
        self._random = random
        self._quorum = Quorum(*random.choice(_QUORUMS))
        is_uniform = random.random() < 0.5
        length = random.choice(_LENGTHS)
        changes = frozenset(random.randrange(length) for _ in range(random.randint(1, 4)))
        policy = Policy(random, None if is_uniform else changes)
        spares = random.randint(0, 2)
        self.scheduler = Scheduler(policy, time_out_rate=random.choice((0.0, 0.0, 0.0, 0.001)))
        self.oracle = Oracle(URI, checks_reasons=checks_reasons)
        chance = Chance(random, losses_left=self._quorum.losses_max)
        self.storage = Storage(
            self.scheduler, chance, self.oracle, self._quorum.ensemble_size + spares
        )
        self._clients = Clients(self.scheduler, self.oracle, random, URI)
        self._losses_max = chance.losses_left
        how = "uniform" if is_uniform else f"priorities, changed at {sorted(changes)}"
        outcome.setting = (
            f"E/Qw/Qa {self._quorum.ensemble_size}/{self._quorum.write_quorum_size}/"
            f"{self._quorum.ack_quorum_size}, {spares} spare bookies, {how}"
        )

    def play(self) -> None:
        if self._random.random() < _BATCH_SHARE:
            self._play_batch()
        else:
            self._play_appends()

    def _play_appends(self) -> None:
        seen = make_ledger(self._quorum, self.oracle)
        ledger_id = seen.value.ledger_id
        clients = self._clients
        numbers = count(1)
        self.storage.on_loss = lambda: clients.recover(
            f"recovery-after-loss-{next(numbers)}", ledger_id
        )
        clients.write("writer", seen, self._random.choice(_ENTRY_COUNTS))
        for number in range(self._random.choice((0, 0, 1, 1, 2, 2))):
            clients.recover(f"recovery-{number + 1}", ledger_id)
        for number in range(self._random.choice((0, 1, 1, 2))):
            clients.read(f"reader-{number + 1}", ledger_id)
        if self._random.random() < _DELETED_SHARE:
            clients.delete("deleter", ledger_id)
        self.scheduler.run()
        if self.oracle.is_deleted(ledger_id):
            return
        has_all = self._finish(ledger_id)
        clients.read("last-reader", ledger_id, must_succeed=has_all, looks=1)
        self.scheduler.run()

    def _play_batch(self) -> None:
        targets = [self._make_target() for _ in range(self._random.choice((1, 2, 2)))]
        for number, target in enumerate(targets, start=1):
            counts = [self._random.randint(0, 5) for _ in range(self._random.randint(1, 2))]
            self._clients.commit(f"commit-{number}", target, counts)
            if self._random.random() < 0.4:
                self._clients.recover(f"recovery-{number}", target.ledger_id)
            if self._random.random() < 0.3:
                self._clients.abort(f"abort-{number}", target)
        self.scheduler.run()
        for target in targets:
            self._finish(target.ledger_id)

    def _finish(self, ledger_id: int) -> bool:
        """No more faults; the ledger is closed if it can be. Returns whether it must be."""
        self.storage.heal()
        self.scheduler.time_out_rate = 0.0
        has_all = self.storage.chance.losses_left == self._losses_max
        self._clients.recover("last-recovery", ledger_id, must_succeed=has_all)
        self.scheduler.run()
        return has_all

    def _make_target(self) -> BatchTarget:
        request = WriteRequest(URI, "log", _ROWS, self._quorum, None, Password(), _BLOCKS)
        target = batch_plan.prepare(request)
        self.oracle.see("-", target.ledger_id)
        return target


def make_ledger(quorum: Quorum, oracle: Oracle) -> Seen[LedgerMetadata]:
    """A new ledger of the cluster, open for its first writer."""
    with Cluster(URI) as cluster:
        created = create_ledger(
            cluster,
            quorum=quorum,
            digest=DigestSpec(),
            schema=arrow_schema.encode(VALUE_SCHEMA),
            custom_metadata={},
        )
    oracle.see("-", created.seen.value.ledger_id)
    return created.seen
