"""One schedule: from a seed to what happened.

Rule: a schedule has three parts. A ledger is made, without faults. Clients use it, while everything
may fail. Then the faults end, and it must be possible to recover the ledger and, unless it was a
DataFrame's, to read every entry of it.
"""

from dataclasses import replace
from itertools import count
from random import Random

import pyarrow as pa

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.format import arrow_schema
from bkspark.format.digest import Digester
from bkspark.ledger.creating import CreatedLedger, create_ledger
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.log.batch import preparing as batch_plan
from bkspark.log.batch.target import BatchTarget, BlockSettings, WriteChecks, WriteRequest
from bkspark.protocol.apart import NOTHING, Distinct
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.quorum import Quorum
from tests.simulation.clients import Clients
from tests.simulation.disks import URI
from tests.simulation.frame import Outcome, Run, Shape, outcome_of
from tests.simulation.oracle import Oracle
from tests.simulation.racks import WANTED, draw_racks
from tests.simulation.scheduler import Violation

_QUORUMS = ((3, 3, 2), (3, 3, 2), (2, 2, 2), (3, 2, 2), (2, 2, 1), (3, 3, 3), (4, 3, 2), (3, 2, 1))
_BATCH_SHARE = 0.2
_SCRUB_SHARE = 0.3
_DELETED_SHARE = 0.05
_WRITE_QUORUM_SHARE = 0.3
_CROWD_SHARE = 0.25
_CROWD_LOOKS = 6
_CROWD_DELAYS = (10, 30, 60, 90)
_UPKEEP_SPARES_MAX = 4
_RACK_SPARES_MAX = 3
_UPKEEP_DELAYS = (100, 200, 250, 300, 400, 500, 700)
_REPAIR_DELAYS = (100, 200, 300, 500)
_EMPTIED_SHARE = 0.6
_ENTRY_COUNTS = (1, 2, 2, 3, 3, 4, 5, 8)
_SUCCESSOR_COUNTS = (0, 1, 2, 3)
_MISFORTUNE_SHARE = 0.3
_WIDE_QUORUMS = ((3, 3, 2), (3, 3, 2), (4, 3, 2), (4, 4, 2), (5, 5, 3))
"""Where one bookie alone proves no absence."""
_MORE_ENTRIES = 6
_PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 0.02
_STRIKES_MAX = 20
_LENGTHS = (60, 150, 400)
_CHANGES_MAX = 4
_STEPS_MAX = 20_000
"""Who looks all the time looks at each journal that a recovery in vain has left behind."""
_BLOCKS = BlockSettings(rows_per_block=4, target_bytes=2**20, compression="none")
_ROWS = pa.schema([pa.field("n", pa.int64())])


def run_schedule(
    seed: int,
    *,
    checks_reasons: bool = True,
    repairs: bool = False,
    moves: bool = False,
    upkeep: bool = False,
    terms: bool = False,
    rolls: bool = False,
    racks: bool = False,
    **losses: bool,
) -> Outcome:
    """Run the schedule of ``seed``; a violation is in the outcome, not raised.

    Args:
        repairs: whether missing copies are made again, meanwhile and at the end.
        moves: whether places are given to other bookies, and bookies are emptied.
        upkeep: whether both are, and there are scrubs and collections too, meanwhile and at the
            end.
        terms: whether the ledger goes on in later terms, with writers one behind the other; there
            are no DataFrames then.
        rolls: whether writers begin fragments, and some go of a ledger that goes on.
        racks: whether bookies have racks, and ledgers insist on two in each write set.
        losses: ``loses_files``, ``loses_power``; see ``Shape``.
    """
    oracle = Oracle(URI, checks_reasons=checks_reasons)
    kinds = {"repairs": repairs or upkeep, "moves": moves or upkeep, "upkeep": upkeep}
    kinds |= {"terms": terms, "rolls": rolls, "racks": racks}
    return outcome_of(_Run(seed, oracle, **kinds, **losses))


