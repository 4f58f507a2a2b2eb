"""Mutants of what shows that a bookie has lost data, of fences, and of bookies that take none."""

from .mutant import Mutant

BUGS = "tests/integration/document/test_recovery_bugs.py"
FOLDERS = "tests/integration/recovery/test_lost_folders.py"
POST_CHECK = "tests/unit/cluster/test_post_check.py"
RECORDS = "tests/integration/recovery/test_lost_records.py"
READ_ONLY = "tests/integration/recovery/test_read_only_bookies.py"
UNIT = "tests/unit/protocol/test_recovery.py"

FENCE = '            root.put_new(self.writer.fence, b"")\n        except'
READ = """                unfenced = self._fence(root)
                tail = self._read(root, digester, beat)
"""
JUDGED = "unfenced else self._judged(tail)\n"
RETURNED = f"            return tail.doubted(Doubt.UNFENCED, unfenced) if {JUDGED}"

MUTANTS = (
    # --- who has lost data -----------------------------------------------------------------------
    Mutant(
        "a member without its marker proves an absence",
        "FenceAndRead._judged",
        "        if not missing:\n",
        "        if missing or not missing:\n",
        (
            f"{FOLDERS}::test_a_lost_folder_is_no_absence_however_often_it_is_asked"
            "[memory-sizes0-1]",
            f"{FOLDERS}::test_a_lost_folder_is_no_absence_however_often_it_is_asked[file-sizes1-1]",
        ),
    ),
    Mutant(
        "what shows a loss is looked for in front of what is read",
        "FenceAndRead.run",
        READ + RETURNED,
        "                unfenced = self._fence(root)\n"
        "                is_whole = root.size(self.writer.taken.permission) is not None\n"
        "                tail = self._read(root, digester, beat)\n"
        "            return tail if is_whole or unfenced else self._judged(tail)\n",
        (f"{FOLDERS}::test_a_folder_that_is_lost_behind_the_fence_is_seen",),
    ),
    Mutant(
        "a recovery makes the writer's marker anew",
        "FenceAndRead._fence",
        FENCE,
        '            root.put_new(self.writer.taken.permission, b"")\n' + FENCE,
        (f"{FOLDERS}::test_copies_that_it_gets_do_not_make_it_whole",),
    ),
    Mutant(
        "whoever gets copies gets the writer's marker",
        "WriteBack.run",
        '                    root.put_new(self.writer.fence, b"")\n            damaged',
        '                    root.put_new(self.writer.fence, b"")\n'
        '                    root.put_new(self.writer.taken.permission, b"")\n            damaged',
        (f"{FOLDERS}::test_copies_for_one_that_was_silent_do_not_make_it_whole",),
    ),
    Mutant(
        "a ledger of an older version needs the marker of its writer's term",
        "Taken.of",
        "cls(layout.term_marker(ledger_id, FIRST_TERM))",
        "cls(layout.term_marker(ledger_id, fragment.term))",
        (f"{FOLDERS}::test_a_ledger_of_an_older_version_shows_a_loss_by_the_first_marker[2]",),
    ),
    Mutant(
        "a ledger of an older version shows no loss",
        "Taken.of",
        "cls(layout.term_marker(ledger_id, FIRST_TERM))",
        "cls(layout.term_marker(ledger_id, fragment.term + 1))",
        (f"{FOLDERS}::test_a_ledger_of_an_older_version_shows_a_loss_by_the_first_marker[1]",),
    ),
    Mutant(
        "a bookie that has lost data is no reason",
        "stuck",
        "unable = (Doubt.DAMAGED, Doubt.DATA_LOST)",
        "unable = (Doubt.DAMAGED,)",
        (f"{FOLDERS}::test_copies_that_it_gets_do_not_make_it_whole",),
    ),
    # --- what records say that a bookie had ------------------------------------------------------
    Mutant(
        "what records say that a bookie had is not held against it",
        "Evidence.judged",
        "lost_data(self.tails, self.term.ledger)",
        "dict[int, MemberTail]()",
        (
            f"{RECORDS}::test_what_a_record_elsewhere_says_that_it_had_is_missed[memory-1-0]",
            f"{RECORDS}::test_what_a_record_elsewhere_says_that_it_had_is_missed[file-2-1]",
            f"{RECORDS}::test_it_takes_the_word_where_nobody_else_can_tell",
        ),
    ),
    Mutant(
        "who takes a place is held to what was stored there",
        "evidence.stored",
        "        if record.last_add_confirmed > last_confirmed\n",
        "",
        (
            f"{RECORDS}::test_who_takes_a_place_is_not_held_to_what_was_stored_there[0]",
            f"{RECORDS}::test_who_takes_a_place_is_not_held_to_what_was_stored_there[1]",
        ),
    ),
    Mutant(
        "copies of a recovery make a bookie whole",
        "read_tail",
        "for stored in found if reader.is_by_its_writer(stored.record))",
        "for stored in found)",
        (f"{RECORDS}::test_copies_that_it_gets_do_not_make_it_whole",),
    ),
    Mutant(
        "who may be asked again is held to what records say",
        "lost_data",
        "if tail.answer.doubt in CAN_TELL}",
        "}",
        (
            f"{RECORDS}::test_who_may_be_asked_again_is_not_held_to_anything_yet[Doubt.UNFENCED]",
            f"{RECORDS}::test_who_may_be_asked_again_is_not_held_to_anything_yet[Doubt.UNCLEAR]",
        ),
    ),
    Mutant(
        "a torn end hides that more is gone",
        "lost_data",
        "if tail.answer.doubt in CAN_TELL}",
        "if tail.answer.doubt is None}",
        (f"{RECORDS}::test_a_torn_end_does_not_hide_that_more_is_gone",),
    ),
    Mutant(
        "a record does not say what bookies had",
        "RecordEncoder._record",
        "            stored=add.stored,\n",
        "",
        (
            f"{RECORDS}::test_each_record_of_a_handle_says_it_and_so_does_a_confirmation",
            f"{RECORDS}::test_each_record_of_a_sink_says_it_and_so_does_a_confirmation",
        ),
    ),
    Mutant(
        "a reader is shown an end by a bookie that has lost more",
        "_Look._confirmed",
        "if member not in doubted and end.is_sure",
        "if end.is_sure",
        (f"{RECORDS}::test_a_reader_is_shown_no_end_by_a_bookie_that_has_lost_more",),
    ),
    Mutant(
        "who has lost data is asked again and again",
        "_Look._behind",
        "ends.values()).keys() - self._lost(ends)",
        "ends.values())",
        (f"{RECORDS}::test_a_reader_is_shown_no_end_by_a_bookie_that_has_lost_more",),
    ),
    # --- whose marker it is ----------------------------------------------------------------------
    Mutant(
        "a new ledger forgets whose marker its members took",
        "_first_fragment",
        "Fragment(0, FIRST_TERM, members, token, has_headers=has_headers, owner=owner)",
        "Fragment(0, FIRST_TERM, members)",
        (f"{BUGS}::test_rb_37_two_of_two_with_one_dead_is_enough_to_see_that_nothing_was_added",),
    ),
    Mutant(
        "a changed ensemble forgets whose marker its members took",
        "LedgerMetadata.with_ensemble",
        "fragment = Fragment(first_entry_id, term, ensemble, *told)",
        "fragment = Fragment(first_entry_id, term, ensemble)",
        (
            "tests/unit/protocol/test_ledger.py::"
            "test_a_change_behind_the_last_fragments_first_entry_appends_a_fragment",
        ),
    ),
    Mutant(
        "the marker of anybody is a permission",
        "post_check.post_check",
        "permission = layout.permission(ledger_id, term, token)",
        "permission = layout.term_marker(ledger_id, term)",
        (
            f"{POST_CHECK}::test_what_is_in_order_counts",
            f"{POST_CHECK}::test_the_order_of_its_looks",
        ),
    ),
    Mutant(
        "a bookie that did not surely join is asked again",
        "EnsembleChanges.begin_anew",
        "self._excluded = self._unjoined",
        "self._excluded = frozenset()",
        (f"{FOLDERS}::test_a_bookie_that_did_not_surely_join_is_not_asked_again",),
    ),
    # --- one fence -------------------------------------------------------------------------------
    Mutant(
        "the fence is one term too far",
        "Writer.of",
        "layout.term_marker(ledger_id, fragment.term + 1)",
        "layout.term_marker(ledger_id, fragment.term + 2)",
        (f"{BUGS}::test_rb_03_a_fence_between_the_write_and_the_check_refuses",),
    ),
    Mutant(
        "the fence is of the recovery's term",
        "Writer.of",
        "layout.term_marker(ledger_id, fragment.term + 1)",
        "layout.term_marker(ledger_id, ledger.term)",
        (f"{FOLDERS}::test_a_recovery_makes_one_marker_however_many_came_before[20]",),
    ),
    Mutant(
        "copies count although the fence is gone",
        "WriteBack._require_fence",
        "if root.size(self.writer.fence) is None:",
        "if False:",
        (
            "tests/integration/recovery/test_recovery_spares.py::"
            "test_a_recovery_whose_fence_was_lost_sees_it_when_it_writes_back[memory]",
        ),
    ),
    # --- bookies that cannot be fenced -----------------------------------------------------------
    Mutant(
        "what a bookie without a fence lacks is absent",
        "FenceAndRead.run",
        RETURNED,
        "            return tail if unfenced else self._judged(tail)\n",
        (f"{READ_ONLY}::test_what_it_lacks_is_no_absence_while_its_writer_may_still_write_there",),
    ),
    Mutant(
        "what a bookie without a fence shows does not count",
        "FenceAndRead._fence",
        '            return f"bookie {self.address.bookie_id} cannot be fenced: {error.args[0]}"\n',
        "            raise error\n",
        (f"{READ_ONLY}::test_what_it_shows_counts",),
    ),
    Mutant(
        "a bookie that cannot be fenced is given up by one word",
        "verdicts",
        "WAITED_FOR = (Doubt.UNCLEAR, Doubt.UNFENCED)",
        "WAITED_FOR = (Doubt.UNCLEAR,)",
        (
            f"{UNIT}::test_doubts_that_decide_alike[Doubt.UNFENCED-Doubt.UNCLEAR]",
            f"{READ_ONLY}::test_it_can_be_declared_lost_where_it_is",
        ),
    ),
    Mutant(
        "a bookie that can be read is not lost",
        "_answers",
        '            root.put_new(probe, b"")\n',
        "",
        (f"{READ_ONLY}::test_it_can_be_declared_lost_before_anybody_recovers",),
    ),
    Mutant(
        "a bookie that takes everything but a fence is not lost",
        "_answers",
        "    fences = _fences(cluster, member)\n",
        "    fences: list[str] = []\n",
        (f"{READ_ONLY}::test_one_that_takes_everything_but_a_fence_can_be_declared_lost_too",),
    ),
    Mutant(
        "a bookie is fenced in ledgers that nobody recovers",
        "_fences",
        "        and found.value.state is LedgerState.IN_RECOVERY\n",
        "",
        (f"{READ_ONLY}::test_to_ask_whether_one_is_lost_leaves_nothing_behind[memory]",),
    ),
    Mutant(
        "to ask whether a bookie is lost leaves something behind",
        "_answers",
        "                root.delete(probe)\n",
        "                pass\n",
        (f"{READ_ONLY}::test_to_ask_whether_one_is_lost_leaves_nothing_behind[memory]",),
    ),
    Mutant(
        "who refused to join is asked in the same name again",
        "ensembles._place",
        "        token = environment.token()\n",
        "        token = token if refused else environment.token()\n",
        (f"{FOLDERS}::test_who_did_not_surely_join_a_new_ledger_can_join_it_as_anybody",),
    ),
    Mutant(
        "who took no fence is taken for fenced when it gets copies",
        "MemberTail.doubted",
        "            is_fenced=doubt is not Doubt.UNFENCED,\n",
        "",
        (f"{READ_ONLY}::test_who_takes_copies_and_no_fence_holds_up_nobody",),
    ),
    Mutant(
        "what a bookie has lost is told nobody",
        "MemberTail.without",
        "hidden=(*self.hidden, *hidden))",
        "hidden=self.hidden)",
        (f"{FOLDERS}::test_what_is_lost_beyond_the_promise_is_told",),
    ),
)
