"""Giving a ledger that was made on too few bookies the members that it lacks.

Rule 1. One step gives each fragment of one closed ledger one further member ("repairing", rule 5):
copies first, looked at on the bookies, then one compare-and-set that names them all. A ledger that
lacks more than one is begun again.

Rule 2. A step that loses its compare-and-set begins again with the record as it is by then, and
with the bookies that have copies already.

Rule 3. Behind the compare-and-set the bookies' records are looked at, because an operator may be
taking one out of the cluster (``admin.bookies.removing``), and then what the bookies show, once
more. If either is not as it should be, the record is put back as it was, and others are chosen.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from bkspark.admin.auditing.look import slim
from bkspark.admin.noted_damage import NotedDamage
from bkspark.admin.pace import shares
from bkspark.admin.repairing.checking import in_vain, problem_of
from bkspark.admin.repairing.fill import Fill, Filled, Sources
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.messages import told_of
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.decisions import tell
from bkspark.cluster.ensembles import Successors
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned
from bkspark.errors import CorruptDataError, MetadataVersionError, UnauthorizedError
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.upkeep import leaving, repairing
from bkspark.protocol.upkeep.repairing import Place

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""So many fragments of a ledger get their copies side by side."""

TRIES_MAX = 4
"""A step is begun so often, each time with what was learnt."""


@dataclass(frozen=True, slots=True)
class Widened:
    """What came of a step.

    Attributes:
        is_wider: whether each fragment has a further member.
        why: why not, in one line; empty also if there is nothing to do.
        records, byte_count: that were copied.
    """

    is_wider: bool
    why: str = ""
    records: int = 0
    byte_count: int = 0


@dataclass(slots=True)
class _Learnt:
    """What the tries of one step have found out.

    Attributes:
        avoid: ids of bookies that were tried in vain.
        kept: bookies that have the copies of a fragment, by its first entry id.
    """

    avoid: set[str] = field(default_factory=set)
    kept: dict[int, BookieAddress] = field(default_factory=dict)
    why: str = ""
    records: int = 0
    byte_count: int = 0


