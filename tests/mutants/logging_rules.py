"""Mutants of what is logged."""

from .mutant import Mutant

LOGGED = "tests/integration/faults/test_what_is_logged.py"
STEPPED = "tests/integration/faults/test_what_is_stepped_over.py"
ONCE = "tests/unit/cluster/test_stepping_over.py"
STEPS_IN = (
    f"{LOGGED}::test_a_bookie_that_fails_under_a_handle_is_told_of_and_so_is_who_takes_its_place"
)
FEWER = f"{LOGGED}::test_a_handle_that_goes_on_with_fewer_copies_says_so"
REPLACED = (
    f"{LOGGED}::test_what_was_written_before_a_bookie_is_replaced_is_told_to_have_fewer_copies"
)
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
BATCH = f"{LOGGED}::test_a_batch_tells_who_steps_in_or_that_there_are_fewer_copies"
RECOVERY = f"{LOGGED}::test_a_takeover_a_recovery_and_the_fence_of_the_writer_are_told"
NO_HELP = f"{LOGGED}::test_a_recovery_warns_of_bookies_that_do_not_help_and_of_what_is_in_doubt"
ROLLS = f"{LOGGED}::test_rolls_are_told_with_their_reason"
SINK = f"{LOGGED}::test_a_sink_tells_of_its_rolls"
HANDED_ON = f"{LOGGED}::test_a_sink_tells_who_goes_on_in_a_ledger"
SLICES = f"{STEPPED}::test_a_bad_copy_is_told_of_once_however_often_it_is_read"
HANDLE = f"{STEPPED}::test_a_handle_tells_of_a_copy_once"
TAIL = f"{STEPPED}::test_looks_at_an_open_tail_tell_of_a_bookie_once"
PLANNING = f"{STEPPED}::test_a_journal_that_is_stepped_over_in_planning_is_told_of_once"
HANGS = f"{LOGGED}::test_a_bookie_that_hangs_is_told_of_once_by_who_looks_for_one"
DECISIONS = "tests/integration/upkeep/test_decisions_are_logged.py"

