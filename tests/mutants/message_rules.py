"""Mutants of what messages say: losses, why a recovery waits, lost bookies, open tails."""

from .mutant import Mutant

LOSSES = "tests/integration/recovery/test_recovery_losses.py"
LOST = "tests/unit/cli/test_lost.py"
LOGS = "tests/unit/cli/test_log_commands.py"
STREAMS = "tests/unit/spark/test_stream_reader.py"
USES = "tests/unit/spark/test_option_uses.py"
TAKEN = "test_an_option_is_taken_where_it_belongs_and_refused_elsewhere"
MERGES = (
    "tests/unit/log/test_log_schema.py"
    "::test_merge_schema_is_named_only_where_it_would_take_the_rows"
)
ELSEWHERE = "tests/unit/spark/test_elsewhere.py"
ACTIONS = "tests/unit/spark/test_actions.py"
START_UP = "tests/unit/spark/test_start_up.py"
TOO_FEW = f"{LOST}::test_where_too_few_are_left_another_bookie_lets_the_ledger_be_closed"
SINCE = f"{LOST}::test_status_says_what_a_recovery_waits_for_after_bookies_were_declared_lost"
CAME_BACK = f"{LOST}::test_a_lost_bookie_that_came_back_is_told_what_it_is_and_what_to_do"
TWO_WORDS = f"{LOST}::test_entries_are_given_up_by_two_words_of_the_operator_and_named"
NO_RECORD = (
    "tests/integration/recovery/test_recovery.py"
    "::test_without_the_record_of_the_confirmed_entry_it_takes_a_word_and_closes_behind_it"
)
COUNTED = f"{LOGS}::test_what_is_confirmed_of_an_open_tail_is_shown_if_it_can_be_told"

