"""Mutants of what makes a file of a POSIX bookie durable, and of what no name may do twice."""

from .mutant import Mutant

CALLS = "tests/unit/bookie/test_posix_calls.py"
CASES = "tests/integration/test_recovery_bugs.py"
CRASHES = f"{CALLS}::test_error_at_every_call_of_a_write"
POST_CHECK = "tests/unit/bookie/test_posix_post_check.py"
KEPT = "tests/conformance/test_posix_bookie.py::TestPosixBookie"

MUTANTS = (
    Mutant(
        "a small file is named before it is on disk",
        "bookie/posix_calls.py",
        "            write_all(descriptor, data)\n            os.fsync(descriptor)\n",
        "            write_all(descriptor, data)\n",
        (f"{CALLS}::test_order_of_put_new", f"{CALLS}::test_order_of_format"),
    ),
    Mutant(
        "the name of a small file is not made durable",
        "bookie/posix_calls.py",
        "    os.unlink(temp, dir_fd=folder)\n    os.fsync(folder)\n    return True\n",
        "    os.unlink(temp, dir_fd=folder)\n    return True\n",
        (f"{CALLS}::test_order_of_put_new", f"{CALLS}::test_order_of_format"),
    ),
    Mutant(
        "a new folder is not made durable in the one above it",
        "bookie/posix_calls.py",
        "        _make_durable(here, below, is_new)\n",
        "        pass\n",
        (
            f"{CALLS}::test_order_of_put_new",
            f"{CALLS}::test_order_of_a_large_file",
            f"{CALLS}::test_folder_left_by_a_killed_process_is_made_durable",
        ),
    ),
    Mutant(
        "a marker found in place is counted as it is",
        "bookie/posix_calls.py",
        "        sync_found(folder, name)\n        return False\n    temp, descriptor",
        "        status_of(folder, name)\n        return False\n    temp, descriptor",
        (f"{CALLS}::test_order_of_put_new",),
    ),
    Mutant(
        "a record counts before it is on disk",
        "bookie/posix_files.py",
        "            os.fdatasync(self._fd)\n",
        "            pass\n",
        (f"{CALLS}::test_order_of_an_append",),
    ),
    Mutant(
        "a journal goes on behind a record that may not be durable",
        "bookie/growing_journal.py",
        "        self._is_over = True\n        self._end += ",
        "        self._end += ",
        (f"{CALLS}::test_journal_ends_at_its_first_error",),
    ),
    Mutant(
        "the post-check does not look whose directory it is",
        "bookie/posix_post_check.py",
        "                check_cookie(address, found)\n",
        "",
        (f"{KEPT}::test_cookie_must_be_there",),
    ),
    Mutant(
        "the post-check does not look whether the cookie stayed",
        "bookie/posix_post_check.py",
        "now = posix_calls.status_of(root, COOKIE)",
        "now = status",
        (
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
            f"{POST_CHECK}::test_cookie_that_goes_during_the_check_is_missed",
        ),
    ),
    Mutant(
        "the post-check takes any cookie for the one that was there",
        "bookie/posix_post_check.py",
        " and os.path.samestat(status, now)",
        "",
        (f"{POST_CHECK}::test_cookie_that_was_exchanged_during_the_check_is_no_good",),
    ),
    Mutant(
        "the post-check takes any journal of that name",
        "bookie/posix_post_check.py",
        "        if not journal.is_written_to(seen):\n            return False\n",
        "",
        (
            f"{KEPT}::test_journal_must_be_shown",
            f"{KEPT}::test_place_is_found_anew",
        ),
    ),
    Mutant(
        "the post-check looks for the journal from the root once more",
        "bookie/posix_post_check.py",
        'status_of(folder, f"{records[-1]}/{name}")',
        "status_of(root, journal.name)",
        (
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
            f"{POST_CHECK}::test_journal_and_markers_are_of_one_ledger_folder",
        ),
    ),
    Mutant(
        "the post-check looks for the markers from the root once more",
        "bookie/posix_post_check.py",
        "open_folder(folder, markers[-1:])",
        "open_folder(root, markers)",
        (
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
            f"{POST_CHECK}::test_journal_and_markers_are_of_one_ledger_folder",
        ),
    ),
    Mutant(
        "the post-check sees no fence in a directory",
        "bookie/posix_post_check.py",
        "            if not _is_absent(terms, fence):\n                return False\n",
        "",
        (f"{KEPT}::test_fence_is_seen_at_once",),
    ),
    Mutant(
        "the post-check needs no permission in a directory",
        "bookie/posix_post_check.py",
        "            posix_calls.status_of(terms, permission)\n",
        "",
        (
            f"{KEPT}::test_permission_must_be_there",
            f"{POST_CHECK}::test_markers_are_of_one_folder",
        ),
    ),
    Mutant(
        "the post-check looks for its permission first",
        "bookie/posix_post_check.py",
        "            if not _is_absent(terms, fence):\n"
        "                return False\n"
        "            posix_calls.status_of(terms, permission)\n",
        "            posix_calls.status_of(terms, permission)\n"
        "            if not _is_absent(terms, fence):\n"
        "                return False\n",
        (f"{POST_CHECK}::test_order_and_number_of_its_system_calls",),
    ),
    Mutant(
        "the post-check finds a folder for each marker",
        "bookie/posix_post_check.py",
        "status_of(terms, permission)",
        "status_of(root, present)",
        (
            f"{POST_CHECK}::test_order_and_number_of_its_system_calls",
            f"{POST_CHECK}::test_markers_are_of_one_folder",
        ),
    ),
    Mutant(
        "the post-check takes one folder for another",
        "bookie/posix_post_check.py",
        "others != markers or ",
        "",
        (f"{POST_CHECK}::test_names_in_different_folders",),
    ),
    Mutant(
        "the post-check follows a link to the ledger",
        "bookie/posix_post_check.py",
        "posix_calls.open_folder(root, ledger)",
        'os.open("/".join(ledger), posix_calls.FOLDER_FLAGS, dir_fd=root)',
        (f"{POST_CHECK}::test_link_to_the_very_same_files_is_no_answer",),
    ),
    Mutant(
        "an error in the post-check is an absence",
        "bookie/posix_post_check.py",
        "    except FileNotFoundError:\n        return True\n",
        "    except OSError:\n        return True\n",
        (f"{POST_CHECK}::test_error_is_never_an_answer[True-EIO]",),
    ),
    Mutant(
        "the post-check always takes the long way",
        "bookie/posix_post_check.py",
        "is_kept = _shows(root, journal, absent, present)",
        "is_kept = False",
        (f"{POST_CHECK}::test_order_and_number_of_its_system_calls",),
    ),
    Mutant(
        "a recovery looks below the last fragment",
        "client/recovery/one_term.py",
        "self._floor = metadata.last_fragment.first_entry_id - 1",
        "self._floor = -1",
        (f"{CASES}::test_rb_02_nothing_below_the_last_fragment_is_looked_for[True]",),
    ),
    Mutant(
        "two writers of a ledger write to one journal",
        "format/layout.py",
        "{_term_digits(term)}-{token(writer_token)}",
        "{_term_digits(term)}-{token('0' * 32)}",
        ("tests/unit/format/test_small_records.py::test_names",),
    ),
    Mutant(
        "a reader believes whatever a bookie has",
        "client/handles/read_handle.py",
        "        if first < 0 or last > self._confirmed:\n",
        "        if first < 0:\n",
        (
            "tests/integration/test_read_handle.py::"
            "test_2_3_8_unconfirmed_entries_are_read_only_by_name",
        ),
    ),
)
