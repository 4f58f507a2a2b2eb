"""Mutants of what is logged."""

from .change import Replace
from .mutant import Mutant

LOGGED = "tests/integration/faults/test_what_is_logged.py"
STEPPED = "tests/integration/faults/test_what_is_stepped_over.py"
ONCE = "tests/unit/cluster/test_stepping_over.py"
STEPS_IN = (
    f"{LOGGED}::test_a_bookie_that_fails_under_a_handle_is_told_of_and_so_is_who_takes_its_place"
)
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
BATCH = f"{LOGGED}::test_a_batch_tells_who_steps_in_or_that_there_are_fewer_copies"
RECOVERY = f"{LOGGED}::test_a_takeover_a_recovery_and_the_fence_of_the_writer_are_told"
NO_HELP = f"{LOGGED}::test_a_recovery_warns_of_bookies_that_do_not_help_and_of_what_is_in_doubt"
ROLLS = f"{LOGGED}::test_rolls_are_told_with_their_reason"
SINK = f"{LOGGED}::test_a_sink_tells_of_its_rolls"
HANDED_ON = f"{LOGGED}::test_a_sink_tells_who_goes_on_in_a_ledger"
HANDLE = f"{STEPPED}::test_a_handle_tells_of_a_copy_once"
TAIL = f"{STEPPED}::test_looks_at_an_open_tail_tell_of_a_bookie_once"
HANGS = f"{LOGGED}::test_a_bookie_that_hangs_is_told_of_once_by_who_looks_for_one"
DECISIONS = "tests/integration/upkeep/test_decisions_are_logged.py"

MUTANTS = (
    Mutant(
        "a copy is told of again if something else is wrong with it",
        "log_messages.step_over",
        Replace(
            "environment.the_one(_Told).is_news(copy)",
            "environment.the_one(_Told).is_news(copy._replace(what=copy.what + reason))",
        ),
        (f"{ONCE}::test_a_copy_is_told_of_once_whatever_is_wrong_with_it_then",),
    ),
    Mutant(
        "a handle steps over a copy in silence",
        "EntryReader._step_over",
        Replace(
            "step_over(logger, BadCopy(self._cluster.cluster_id, member.bookie_id, "
            "ledger), reason)",
            "(lambda *_: None)(logger, BadCopy(self._cluster.cluster_id, "
            "member.bookie_id, ledger), reason)",
        ),
        (HANDLE, TAIL),
    ),
    Mutant(
        "an ensemble changes in silence",
        "Membership.joined",
        Replace("log_messages.replaced", "lambda *_: None"),
        (STEPS_IN,),
    ),
    Mutant(
        "a member is told to lack what it had of a group",
        "PendingAdds.count",
        Replace("self._reached[index] = last_entry_id", "self._reached[index] = first_entry_id"),
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "a member is told to lack what was closed before",
        "PendingAdds.__init__",
        Replace("[last_add_confirmed]", "[INVALID_ENTRY_ID]"),
        (f"{SCRIPTS}[ensemble_changes]",),
    ),
    Mutant(
        "a write handle hides its faults",
        "WriterRunner.faults",
        Replace("dict(self.machine.changes.failures)", "{}"),
        (
            STEPS_IN,
            f"{LOGGED}::test_a_log_writer_shows_the_faults_of_all_its_ledgers",
            f"{LOGGED}::test_an_advanced_handle_shows_its_faults",
        ),
    ),
    Mutant(
        "a batch changes its ensemble in silence",
        "RecordWriter._carried_out",
        Replace("self._members.joined", "str"),
        (BATCH,),
    ),
    Mutant(
        "a recovery logs nothing",
        "RecoveryNotes._note",
        Replace("level", "logging.DEBUG"),
        (RECOVERY, NO_HELP),
    ),
    Mutant(
        "a recovery does not warn",
        "RecoveryNotes.warn",
        Replace("logging.WARNING", "logging.INFO"),
        (NO_HELP,),
    ),
    Mutant(
        "a log is taken over in silence",
        "LogTail.open",
        Replace("logger.info", "logger.debug"),
        (ROLLS,),
    ),
    Mutant(
        "a log rolls in silence",
        "rolling.rolled",
        Replace(
            "tell(logger, 'log %s: rolled from ledger %d to %d at offset %d: %s', "
            "*(log_name, old, new, end_offset, reason), ledger_id=new)",
            "tell(logger, 'log %s: rolled from ledger %d to %d at offset %d: %s', "
            "*(log_name, old, new, end_offset, reason), ledger_id=new, "
            "level=logging.DEBUG)",
        ),
        (ROLLS,),
    ),
    Mutant(
        "a sink rolls in silence",
        "TailWriter.close_ledger",
        Replace(
            "logger.info('log %s: closed ledger %d, and the next micro-batch begins another "
            "ledger: %s', name, ledger_id, reason)",
            "logger.debug('log %s: closed ledger %d, and the next micro-batch begins another "
            "ledger: %s', name, ledger_id, reason)",
        ),
        (SINK,),
    ),
    Mutant(
        "a sink goes on in a ledger in silence",
        "TailWriter._open",
        Replace("logger.info", "logger.debug"),
        (HANDED_ON,),
    ),
    Mutant(
        "a bookie that hangs is given up in silence by who asks it",
        "BookieClient.silent",
        Replace("logger.warning", "logger.debug"),
        (
            HANGS,
            "tests/unit/cluster/test_bookie_client.py"
            "::test_who_owes_an_answer_is_asked_again_when_it_has_come",
        ),
    ),
    Mutant(
        "records of decisions have no bookie but in their words",
        "log_messages.tell",
        Replace(
            "{'ledger_id': ledger_id, 'entry_id': entry_id, 'bookie_id': bookie_id}",
            "{'ledger_id': ledger_id, 'entry_id': entry_id, 'bookie_id': None}",
        ),
        (
            f"{DECISIONS}::test_a_repair_says_who_gets_a_place_and_that_it_has_it",
            f"{DECISIONS}::test_a_scrub_says_what_it_marks",
        ),
    ),
)
