"""Mutants of DataFrame appends into a log that is one ledger."""

from .mutant import Mutant

APPENDS = "tests/integration/log/test_unbounded_appends.py"
CONTINUING = "tests/integration/log/test_continuing.py"

MUTANTS = (
    Mutant(
        "an append is made again without asking whether it is there",
        "appending._is_there",
        "    undecided = tail.undecided\n    if undecided is None:\n",
        "    undecided = tail.undecided\n"
        "    if undecided is None or isinstance(error, _DISPLACED):\n",
        (f"{APPENDS}::test_who_is_overtaken_behind_its_record_is_there_once",),
    ),
    Mutant(
        "what fails behind the ack is made again",
        "_tried",
        "if not tail.has_acked and not _is_there(",
        "if not _is_there(",
        (f"{APPENDS}::test_what_fails_behind_the_ack_makes_nothing_again",),
    ),
    Mutant(
        "an append that is not there is taken for done",
        "appending._is_there",
        "== undecided.entry_count",
        ">= 0",
        (f"{APPENDS}::test_who_is_overtaken_in_front_of_its_record_writes_it_again",),
    ),
    Mutant(
        "a writer does not say what it has sent",
        "RecordWriter.undecided",
        "        if not sent:\n            return None\n",
        "        if sent or not sent:\n            return None\n",
        (f"{APPENDS}::test_who_is_overtaken_behind_its_record_is_there_once",),
    ),
    Mutant(
        "each append has a ledger of its own",
        "appending.prepare",
        "if request.is_overwrite or not is_one:",
        "if True:",
        (f"{APPENDS}::test_appends_share_the_logs_ledger",),
    ),
    Mutant(
        "an overwrite is put behind what there is",
        "appending.prepare",
        "if request.is_overwrite or not is_one:",
        "if not is_one:",
        (f"{APPENDS}::test_an_overwrite_begins_anew_and_a_sealed_log_takes_nothing",),
    ),
    Mutant(
        "who is overtaken once gives up",
        "_tried",
        "if isinstance(error, _DISPLACED) and not isinstance(error, CollectedError):",
        "if False:",
        (f"{APPENDS}::test_who_is_overtaken_by_a_recovery_that_closes_has_a_new_ledger",),
    ),
    Mutant(
        "a transaction is not looked up behind the takeover",
        "TailWriter.commit",
        "is_new = done is None or done.version > self._last_version",
        "is_new = True",
        (f"{APPENDS}::test_a_transaction_is_there_once",),
    ),
    Mutant(
        "what cannot be told is taken for not there",
        "appending._is_there",
        "    except BookKeeperError as problem:\n        raise OutcomeUnknownError(",
        "    except BookKeeperError as problem:\n        return False\n"
        "        raise OutcomeUnknownError(",
        (f"{APPENDS}::test_what_cannot_be_told_is_said_and_not_done_again",),
    ),
    Mutant(
        "a stream closes the ledger of an unbounded log",
        "TailWriter.close_ledger",
        "        if self._goes_on:\n",
        "        if False:\n",
        (f"{APPENDS}::test_a_stream_begins_fragments_and_closes_no_ledger[limit0]",),
    ),
    Mutant(
        "a fragment is as full as all in front of it",
        "TailWriter._continued",
        "        if tail.log.value.is_unbounded:\n",
        "        if False:\n",
        (f"{APPENDS}::test_a_stream_begins_fragments_and_closes_no_ledger[limit1]",),
    ),
    Mutant(
        "rows in entry logs are put behind inline ones",
        "takes",
        "return not stores_inline(ledger) and arrow",
        "return arrow",
        (
            f"{APPENDS}::test_inline_rows_and_those_of_dataframes_are_in_no_one_ledger",
            f"{CONTINUING}::test_a_tail_with_other_columns_is_left_alone",
        ),
    ),
    Mutant(
        "inline rows are put behind those in entry logs",
        "continuing.going_on",
        "is_open and takes(ledger, schema) and",
        "is_open and (schema is None or takes(ledger, schema)) and",
        (f"{APPENDS}::test_inline_rows_and_those_of_dataframes_are_in_no_one_ledger",),
    ),
)
