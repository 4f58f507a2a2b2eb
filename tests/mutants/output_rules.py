"""Mutants of what is printed: histories of logs, errors as JSON, completion in a shell."""

from .change import Replace
from .mutant import Mutant

BOUND = "tests/unit/cluster/test_bound.py"
FAILURES = "tests/unit/cli/test_failures.py"
HISTORY = "tests/unit/admin/test_views.py"

MUTANTS = (
    Mutant(
        "what a log's writer wrote is told as a stream",
        "LogTail._provide_made",
        Replace(
            "STREAM if is_stream else WRITER if self._rows.schema is None else APPEND",
            "STREAM if self._rows.schema is None else APPEND",
        ),
        (f"{HISTORY}::test_history_says_what_wrote",),
    ),
    Mutant(
        "handles can be pickled",
        "BoundToProcess",
        Replace(
            "def __reduce_ex__(self, protocol: Any) -> NoReturn:\n    ...",
            "def _reduce_ex(self, protocol: Any) -> NoReturn:\n    ...",
        ),
        (f"{BOUND}::test_handles_say_why_they_cannot_be_pickled",),
    ),
    Mutant(
        "a word behind two dashes asks for JSON",
        "_main",
        Replace("takewhile(lambda word: word != '--', given)", "given"),
        (f"{FAILURES}::test_words_behind_two_dashes_are_no_options",),
    ),
)
