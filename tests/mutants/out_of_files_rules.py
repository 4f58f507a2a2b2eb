"""Mutants of what a process does that cannot open another file: no bookie is at fault."""

from .change import Replace
from .mutant import Mutant

FILES = "tests/integration/log/test_out_of_files.py"
REASONS = "tests/unit/storage/test_s3_reasons.py::test_a_store_that_is_not_reached_says_why"
SENT = f"{FILES}::test_what_was_sent_is_undecided"
MADE = f"{FILES}::test_a_ledger_is_not_made"

MUTANTS = (
    Mutant(
        "a bookie is at fault if its writer has no file left",
        "LedgerWriter._fail",
        Replace("isinstance(event.error, NothingSentError)", "False"),
        (SENT, f"{FILES}::test_rows_of_a_dataframe_are_not_committed"),
    ),
    Mutant(
        "a lane does not tell whose fault it is",
        "Lane._failed",
        Replace("as_judged(error)", "error"),
        (SENT,),
    ),
    Mutant(
        "a batch does not tell whose fault it is",
        "batch.record_writer.RecordWriter._append",
        Replace("as_judged(event)", "event"),
        (f"{FILES}::test_rows_of_a_dataframe_are_not_committed",),
    ),
    Mutant(
        "a process without files is a bookie without answer",
        "UnavailableOnOSError.__exit__",
        Replace("error.errno in _NO_FILE", "False"),
        (SENT, MADE),
    ),
    Mutant(
        "a process without connections is a store without answer",
        "connection.no_answer",
        Replace("doubt.is_out_of_files = True", "doubt.is_out_of_files = False"),
        (f"{REASONS}[cause2-too many open files: nothing was sent]",),
    ),
    Mutant(
        "a look without files is a bookie that cannot be used",
        "bookie_status.look_at",
        Replace("TooManyOpenFilesError", "ZeroDivisionError"),
        (MADE,),
    ),
    Mutant(
        "bookies that could not be looked at are left out",
        "Cluster._probed",
        Replace("isinstance(seen, TooManyOpenFilesError)", "False"),
        (MADE,),
    ),
    Mutant(
        "bookies that could not be asked are given up one by one",
        "ensembles.give_up",
        Replace("begun.require_asked()", "begun.bookie_ids"),
        (
            f"{FILES}::test_nor_a_smaller_one_on_the_bookies_that_were_asked_in_time",
            f"{FILES}::test_no_bookie_is_tried_in_the_place_of_a_failed_one",
        ),
    ),
    Mutant(
        "a fragment's bookies that could not be asked are given up one by one",
        "ensembles.regroup",
        Replace("begun.own_fault is not None", "False"),
        (f"{FILES}::test_no_bookie_is_tried_after_the_one_that_was_not_asked_for_a_fragment",),
    ),
    Mutant(
        "a takeover gives up bookies that could not be asked",
        "Opener.take",
        Replace("begun.require_asked()", "begun.bookie_ids"),
        (f"{FILES}::test_a_ledger_is_not_taken_over",),
    ),
)
