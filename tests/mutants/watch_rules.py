"""Mutants of repairing again and again: what is recovered first, and what ends it."""

from .change import Replace
from .mutant import Mutant

WATCH = "tests/unit/cli/test_repair_watch.py"
STOPPED = f"{WATCH}::test_who_is_stopped_while_something_is_wrong_ends_with_1"
FIRST = f"{WATCH}::test_it_recovers_first_what_lost_its_writer_and_then_repairs_it"

MUTANTS = (
    Mutant(
        "a round that went wrong is as if it was not",
        "_Watch.round",
        Replace("self._is_first, self.status = (False, 1)", "self._is_first = False"),
        (STOPPED,),
    ),
    Mutant(
        "SIGTERM ends it as it ends others",
        "ended_by_signals",
        Replace("signal.default_int_handler", "lambda *_: None"),
        (f"{WATCH}::test_sigterm_ends_it_and_is_as_before_then",),
    ),
    Mutant(
        "a repair recovers nothing first",
        "commands.repair",
        Replace("recover_and_repair(recover, work)", "work()"),
        (FIRST,),
    ),
    Mutant(
        "a repair takes the writers of open ledgers for gone",
        "commands.repair",
        Replace("open_grace", "0"),
        (FIRST,),
    ),
)
