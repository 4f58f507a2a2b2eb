"""Mutants of what is done with files and records behind the protocol's back."""

from .mutant import Mutant

LEFTOVERS = "tests/integration/faults/test_leftovers.py"
CONFLICTS = "tests/conformance/test_conflicts.py"
POSIX = "tests/conformance/test_posix_bookie.py::TestPosixBookie"
S3_ONCE = "tests/conformance/test_s3_once.py"
FILES = "tests/unit/metadata/test_files.py"
ORDERS = "tests/unit/metadata/test_versions_interleaved.py"
PRIVATE = "tests/unit/metadata/test_files_private.py"

MUTANTS = (
    Mutant(
        "a version is given out without a look for the next one",
        "VersionedRecords.get",
        "value is not None and self._never_existed(key, version + 1)",
        "value is not None",
        (
            f"{FILES}::test_get_that_is_always_overtaken_ends",
            f"{ORDERS}::test_no_interleaving_breaks_a_promise[delete]",
        ),
    ),
    Mutant(
        "a record that was deleted is taken for one that changes all the time",
        "VersionedRecords.get",
        "if self._directory.exists(_tombstone(key)):",
        "if False:",
        (
            f"{FILES}::test_a_deleted_record_leaves_a_name_and_nothing_in_it",
            f"{ORDERS}::test_no_interleaving_breaks_a_promise[two deletes]",
        ),
    ),
    Mutant(
        "a request that makes a permission on S3 is repeated",
        "Objects._create",
        "put() if once else repeated(put)",
        "repeated(put)",
        (f"{S3_ONCE}::test_one_request_and_no_other[permission-busy]",),
    ),
    Mutant(
        "aiohttp repeats a request that makes a permission",
        "OneAttemptSession",
        "setattr(session, _SWITCH, False)",
        "setattr(session, _SWITCH, True)",
        (
            f"{S3_ONCE}::test_one_request_and_no_other[permission-reset]",
            f"{S3_ONCE}::test_one_request_and_no_other[journal-reset]",
        ),
    ),
    Mutant(
        "a bookie may be asked for a permission again and again",
        "Joining.taken_by",
        'root.put_new(self.permission, b"", once=True)',
        'root.put_new(self.permission, b"")',
        (f"{S3_ONCE}::test_what_is_late_makes_anew_only_what_nobody_counts_on",),
    ),
    Mutant(
        "a journal is asked for again and again",
        "S3Root.open_journal",
        "self._objects.create_sentinel(name, HEAD, once=True)",
        "self._objects.create_sentinel(name, HEAD)",
        (f"{S3_ONCE}::test_one_request_and_no_other[journal-busy]",),
    ),
    Mutant(
        "the folders of an open ledger are swept",
        "leftovers",
        "_SEALED = {LedgerState.CLOSED, LedgerState.DELETING}",
        "_SEALED = {LedgerState.CLOSED, LedgerState.DELETING, LedgerState.OPEN}",
        (f"{LEFTOVERS}::test_an_open_ledger_is_left_alone",),
    ),
    Mutant(
        "a deleted ledger is not swept",
        "leftovers",
        "_SEALED = {LedgerState.CLOSED, LedgerState.DELETING}",
        "_SEALED = {LedgerState.CLOSED}",
        (f"{LEFTOVERS}::test_a_deleted_ledger_is_swept_too",),
    ),
    Mutant(
        "a bookie that is away ends the sweep",
        "Sweep.run",
        "        except BookieUnavailableError as error:",
        "        except ZeroDivisionError as error:",
        (f"{LEFTOVERS}::test_a_bookie_that_is_away_is_reported_and_stops_no_other",),
    ),
    Mutant(
        "sweeping takes finished files too",
        "remove_temps",
        "        temps = [entry.name for entry in found if is_temp(entry.name)]",
        "        temps = [entry.name for entry in found if entry.is_file()]",
        (
            f"{LEFTOVERS}::test_sealed_ledgers_are_swept_and_keep_every_file_that_has_a_name",
            f"{POSIX}::test_sweeping_leaves_what_is_finished",
        ),
    ),
    Mutant(
        "a sweep finds nothing in a place that was wiped",
        "PosixRoot.sweep",
        "                self._confirm_cookie()\n                return 0",
        "                return 0",
        (f"{POSIX}::test_sweeping_leaves_what_is_finished",),
    ),
    Mutant(
        "a journal of the same name and length is the own one",
        "PosixJournal.is_written_to",
        "(found.st_dev, found.st_ino) == self._identity and ",
        "",
        (f"{POSIX}::test_journal_replaced_by_a_copy_is_lost",),
    ),
    Mutant(
        "a name that is taken is a version that changed",
        "Records.create",
        "        except MetadataVersionError as error:\n            raise LedgerExistsError(",
        "        except ZeroDivisionError as error:\n            raise LedgerExistsError(",
        (
            f"{CONFLICTS}::test_rb_27d_a_name_that_is_taken_is_not_a_version_that_changed[file]",
            f"{CONFLICTS}::test_rb_27d_a_name_that_is_taken_is_not_a_version_that_changed[s3]",
        ),
    ),
    Mutant(
        "the metadata check misses a record in any directory",
        "VersionedStore.is_current",
        "if not is_current:  # what was seen",
        "if False:  # what was seen",
        (f"{FILES}::test_store_that_was_unmounted_is_not_empty",),
    ),
    Mutant(
        "the metadata check looks for what it does not need",
        "VersionedStore.is_current",
        "if not is_current:  # what was seen",
        "if True:  # what was seen",
        (f"{FILES}::test_order_and_number_of_look_ups_of_the_metadata_check",),
    ),
    Mutant(
        "only the first piece of a record is read",
        "posix_calls._read_all",
        "    while missing:\n        chunk = os.pread",
        "    if missing:\n        chunk = os.pread",
        (f"{FILES}::test_record_that_comes_in_pieces_is_read_to_its_end",),
    ),
    Mutant(
        "a file of any length is read as a record",
        "read_bounded",
        "        if status.st_size > bytes_max:",
        "        if False:",
        (f"{FILES}::test_what_is_no_record_is_neither_waited_for_nor_read",),
    ),
    Mutant(
        "a file of any kind is read",
        "_regular",
        "    if not stat.S_ISREG(status.st_mode):",
        "    if False:",
        (f"{FILES}::test_what_is_no_record_is_neither_waited_for_nor_read",),
    ),
    Mutant(
        "a record that everybody can write is believed",
        "read_bounded",
        "        require_private(status, name)\n",
        "",
        (
            f"{PRIVATE}::test_what_everybody_can_write_is_not_believed",
            f"{PRIVATE}::test_what_belongs_to_somebody_else_is_not_believed",
        ),
    ),
    Mutant(
        "a metadata folder that everybody can write is used",
        "open_directory",
        "        posix_calls.require_private(status, root)\n",
        "        pass\n",
        (
            f"{PRIVATE}::test_what_everybody_can_write_is_not_believed",
            f"{PRIVATE}::test_format_refuses_what_everybody_can_write",
        ),
    ),
    Mutant(
        "a folder of records that everybody can write is used",
        "PosixDirectory._require_private",
        "        posix_calls.require_private(status, path)\n",
        "",
        (
            f"{PRIVATE}::test_what_everybody_can_write_is_not_believed[ledgers]",
            f"{PRIVATE}::test_what_belongs_to_somebody_else_is_not_believed[ledgers/1]",
            f"{PRIVATE}::test_a_folder_that_everybody_can_write_hides_no_other",
        ),
    ),
    Mutant(
        "only the folder of a record must be private",
        "PosixDirectory._require_private",
        '        self._require_private(folder.rpartition("/")[0])\n',
        "",
        (f"{PRIVATE}::test_a_look_of_any_kind_is_into_private_folders[read-ledgers]",),
    ),
    Mutant(
        "a record is read from a folder that everybody can write",
        "PosixDirectory.read",
        'None:\n        self._require_private(path.rpartition("/")[0])\n',
        "None:\n",
        (f"{PRIVATE}::test_a_look_of_any_kind_is_into_private_folders[read-ledgers]",),
    ),
    Mutant(
        "what is absent is told of a folder that everybody can write",
        "PosixDirectory.exists",
        'bool:\n        self._require_private(path.rpartition("/")[0])\n',
        "bool:\n",
        (f"{PRIVATE}::test_a_look_of_any_kind_is_into_private_folders[exists-ledgers]",),
    ),
    Mutant(
        "a folder that everybody can write is listed",
        "PosixDirectory._folder",
        "        self._require_private(folder)\n        fd",
        "        fd",
        (f"{PRIVATE}::test_a_look_of_any_kind_is_into_private_folders[list-ledgers]",),
    ),
    Mutant(
        "a link in place of a folder is followed",
        "PosixDirectory._require_private",
        "        if not stat.S_ISDIR(status.st_mode):\n",
        "        if False:\n",
        (f"{PRIVATE}::test_a_link_in_place_of_a_folder_is_not_followed",),
    ),
    Mutant(
        "folders of metadata are everybody's to read",
        "PosixDirectory.make_folder",
        "os.mkdir(part, posix_calls.FOLDER_MODE, dir_fd=parent_fd)",
        "os.mkdir(part, dir_fd=parent_fd)",
        (f"{PRIVATE}::test_folders_and_files_are_private",),
    ),
)
