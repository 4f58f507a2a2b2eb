"""Mutants of DataFrame appends into a log that is one ledger."""

from .change import Replace
from .mutant import Mutant

APPENDS = "tests/integration/log/test_unbounded_appends.py"

MUTANTS = (
    Mutant(
        "an append is made again without asking whether it is there",
        "appending._find_out_by_takeover",
        Replace("undecided is None", "undecided is None or isinstance(error, _DISPLACED)"),
        (f"{APPENDS}::test_who_is_overtaken_behind_its_record_is_there_once",),
    ),
    Mutant(
        "an append that is not there is taken for done",
        "appending._find_out_by_takeover",
        Replace(
            "len(resolve(cluster, undecided, request.password)) == undecided.entry_count",
            "len(resolve(cluster, undecided, request.password)) >= 0",
        ),
        (f"{APPENDS}::test_who_is_overtaken_in_front_of_its_record_writes_it_again",),
    ),
    Mutant(
        "a writer does not say what it has sent",
        "RecordWriter.undecided",
        Replace("not sent", "sent or not sent"),
        (f"{APPENDS}::test_who_is_overtaken_behind_its_record_is_there_once",),
    ),
    Mutant(
        "a transaction is not looked up behind the takeover",
        "TailWriter.commit",
        Replace("done is None or done.version > self._last_version", "True"),
        (f"{APPENDS}::test_a_transaction_is_there_once",),
    ),
    Mutant(
        "what cannot be told is taken for not there",
        "appending._find_out_by_takeover",
        Replace("raise OutcomeUnknownError(...) from error", "return False"),
        (f"{APPENDS}::test_what_cannot_be_told_is_said_and_not_done_again",),
    ),
    Mutant(
        "inline rows are put behind those in entry logs",
        "tail.going_on",
        Replace("takes(ledger, schema)", "schema is None or takes(ledger, schema)"),
        (f"{APPENDS}::test_inline_rows_and_those_of_dataframes_are_in_no_one_ledger",),
    ),
)
