"""Sweeping what writers that were killed in mid-file have left on the bookies.

A file is written under a temporary name and gets its own when it is whole. Nothing looks temporary
names up, so one may be removed at any time without a promise being broken, and no clock is needed
to tell old from new: whoever still writes to it gets an error before its file has a name, and so
before anything counts it (R1). That error costs a living writer its bookie, though. Therefore only
folders of ledgers whose record says CLOSED or DELETING are swept: no live writer has work there,
and a repair that is hit begins again. That a listing does not name something, or that it is old,
proves nothing (H14, RB-29). Whole files that no record names are another matter (R12, "leaving");
this never touches a file that has a name.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.ledger.recovery.running import Runner, in_threads
from bkspark.protocol.ledger.metadata import LedgerState

_SEALED = {LedgerState.CLOSED, LedgerState.DELETING}


@dataclass(slots=True)
class SweepReport:
    """What a sweep did.

    Attributes:
        removed: bookie id -> files.
        problems: bookie id -> why it was not swept to the end, in one line.
    """

    removed: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Remove the temporary files of some ledgers from one bookie; picklable."""

    address: BookieAddress
    ledger_ids: tuple[int, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> "Swept":
        """Runs on: driver thread | executor."""
        removed = 0
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger_id in self.ledger_ids:
                    for folder in (
                        layout.terms_folder(ledger_id),
                        layout.entries_folder(ledger_id),
                    ):
                        removed += root.sweep(folder)
                    beat()
        except BookieUnavailableError as error:
            return Swept(removed, str(error))
        return Swept(removed)


@dataclass(frozen=True, slots=True)
class Swept:
    """How many files were removed, and why it was not done to the end, if it was not."""

    removed: int
    problem: str = ""


def sweep_leftovers(
    cluster: Cluster,
    bookie_ids: Collection[str] = (),
    *,
    run: Runner | None = None,
    tell: Callable[[str], None] | None = None,
) -> SweepReport:
    """Remove temporary files of sealed ledgers from bookies, all at once.

    Can be killed at any point and run again, and at once with anything else. A bookie that fails or
    hangs is reported and does not stop the others.

    Args:
        bookie_ids: which; none for all, those that are in no fragment as well: spares were written
            to and not needed.
        run: how to carry it out; None for threads in this process.
        tell: called with a line about bookies that are waited for.

    Raises:
        InvalidRequestError: there is no such bookie.
        OutcomeUnknownError: the metadata store gave no sure answer; nothing was removed.
    """
    known = cluster.bookies()
    for bookie_id in bookie_ids:
        if bookie_id not in known:
            raise InvalidRequestError(
                f"there is no bookie {bookie_id!r}", hint="`bkspark bookies` lists them"
            )
    sealed = tuple(
        ledger_id for ledger_id in cluster.ledger_ids() if _is_sealed(cluster, ledger_id)
    )
    sweeps = [Sweep(cluster.address(known[name]), sealed) for name in bookie_ids or known]
    report = SweepReport()
    runner = run or partial(in_threads, tell=tell)
    for sweep, result in zip(sweeps, runner(sweeps), strict=True):
        bookie_id = sweep.address.bookie_id
        report.removed[bookie_id] = result.removed if isinstance(result, Swept) else 0
        problem = result.problem if isinstance(result, Swept) else str(result)
        if problem:
            report.problems[bookie_id] = problem
    return report


def _is_sealed(cluster: Cluster, ledger_id: int) -> bool:
    seen = cluster.ledgers.get(str(ledger_id))
    return seen is not None and seen.value.state in _SEALED