MUTANTS = (
    Mutant(
        "a loss is told before the ledger is closed",
        "Decision.giving_up",
        'line = f"will be lost if the ledger can be closed: {loss}"',
        'line = f"DATA LOSS: {loss}"',
        (TOO_FEW,),
    ),
    Mutant(
        "what is given up is not told in front",
        "Decision.giving_up",
        "return decision, Note(line, is_warning=True)",
        'return decision, Note("")',
        (TOO_FEW,),
    ),
    Mutant(
        "what was given up is not told behind the closing",
        "Decision.giving_up",
        "given_up=(*self.given_up, loss)",
        "given_up=self.given_up",
        (TOO_FEW, NO_RECORD),
    ),
    Mutant(
        "what another recovery has kept is said to be lost",
        "Closing._end",
        "if (closed.term, closed.token) != (ledger.term, ledger.token):",
        "if False:",
        (f"{LOSSES}::test_what_another_recovery_has_kept_is_not_said_to_be_lost",),
    ),
    Mutant(
        "a reason waits for bookies that were declared lost since",
        "_without_lost",
        "    if not lost:\n        return stuck\n",
        "    return stuck\n",
        (SINCE, NO_RECORD),
    ),
    Mutant(
        "a recovery that nobody can help waits for lost bookies",
        "InDoubt.stop",
        "() if group.verdict is Verdict.LOST else ",
        "",
        (f"{LOST}::test_a_damaged_journal_is_waited_for_by_nobody_and_given_up_by_one_word",),
    ),
    Mutant(
        "a recovery that seeks a record does not say of whom",
        "no_record",
        "        waiting_for=tuple(silent),\n",
        "",
        (NO_RECORD,),
    ),
    Mutant(
        "a lost bookie that came back cannot be declared lost again",
        "declare_lost",
        "    if member in cluster.lost_members():\n        return member\n",
        "",
        (CAME_BACK,),
    ),
    Mutant(
        "a lost bookie that came back looks like one that did not",
        "_lost_finding",
        "def _lost_finding(status: BookieStatus) -> Finding:\n    if status.problem:",
        "def _lost_finding(status: BookieStatus) -> Finding:\n    if True:",
        (CAME_BACK,),
    ),
    Mutant(
        "a loss that nobody could be asked about is not named",
        "ledgers.recover",
        'if unanswered and "--accept-loss" in error.hint:',
        "if False:",
        (TWO_WORDS,),
    ),
    Mutant(
        "a recovery that may not ask leaves no reason",
        "ledgers.recover",
        "        except InvalidRequestError as error:  # told",
        "        except ZeroDivisionError as error:  # told",
        (TWO_WORDS,),
    ),
    Mutant(
        "a number that is nice to have is waited for",
        "views_of",
        "environment.monotonic() + END_SECONDS",
        "environment.monotonic() + 100",
        (COUNTED,),
    ),
    Mutant(
        "no answer counts as no entries",
        "_log_row",
        '"is_end_known": view is not None,',
        '"is_end_known": True,',
        (COUNTED, f"{LOGS}::test_a_tail_with_a_password_is_counted_with_the_password"),
    ),
    Mutant(
        "a log that cannot be looked at hides the others",
        "views_of",
        "            with suppress(BookKeeperError):\n",
        "            if True:\n",
        (f"{LOGS}::test_logs_are_looked_at_together_and_one_that_cannot_be_told_hides_no_other",),
    ),
    Mutant(
        "a log ends where its closed ledgers do",
        "log_views.logs",
        "_log_row(log, seen.get(log.name))",
        "_log_row(log, LogView(log, log.ledgers))",
        (
            COUNTED,
            f"{LOGS}::test_what_would_be_deleted_is_counted_with_its_open_tail",
        ),
    ),
    Mutant(
        "a password is of no use to see how far a log goes",
        "log_views.logs",
        "views_of(cluster, records, password or Password())",
        "views_of(cluster, records, Password())",
        (f"{LOGS}::test_a_tail_with_a_password_is_counted_with_the_password",),
    ),
    Mutant(
        "a deleted log was never there",
        "telling_deleted",
        "if seen is None or not seen.value.is_tombstone or not seen.value.generation:",
        "if True:",
        (f"{STREAMS}::test_a_deleted_log_is_an_error",),
    ),
    Mutant(
        "the name of a query is no option of its sink",
        "options",
        'SPARKS_NAMES = ("checkpointLocation", "queryName")',
        'SPARKS_NAMES = ("checkpointLocation",)',
        (f"{USES}::{TAKEN}[STREAM_WRITE-queryName]",),
    ),
    Mutant(
        "what another source calls something is taken for a typo",
        "elsewhere.unknown",
        'said = _NAMED.get(key) or next(begun, "")',
        'said = ""',
        (f"{ELSEWHERE}::test_a_name_that_is_known_elsewhere_is_answered_by_what_serves_here",),
    ),
    Mutant(
        "a name that is like none is taken for the nearest",
        "spark.elsewhere",
        "_ALIKE = 0.6",
        "_ALIKE = 0.0",
        (f"{ELSEWHERE}::test_a_name_that_is_like_none_is_answered_by_all_names",),
    ),
    Mutant(
        "mergeSchema is named where it cannot help",
        "_way_to_fit",
        '        return "select and cast the columns that the log has"\n',
        "        pass\n",
        (f"{MERGES}[type]", f"{MERGES}[more without nulls]"),
    ),
    Mutant(
        "a session of Spark Connect is asked for what it has not",
        "require_own_driver",
        "if any(kind.__module__.startswith(_CONNECT) for kind in type(spark).__mro__):",
        "if False:",
        (f"{ACTIONS}::test_a_spark_connect_session_is_told_that_it_cannot_recover_and_what_can",),
    ),
    Mutant(
        "a Spark that cannot read a log as a stream is asked to",
        "BookKeeperDataSource.streamReader",
        "            _require_stream_reads()\n",
        "",
        (f"{START_UP}::test_a_spark_before_4_2_is_told_that_it_cannot_read_a_log_as_a_stream",),
    ),
)
