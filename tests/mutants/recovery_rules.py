"""Mutants of what a recovery reads, writes back, and says; and of bookies that hang."""

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

MUTANTS = (
    Mutant(
        "a recovery reads again what it has read or written",
        "Recoverer._update",
        ", changed, seen=self._seen)",
        ", changed)",
        (
            "tests/integration/recovery/test_recovery_questions.py::"
            "test_it_reads_the_ledger_once_and_writes_it_twice",
        ),
    ),
    # --- copies are judged file by file -----------------------------------------------------------
    Mutant(
        "a bookie with a bad file counts as one without any good one",
        "FenceAndRead._good_pieces",
        "[*inline, *((log.attempt_id, log.stripe) for log in good)]",
        "[*inline, *((g.attempt_id, g.stripe) for g in good "
        "if len(good) == len([*_entry_logs(stored.record)]))]",
        (f"{FILES}::test_no_bookie_has_all_files_of_a_stripe",),
    ),
    Mutant(
        "files of one stripe are taken for one another",
        "AddRecord.pieces",
        "*((log.attempt_id, log.stripe) for log in self.entry_logs)",
        '*(("", log.stripe) for log in self.entry_logs)',
        (f"{RECOVERY_RULES}::test_copies_are_judged_file_by_file",),
    ),
    Mutant(
        "a bookie with a damaged file has nothing that is written back",
        "WriteBack._copy_entry_logs",
        "                except DamagedInPlaceError as error:\n",
        "                except NoGoodSourceError as error:\n",
        (f"{FILES}::test_each_task_lost_a_file_on_another_bookie",),
    ),
    Mutant(
        "a damaged file counts as written back",
        "Replication._first_short",
        "if piece not in damaged]",
        "if True]",
        (f"{FILES}::test_a_file_with_one_good_copy_and_no_spare_closes_nothing",),
    ),
    Mutant(
        "nobody stands in for a bookie with a damaged file",
        "Replication._failed",
        "        failed += [index for index in self._owners if written.get(index)]\n",
        "",
        (f"{FILES}::test_no_bookie_has_all_files_of_a_stripe",),
    ),
    # --- reading ends ----------------------------------------------------------------------------
    Mutant(
        "a long journal is read without a sign of life",
        "_Bytes.read",
        "self._piece(at, min(end - at, CHUNK_BYTES_MAX)) for at in pieces)",
        "self._piece(at, end - at) for at in pieces[:1])",
        (f"{TAILS}::test_a_long_journal_is_read_in_pieces_with_a_sign_of_life_behind_each[1]",),
    ),
    Mutant(
        "what an entry holds is taken for a record",
        "JournalReader.backwards",
        "            if found is None or not self.is_by_its_writer(found.record):\n",
        "            if found is None:\n",
        (f"{TAILS}::test_what_an_entry_holds_is_not_taken_for_a_record[False]",),
    ),
    Mutant(
        "a torn journal is read from its start",
        "JournalReader.frames_back",
        "end = next(self._ends_in_front_of(end, 0), 0)",
        "end = 0",
        (f"{TAILS}::test_what_is_read_of_a_torn_journal_does_not_grow_with_it[cut]",),
    ),
    # --- writing back ----------------------------------------------------------------------------
    Mutant(
        "what recovery cannot write back it closes",
        "Replication._first_short",
        "        for group in self.groups:\n            record = group.record\n",
        "        for group in ():\n            record = group.record\n",
        (f"{BUGS}::test_rb_15_a_recovery_that_cannot_write_back_does_not_close",),
    ),
    Mutant(
        "a replacement is visible before the closing CAS",
        "Recoverer.close",
        '        """Step 5: one CAS."""\n',
        '        """Step 5: one CAS."""\n'
        "        if close.ensemble:\n"
        "            first, ensemble = close.first_entry_id, close.ensemble\n"
        "            self._seen = self._update(\n"
        "                lambda ledger: ledger.with_recovered_ensemble(first, ensemble)\n"
        "            )\n",
        (f"{SPARES}::test_rb_04_the_new_ensemble_and_the_end_are_one_change",),
    ),
    Mutant(
        "the ledger is closed on the ensemble that failed",
        "Closing.close",
        "if self.ensemble and self.ensemble != self.term.ensemble:",
        "if False:",
        (f"{SPARES}::test_2_2_13_spares_stand_in_for_members_that_cannot_be_written",),
    ),
    Mutant(
        "a spare that failed is in the ensemble",
        "Replication._done",
        "new if index in written else old",
        "new",
        (f"{SPARES}::test_2_2_6_a_spare_that_fails_is_followed_by_another",),
    ),
    Mutant(
        "spares get their copies without markers",
        "Replication._instruction",
        "must_fence=not is_fenced",
        "must_fence=False",
        (
            f"{SPARES}::test_a_spare_has_its_markers_before_anything_else_is_written_to_it",
            f"{SPARES}::test_a_member_that_was_silent_gets_its_markers_with_its_copies",
        ),
    ),
    Mutant(
        "a lost bookie stands in",
        "stand_ins",
        "[c for c in found if c.member not in lost]",
        "found",
        (f"{SPARES}::test_bookies_that_are_lost_or_read_only_stand_in_for_nobody[True]",),
    ),
    Mutant(
        "a read-only bookie stands in",
        "stand_ins",
        "cluster.bookies().values() if not record.is_read_only]",
        "cluster.bookies().values()]",
        (f"{SPARES}::test_bookies_that_are_lost_or_read_only_stand_in_for_nobody[False]",),
    ),
    Mutant(
        "copies are counted unchecked",
        "WriteBack._write_records",
        "            self._require_kept(file)\n",
        "",
        (
            f"{SPARES}::test_r6_copies_in_a_place_that_was_made_anew_meanwhile_do_not_count",
            f"{SPARES}::test_a_recovery_whose_fence_was_lost_sees_it_when_it_writes_back",
        ),
    ),
    Mutant(
        "an instruction that runs twice fails",
        "new_journal",
        "        return root.open_journal(layout.journal(ledger_id, term, environment.token()))\n",
        "        raise\n",
        (f"{SPARES}::test_an_instruction_that_runs_twice_writes_twice_and_both_count",),
    ),
    Mutant(
        "a copy that another attempt has made is a failure",
        "have_entry_log",
        "    except BookieUnavailableError:\n        return copy()",
        "    except ZeroDivisionError:\n        return copy()",
        (f"{SPARES}::test_entry_logs_are_copied_to_the_spares",),
    ),
    # --- duels, and what is said -----------------------------------------------------------------
    Mutant(
        "whoever is displaced tries again at once",
        "wait_for_others",
        "while seen.value.state is not LedgerState.CLOSED and unchanged < _LOOKS:",
        "while False:",
        (f"{DUELS}::test_whoever_is_displaced_looks_first_whether_it_is_done",),
    ),
    Mutant(
        "whoever is displaced waits for a writer who goes on",
        "wait_for_others",
        "        if seen.value.state is LedgerState.OPEN:\n            break\n",
        "",
        (
            "tests/integration/recovery/test_taking_over.py::test_who_is_displaced_waits_for_no_writer",
        ),
    ),
    Mutant(
        "whoever is displaced takes the bookies for failed",
        "Replication._hear",
        "            case steps.Displaced():\n"
        "                return replace(self, outcome=result), []\n",
        "",
        (f"{LIMBO}::test_rb_14_a_fence_that_is_lost_during_a_recovery[0-False]",),
    ),
    Mutant(
        "a displaced recovery does not notice when it closes",
        "Close.applied_to",
        "if (metadata.term, metadata.token) != (self.term, self.token):",
        "if False:",
        (f"{DUELS}::test_whoever_is_displaced_waits_longer_every_time",),
    ),
    Mutant(
        "one that cannot decide does not ask whether another has",
        "Stopping.receive",
        "        mine = self.term.ledger\n",
        "        mine = self.term.ledger\n        event = steps.LedgerSeen(mine)\n",
        (f"{DUELS}::test_one_that_cannot_decide_adopts_what_another_decided_meanwhile",),
    ),
    Mutant(
        "a stuck recovery leaves no reason",
        "Stopping.receive",
        "(steps.LeaveReason(mine.term, self.stuck), steps.Fail(error))",
        "(steps.Fail(error),)",
        (f"{LOST}::test_a_stuck_recovery_is_told_by_status_until_it_is_done",),
    ),
    Mutant(
        "a reason of an earlier term is shown",
        "unfinished_recoveries",
        "seen.value.term == ledger.term",
        "True",
        (f"{LOST}::test_a_reason_of_an_earlier_term_is_not_shown",),
    ),
    Mutant(
        "a lost bookie is a failure that status shows",
        "bookie_findings",
        "alive = [status for status in statuses if status.member not in lost]",
        "alive = statuses",
        (f"{LOST}::test_status_tells_a_lost_bookie_from_one_that_fails",),
    ),
    # --- bookies that hang -----------------------------------------------------------------------
    Mutant(
        "a bookie that hangs is waited for in silence",
        "in_threads",
        "        if tell is not None:\n",
        "        if False:\n",
        (f"{TAILS}::test_a_bookie_that_hangs_is_told_of_and_then_silent",),
    ),
    Mutant(
        "one that is long at work is taken for one that hangs",
        "in_threads",
        "heartbeat=beats.__getitem__",
        "heartbeat=lambda number: 0",
        (f"{TAILS}::test_one_that_is_long_at_work_is_waited_for_and_one_that_hangs_is_not",),
    ),
    Mutant(
        "one that was waited for in vain is asked to take copies",
        "Replication.begun",
        "turn = [index for index in self._owners if index not in silent]",
        "turn = self._owners",
        (f"{HANGING}::test_a_recovery_goes_on_without_a_bookie_that_hangs[open_root]",),
    ),
    Mutant(
        "a task of a recovery waits for ever for a bookie that hangs",
        "actions.carry_out",
        "        [result] = in_threads([instruction])\n",
        "        result = instruction.run(lambda: None)\n",
        (
            "tests/unit/spark/test_actions.py"
            "::test_a_task_does_not_wait_for_ever_for_a_bookie_that_hangs",
        ),
    ),
    Mutant(
        "the driver says nothing while spark's tasks wait",
        "recover.recover",
        "run.telling(note) if isinstance(run, TellingRunner) else run",
        "run",
        ("tests/unit/spark/test_actions.py::test_a_recovery_gives_its_runner_somebody_to_tell",),
    ),
    Mutant(
        "a ledger is placed on a bookie that does not answer",
        "enlisting.enlist",
        "    return Begun(taken)\n",
        "    return Begun({address.bookie_id: None for address in places.values()} | taken)\n",
        (f"{HANGING}::test_where_all_spares_hang_nobody_joins[put_new]",),
    ),
    Mutant(
        "a bookie that does not answer is usable",
        "Cluster.probe",
        'BookieStatus(record, f"bookie {record.bookie_id} does not answer")',
        "BookieStatus(record)",
        (f"{HANGING}::test_a_list_of_bookies_says_which_hang_and_waits_for_them_once",),
    ),
    Mutant(
        "what hangs is waited for again and again",
        "BookieClient.give_up",
        "            environment.the_one(HangMemory).gave_up(self.address, self._last)\n",
        "            pass\n",
        (f"{HANGING}::test_a_list_of_bookies_says_which_hang_and_waits_for_them_once",),
    ),
    Mutant(
        "a recovery writes back only to those that lack what it keeps",
        "recovering._write_back",
        "    begun, writes = replication.begun(evidence.silent)\n",
        "    kept = {record.first_entry_id for record in decision.kept}\n"
        "    show = {i for i, tail in evidence.tails.items() if kept <= set(tail.answer.records)}\n"
        "    replication = replace(replication, written=tuple((i, frozenset()) for i in show))\n"
        "    begun, writes = replication.begun(evidence.silent | show)\n",
        (
            "tests/integration/recovery/test_recovery.py::"
            "test_what_is_kept_is_written_back_also_to_those_that_show_it",
        ),
    ),
    # --- what recoveries that came to nothing have left -------------------------------------------
    Mutant(
        "every recovery in vain leaves a journal",
        "WriteBack._write_records",
        "if self.term > self.writer.term + 1 and self._are_there",
        "if False and self._are_there",
        (f"{IN_VAIN}::test_the_200th_costs_as_much_as_the_second[1]",),
    ),
    Mutant(
        "the first recovery looks for copies of others too",
        "WriteBack._write_records",
        "if self.term > self.writer.term + 1 and self._are_there",
        "if self._are_there",
        (f"{IN_VAIN}::test_the_first_looks_for_none",),
    ),
    Mutant(
        "copies of an earlier recovery count before they are durable",
        "WriteBack._are_there",
        "            if not shown or not root.sync(shown[0]):\n",
        "            if not shown:\n",
        (f"{IN_VAIN}::test_what_is_counted_was_made_durable_by_who_counts_it[memory]",),
    ),
    Mutant(
        "copies of an earlier recovery are not looked for anew",
        "WriteBack._are_there",
        "            return self._shows(root, shown[0], records, beat)",
        "            return True",
        (f"{IN_VAIN}::test_copies_that_are_lost_while_they_are_made_durable_do_not_count",),
    ),
    Mutant(
        "copies of an earlier recovery count without a fence",
        "WriteBack._are_there",
        "            self._require_fence(root)\n            return self._shows",
        "            return self._shows",
        (f"{IN_VAIN}::test_a_fence_that_is_lost_by_then_is_seen",),
    ),
    Mutant(
        "what looks as long as the copies counts as them",
        "WriteBack._shows",
        "            if root.read(name, position, len(frame)) != frame:",
        '            if len(root.read(name, position, len(frame)) or b"") != len(frame):',
        (f"{IN_VAIN}::test_copies_that_are_not_all_there_are_written_anew[memory]",),
    ),
    Mutant(
        "the writer's own journal counts as a copy",
        "WriteBack._is_of_earlier_recovery",
        "        return self.writer.term < layout.journal_term",
        "        return 0 < layout.journal_term",
        (f"{IN_VAIN}::test_a_journal_of_the_writer_is_never_counted_as_a_copy",),
    ),
    # --- the order of steps ----------------------------------------------------------------------
    Mutant(
        "a recovery decides before all have answered",
        "Fencing.going_on",
        "        if None in self.evidence.heard:\n",
        "        if not self.evidence.tails:\n",
        (
            f"{SCRIPTS}[recovery_decisions]",
            "tests/protocol/test_recovery.py"
            "::test_it_decides_while_no_write_set_has_qa_silent_members",
        ),
    ),
    Mutant(
        "spares are looked for while members are written to",
        "Replication._going_on",
        "        if self.awaited or self.outcome is not None:\n",
        "        if self.outcome is not None:\n",
        (f"{SCRIPTS}[recovery_write_back]",),
    ),
    Mutant(
        "a recovery keeps all that it met on the way back",
        "_begin_of_tail",
        "met[found.begin] = found if left >= 0 else None",
        "met[found.begin] = found",
        (f"{TAILS}::test_what_the_way_back_has_met_is_not_read_again_unless_it_is_much",),
    ),
    Mutant(
        "a recovery reads each record twice",
        "read_tail",
        "return met.pop(at, None) or reader.stored(at)",
        "return reader.stored(at)",
        (f"{TAILS}::test_what_the_way_back_has_met_is_not_read_again_unless_it_is_much",),
    ),
)
