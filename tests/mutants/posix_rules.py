"""Mutants of what makes a file of a POSIX bookie durable, and of what no name may do twice."""

from .mutant import Mutant

CALLS = "tests/unit/bookie/test_posix_calls.py"
CASES = "tests/integration/test_recovery_bugs.py"
CRASHES = f"{CALLS}::test_error_at_every_call_of_a_write"

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
        "bookie/posix.py",
        "            os.fdatasync(self._fd)\n",
        "            pass\n",
        (f"{CALLS}::test_order_of_an_append",),
    ),
    Mutant(
        "a recovery looks below the last fragment",
        "client/recovery/recover.py",
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
