"""Mutants of what makes a file of a POSIX bookie durable, and of what no name may do twice."""

from .change import Drop, Replace
from .mutant import Mutant

CALLS = "tests/unit/bookie/test_posix_calls.py"
CASES = "tests/integration/document/test_recovery_bugs.py"
POST_CHECK = "tests/unit/bookie/test_posix_post_check.py"
PINNED = "tests/unit/bookie/test_posix_pinned.py"

MUTANTS = (
    Mutant(
        "a small file is named before it is on disk",
        "posix_calls.put_new",
        Drop("os.fsync(descriptor)"),
        (f"{CALLS}::test_order_of_put_new", f"{CALLS}::test_order_of_format"),
    ),
    Mutant(
        "the name of a small file is not made durable",
        "posix_calls.put_new",
        Drop("os.fsync(folder)"),
        (f"{CALLS}::test_order_of_put_new", f"{CALLS}::test_order_of_format"),
    ),
    Mutant(
        "a new folder is not made durable in the one above it",
        "_enter_or_make",
        Drop("_make_durable"),
        (
            f"{CALLS}::test_order_of_put_new",
            f"{CALLS}::test_order_of_a_large_file",
            f"{CALLS}::test_folder_left_by_a_killed_process_is_made_durable",
        ),
    ),
    Mutant(
        "a marker found in place is counted as it is",
        "posix_calls.put_new",
        Replace("sync_found(folder, name)", "status_of(folder, name)", at=0),
        (f"{CALLS}::test_order_of_put_new",),
    ),
    Mutant(
        "a record counts before it is on disk",
        "PosixJournal._store",
        Drop("os.fdatasync"),
        (f"{CALLS}::test_order_of_an_append",),
    ),
    Mutant(
        "a journal that nobody closes stays open",
        "PosixJournal",
        Replace("def __del__(self) -> None:\n    ...", "def never(self) -> None:\n    ..."),
        (f"{PINNED}::test_a_journal_that_nobody_closes_leaves_nothing_open",),
    ),
    Mutant(
        "the post-check does not look whether the cookie stayed",
        "posix._shows",
        Replace("return pinned.is_cookie_there()", "return True"),
        (
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
            f"{POST_CHECK}::test_cookie_that_goes_during_the_check_is_missed",
        ),
    ),
    Mutant(
        "the post-check does not look whether the cookie says the same",
        "PinnedDirectory.is_cookie_there",
        Replace("os.pread(self.cookie.descriptor, length, 0) == self.cookie_bytes", "length > 0"),
        (
            f"{PINNED}::test_cookie_that_was_written_over_is_no_good",
            f"{PINNED}::test_directory_that_is_being_put_back_in_place_is_not_believed",
        ),
    ),
    Mutant(
        "the post-check takes any file for the one that was there",
        "OpenFile.is_at",
        Replace(
            "found.st_ino == self.status.st_ino and found.st_dev == self.status.st_dev", "True"
        ),
        (
            f"{POST_CHECK}::test_cookie_that_was_exchanged_during_the_check_is_no_good",
            f"{PINNED}::test_markers_of_another_folder_are_no_good",
        ),
    ),
    Mutant(
        "the post-check looks for the journal from the root once more",
        "_open_markers",
        Replace(
            "posix_calls.status_of(folder, f'{records[-1]}/{name}')",
            "posix_calls.status_of(root, journal.name)",
        ),
        (f"{POST_CHECK}::test_order_and_number_of_its_system_calls",),
    ),
    Mutant(
        "the post-check looks for the markers from the root once more",
        "_open_markers",
        Replace(
            "os.open(last, posix_calls.FOLDER_FLAGS, dir_fd=folder)",
            "posix_calls.open_folder(root, parts)",
        ),
        (
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
            f"{POST_CHECK}::test_ledger_that_flickers_is_never_pieced_together[real]",
        ),
    ),
    Mutant(
        "the post-check looks into the folder that it kept",
        "PinnedDirectory.open_markers",
        Replace(
            "os.open(self.markers.path, posix_calls.FOLDER_FLAGS)",
            "os.dup(self.markers.descriptor)",
        ),
        (f"{POST_CHECK}::test_order_and_number_of_its_system_calls",),
    ),
    Mutant(
        "the post-check looks for its permission first",
        "posix._shows",
        Replace(
            "if not pinned.markers.is_at(os.fstat(markers)) or not _is_absent(markers, "
            "fence):\n"
            "    return False\n"
            "posix_calls.status_of(markers, permission)",
            "posix_calls.status_of(markers, permission)\n"
            "if not pinned.markers.is_at(os.fstat(markers)) or not _is_absent(markers, "
            "fence):\n"
            "    return False",
        ),
        (f"{POST_CHECK}::test_order_and_number_of_its_system_calls",),
    ),
    Mutant(
        "the post-check finds a folder for each marker",
        "posix._shows",
        Replace(
            "posix_calls.status_of(markers, permission)",
            "os.stat(f'{pinned.markers.path}/{permission}')",
        ),
        (
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
            f"{POST_CHECK}::test_markers_are_of_one_folder",
        ),
    ),
    Mutant(
        "the post-check follows a link to the ledger",
        "_open_markers",
        Replace(
            "posix_calls.open_folder(root, ledger)",
            "os.open('/'.join(ledger), posix_calls.FOLDER_FLAGS, dir_fd=root)",
        ),
        (f"{POST_CHECK}::test_link_to_the_very_same_files_is_no_answer",),
    ),
    Mutant(
        "an error in the post-check is an absence",
        "posix._is_absent",
        Replace("FileNotFoundError", "OSError"),
        (f"{POST_CHECK}::test_error_is_never_an_answer[False-True-EIO]",),
    ),
    Mutant(
        "a recovery looks below the last fragment",
        "Term.floor",
        Replace("self.ledger.last_fragment.first_entry_id - 1", "-1"),
        (f"{CASES}::test_rb_02_nothing_below_the_last_fragment_is_looked_for[True]",),
    ),
    Mutant(
        "two writers of a ledger write to one journal",
        "layout.journal",
        Replace("token(writer_token)", "token('0' * 32)"),
        ("tests/unit/format/test_small_records.py::test_names",),
    ),
    Mutant(
        "a reader believes whatever a bookie has",
        "ReadHandle._confirmed_range",
        Replace("first < 0 or last > self._confirmed", "first < 0"),
        (
            "tests/integration/ledger/test_read_handle.py::"
            "test_2_3_8_unconfirmed_entries_are_read_only_by_name",
        ),
    ),
)