class Widening:
    """Gives ledgers further members, one ledger after the other."""

    def __init__(
        self,
        cluster: Cluster,
        password: Password,
        run: Runner,
        bytes_per_second: float | None,
    ) -> None:
        self._cluster = cluster
        self._password = password
        self._run = run
        self._bytes_per_second = bytes_per_second
        self._marks = NotedDamage(cluster).marks(cluster.addresses())

    def widen(self, ledger_id: int) -> Widened:
        """One step (rule 1).

        Raises:
            OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
        """
        learnt = _Learnt()
        for _ in range(TRIES_MAX):
            found = self._take_step(ledger_id, learnt)
            if found is not None:
                if found.why:
                    _tell(ledger_id, f"it is left: {found.why}")
                return found
            _tell(ledger_id, f"it is begun again: {learnt.why}")
        return Widened(False, learnt.why, learnt.records, learnt.byte_count)

    def _take_step(self, ledger_id: int, learnt: _Learnt) -> Widened | None:
        """None if the step is to be begun again."""
        try:
            seen = self._cluster.ledgers.get(str(ledger_id))
        except CorruptDataError as error:
            return Widened(False, str(error.args[0]))
        if seen is None or not repairing.may_widen(seen.value):
            return Widened(False)
        try:
            make_digester(seen.value.settings.digest, self._password)
        except UnauthorizedError as error:
            return Widened(False, f"its records cannot be copied: {error.args[0]}")
        targets = self._targets(seen.value, learnt)
        if targets is None:
            how = "bookie add URL; `bkspark bookies` shows who is full or closed"
            why = f"no other bookie can take copies ({how})"
            return Widened(False, f"{why}; {learnt.why}" if learnt.why else why)
        members = [address.member for address in targets]
        after = repairing.widened(seen.value, members)
        fills = self._fills(seen.value, after, targets)
        results = self._copied(fills, learnt)
        if isinstance(results, Widened | None):
            return results
        return self._name_all(seen, after, fills, results, learnt)

    def _targets(self, ledger: LedgerMetadata, learnt: _Learnt) -> list[BookieAddress] | None:
        """For each fragment the bookie that is to join; None if there are too few."""
        successors, addresses = Successors(self._cluster), self._cluster.addresses()
        barred = leaving.barred(ledger, addresses)
        found: list[BookieAddress] = []
        for fragment in ledger.fragments:
            named = {member.bookie_id for member in fragment.ensemble}
            unfit = named | barred | learnt.avoid
            kept = learnt.kept.get(fragment.first_entry_id)
            if kept is None or kept.bookie_id in unfit or kept.member not in addresses:
                kept = self._next(successors, fragment.ensemble, unfit, found)
            if kept is None:
                return None
            found.append(kept)
        return found

    @staticmethod
    def _next(
        successors: Successors,
        staying: Iterable[Member],
        unfit: set[str],
        before: Sequence[BookieAddress],
    ) -> BookieAddress | None:
        """The bookie that the fragment before has got, where it fits: a ledger stays on few."""
        if before and before[-1].bookie_id not in unfit:
            return before[-1]
        return successors.beside(tuple(staying), unfit)

    # --- copying ----------------------------------------------------------------------------------

    def _fills(
        self, ledger: LedgerMetadata, after: LedgerMetadata, targets: Sequence[BookieAddress]
    ) -> list[Fill]:
        sources = Sources(self._cluster.cluster_id, self._cluster.addresses())
        index, now, planned = ledger.quorum.ensemble_size, slim(ledger), slim(after)
        fills: list[Fill] = []
        for fragment, target in zip(ledger.fragments, targets, strict=True):
            place = Place(ledger.ledger_id, fragment.first_entry_id, index, target.member)
            mark = self._marks.get((target.member, ledger.ledger_id))
            fills.append(Fill(target, place, now, planned, sources, self._password, mark=mark))
        return fills

    def _copied(self, fills: Sequence[Fill], learnt: _Learnt) -> list[Filled] | Widened | None:
        """What was copied; or why that cannot be, or None to begin again elsewhere."""
        results: list[Filled] = []
        for begin in range(0, len(fills), AT_ONCE):
            part = fills[begin : begin + AT_ONCE]
            rates = shares(self._bytes_per_second, [fill.bookie_ids for fill in part])
            asked = [replace(fill, bytes_per_second=rate) for fill, rate in zip(part, rates)]
            for fill, result in zip(part, self._run(asked), strict=True):
                if not isinstance(result, Filled):
                    reason = str(getattr(result, "reason", result))
                    learnt.avoid.add(fill.address.bookie_id)
                    learnt.why = told_of(fill.address.bookie_id, reason)
                    return None
                learnt.records += result.records
                learnt.byte_count += result.byte_count
                if result.holes:
                    return Widened(False, in_vain(result), learnt.records, learnt.byte_count)
                learnt.kept[fill.place.fragment_first_entry_id] = fill.address
                results.append(result)
        return results

    # --- naming -----------------------------------------------------------------------------------

    def _name_all(
        self,
        seen: Versioned[LedgerMetadata],
        after: LedgerMetadata,
        fills: Sequence[Fill],
        results: Sequence[Filled],
        learnt: _Learnt,
    ) -> Widened | None:
        ledger_id = after.ledger_id
        try:
            named = self._cluster.ledgers.replace(str(ledger_id), after, seen)
        except MetadataVersionError:
            learnt.why = "its record changed meanwhile"
            return None
        for fill, result in zip(fills, results, strict=True):
            who = fill.address.bookie_id
            problem = f"bookie {who} is being removed" if self._is_going(fill) else ""
            problem = problem or problem_of(self._run, fill, result)
            if problem:
                learnt.why, learnt.kept = problem, {}
                learnt.avoid.add(who)
                return self._put_back(seen.value, named, problem)
        who = ", ".join(dict.fromkeys(fill.address.bookie_id for fill in fills))
        _tell(
            ledger_id, f"each entry has {after.quorum.write_quorum_size} copies now, on {who} too"
        )
        return Widened(True, "", learnt.records, learnt.byte_count)

    def _is_going(self, fill: Fill) -> bool:
        return self._cluster.is_going(fill.address.member)

    def _put_back(
        self, before: LedgerMetadata, named: Versioned[LedgerMetadata], problem: str
    ) -> Widened | None:
        """Rule 3; where the record has changed since, it stays as it is by then."""
        try:
            self._cluster.ledgers.replace(str(before.ledger_id), before, named)
        except MetadataVersionError:
            return Widened(False, problem)
        return None


def _tell(ledger_id: int, what: str) -> None:
    tell(logger, "ledger %d: a further member: %s", ledger_id, what, ledger_id=ledger_id)
