"""Mutants of what a recovery reads, writes back, and says; and of bookies that hang."""

from .change import Drop, Replace
from .mutant import Mutant

BUGS = "tests/integration/document/test_recovery_bugs.py"
DUELS = "tests/integration/recovery/test_duelling_recoverers.py"
LIMBO = "tests/integration/document/test_recovery_bugs_limbo.py"
HANGING = "tests/integration/faults/test_hanging_bookies.py"
LOST = "tests/unit/cli/test_lost.py"
SPARES = "tests/integration/recovery/test_recovery_spares.py"
TAILS = "tests/integration/journals/test_journal_tails.py"
FILES = "tests/integration/recovery/test_recovery_damaged_files.py"
IN_VAIN = "tests/integration/recovery/test_recoveries_in_vain.py"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
RECOVERY_RULES = "tests/unit/protocol/test_recovery.py"
STATES = "tests/simulation/test_states.py::test_no_state_of_a_small_world_breaks_a_promise"

MUTANTS = (
    # --- copies are judged file by file -----------------------------------------------------------
    Mutant(
        "a bookie with a bad file counts as one without any good one",
        "FenceAndRead._good_pieces",
        Replace(
            "((log.attempt_id, log.stripe) for log in good)",
            "((g.attempt_id, g.stripe) for g in good if len(good) == "
            "len([*_entry_logs(stored.record)]))",
        ),
        (f"{FILES}::test_no_bookie_has_all_files_of_a_stripe",),
    ),
    Mutant(
        "files of one stripe are taken for one another",
        "AddRecord.pieces",
        Replace("log.attempt_id", "''"),
        (f"{RECOVERY_RULES}::test_copies_are_judged_file_by_file",),
    ),
    Mutant(
        "a bookie with a damaged file has nothing that is written back",
        "WriteCopies._copy_entry_logs",
        Replace("DamagedInPlaceError", "NoGoodSourceError"),
        (f"{FILES}::test_each_task_lost_a_file_on_another_bookie",),
    ),
    Mutant(
        "a damaged file counts as written back",
        "Replication._first_short",
        Replace("piece not in damaged", "True"),
        (f"{FILES}::test_a_file_with_one_good_copy_and_no_spare_closes_nothing",),
    ),
    # --- reading ends ----------------------------------------------------------------------------
    Mutant(
        "a long journal is read without a sign of life",
        "_Bytes.read",
        Replace(
            "(self._piece(at, min(end - at, CHUNK_BYTES_MAX)) for at in pieces)",
            "(self._piece(at, end - at) for at in pieces[:1])",
        ),
        (f"{TAILS}::test_a_long_journal_is_read_in_pieces_with_a_sign_of_life_behind_each[1]",),
    ),
    Mutant(
        "a torn journal is read from its start",
        "JournalReader.frames_back",
        Replace("next(self._ends_in_front_of(end, 0), 0)", "0"),
        (f"{TAILS}::test_what_is_read_of_a_torn_journal_does_not_grow_with_it[cut]",),
    ),
    # --- writing back ----------------------------------------------------------------------------
    Mutant(
        "what recovery cannot write back it closes",
        "Replication._first_short",
        Replace("self.groups", "()"),
        (f"{BUGS}::test_rb_15_a_recovery_that_cannot_write_back_does_not_close",),
    ),
    Mutant(
        "a replacement is visible before the closing CAS",
        "Recoverer.close",
        Replace(
            "'Step 5: one CAS.'",
            "'Step 5: one CAS.'\n"
            "if close.ensemble:\n"
            "    first, ensemble = (close.first_entry_id, close.ensemble)\n"
            "    self._seen = self._update(lambda ledger: "
            "ledger.with_recovered_ensemble(first, ensemble))",
        ),
        (f"{SPARES}::test_rb_04_the_new_ensemble_and_the_end_are_one_change",),
    ),
    Mutant(
        "spares get their copies without markers",
        "Replication._instruction",
        Replace("not is_fenced", "False"),
        (
            f"{SPARES}::test_a_spare_has_its_markers_before_anything_else_is_written_to_it",
            f"{SPARES}::test_a_member_that_was_silent_gets_its_markers_with_its_copies",
        ),
    ),
    Mutant(
        "a lost bookie stands in",
        "stand_ins",
        Replace("c.member not in lost", "True"),
        (f"{SPARES}::test_bookies_that_are_lost_or_read_only_stand_in_for_nobody[True]",),
    ),
    Mutant(
        "a read-only bookie stands in",
        "stand_ins",
        Replace("not r.is_read_only", "True"),
        (f"{SPARES}::test_bookies_that_are_lost_or_read_only_stand_in_for_nobody[False]",),
    ),
    Mutant(
        "an instruction that runs twice fails",
        "new_journal",
        Replace(
            "return root.open_journal(layout.journal(ledger_id, term, environment.token()))",
            "raise",
        ),
        (f"{SPARES}::test_an_instruction_that_runs_twice_writes_twice_and_both_count",),
    ),
    Mutant(
        "a copy that another attempt has made is a failure",
        "have_entry_log",
        Replace("BookieUnavailableError", "ZeroDivisionError"),
        (f"{SPARES}::test_entry_logs_are_copied_to_the_spares",),
    ),
    # --- duels, and what is said -----------------------------------------------------------------
    Mutant(
        "whoever is displaced takes the bookies for failed",
        "Replication._hear",
        Drop("case steps.Displaced(): ..."),
        (f"{LIMBO}::test_rb_14_a_fence_that_is_lost_during_a_recovery[0-False]",),
    ),
    Mutant(
        "one that cannot decide does not ask whether another has",
        "Stopping.receive",
        Replace(
            "mine = self.term.ledger", "mine = self.term.ledger\nevent = steps.LedgerSeen(mine)"
        ),
        (f"{DUELS}::test_one_that_cannot_decide_adopts_what_another_decided_meanwhile",),
    ),
    Mutant(
        "a reason of an earlier term is shown",
        "unfinished_recoveries",
        Replace("seen.value.term == ledger.term", "True"),
        (f"{LOST}::test_a_reason_of_an_earlier_term_is_not_shown",),
    ),
    Mutant(
        "a lost bookie is a failure that status shows",
        "bookie_findings",
        Replace("[status for status in statuses if status.member not in lost]", "statuses"),
        (f"{LOST}::test_status_tells_a_lost_bookie_from_one_that_fails",),
    ),
    # --- bookies that hang -----------------------------------------------------------------------
    Mutant(
        "one that is long at work is taken for one that hangs",
        "in_threads",
        Replace("beats.__getitem__", "lambda number: 0"),
        (f"{TAILS}::test_one_that_is_long_at_work_is_waited_for_and_one_that_hangs_is_not",),
    ),
    Mutant(
        "one that was waited for in vain is asked to take copies",
        "Replication.begun",
        Replace("[index for index in self._owners if index not in silent]", "self._owners"),
        (f"{HANGING}::test_a_recovery_goes_on_without_a_bookie_that_hangs[open_root]",),
    ),
    Mutant(
        "a task of a recovery waits for ever for a bookie that hangs",
        "actions.carry_out",
        Replace("[result] = in_threads([instruction])", "result = instruction.run(lambda: None)"),
        (
            "tests/unit/spark/test_actions.py"
            "::test_a_task_does_not_wait_for_ever_for_a_bookie_that_hangs",
        ),
    ),
    Mutant(
        "a ledger is placed on a bookie that does not answer",
        "enlisting.enlist",
        Replace(
            "Begun(taken, failed, own_fault, found)",
            "Begun({one.bookie_id: None for one in places.values()} | taken, failed)",
        ),
        (f"{HANGING}::test_where_all_spares_hang_nobody_joins[put_new]",),
    ),
    Mutant(
        "a recovery writes back only to those that lack what it keeps",
        "recovering._write_back",
        Replace(
            "begun, writes = replication.begun(evidence.silent)",
            "kept = {record.first_entry_id for record in decision.kept}\n"
            "show = {i for i, tail in evidence.tails.items() if kept <= "
            "set(tail.answer.records)}\n"
            "replication = replace(replication, written=tuple(((i, frozenset()) for i in "
            "show)))\n"
            "begun, writes = replication.begun(evidence.silent | show)",
        ),
        (
            "tests/integration/recovery/test_recovery.py::"
            "test_what_is_kept_is_written_back_also_to_those_that_show_it",
        ),
    ),
    # --- what recoveries that came to nothing have left -------------------------------------------
    Mutant(
        "every recovery in vain leaves a journal",
        "WriteCopies._write_records",
        Replace("self.term > self.writer.term + 1", "False"),
        (f"{IN_VAIN}::test_the_200th_costs_as_much_as_the_second[1]",),
    ),
    Mutant(
        "copies of an earlier recovery are not looked for anew",
        "WriteCopies._are_there",
        Replace("self._shows(root, shown[0], records, beat)", "True"),
        (f"{IN_VAIN}::test_copies_that_are_lost_while_they_are_made_durable_do_not_count",),
    ),
    Mutant(
        "copies of an earlier recovery count without a fence",
        "WriteCopies._are_there",
        Drop("self._require_fence"),
        (f"{IN_VAIN}::test_a_fence_that_is_lost_by_then_is_seen",),
    ),
    Mutant(
        "what looks as long as the copies counts as them",
        "WriteCopies._shows",
        Replace(
            "root.read(name, position, len(frame)) != frame",
            "len(root.read(name, position, len(frame)) or b'') != len(frame)",
        ),
        (f"{IN_VAIN}::test_copies_that_are_not_all_there_are_written_anew[memory]",),
    ),
    Mutant(
        "the writer's own journal counts as a copy",
        "WriteCopies._is_of_earlier_recovery",
        Replace("self.writer.term", "0"),
        (f"{IN_VAIN}::test_a_journal_of_the_writer_is_never_counted_as_a_copy",),
    ),
    # --- the order of steps ----------------------------------------------------------------------
    Mutant(
        "a recovery decides before all have answered",
        "Fencing.going_on",
        Replace("None in self.evidence.heard", "not self.evidence.tails"),
        (
            f"{SCRIPTS}[recovery_decisions]",
            "tests/protocol/test_recovery.py"
            "::test_it_decides_while_no_write_set_has_qa_silent_members",
        ),
    ),
    Mutant(
        "a stand-in that fails counts as one that has its copies",
        "Replication._hear",
        Replace(
            "state = replace(self, problems=(*self.problems, (name, reason)))",
            "state = replace(self, problems=(*self.problems, (name, reason)))\n"
            "if self.ensemble[index] != self.ledger.last_fragment.ensemble[index]:\n"
            "    state = replace(state, written=(*self.written, (index, frozenset())))",
        ),
        (f"{STATES}[1/1/1, 1 entries, 1 recoverers, 2 failures, 2 spares]",),
    ),
)