class _Run(Run[Oracle]):
    """A cluster with a ledger or two, and the clients of them."""

    def __init__(
        self,
        seed: int,
        oracle: Oracle,
        *,
        repairs: bool,
        moves: bool,
        upkeep: bool,
        terms: bool = False,
        rolls: bool = False,
        racks: bool = False,
        **losses: bool,
    ) -> None:
        random = Random(seed)
        self._repairs, self._moves, self._upkeep = repairs, moves, upkeep
        self._terms = terms
        quorum = Quorum(*random.choice(_QUORUMS))
        shape = Shape(quorum, _LENGTHS, _CHANGES_MAX, steps_max=_STEPS_MAX, **losses)
        if racks:
            shape = replace(shape, spares_max=_RACK_SPARES_MAX)
        if upkeep:
            shape = replace(shape, spares_max=_UPKEEP_SPARES_MAX, steps_max=2 * _STEPS_MAX)
        own = Random(f"misfortune {seed}")
        self._has_misfortune = shape.loses_files and own.random() < _MISFORTUNE_SHARE
        if self._has_misfortune:
            shape = replace(shape, quorum=Quorum(*own.choice(_WIDE_QUORUMS)), spares_max=0)
        super().__init__(seed, random, shape, oracle)
        self._min_distinct: Distinct = {}
        if racks:
            self._min_distinct = WANTED
            self.storage.label(draw_racks(seed, self.quorum, [*self.storage.disks.urls]))
        self._clients = Clients(self.scheduler, oracle, random, URI)
        self._clients.rolls = rolls
        self._clients.may_have_lost = self.storage.chance.may_have_lost

    def play(self) -> None:
        is_batch = self.random.random() < _BATCH_SHARE and not self._has_misfortune
        if is_batch and not self._terms:
            self._play_batch()
        else:
            self._play_appends()

    def _play_appends(self) -> None:
        is_guaranteed = guarantees_write_quorum(self.seed)
        created = make_ledger(
            self.quorum,
            self.oracle,
            guarantees_write_quorum=is_guaranteed,
            goes_on=self._terms,
            min_distinct=self._min_distinct,
        )
        ledger_id = created.seen.value.ledger_id
        clients = self._clients
        numbers = count(1)
        self.storage.on_loss = lambda: clients.recover(
            f"recovery-after-loss-{next(numbers)}", ledger_id
        )
        entry_count = self.random.choice(_ENTRY_COUNTS)
        if self._has_misfortune or self._clients.rolls:
            entry_count += _MORE_ENTRIES
        clients.write("writer", created, entry_count, one_by_one=self._has_misfortune)
        for number in range(self.random.choice((0, 0, 1, 1, 2, 2))):
            clients.recover(f"recovery-{number + 1}", ledger_id)
        for number in range(self.random.choice((0, 1, 1, 2))):
            clients.read(f"reader-{number + 1}", ledger_id)
        if self.random.random() < _DELETED_SHARE:
            clients.delete("deleter", ledger_id)
        self._start_successors(ledger_id)
        self._start_crowd(ledger_id)
        self._start_repairs(ledger_id)
        if self._has_misfortune:
            self._start_misfortune(ledger_id)
        self.scheduler.run()
        if self.oracle.is_deleted(ledger_id):
            return
        has_all = self._finish(ledger_id)
        clients.read("last-reader", ledger_id, must_succeed=has_all, looks=1)
        self.scheduler.run()

    def _start_successors(self, ledger_id: int) -> None:
        """One behind the other, or two at once."""
        for number in range(self.random.choice((1, 2, 2, 3)) if self._terms else 0):
            count = self.random.choice(_SUCCESSOR_COUNTS)
            self._clients.take_over(f"successor-{number + 1}", ledger_id, count)
        own = Random(f"truncations {self.seed}")
        for number in range(own.choice((1, 2, 3)) if self._clients.rolls else 0):
            delays = (own.choice(_REPAIR_DELAYS),)
            self._clients.truncate_ledger(f"truncation-{number + 1}", ledger_id, 99, delays=delays)

    def _start_crowd(self, ledger_id: int) -> None:
        """Readers that look all the time: each must be shown what another was shown before."""
        own = Random(str(self.random.getstate()))
        if own.random() < _CROWD_SHARE:
            for number in range(own.choice((2, 3))):
                delays = (own.choice(_CROWD_DELAYS),)
                self._clients.read(
                    f"watcher-{number + 1}", ledger_id, looks=_CROWD_LOOKS, delays=delays
                )

    def _start_repairs(self, ledger_id: int) -> None:
        """Some at about the time at which the ledger is closed, perhaps two at once."""
        own = Random(f"repair {self.random.getstate()}")
        for number in range(own.choice((0, 1, 2)) if self._repairs else 0):
            self._clients.repair(
                f"repair-{number + 1}", ledger_id, delays=(own.choice(_REPAIR_DELAYS),)
            )
        for number in range(own.choice((1, 2, 3)) if self._moves else 0):
            delays = (own.choice(_REPAIR_DELAYS),)
            if own.random() < _EMPTIED_SHARE:
                bookie_id = own.choice(sorted(self.storage.disks.urls))
                self._clients.decommission(f"decommission-{number + 1}", bookie_id, delays=delays)
            else:
                self._clients.move(f"move-{number + 1}", ledger_id, delays=delays)
        if self._upkeep:
            self._start_upkeep(own)

    def _start_upkeep(self, own: Random) -> None:
        """Collections and scrubs beside repairs."""
        for number in range(own.choice((1, 1, 2, 3))):
            delays = (own.choice(_UPKEEP_DELAYS),)
            self._clients.collect(f"collection-{number + 1}", delays=delays)
        if own.random() < _SCRUB_SHARE:
            self._clients.scrub("scrub", delays=(own.choice(_UPKEEP_DELAYS),))

    def _start_misfortune(self, ledger_id: int) -> None:
        """One bookie falls behind, and then one that did not goes back in time."""
        ledger, own = self.oracle.ledgers[ledger_id], Random(f"{self.random.getstate()}")
        lags = own.choice(ledger.metadata.last_fragment.ensemble).bookie_id
        falls_behind, strikes = own.choice((2, 3, 4)), own.choice((0, 0, 1, 2))

        def has_acked(count: int) -> bool:
            return self.scheduler.pause(lambda: ledger.acked + 1 >= count, _PATIENCE_SECONDS)

        def work() -> None:
            if not has_acked(falls_behind):
                return
            self.storage.silent.add(("writer", lags))
            if not has_acked(falls_behind + strikes + 1):
                return
            for _ in range(_STRIKES_MAX):
                if self.storage.go_back_unseen():
                    return
                self.scheduler.sleep(_PAUSE_SECONDS)

        self._clients.start("misfortune", work)

    def _play_batch(self) -> None:
        targets = [self._make_target() for _ in range(self.random.choice((1, 2, 2)))]
        for number, target in enumerate(targets, start=1):
            counts = [self.random.randint(0, 5) for _ in range(self.random.randint(1, 2))]
            self._clients.commit(f"commit-{number}", target, counts)
            if self.random.random() < 0.4:
                self._clients.recover(f"recovery-{number}", target.ledger_id)
            self._start_repairs(target.ledger_id)
            if self.random.random() < 0.3:
                self._clients.abort(f"abort-{number}", target)
        self.scheduler.run()
        for target in targets:
            if self.oracle.is_deleted(target.ledger_id):
                self._require_empty(target.ledger_id)
            else:
                self._finish(target.ledger_id)

    def _require_empty(self, ledger_id: int) -> None:
        """Whoever drops a ledger without entries deletes it; one with an ack never."""
        acked = self.oracle.ledgers[ledger_id].acked
        if acked >= 0:
            raise Violation(f"ledger {ledger_id} is deleted, entry {acked} was acked (I2)")

    def _finish(self, ledger_id: int) -> bool:
        """No more faults; the ledger is closed if it can be. Returns whether it must be."""
        has_all = self.heal()
        self.oracle.racks.is_calm = True
        self._clients.recover("last-recovery", ledger_id, must_succeed=has_all)
        self.scheduler.run()
        if self._repairs:
            self._clients.repair("last-repair", ledger_id, is_last=True, delays=(0,))
            self.scheduler.run()
        if self._moves:
            bookie_id = Random(f"last {self.seed}").choice(sorted(self.storage.disks.urls))
            self._clients.decommission("last-decommission", bookie_id, is_last=True, delays=(0,))
            self.scheduler.run()
        if self._upkeep:
            self._clients.collect("last-collection", delays=(0,))
            self.scheduler.run()
            with Cluster(URI) as cluster:
                self.oracle.require_tidy(ledger_id, cluster.bookies().keys())
        return has_all

    def _make_target(self) -> BatchTarget:
        request = WriteRequest(URI, "log", _ROWS, self.quorum, None, Password(), _BLOCKS)
        if self._min_distinct:
            request = replace(request, checks=WriteChecks(min_distinct=self._min_distinct))
        target = batch_plan.prepare(request)
        self.oracle.see("-", target.ledger_id)
        return target


def guarantees_write_quorum(seed: int) -> bool:
    """Whether the ledger of a schedule does, if it is no DataFrame's."""
    return Random(f"write quorum {seed}").random() < _WRITE_QUORUM_SHARE


def make_ledger(
    quorum: Quorum,
    oracle: Oracle,
    *,
    guarantees_write_quorum: bool = False,
    goes_on: bool = False,
    min_distinct: Distinct = NOTHING,
) -> CreatedLedger:
    """A new ledger of the cluster, open for its first writer."""
    with Cluster(URI) as cluster:
        created = create_ledger(
            cluster,
            quorum=quorum,
            digest=DigestSpec(),
            schema=arrow_schema.encode(VALUE_SCHEMA),
            custom_metadata={},
            digester=Digester(DigestSpec(), None),
            guarantees_write_quorum=guarantees_write_quorum,
            goes_on=goes_on,
            min_distinct=min_distinct,
        )
    oracle.see("-", created.seen.value.ledger_id)
    return created
