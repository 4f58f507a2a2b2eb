"""Mutants of what makes a file of a POSIX bookie durable, and of what no name may do twice."""

from .mutant import Mutant

CALLS = "tests/unit/bookie/test_posix_calls.py"
CASES = "tests/integration/document/test_recovery_bugs.py"
POST_CHECK = "tests/unit/bookie/test_posix_post_check.py"
PINNED = "tests/unit/bookie/test_posix_pinned.py"
KEPT = "tests/conformance/test_posix_bookie.py::TestPosixBookie"

MUTANTS = (
    Mutant(
        "what NFS keeps of a journal that was removed is strange",
        "names_in",
        "            if not (is_temp(entry.name) or _REMOVED.fullmatch(entry.name))\n",
        "            if not is_temp(entry.name)\n",
        (
            "tests/unit/bookie/test_posix.py"
            "::test_what_nfs_keeps_of_a_journal_that_was_removed_is_none",
        ),
    ),
    Mutant(
        "a small file is named before it is on disk",
        "posix_calls.put_new",
        "            write_all(descriptor, data)\n            os.fsync(descriptor)\n",
        "            write_all(descriptor, data)\n",
        (f"{CALLS}::test_order_of_put_new", f"{CALLS}::test_order_of_format"),
    ),
    Mutant(
        "the name of a small file is not made durable",
        "posix_calls.put_new",
        "    os.unlink(temp, dir_fd=folder)\n    os.fsync(folder)\n    return True\n",
        "    os.unlink(temp, dir_fd=folder)\n    return True\n",
        (f"{CALLS}::test_order_of_put_new", f"{CALLS}::test_order_of_format"),
    ),
    Mutant(
        "a new folder is not made durable in the one above it",
        "_enter_or_make",
        "        _make_durable(here, below, path, is_new=is_new)\n",
        "        pass\n",
        (
            f"{CALLS}::test_order_of_put_new",
            f"{CALLS}::test_order_of_a_large_file",
            f"{CALLS}::test_folder_left_by_a_killed_process_is_made_durable",
        ),
    ),
    Mutant(
        "a marker found in place is counted as it is",
        "posix_calls.put_new",
        "        sync_found(folder, name)\n        return False\n    temp, descriptor",
        "        status_of(folder, name)\n        return False\n    temp, descriptor",
        (f"{CALLS}::test_order_of_put_new",),
    ),
    Mutant(
        "a record counts before it is on disk",
        "PosixJournal._store",
        "            os.fdatasync(self._fd)\n",
        "            pass\n",
        (f"{CALLS}::test_order_of_an_append",),
    ),
    Mutant(
        "a journal goes on behind a record that may not be durable",
        "GrowingJournal.append",
        "        self._is_over = True\n        self._end += ",
        "        self._end += ",
        (f"{CALLS}::test_journal_ends_at_its_first_error",),
    ),
    Mutant(
        "a journal that nobody closes stays open",
        "PosixJournal.__del__",
        "    def __del__(self) -> None:",
        "    def never(self) -> None:",
        (f"{PINNED}::test_a_journal_that_nobody_closes_leaves_nothing_open",),
    ),
    Mutant(
        "the post-check does not look whose directory it is",
        "_met",
        "        check_cookie(address, words)\n",
        "",
        (f"{KEPT}::test_cookie_must_be_there",),
    ),
    Mutant(
        "the post-check looks for the cookie only at the end",
        "posix_post_check._shows",
        "    if not pinned.is_cookie_there():\n        return False\n",
        "",
        (
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
            f"{POST_CHECK}::test_cookie_that_comes_during_the_check_is_too_late[known]",
        ),
    ),
    Mutant(
        "the post-check does not look whether the cookie stayed",
        "posix_post_check._shows",
        "    return pinned.is_cookie_there()\n",
        "    return True\n",
        (
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
            f"{POST_CHECK}::test_cookie_that_goes_during_the_check_is_missed",
        ),
    ),
    Mutant(
        "the post-check does not look whether the cookie says the same",
        "PinnedDirectory.is_cookie_there",
        "return os.pread(self.cookie.descriptor, length, 0) == self.cookie_bytes",
        "return length > 0",
        (
            f"{PINNED}::test_cookie_that_was_written_over_is_no_good",
            f"{PINNED}::test_directory_that_is_being_put_back_in_place_is_not_believed",
        ),
    ),
    Mutant(
        "the post-check reads as much of the cookie as it had",
        "PinnedDirectory.is_cookie_there",
        "len(self.cookie_bytes) + 1",
        "len(self.cookie_bytes)",
        (f"{PINNED}::test_cookie_that_was_written_over_is_no_good",),
    ),
    Mutant(
        "the post-check takes any file for the one that was there",
        "OpenFile.is_at",
        "return found.st_ino == self.status.st_ino and found.st_dev == self.status.st_dev",
        "return True",
        (
            f"{POST_CHECK}::test_cookie_that_was_exchanged_during_the_check_is_no_good",
            f"{PINNED}::test_markers_of_another_folder_are_no_good",
        ),
    ),
    Mutant(
        "the post-check takes a file of another disk for the one that was there",
        "OpenFile.is_at",
        " and found.st_dev == self.status.st_dev",
        "",
        (f"{PINNED}::test_number_of_a_file_of_another_disk_says_nothing",),
    ),
    Mutant(
        "the post-check follows a link to the cookie",
        "PinnedDirectory.is_cookie_there",
        "os.stat(self.cookie.path, follow_symlinks=False)",
        "os.stat(self.cookie.path)",
        (f"{PINNED}::test_link_to_what_was_met_is_no_answer",),
    ),
    Mutant(
        "the post-check takes any journal of that name",
        "posix_post_check._shows",
        "    if not journal.is_written_to(os.stat(pinned.journal_path, follow_symlinks=False)):\n"
        "        return False\n",
        "",
        (
            f"{KEPT}::test_journal_must_be_shown",
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
        ),
    ),
    Mutant(
        "the post-check meets a directory without the journal",
        "_open_markers",
        "        if not journal.is_written_to(seen):\n            return None\n",
        "",
        (f"{POST_CHECK}::test_ledger_that_flickers_is_never_pieced_together[copy]",),
    ),
    Mutant(
        "the post-check follows a link to the journal",
        "posix_post_check._shows",
        "os.stat(pinned.journal_path, follow_symlinks=False)",
        "os.stat(pinned.journal_path)",
        (f"{PINNED}::test_link_to_what_was_met_is_no_answer",),
    ),
    Mutant(
        "the post-check looks for the journal from the root once more",
        "_open_markers",
        'status_of(folder, f"{records[-1]}/{name}")',
        "status_of(root, journal.name)",
        (f"{POST_CHECK}::test_order_and_number_of_its_system_calls",),
    ),
    Mutant(
        "the post-check looks for the markers from the root once more",
        "_open_markers",
        "os.open(last, posix_calls.FOLDER_FLAGS, dir_fd=folder)",
        "posix_calls.open_folder(root, parts)",
        (
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
            f"{POST_CHECK}::test_ledger_that_flickers_is_never_pieced_together[real]",
        ),
    ),
    Mutant(
        "the post-check believes any folder of markers",
        "posix_post_check._shows",
        "if not pinned.markers.is_at(os.fstat(markers)) or not _is_absent(markers, fence):",
        "if not _is_absent(markers, fence):",
        (f"{PINNED}::test_markers_of_another_folder_are_no_good",),
    ),
    Mutant(
        "the post-check looks into the folder that it kept",
        "PinnedDirectory.open_markers",
        "return os.open(self.markers.path, posix_calls.FOLDER_FLAGS)",
        "return os.dup(self.markers.descriptor)",
        (f"{POST_CHECK}::test_order_and_number_of_its_system_calls",),
    ),
    Mutant(
        "the post-check sees no fence in a directory",
        "posix_post_check._shows",
        " or not _is_absent(markers, fence):",
        ":",
        (f"{KEPT}::test_fence_is_seen_at_once",),
    ),
    Mutant(
        "the post-check needs no permission in a directory",
        "posix_post_check._shows",
        "        posix_calls.status_of(markers, permission)\n",
        "",
        (f"{KEPT}::test_permission_must_be_there",),
    ),
    Mutant(
        "the post-check looks for its permission first",
        "posix_post_check._shows",
        "        if not pinned.markers.is_at(os.fstat(markers)) or "
        "not _is_absent(markers, fence):\n"
        "            return False\n"
        "        posix_calls.status_of(markers, permission)\n",
        "        posix_calls.status_of(markers, permission)\n"
        "        if not pinned.markers.is_at(os.fstat(markers)) or "
        "not _is_absent(markers, fence):\n"
        "            return False\n",
        (f"{POST_CHECK}::test_order_and_number_of_its_system_calls",),
    ),
    Mutant(
        "the post-check finds a folder for each marker",
        "posix_post_check._shows",
        "posix_calls.status_of(markers, permission)",
        'os.stat(f"{pinned.markers.path}/{permission}")',
        (
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
            f"{POST_CHECK}::test_markers_are_of_one_folder",
        ),
    ),
    Mutant(
        "the post-check takes one folder for another",
        "surely_passes",
        "    if not markers or others != markers:\n        return False\n",
        "",
        (f"{POST_CHECK}::test_names_in_different_folders",),
    ),
    Mutant(
        "what was met in one directory answers for another",
        "surely_passes",
        "pinned.address != address or ",
        "",
        (f"{PINNED}::test_what_was_met_answers_for_nothing_else",),
    ),
    Mutant(
        "what was met of one ledger answers for another",
        "surely_passes",
        " or pinned.markers_parts != markers:",
        ":",
        (f"{PINNED}::test_what_was_met_answers_for_nothing_else",),
    ),
    Mutant(
        "the post-check keeps what it doubts",
        "surely_passes",
        "        pass\n    journal.remember(None)\n",
        "        pass\n",
        (f"{PINNED}::test_what_stays_open",),
    ),
    Mutant(
        "a journal that is closed leaves what it met open",
        "PosixJournal.close",
        "        super().close()\n        self.remember(None)\n",
        "        super().close()\n",
        (f"{PINNED}::test_what_stays_open",),
    ),
    Mutant(
        "the post-check follows a link to the ledger",
        "_open_markers",
        "posix_calls.open_folder(root, ledger)",
        'os.open("/".join(ledger), posix_calls.FOLDER_FLAGS, dir_fd=root)',
        (f"{POST_CHECK}::test_link_to_the_very_same_files_is_no_answer",),
    ),
    Mutant(
        "an error in the post-check is an absence",
        "posix_post_check._is_absent",
        "    except FileNotFoundError:\n        return True\n",
        "    except OSError:\n        return True\n",
        (f"{POST_CHECK}::test_error_is_never_an_answer[False-True-EIO]",),
    ),
    Mutant(
        "the post-check always takes the long way",
        "surely_passes",
        "if pinned is not None and _shows(pinned, journal, fence_name, permission_name):",
        "if False:",
        (f"{POST_CHECK}::test_order_and_number_of_its_system_calls",),
    ),
    Mutant(
        "a recovery looks below the last fragment",
        "Term.floor",
        "return self.ledger.last_fragment.first_entry_id - 1",
        "return -1",
        (f"{CASES}::test_rb_02_nothing_below_the_last_fragment_is_looked_for[True]",),
    ),
    Mutant(
        "two writers of a ledger write to one journal",
        "layout.journal",
        "{_term_digits(term)}-{token(writer_token)}",
        "{_term_digits(term)}-{token('0' * 32)}",
        ("tests/unit/format/test_small_records.py::test_names",),
    ),
    Mutant(
        "a reader believes whatever a bookie has",
        "ReadHandle._confirmed_range",
        "        if first < 0 or last > self._confirmed:\n",
        "        if first < 0:\n",
        (
            "tests/integration/ledger/test_read_handle.py::"
            "test_2_3_8_unconfirmed_entries_are_read_only_by_name",
        ),
    ),
    Mutant(
        "a disk that takes nothing is written to for ever",
        "write_all",
        "        if not written:\n",
        "        if False:\n",
        (
            "tests/unit/storage/test_posix_calls.py"
            "::test_a_disk_that_takes_nothing_and_says_nothing_is_full",
        ),
    ),
)