MUTANTS = (
    Mutant(
        "a copy is told of again and again",
        "_Told.is_news",
        "            if told is not None and now - told < TELL_AGAIN_SECONDS:\n",
        "            if False:\n",
        (
            f"{ONCE}::test_a_copy_is_told_of_once_whatever_is_wrong_with_it_then",
            SLICES,
            HANDLE,
            TAIL,
            PLANNING,
        ),
    ),
    Mutant(
        "a copy is told of again if something else is wrong with it",
        "stepping_over.step_over",
        "if environment.the_one(_Told).is_news(copy):",
        "if environment.the_one(_Told).is_news(copy._replace(what=copy.what + reason)):",
        (f"{ONCE}::test_a_copy_is_told_of_once_whatever_is_wrong_with_it_then",),
    ),
    Mutant(
        "a copy is told of once in the life of a process",
        "_Told.is_news",
        "if told is not None and now - told < TELL_AGAIN_SECONDS:",
        "if told is not None:",
        (f"{ONCE}::test_after_a_long_time_it_is_told_of_again",),
    ),
    Mutant(
        "a process remembers all copies that it told of",
        "_Told.is_news",
        "            if len(self._at) > COPIES_MAX:\n",
        "            if False:\n",
        (f"{ONCE}::test_what_is_remembered_is_bounded",),
    ),
    Mutant(
        "a reader of an entry log steps over a replica in silence",
        "EntryLogReader._step_over",
        "        step_over(logger, BadCopy(address.cluster_id, address.bookie_id, what), reason)\n",
        "",
        (
            SLICES,
            f"{STEPPED}::test_a_bad_copy_that_a_commit_would_have_copied_is_told_of",
            f"{STEPPED}::test_a_bad_copy_of_rows_that_go_into_another_ledger_is_told_of",
        ),
    ),
    Mutant(
        "a handle steps over a copy in silence",
        "EntryReader._step_over",
        "        step_over(logger, BadCopy(self._cluster.cluster_id",
        "        (lambda *_: None)(logger, BadCopy(self._cluster.cluster_id",
        (HANDLE, TAIL),
    ),
    Mutant(
        "planning steps over a journal in silence",
        "OpenBookies.step_over",
        '            step_over(logger, copy, "; ".join(problems))\n',
        "            pass\n",
        (PLANNING,),
    ),
    Mutant(
        "a writer gives a bookie up in silence",
        "Membership.released",
        "        ensemble_log.given_up(logger, self.seen.value.ledger_id, name, step.reason)\n",
        "",
        (STEPS_IN,),
    ),
    Mutant(
        "an ensemble changes in silence",
        "Membership.joined",
        "        ensemble_log.replaced(",
        "        (lambda *_: None)(",
        (STEPS_IN,),
    ),
    Mutant(
        "a writer goes on with fewer copies in silence",
        "Writer._carry_out",
        "                self._members.warn(step)\n",
        "                pass\n",
        (FEWER,),
    ),
    Mutant(
        "a writer that finds no spare says nothing of its copies",
        "LedgerWriter._enlisted",
        "        return [] if event.member is not None else self._gaps()\n",
        "        return []\n",
        (f"{FEWER}[no spare]",),
    ),
    Mutant(
        "entries that a bookie missed before it was replaced are not told of",
        "closed_gap",
        "if first <= last else []",
        "if False else []",
        (f"{SCRIPTS}[ensemble_changes]", REPLACED),
    ),
    Mutant(
        "a bookie that is replaced is always told to lack something",
        "closed_gap",
        "if first <= last else []",
        "if True else []",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "a member is told to lack what it had of a group",
        "PendingAdds.count",
        "        self._reached[index] = last_entry_id\n",
        "        self._reached[index] = first_entry_id\n",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "a member is told to lack what it is not to have",
        "PendingAdds.first_lacking",
        "while index not in self.quorum.write_set(entry_id):",
        "while False:",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "who steps in is told to lack what was written before",
        "PendingAdds.replace_members",
        "            self._reached[index] = self.fragment_without(index) - 1\n",
        "",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "a member is told to lack what was closed before",
        "PendingAdds.__init__",
        "self._reached = [last_add_confirmed]",
        "self._reached = [INVALID_ENTRY_ID]",
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "a write handle hides its faults",
        "Writer.faults",
        "return dict(self.machine.changes.failures)",
        "return {}",
        (
            STEPS_IN,
            f"{LOGGED}::test_a_log_writer_shows_the_faults_of_all_its_ledgers",
            f"{LOGGED}::test_an_advanced_handle_shows_its_faults",
        ),
    ),
    Mutant(
        "a log writer forgets faults as it rolls",
        "LogWriter._switch",
        "            begun.faults_before = self.faults\n",
        "",
        (f"{LOGGED}::test_a_log_writer_shows_the_faults_of_all_its_ledgers",),
    ),
    Mutant(
        "a batch gives a bookie up in silence",
        "RecordWriter._note",
        "            if bookie_id not in self._noted:\n",
        "            if False:\n",
        (BATCH,),
    ),
    Mutant(
        "a batch changes its ensemble in silence",
        "RecordWriter._carried_out",
        "                self._members.joined(replace(",
        "                str(replace(",
        (BATCH,),
    ),
    Mutant(
        "a batch goes on with fewer copies in silence",
        "RecordWriter._carried_out",
        "                self._members.warn(step)\n",
        "                pass\n",
        (BATCH,),
    ),
    Mutant(
        "a recovery logs nothing",
        "Notes._note",
        "number, line, level=level, ledger_id=number)",
        "number, line, level=logging.DEBUG, ledger_id=number)",
        (RECOVERY, NO_HELP),
    ),
    Mutant(
        "a recovery does not warn",
        "Notes.warn",
        "self._note(logging.WARNING, line)",
        "self._note(logging.INFO, line)",
        (NO_HELP,),
    ),
    Mutant(
        "a batch ends in silence",
        "RecordWriter._told",
        "        tell(logger, said, ledger_id, error.args[0], ledger_id=ledger_id)\n",
        "",
        (f"{LOGGED}::test_a_batch_that_is_taken_over_tells_by_whom",),
    ),
    Mutant(
        "a fence on a bookie is not logged",
        "post_check.post_check",
        "        tell(logger, said, ledger_id, term, who, ledger_id=ledger_id, bookie_id=who)\n",
        "",
        ("tests/unit/cluster/test_post_check.py::test_the_next_term_s_marker_is_a_fence",),
    ),
    Mutant(
        "a log is taken over in silence",
        "open_tail",
        "                logger.info(",
        "                logger.debug(",
        (ROLLS,),
    ),
    Mutant(
        "a log rolls in silence",
        "roll_log.rolled",
        "        ledger_id=new,\n",
        "        ledger_id=new,\n        level=logging.DEBUG,\n",
        (ROLLS,),
    ),
    Mutant(
        "a sink rolls in silence",
        "TailWriter.close_ledger",
        '        logger.info(\n            "log %s: closed ledger',
        '        logger.debug(\n            "log %s: closed ledger',
        (SINK,),
    ),
    Mutant(
        "a sink goes on in a ledger in silence",
        "TailWriter._continued",
        '        logger.info("log %s: goes on',
        '        logger.debug("log %s: goes on',
        (HANDED_ON,),
    ),
    Mutant(
        "a bookie that hangs is given up in silence by who asks it",
        "BookieClient.silent",
        "            logger.warning(",
        "            logger.debug(",
        (
            HANGS,
            "tests/unit/cluster/test_bookie_client.py"
            "::test_who_owes_an_answer_is_asked_again_when_it_has_come",
        ),
    ),
    Mutant(
        "who asks how far a tail goes steps over a bookie in silence",
        "ledger_files.readable",
        "bookies.step_over(member, ledger_id, [why])",
        "pass",
        (f"{STEPPED}::test_a_bookie_that_does_not_say_how_far_a_tail_goes_is_told_of_once",),
    ),
    Mutant(
        "who looks with metadata that are not the newest blames bookies for it",
        "how_far.look",
        "        if is_current:\n            note(state.answers)",
        "        note(state.answers)",
        (
            f"{STEPPED}::test_nobody_is_blamed_for_what_a_later_writer_changed_during_a_look"
            "[DataFrame]",
            f"{STEPPED}::test_nobody_is_blamed_for_what_a_later_writer_changed_during_a_look"
            "[handle]",
        ),
    ),
    Mutant(
        "a recovery steps over a copy in silence",
        "FenceAndRead._is_good",
        "            step_over(logger, copy, str(error.args[0]))\n",
        "",
        (f"{STEPPED}::test_a_bad_copy_that_a_recovery_meets_is_told_of",),
    ),
    Mutant(
        "records of decisions have no bookie but in their words",
        "decisions.tell",
        '"bookie_id": bookie_id}',
        '"bookie_id": None}',
        (
            f"{DECISIONS}::test_a_repair_says_who_gets_a_place_and_that_it_has_it",
            f"{DECISIONS}::test_a_scrub_says_what_it_marks",
        ),
    ),
    Mutant(
        "a repair lets the metadata name a bookie in silence",
        "Repair._swap",
        '        self._tell(one.task, f"{target.bookie_id} has it", target.bookie_id)\n',
        "",
        (f"{DECISIONS}::test_a_repair_says_who_gets_a_place_and_that_it_has_it",),
    ),
)
