"""Mutants of logs that are one ledger, which changes hands."""

from .mutant import Mutant

LOGS = "tests/integration/log/test_unbounded_logs.py"
RECORDS = "tests/unit/format/test_unbounded_records.py"

MUTANTS = (
    # --- the flag --------------------------------------------------------------------------------
    Mutant(
        "older versions may put ledgers behind the one of an unbounded log",
        "format/log_record.py",
        "    if record.is_unbounded:\n        return VERSION\n",
        "",
        (f"{RECORDS}::test_it_is_refused_by_who_does_not_know_it",),
    ),
    Mutant(
        "who wants an unbounded log writes to one that is not",
        "log/batch/plan.py",
        "        log.settings.require_unbounded(log.name, request.is_unbounded)\n",
        "",
        (f"{LOGS}::test_a_log_that_is_there_stays_what_it_is",),
    ),
    Mutant(
        "a log that was made in between may be of the other kind",
        "protocol/log/record.py",
        "        self.settings.require_unbounded(self.name, is_unbounded)\n",
        "",
        (f"{LOGS}::test_a_log_that_is_there_stays_what_it_is",),
    ),
)
