"""Mutants of which users may read and change a cluster's files."""

from .change import Drop, Replace
from .mutant import Mutant

SENT = "tests/unit/ledger/handles/test_nothing_sent.py"
ACCESS = "tests/unit/storage/test_access.py"

MUTANTS = (
    Mutant(
        "a group's files keep the umask of their maker",
        "Access._settle",
        Replace("_is_shared(status, self.group, mode)", "True"),
        (f"{ACCESS}::test_what_a_group_shares_has_its_modes_whatever_the_umask[0o77]",),
    ),
    Mutant(
        "a mode that is not kept is taken for kept",
        "Access._settle",
        Replace("not _is_shared(os.fstat(descriptor), self.group, mode)", "False"),
        (f"{ACCESS}::test_a_mode_that_is_not_kept_is_an_error",),
    ),
    Mutant(
        "a group's files are everybody's to read",
        "Access.of",
        Replace("stat.S_IMODE(place.st_mode) & _OTHERS == _OTHERS", "True"),
        (f"{ACCESS}::test_what_a_group_shares_has_its_modes_whatever_the_umask[0o22]",),
    ),
    Mutant(
        "what is new is closed where the operator has opened the place",
        "Access.of",
        Replace("cls(group, stat.S_IMODE(place.st_mode) & _OTHERS == _OTHERS)", "cls(group)"),
        (f"{ACCESS}::test_what_is_new_is_open_to_readers_where_the_place_is",),
    ),
    Mutant(
        "in a group's cluster what another group can write is believed",
        "Access.require_trusted",
        Replace("self.group is not None and mode & stat.S_IWGRP", "False"),
        (
            f"{ACCESS}::test_a_group_is_trusted_and_nothing_wider[own, writable by another group]",
            f"{ACCESS}::test_what_another_group_or_everybody_can_change_is_not_believed",
        ),
    ),
    Mutant(
        "in a group's cluster any user is believed",
        "Access.require_trusted",
        Replace("self.group is not None and status.st_gid == self.group", "self.group is not None"),
        (f"{ACCESS}::test_a_group_is_trusted_and_nothing_wider[a third user's, of another group]",),
    ),
    Mutant(
        "the members of a group do not believe each other",
        "Access.require_trusted",
        Replace("self.group is not None and status.st_gid == self.group", "False"),
        (f"{ACCESS}::test_a_group_is_trusted_and_nothing_wider[another member's]",),
    ),
    Mutant(
        "a user that is no member changes a group's cluster",
        "Access.require_may_change",
        Replace(
            "self.group is None or place.st_uid == os.geteuid() or is_member(self.group)", "True"
        ),
        (f"{ACCESS}::test_only_members_and_the_owner_of_the_place_change_it",),
    ),
    Mutant(
        "a cluster is made for a group of others",
        "access.group_id",
        Replace("not is_member(number) and os.geteuid() != 0", "False"),
        (f"{ACCESS}::test_a_user_that_is_no_member_makes_no_cluster_for_a_group",),
    ),
    Mutant(
        "a marker that others wrote says who is believed",
        "files._group_of_marker",
        Drop("access.Access(group).require_trusted"),
        (
            f"{ACCESS}::test_what_another_group_or_everybody_can_change_is_not_believed"
            f"[1520-METADATA_STORE]",
        ),
    ),
    Mutant(
        "the owner of a folder that lost its group bit makes private files in it",
        "FileMetadataStore._require_same_group",
        Replace("group != self._group", "False"),
        (f"{ACCESS}::test_a_folder_that_lost_its_group_bit_is_refused_and_named",),
    ),
    Mutant(
        "an init for another group goes on with a cluster",
        "_left_to_make",
        Replace("group != cluster.group", "False"),
        (f"{ACCESS}::test_an_init_for_another_group_does_not_finish_one",),
    ),
    Mutant(
        "a group's journal has its name before its mode",
        "posix_calls.new_growing",
        Replace("access.group is None", "True"),
        (f"{ACCESS}::test_a_journal_gets_its_name_after_its_mode",),
    ),
    Mutant(
        "a folder whose maker died stays closed to the group",
        "posix_calls._enter_or_make",
        Replace("access.settle_folder(below)", "access.settle_folder(below) if is_new else None"),
        (f"{ACCESS}::test_a_folder_whose_maker_died_before_it_set_the_mode_gets_it",),
    ),
    Mutant(
        "a folder is not waited for",
        "Access.settled",
        Replace("_WAITS if self.group is not None else ()", "()"),
        (f"{ACCESS}::test_a_folder_is_waited_for_until_its_maker_has_set_its_mode",),
    ),
    Mutant(
        "entries that were sent are said not to be in doubt",
        "writer.known",
        Replace("isinstance(error, NothingSentError)", "False"),
        (f"{SENT}::test_a_writer_that_cannot_ask_leaves_its_entries_in_doubt",),
    ),
    Mutant(
        "what a writer's last request says is said of all its entries",
        "recovering.with_outcome",
        Replace("isinstance(error, NothingSentError)", "False"),
        (f"{SENT}::test_entries_that_were_sent_are_undecided_whatever_ended_the_writer",),
    ),
)
