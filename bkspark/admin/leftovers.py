"""Remove unfinished files left on bookies by killed writers.

A file is written under a temporary name and gets its final name when complete. No client looks up
temporary names, so a sweep may remove them at any time without breaking a guarantee. No clock is
needed to tell old files from new files: a writer of a removed file gets an error before the file
has a final name, and so before any client counts the file (R1). But such an error costs a living
writer its bookie. So a sweep covers only folders of ledgers whose records say CLOSED or DELETING:
no living writer works there, and an affected repair begins again. Absence from a listing proves
nothing, nor does age (H14, RB-29). Complete files no record names are handled elsewhere (R12,
"leaving"); a sweep never touches a file with a final name.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from bkspark.admin.sweep import answers
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
    """The result of a sweep.

    Attributes:
        removed: number of removed files by bookie id.
        problems: why a sweep is incomplete, in one line, by bookie id.
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
    """Number of removed files, and why the sweep is incomplete, if so."""

    removed: int
    problem: str = ""


def sweep_leftovers(
    cluster: Cluster,
    bookie_ids: Collection[str] = (),
    *,
    run: Runner | None = None,
    tell: Callable[[str], None] | None = None,
) -> SweepReport:
    """Remove temporary files of sealed ledgers from all bookies in parallel.

    The sweep may be killed, repeated, and run beside any other work. A failing or hanging bookie is
    reported and does not stop the others.

    Args:
        bookie_ids: bookies to sweep; empty for all, including bookies in no fragment: spares
            received files without being needed.
        run: runner of the instructions; None for threads in this process.
        tell: receives a line about delays by bookies.

    Raises:
        InvalidRequestError: no such bookie.
        OutcomeUnknownError: the metadata store gave no definite answer; no file was removed.
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
    for sweep, result in answers(runner, sweeps):
        bookie_id = sweep.address.bookie_id
        report.removed[bookie_id] = result.removed if isinstance(result, Swept) else 0
        problem = result.problem if isinstance(result, Swept) else str(result)
        if problem:
            report.problems[bookie_id] = problem
    return report


def _is_sealed(cluster: Cluster, ledger_id: int) -> bool:
    seen = cluster.ledgers.get(str(ledger_id))
    return seen is not None and seen.value.state in _SEALED
