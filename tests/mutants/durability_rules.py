"""Mutants of what is durable before it counts, and of what must change nothing."""

from .mutant import Mutant

CALLS = "tests/unit/bookie/test_posix_calls.py"
COPIES = "tests/integration/ledger/test_durable_copies.py"
FILES = "tests/unit/metadata/test_files.py"
HANDING = "tests/integration/stream/test_stream_handing_over.py"
LOG = "tests/unit/protocol/test_log.py"
LOGS = "tests/integration/log/test_logs.py"
LOSSES = "tests/integration/recovery/test_recovery_losses.py"
OPENINGS = "tests/integration/log/test_log_openings.py"

MUTANTS = (
    Mutant(
        "who loses a race counts on a winner that may be dead",
        "posix_calls.put_new",
        "        os.unlink(temp, dir_fd=folder)\n        sync_found(folder, name)\n",
        "        os.unlink(temp, dir_fd=folder)\n",
        (f"{CALLS}::test_the_loser_of_a_race_makes_the_winners_file_durable",),
    ),
    Mutant(
        "the name of a metadata store may vanish",
        "FileMetadataStore.format",
        "                    os.fsync(parent)\n",
        "                    pass\n",
        (f"{FILES}::test_the_name_of_a_store_is_durable_when_it_was_made",),
    ),
    Mutant(
        "a folder that a killed client left in the metadata may vanish with its records",
        "PosixDirectory.make_folder",
        "before making it durable.\n                os.fsync(parent_fd)\n",
        "before making it durable.\n",
        (
            f"{FILES}::"
            "test_folders_that_a_killed_client_left_are_made_durable_before_a_record_is_in_them",
        ),
    ),
    Mutant(
        "versions go behind a tombstone that may vanish",
        "PosixDirectory.put_if_absent",
        "            os.fsync(folder_fd)\n        return is_created\n",
        "            if is_created:\n                os.fsync(folder_fd)\n"
        "        return is_created\n",
        (f"{FILES}::test_versions_are_removed_behind_a_tombstone_that_is_durable_whoever_made_it",),
    ),
    Mutant(
        "a copy that is in place counts as it is",
        "_require_good",
        "        into.ask(lambda: into.root().sync(name), seconds_to_store(log.length_bytes))\n",
        "",
        (f"{COPIES}::test_an_entry_log_found_in_place_is_synced_before_it_is_a_copy",),
    ),
    Mutant(
        "aborting a write that was done before drops a ledger that never was",
        "batch.commit.abort",
        "    if target.is_done:\n        return\n    with Cluster",
        "    with Cluster",
        (f"{LOGS}::test_aborting_a_write_that_was_done_before_changes_nothing[memory]",),
    ),
    Mutant(
        "a log's record names a ledger that cannot be",
        "LogContents.__post_init__",
        "        if min(known, default=0) < 0:\n",
        "        if False:\n",
        (f"{LOG}::test_an_impossible_record_is_refused",),
    ),
    Mutant(
        "a wrong password makes a tail",
        "_Opening._checked",
        "        make_digester(log.digest, self._password)\n",
        "",
        (f"{OPENINGS}::test_a_wrong_password_adopts_nothing",),
    ),
    Mutant(
        "a wrong password takes a tail over",
        "continue_in",
        "    make_digester(seen.value.digest, password)\n",
        "",
        (f"{HANDING}::test_a_wrong_password_takes_nothing_over",),
    ),
    Mutant(
        "two bad disks are swapped for each other",
        "EnsembleChanges.look",
        " | self._excluded\n",
        "\n",
        (
            "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says[ensemble_changes]",
        ),
    ),
    Mutant(
        "a bookie that is lost again was not lost before",
        "note_lost",
        "(*known, member.incarnation)",
        "(member.incarnation,)",
        (f"{LOSSES}::test_a_bookie_that_was_lost_twice_is_waited_for_as_neither",),
    ),
)
