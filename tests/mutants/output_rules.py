"""Mutants of what is printed: histories of logs, errors as JSON, completion in a shell."""

from .mutant import Mutant

BOUND = "tests/unit/cluster/test_bound.py"
FAILURES = "tests/unit/cli/test_failures.py"
DOCUMENT = f"{FAILURES}::test_with_json_the_document_is_the_error"
NEXT = "tests/unit/cli/test_completion.py::test_what_may_come_next"
HISTORY = "tests/unit/admin/test_views.py"

MUTANTS = (
    Mutant(
        "a metadata store that is away is an error of who serves metrics",
        "serve",
        "    looking.is_served = True\n",
        "",
        ("tests/unit/cli/test_metrics.py::test_they_are_served_and_looked_at_each_time",),
    ),
    Mutant(
        "that the metadata store is away is said at each scrape",
        "_Looking._say",
        "        self._is_away = is_away\n",
        "",
        ("tests/unit/cli/test_metrics.py::test_they_are_served_and_looked_at_each_time",),
    ),
    Mutant(
        "versions of writes change when a log is truncated",
        "LogRecord.truncated",
        "version = listed.first_version + ledger_list.versions_of(gone)",
        "version = listed.first_version",
        (f"{HISTORY}::test_a_version_is_that_of_one_write_for_ever",),
    ),
    Mutant(
        "versions of writes begin anew when a log is overwritten",
        "LogRecord._emptied",
        "version = self.listed.first_version + ledger_list.versions_of(self.stretches)",
        "version = self.listed.first_version",
        (f"{HISTORY}::test_history_says_what_wrote",),
    ),
    Mutant(
        "an overwrite is told as an append",
        "own_target",
        "OVERWRITE if request.is_overwrite else APPEND",
        "APPEND",
        (f"{HISTORY}::test_history_says_what_wrote",),
    ),
    Mutant(
        "what a log's writer wrote is told as a stream",
        "_Opening._ledger",
        "STREAM if is_stream else WRITER if",
        "STREAM if",
        (f"{HISTORY}::test_history_says_what_wrote",),
    ),
    Mutant(
        "a truncation is not told",
        "_truncation",
        "    if log.first_offset:\n",
        "    if False:\n",
        (f"{HISTORY}::test_a_version_is_that_of_one_write_for_ever",),
    ),
    Mutant(
        "handles can be pickled",
        "BoundToProcess.__reduce_ex__",
        "    def __reduce_ex__(",
        "    def _reduce_ex(",
        (f"{BOUND}::test_handles_say_why_they_cannot_be_pickled",),
    ),
    Mutant(
        "with --json an error is told to people only",
        "failures.report",
        "if as_json and not has_begun:",
        "if False:",
        (DOCUMENT, f"{FAILURES}::test_what_is_wrong_with_the_cluster_is_status_1"),
    ),
    Mutant(
        "an error is put behind half a document",
        "failures.report",
        "if as_json and not has_begun:",
        "if as_json:",
        (f"{FAILURES}::test_a_document_that_has_begun_is_left_cut",),
    ),
    Mutant(
        "a word behind two dashes asks for JSON",
        "_main",
        'is_json = "--json" in takewhile(lambda word: word != "--", given)',
        'is_json = "--json" in given',
        (f"{FAILURES}::test_words_behind_two_dashes_are_no_options",),
    ),
    Mutant(
        "a shell is told nothing",
        "program._run",
        "if _COMPLETION_VARIABLE in os.environ:",
        "if False:",
        (NEXT, "tests/unit/cli/test_completion.py::test_a_bash_completes"),
    ),
    Mutant(
        "a shell is told of common options only in front of the command",
        "program._run",
        "            _offer(common, command)\n            command.main(",
        "            command.main(",
        (NEXT,),
    ),
)
