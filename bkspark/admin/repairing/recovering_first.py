"""Recover ledgers without writers before a repair of all: only closed ledgers are repaired.

Rule 1. A ledger with a possibly living writer is left alone and not copied. ``recovering`` decides
when a writer counts as dead.

Rule 2. Neither step stops the other: the report lists unrecovered ledgers beside unrepaired
ledgers. If another run is recovering now, the recoveries are left to it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from bkspark.admin.maintenance import Left, Report
from bkspark.errors import CorruptDataError

RECOVERED = "NUM_LEDGERS_RECOVERED"
LOSSY = "NUM_LEDGERS_RECOVERED_WITH_LOSSES"


def recover_and_repair(recover: Callable[[], Report], repair: Callable[[], Report]) -> Report:
    """Run both steps; return their joint report under the repair's name."""
    try:
        recovered = recover()
    except CorruptDataError as error:
        left = [Left("recover", str(error.args[0]), error.hint)]
        recovered = Report("recover", {}, {"ledgers": 0}, left)
    return _joined(recovered, repair())


def _joined(recovered: Report, repaired: Report) -> Report:
    known = {left.subject for left in repaired.left}
    is_somebody_elses = not recovered.done
    more = [one for one in recovered.left if not (is_somebody_elses or one.subject in known)]
    left = [*repaired.left, *more]
    words = [*_words(recovered), f"{len(left):,} left" if left else repaired.summary]
    return replace(
        repaired,
        plan={**repaired.plan, "recover": recovered.plan},
        left=left,
        counters={**recovered.counters, **repaired.counters},
        details={**recovered.details, **repaired.details},
        summary=", ".join(filter(None, words)),
    )


def _words(recovered: Report) -> Iterator[str]:
    count, lossy = (recovered.counters.get(name, 0) for name in (RECOVERED, LOSSY))
    if count:
        which = "1 ledger was" if count == 1 else f"{count:,} ledgers were"
        yield f"{which} recovered first" + (f", {lossy:,} with losses" if lossy else "")
