"""Mutants of what is done with files and records behind the protocol's back."""

from .change import Drop, Replace
from .mutant import Mutant

LEFTOVERS = "tests/integration/faults/test_leftovers.py"
CONFLICTS = "tests/conformance/test_conflicts.py"
POSIX = "tests/conformance/test_posix_bookie.py::TestPosixBookie"
FILES = "tests/unit/metadata/test_files.py"
LEAN = "tests/unit/metadata/test_lean_look.py"
GET = "tests/unit/metadata/test_lean_get.py"

MUTANTS = (
    # --- lean look -------------------------------------------------------------------------------
    Mutant(
        "the lean look skips the signs of a later version",
        "surely_shows",
        Replace("_are_absent(folder, names.absent)", "True"),
        (f"{LEAN}::test_any_sign_of_a_later_version_is_no_yes[pruned-0000000000000010]",),
    ),
    Mutant(
        "the lean look skips the tombstone",
        "surely_shows",
        Replace("_are_absent(root_fd, (names.beside,))", "True"),
        (f"{LEAN}::test_any_sign_of_a_later_version_is_no_yes[../~1]",),
    ),
    Mutant(
        "the lean look skips the record itself",
        "surely_shows",
        Replace("_has_bytes(folder, names.own, value, user)", "True"),
        (f"{LEAN}::test_other_bytes_are_no_yes[another]",),
    ),
    Mutant(
        "the lean look takes the beginning of a record for the record",
        "_has_bytes",
        Replace("len(value) + 1", "len(value)"),
        (f"{LEAN}::test_other_bytes_are_no_yes[the recordx]",),
    ),
    Mutant(
        "the lean look trusts a group's place",
        "surely_shows",
        Replace("place.st_mode & stat.S_ISGID", "False"),
        (f"{LEAN}::test_what_others_may_have_changed_is_no_yes[it is a group's-]",),
    ),
    Mutant(
        "the lean look trusts a folder on the way that others may write",
        "surely_shows",
        Replace("not (stat.S_ISDIR(status.st_mode) and _is_own(status, user))", "False"),
        (f"{LEAN}::test_what_others_may_have_changed_is_no_yes[all may write it-ledgers]",),
    ),
    Mutant(
        "the lean look trusts a folder that others may write",
        "surely_shows",
        Replace("not _is_own(os.fstat(folder), user)", "False"),
        (f"{LEAN}::test_what_others_may_have_changed_is_no_yes[all may write it-ledgers/1]",),
    ),
    Mutant(
        "the lean look trusts the files of other users",
        "_is_own",
        Replace("status.st_uid in (user, 0)", "True"),
        (f"{LEAN}::test_what_belongs_to_another_user_is_no_yes[]",),
    ),
    Mutant(
        "the lean look knows too few signs of a later version",
        "look_ups",
        Replace("BLOCK**MARK_LEVELS", "BLOCK"),
        (f"{LEAN}::test_it_looks_for_what_the_full_check_looks_for_in_its_order",),
    ),
    Mutant(
        "the lean look of a get skips the signs of a later version",
        "surely_newest",
        Replace("_are_absent(here, names.absent)", "True"),
        (f"{GET}::test_a_sign_of_a_later_version_that_the_listing_lacks_is_seen[{4:016x}]",),
    ),
    Mutant(
        "the lean look of a get skips the tombstone",
        "surely_newest",
        Replace("_are_absent(root, (names.beside,))", "True"),
        (f"{GET}::test_a_sign_of_a_later_version_that_the_listing_lacks_is_seen[../~1]",),
    ),
    Mutant(
        "the lean look of a get trusts a folder on the way that others may write",
        "surely_newest",
        Drop("directory.require_private"),
        (f"{GET}::test_what_others_may_have_changed_is_not_taken[all may write it-ledgers]",),
    ),
    Mutant(
        "the lean look of a get trusts a folder that others may write",
        "surely_newest",
        Replace("not _is_own(os.fstat(here), user)", "False"),
        (f"{GET}::test_what_others_may_have_changed_is_not_taken[all may write it-ledgers/1]",),
    ),
    Mutant(
        "the lean look of a get trusts a file that others may write",
        "_own_bytes",
        Replace("_is_own(status, user)", "True"),
        (f"{GET}::test_what_belongs_to_another_user_is_not_taken[ledgers/1/{3:016x}]",),
    ),
    Mutant(
        "the lean look of a get takes a part of a long file",
        "_own_bytes",
        Replace("len(value) == status.st_size <= RECORD_BYTES_MAX", "True"),
        (f"{GET}::test_what_is_no_record_is_not_taken[False]",),
    ),
    Mutant(
        "the lean look of a get returns what a power cut may undo",
        "surely_newest",
        Drop("os.fsync"),
        (f"{GET}::test_a_version_is_durable_before_it_is_returned",),
    ),
    Mutant(
        "many keys are read in a place without the store's marker",
        "FileMetadataStore.get_keys",
        Drop("self._require_marker"),
        (
            f"{GET}::test_a_place_without_the_store_says_why_for_each_key[without a marker]",
            f"{GET}::test_a_place_without_the_store_says_why_for_each_key[another]",
        ),
    ),
    Mutant(
        "the folders of an open ledger are swept",
        "leftovers",
        Replace(
            "{LedgerState.CLOSED, LedgerState.DELETING}",
            "{LedgerState.CLOSED, LedgerState.DELETING, LedgerState.OPEN}",
        ),
        (f"{LEFTOVERS}::test_an_open_ledger_is_left_alone",),
    ),
    Mutant(
        "a bookie that is away ends the sweep",
        "Sweep.run",
        Replace("BookieUnavailableError", "ZeroDivisionError"),
        (f"{LEFTOVERS}::test_a_bookie_that_is_away_is_reported_and_stops_no_other",),
    ),
    Mutant(
        "sweeping takes finished files too",
        "remove_temps",
        Replace("is_temp(entry.name)", "entry.is_file()"),
        (
            f"{LEFTOVERS}::test_sealed_ledgers_are_swept_and_keep_every_file_that_has_a_name",
            f"{POSIX}::test_sweeping_leaves_what_is_finished",
        ),
    ),
    Mutant(
        "a name that is taken is a version that changed",
        "Records.create",
        Replace("MetadataVersionError", "ZeroDivisionError"),
        (
            f"{CONFLICTS}::test_rb_27d_a_name_that_is_taken_is_not_a_version_that_changed[file]",
            f"{CONFLICTS}::test_rb_27d_a_name_that_is_taken_is_not_a_version_that_changed[s3]",
        ),
    ),
    Mutant(
        "only the first piece of a record is read",
        "posix_calls._read_all",
        Replace(
            "while missing:\n    ...",
            "if missing:\n"
            "    chunk = os.pread(descriptor, min(missing, READ_BYTES), begin + wanted - "
            "missing)\n"
            "    if not chunk:\n"
            "        raise OSError(errno.EIO, 'the file became shorter during the read')\n"
            "    chunks.append(chunk)\n"
            "    missing -= len(chunk)\n"
            "    if missing:\n"
            "        progress.made()",
        ),
        (f"{FILES}::test_record_that_comes_in_pieces_is_read_to_its_end",),
    ),
    Mutant(
        "a put does not look behind it whether its version was made before",
        "VersionedRecords.put",
        Replace("self._is_superseded(key, version)", "False"),
        (
            "tests/unit/metadata/test_versions_interleaved.py::"
            "test_no_interleaving_breaks_a_promise[sleeping writer]",
        ),
    ),
)
