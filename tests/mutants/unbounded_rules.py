"""Mutants of logs that are one ledger, which changes hands."""

from .mutant import Mutant

LOGS = "tests/integration/log/test_unbounded_logs.py"
CONVERTED = "tests/integration/log/test_converted_logs.py"
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
    # --- converting ------------------------------------------------------------------------------
    Mutant(
        "a log is converted under a writer who knows nothing of it",
        "log/log_handle.py",
        "        update_with_closed_tail(self._cluster, self.name, self._password, converted)\n"
        "        return True\n",
        "        self._cluster.logs.update(self.name, converted)\n        return True\n",
        (f"{CONVERTED}::test_its_writer_is_fenced_and_opens_it_again",),
    ),
    Mutant(
        "converting reaches a log made anew",
        "log/log_handle.py",
        ".still_of(before.generation)",
        "",
        (f"{CONVERTED}::test_what_is_sealed_overwritten_meanwhile_or_no_kind_is_refused",),
    ),
    Mutant(
        "converting fences a writer for nothing",
        "log/log_handle.py",
        "        if before.is_unbounded == wanted and not before.is_sealed:\n"
        "            return False\n",
        "",
        (f"{CONVERTED}::test_one_that_is_so_already_is_left_alone",),
    ),
    Mutant(
        "a log without a writer is converted with any password",
        "log/log_handle.py",
        "        make_digester(before.digest, self._password)\n",
        "",
        (f"{CONVERTED}::test_a_wrong_password_fences_nobody",),
    ),
    Mutant(
        "a sealed log is converted",
        "protocol/log/record.py",
        "        self._require_unsealed()\n        return replace(self, settings",
        "        return replace(self, settings",
        (f"{CONVERTED}::test_what_is_sealed_overwritten_meanwhile_or_no_kind_is_refused",),
    ),
)
