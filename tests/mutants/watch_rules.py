"""Mutants of repairing again and again: what is recovered first, and what ends it."""

from .mutant import Mutant

WATCH = "tests/unit/cli/test_repair_watch.py"
AWAY = f"{WATCH}::test_a_metadata_store_that_is_away_is_waited_for_and_told_once"
STOPPED = f"{WATCH}::test_who_is_stopped_while_something_is_wrong_ends_with_1"
FIRST = f"{WATCH}::test_it_recovers_first_what_lost_its_writer_and_then_repairs_it"
REFUSED = f"{WATCH}::test_a_call_that_has_to_be_changed_is_refused_at_once[--ledger 99]"

MUTANTS = (
    Mutant(
        "a cluster that is another one meanwhile ends it",
        "_Watch.round",
        "if self._is_first and isinstance(",
        "if isinstance(",
        (AWAY,),
    ),
    Mutant(
        "a call that has to be changed is tried for ever",
        "_Watch.round",
        "            if self._is_first and isinstance(error, USERS_MISTAKES):\n",
        "            if False:\n",
        (REFUSED,),
    ),
    Mutant(
        "what goes wrong is told in each round",
        "_Watch.round",
        "            if type(error).__name__ != self._problem:\n",
        "            if True:\n",
        (AWAY,),
    ),
    Mutant(
        "a round that went wrong is as if it was not",
        "_Watch.round",
        "            self._is_first, self.status = False, 1\n",
        "            self._is_first = False\n",
        (STOPPED,),
    ),
    Mutant(
        "SIGTERM ends it as it ends others",
        "_ended_by_signals",
        "    before = signal.signal(signal.SIGTERM, signal.default_int_handler)\n",
        "    before = signal.signal(signal.SIGTERM, lambda *_: None)\n",
        (f"{WATCH}::test_sigterm_ends_it_and_is_as_before_then",),
    ),
    Mutant(
        "a repair recovers nothing first",
        "upkeep.repair",
        "        return recover_and_repair(recover, work)\n",
        "        return work()\n",
        (FIRST,),
    ),
    Mutant(
        "a repair takes the writers of open ledgers for gone",
        "upkeep.repair",
        "recovering.Wanted(open_grace=open_grace, password=password)",
        "recovering.Wanted(open_grace=0, password=password)",
        (FIRST,),
    ),
)
