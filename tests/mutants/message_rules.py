"""Mutants of what messages say: losses, why a recovery waits, lost bookies, open tails."""

from .change import Replace
from .mutant import Mutant

LOST = "tests/unit/cli/test_lost.py"
LOGS = "tests/unit/cli/test_log_commands.py"
ELSEWHERE = "tests/unit/spark/test_elsewhere.py"
TOO_FEW = f"{LOST}::test_where_too_few_are_left_another_bookie_lets_the_ledger_be_closed"
TWO_WORDS = f"{LOST}::test_entries_are_given_up_by_two_words_of_the_operator_and_named"
NO_RECORD = (
    "tests/integration/recovery/test_recovery.py"
    "::test_without_the_record_of_the_confirmed_entry_it_takes_a_word_and_closes_behind_it"
)
COUNTED = f"{LOGS}::test_what_is_confirmed_of_an_open_tail_is_shown_if_it_can_be_told"
ONCE = "tests/unit/bookie/test_messages.py::test_a_line_names_the_bookie_once"
REASONS = "tests/unit/storage/s3/test_reasons.py"

MUTANTS = (
    Mutant(
        "a loss is told before the ledger is closed",
        "Decision.giving_up",
        Replace("f'will be lost if the ledger can be closed: {loss}'", "f'DATA LOSS: {loss}'"),
        (TOO_FEW,),
    ),
    Mutant(
        "what is given up is not told in front",
        "Decision.giving_up",
        Replace("Note(line, is_warning=True)", "Note('')"),
        (TOO_FEW,),
    ),
    Mutant(
        "what was given up is not told behind the closing",
        "Decision.giving_up",
        Replace("(*self.given_up, loss)", "self.given_up"),
        (TOO_FEW, NO_RECORD),
    ),
    Mutant(
        "a recovery that may not ask leaves no reason",
        "ledgers.recover",
        Replace("InvalidRequestError", "ZeroDivisionError", at=1),
        (TWO_WORDS,),
    ),
    Mutant(
        "a number that is nice to have is waited for",
        "views_of",
        Replace("environment.monotonic() + END_SECONDS", "environment.monotonic() + 100"),
        (COUNTED,),
    ),
    Mutant(
        "no answer counts as no entries",
        "_log_row",
        Replace("view is not None", "True"),
        (COUNTED, f"{LOGS}::test_a_tail_with_a_password_is_counted_with_the_password"),
    ),
    Mutant(
        "a log that cannot be looked at hides the others",
        "views_of",
        Replace(
            "with suppress(BookKeeperError):\n    ...",
            "if True:\n    found[log.name] = view_of(cluster, log, password)",
        ),
        (f"{LOGS}::test_logs_are_looked_at_together_and_one_that_cannot_be_told_hides_no_other",),
    ),
    Mutant(
        "a log ends where its closed ledgers do",
        "views.logs",
        Replace("seen.get(log.name)", "LogView(log, log.ledgers)"),
        (
            COUNTED,
            f"{LOGS}::test_what_would_be_deleted_is_counted_with_its_open_tail",
        ),
    ),
    Mutant(
        "what another source calls something is taken for a typo",
        "options.unknown",
        Replace("_NAMED.get(key) or next(begun, '')", "''"),
        (f"{ELSEWHERE}::test_a_name_that_is_known_elsewhere_is_answered_by_what_serves_here",),
    ),
    Mutant(
        "a name that is like none is taken for the nearest",
        "spark.options",
        Replace("_ALIKE = 0.6", "_ALIKE = 0.0"),
        (f"{ELSEWHERE}::test_a_name_that_is_like_none_is_answered_by_all_names",),
    ),
    # --- names of bookies ------------------------------------------------------------------------
    Mutant(
        "a message names a bookie twice",
        "bookie.contract.told_of",
        Replace(
            "text if _rest(name, text) is not None else f'{name}: {text}'", "f'{name}: {text}'"
        ),
        (f"{ONCE}[bookie bookie-2: s3://bucket/b has no cookie]",),
    ),
    Mutant(
        "a bookie is taken for one with a longer name",
        "bookie.contract._rest",
        Replace("not subject or rest == text or is_longer_name", "not subject or rest == text"),
        (f"{ONCE}[bookie bookie-20 does not answer]",),
    ),
    Mutant(
        "what is left names its subject twice",
        "maintenance.Left.__post_init__",
        Replace("about(self.subject, self.reason)", "self.reason"),
        (f"{ONCE}[bookie bookie-2: s3://bucket/b has no cookie]",),
    ),
    Mutant(
        "a writer does not say why it gives a bookie up",
        "enlisting.enlist",
        Replace("str(answer.args[0])", "'it cannot be written to'"),
        (f"{REASONS}::test_of_a_new_ledger[OperationAborted]",),
    ),
    Mutant(
        "a ledger that is not made does not say why",
        "ensembles.naming",
        Replace(
            "f'{error.args[0]}: writes to {names} failed just now ({reasons})'",
            "f'{error.args[0]}: writes to {names} failed just now'",
        ),
        (f"{REASONS}::test_of_a_new_ledger[OperationAborted]",),
    ),
)
