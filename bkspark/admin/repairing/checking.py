"""Check the result of copying: content shown by the bookie, and entries without good copies."""

from bkspark.admin.auditing.look import BookieAnswers, Look
from bkspark.admin.repairing.fill import Fill, Filled, unexplained
from bkspark.bookie.messages import told_of
from bkspark.ledger.recovery.running import Runner


def problem_of(run: Runner, fill: Fill, result: Filled) -> str:
    """Return the fault of the bookie's current content in one line; empty if complete."""
    marks = {} if fill.mark is None else {fill.ledger.ledger_id: fill.mark}
    [looked] = run([Look(fill.address, (), (fill.planned,), marks)])
    if not isinstance(looked, BookieAnswers):
        return str(looked.reason)
    holding = looked.holdings.get(fill.ledger.ledger_id)
    role = fill.role
    if holding is None or role is None or result.holes:
        return ""
    return unexplained(holding, role, result.others, ())


def in_vain(filled: Filled) -> str:
    """Describe entries without a good copy, with the reasons: a silent bookie may answer later."""
    holes, reasons = (
        filled.holes,
        [told_of(bookie_name, why) for bookie_name, why in sorted(filled.faults.items())],
    )
    more = f" and {len(holes) - 3} more" if len(holes) > 3 else ""
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return f"no bookie has a good copy of {', '.join(holes[:3])}{more}{why}"
