"""Mutants of what is durable before it counts, and of what must change nothing."""

from .change import Replace
from .mutant import Mutant

FILES = "tests/unit/metadata/test_files.py"

MUTANTS = (
    Mutant(
        "versions go behind a tombstone that may vanish",
        "PosixDirectory.put_if_absent",
        Replace("os.fsync(folder_fd)", "if is_created:\n    os.fsync(folder_fd)"),
        (f"{FILES}::test_versions_are_removed_behind_a_tombstone_that_is_durable_whoever_made_it",),
    ),
)
