"""Mutants of logs whose schema is still to come, and of streams that wait for them."""

from .change import Replace
from .mutant import Mutant

WAITING = "tests/unit/spark/test_waiting_streams.py"
UNDECIDED = "tests/integration/log/test_undecided_schemas.py"
FIRST = f"{WAITING}::test_a_stream_waits_for_the_first_append"

MUTANTS = (
    Mutant(
        "an empty log of bytes takes no other rows",
        "schema_after",
        Replace(
            "is_overwrite or log.is_tombstone or is_undecided(log)",
            "is_overwrite or log.is_tombstone",
        ),
        (f"{UNDECIDED}::test_a_stream_may_be_first",),
    ),
    Mutant(
        "a log that somebody writes bytes to takes other rows",
        "creating.is_undecided",
        Replace("log.end_offset or log.tail", "log.end_offset"),
        (f"{UNDECIDED}::test_a_writer_of_bytes_decides_that_it_is_a_log_of_bytes",),
    ),
    Mutant(
        "a stream waits for no log",
        "stream_reader._schema_to_come",
        Replace("(True, given)", "(False, schema_there(options))"),
        (f"{FIRST}[earliest-nothing]", f"{FIRST}[earliest-no_schema]"),
    ),
    Mutant(
        "a stream that waits begins in the generation before",
        "stream_reader._view_to_come",
        Replace("before.generation + 1", "before.generation"),
        (f"{FIRST}[earliest-nothing]",),
    ),
    Mutant(
        "the columns of a log that was waited for are not looked at",
        "BookKeeperStreamReader._look",
        Replace("self._waits = False", "if self._waits:\n    return view"),
        (f"{WAITING}::test_columns_that_the_log_does_not_get_end_the_query[another]",),
    ),
    Mutant(
        "a stream waits for a log that it has read",
        "BookKeeperStreamReader.latestOffset",
        Replace(
            "_is_to_come(view.record) and position.generation != view.record.generation", "False"
        ),
        (f"{WAITING}::test_a_stream_does_not_wait_for_a_log_that_it_has_read",),
    ),
)
