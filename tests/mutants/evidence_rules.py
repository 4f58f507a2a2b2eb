"""Mutants of what shows that a bookie has lost data, of fences, and of bookies that take none."""

from .change import Replace
from .mutant import Mutant

BUGS = "tests/integration/document/test_recovery_bugs.py"
FOLDERS = "tests/integration/recovery/test_lost_folders.py"
POST_CHECK = "tests/unit/cluster/test_post_check.py"
RECORDS = "tests/integration/recovery/test_lost_records.py"
READ_ONLY = "tests/integration/recovery/test_read_only_bookies.py"


MUTANTS = (
    # --- who has lost data -----------------------------------------------------------------------
    Mutant(
        "a member without its marker proves an absence",
        "FenceAndRead._judged",
        Replace("not missing", "missing or not missing"),
        (
            f"{FOLDERS}::test_a_lost_folder_is_no_absence_however_often_it_is_asked"
            "[memory-sizes0-1]",
            f"{FOLDERS}::test_a_lost_folder_is_no_absence_however_often_it_is_asked[file-sizes1-1]",
        ),
    ),
    Mutant(
        "what shows a loss is looked for in front of what is read",
        "FenceAndRead.run",
        (
            Replace(
                "tail = self._read(root, digester, beat)",
                "is_whole = root.size(self.writer.taken.permission) is not None\n"
                "tail = self._read(root, digester, beat)",
            ),
            Replace(
                "return tail.doubted(Doubt.UNFENCED, unfenced) if unfenced else self._judged(tail)",
                "return tail if is_whole or unfenced else self._judged(tail)",
            ),
        ),
        (f"{FOLDERS}::test_a_folder_that_is_lost_behind_the_fence_is_seen",),
    ),
    Mutant(
        "a recovery makes the writer's marker anew",
        "FenceAndRead._fence",
        Replace(
            "root.put_new(self.writer.fence, b'')",
            "root.put_new(self.writer.taken.permission, b'')\nroot.put_new(self.writer.fence, b'')",
        ),
        (f"{FOLDERS}::test_copies_that_it_gets_do_not_make_it_whole",),
    ),
    Mutant(
        "whoever gets copies gets the writer's marker",
        "WriteCopies.run",
        Replace(
            "root.put_new(self.writer.fence, b'')",
            "root.put_new(self.writer.fence, b'')\nroot.put_new(self.writer.taken.permission, b'')",
        ),
        (f"{FOLDERS}::test_copies_for_one_that_was_silent_do_not_make_it_whole",),
    ),
    # --- what records say that a bookie had ------------------------------------------------------
    Mutant(
        "what records say that a bookie had is not held against it",
        "Evidence.judged",
        Replace("lost_data(self.tails, self.term.ledger)", "dict[int, MemberTail]()"),
        (
            f"{RECORDS}::test_what_a_record_elsewhere_says_that_it_had_is_missed[memory-1-0]",
            f"{RECORDS}::test_what_a_record_elsewhere_says_that_it_had_is_missed[file-2-1]",
            f"{RECORDS}::test_it_takes_the_word_where_nobody_else_can_tell",
        ),
    ),
    Mutant(
        "who takes a place is held to what was stored there",
        "evidence.stored",
        Replace(
            "(dict(enumerate(record.stored)) for record in records if "
            "record.last_add_confirmed > last_confirmed)",
            "(dict(enumerate(record.stored)) for record in records)",
        ),
        (
            f"{RECORDS}::test_who_takes_a_place_is_not_held_to_what_was_stored_there[0]",
            f"{RECORDS}::test_who_takes_a_place_is_not_held_to_what_was_stored_there[1]",
        ),
    ),
    Mutant(
        "copies of a recovery make a bookie whole",
        "read_tail",
        Replace(
            "(stored.record for stored in found if reader.is_by_its_writer(stored.record))",
            "(stored.record for stored in found)",
        ),
        (f"{RECORDS}::test_copies_that_it_gets_do_not_make_it_whole",),
    ),
    Mutant(
        "who may be asked again is held to what records say",
        "lost_data",
        Replace(
            "{i: tail for i, tail in tails.items() if tail.answer.doubt in CAN_TELL}",
            "{i: tail for i, tail in tails.items()}",
        ),
        (
            f"{RECORDS}::test_who_may_be_asked_again_is_not_held_to_anything_yet[Doubt.UNFENCED]",
            f"{RECORDS}::test_who_may_be_asked_again_is_not_held_to_anything_yet[Doubt.UNCLEAR]",
        ),
    ),
    Mutant(
        "a torn end hides that more is gone",
        "lost_data",
        Replace("tail.answer.doubt in CAN_TELL", "tail.answer.doubt is None"),
        (f"{RECORDS}::test_a_torn_end_does_not_hide_that_more_is_gone",),
    ),
    Mutant(
        "who has lost data is asked again and again",
        "_Look._behind",
        Replace(
            "self._lacking(ends, ends.values()).keys() - self._lost(ends)",
            "self._lacking(ends, ends.values())",
        ),
        (f"{RECORDS}::test_a_reader_is_shown_no_end_by_a_bookie_that_has_lost_more",),
    ),
    # --- whose marker it is ----------------------------------------------------------------------
    Mutant(
        "a new ledger forgets whose marker its members took",
        "_first_fragment",
        Replace(
            "Fragment(0, FIRST_TERM, members, token, has_headers=has_headers, owner=owner)",
            "Fragment(0, FIRST_TERM, members)",
        ),
        (f"{BUGS}::test_rb_37_two_of_two_with_one_dead_is_enough_to_see_that_nothing_was_added",),
    ),
    Mutant(
        "the marker of anybody is a permission",
        "bookie_client.post_check",
        Replace("layout.permission(ledger_id, term, token)", "layout.term_marker(ledger_id, term)"),
        (
            f"{POST_CHECK}::test_what_is_in_order_counts",
            f"{POST_CHECK}::test_the_order_of_its_looks",
        ),
    ),
    Mutant(
        "a bookie that did not surely join is asked again",
        "EnsembleChanges.begin_anew",
        Replace("self._unjoined", "frozenset()"),
        (f"{FOLDERS}::test_a_bookie_that_did_not_surely_join_is_not_asked_again",),
    ),
    # --- one fence -------------------------------------------------------------------------------
    Mutant(
        "the fence is one term too far",
        "LastWriter.of",
        Replace("fragment.term + 1", "fragment.term + 2"),
        (f"{BUGS}::test_rb_03_a_fence_between_the_write_and_the_check_refuses",),
    ),
    Mutant(
        "the fence is of the recovery's term",
        "LastWriter.of",
        Replace("fragment.term + 1", "ledger.term"),
        (f"{FOLDERS}::test_a_recovery_makes_one_marker_however_many_came_before[20]",),
    ),
    Mutant(
        "copies count although the fence is gone",
        "WriteCopies._require_fence",
        Replace("root.size(self.writer.fence) is None", "False"),
        (
            "tests/integration/recovery/test_recovery_spares.py::"
            "test_a_recovery_whose_fence_was_lost_sees_it_when_it_writes_back[memory]",
        ),
    ),
    # --- bookies that cannot be fenced -----------------------------------------------------------
    Mutant(
        "what a bookie without a fence lacks is absent",
        "FenceAndRead.run",
        Replace("tail.doubted(Doubt.UNFENCED, unfenced)", "tail"),
        (f"{READ_ONLY}::test_what_it_lacks_is_no_absence_while_its_writer_may_still_write_there",),
    ),
    Mutant(
        "what a bookie without a fence shows does not count",
        "FenceAndRead._fence",
        Replace(
            "return f'{bookie_name} cannot be fenced: {about(bookie_name, error.args[0])}'",
            "raise error",
        ),
        (f"{READ_ONLY}::test_what_it_shows_counts",),
    ),
    Mutant(
        "a bookie that takes everything but a fence is not lost",
        "_answers",
        Replace("fences = _fences(cluster, member)", "fences: list[str] = []"),
        (f"{READ_ONLY}::test_one_that_takes_everything_but_a_fence_can_be_declared_lost_too",),
    ),
    Mutant(
        "who refused to join is asked in the same name again",
        "ensembles._place",
        Replace("environment.token()", "token if refused else environment.token()"),
        (f"{FOLDERS}::test_who_did_not_surely_join_a_new_ledger_can_join_it_as_anybody",),
    ),
    Mutant(
        "what a bookie has lost is told nobody",
        "MemberTail.without",
        Replace("(*self.hidden, *hidden)", "self.hidden"),
        (f"{FOLDERS}::test_what_is_lost_beyond_the_promise_is_told",),
    ),
)
