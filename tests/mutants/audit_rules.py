"""Mutants of the audit: what is missing, what is unknown, and what is believed of a look."""

from .change import Replace
from .mutant import Mutant

AUDIT = "tests/integration/upkeep/test_audit.py"
SWEEP = "tests/unit/admin/test_sweep.py"
LOOKS = "tests/integration/upkeep/test_audit_looks.py"
HANGS = "tests/integration/upkeep/test_audit_with_hangs.py"
BUGS = "tests/integration/upkeep/test_bugs_of_repairs.py"
SUMS = "tests/unit/admin/test_audit_arithmetic.py"
SILENT = f"{AUDIT}::test_what_does_not_answer_is_unknown_and_never_missing"
COPIES = f"{SUMS}::test_each_entry_has_as_many_copies_as_counting_says"
UNNAMED = f"{AUDIT}::test_a_bookie_without_its_record_is_asked_for_the_files_that_others_name"
VERDICTS = "tests/unit/admin/test_verdicts.py"
METRICS = "tests/unit/cli/test_metrics.py"
STATUS = "tests/unit/cli/test_audit.py::test_what_is_missing_is_a_row_and_status_fails"

MUTANTS = (
    Mutant(
        "a bookie that does not answer counts as one that has nothing",
        "_is_unknown",
        Replace("not answer.is_gone", "False"),
        (SILENT, COPIES),
    ),
    Mutant(
        "an entry is counted over the whole ensemble",
        "_of_piece",
        Replace("len(write_set) - len(without)", "quorum.ensemble_size - len(lacking)"),
        (COPIES,),
    ),
    Mutant(
        "what was found is believed of a ledger that has changed since",
        "Audit._look",
        Replace(
            "is_told and has_changed(self._cluster, ledgers[ledger.ledger_id])",
            "not (found or waiting or ledgers)",
        ),
        (f"{LOOKS}::test_what_was_found_is_not_believed_of_a_ledger_that_changed_meanwhile",),
    ),
    Mutant(
        "a ledger that is gone has not changed",
        "sweep.has_changed",
        Replace("now is None or now.value != ledger", "now is not None and now.value != ledger"),
        (f"{SWEEP}::test_a_ledger_has_changed_if_its_record_is_another_one_or_gone",),
    ),
    Mutant(
        "a ledger that changes each time is looked at for ever",
        "sweep.looked_at",
        Replace("again = look(again) if again else again", "again = look(ledger_ids)"),
        (f"{SWEEP}::test_only_what_changed_is_looked_at_again_a_few_times",),
    ),
    Mutant(
        "a batch is told as done before it is",
        "sweep.batches",
        Replace("progress(begin + len(batch), count)", "progress(count, count)"),
        (f"{SWEEP}::test_progress_is_told_after_each_batch",),
    ),
    Mutant(
        "files that no record of a bookie names are not looked for",
        "Audit._look_for_unnamed_files",
        Replace("not lacking", "lacking or not lacking"),
        (UNNAMED,),
    ),
    Mutant(
        "an open ledger misses no bookie of which nothing is known",
        "Audit._away",
        Replace("isinstance(answer, Absent)", "answer is None"),
        (
            f"{BUGS}::test_rb_25_an_open_ledger_that_lost_a_bookie_with_nothing_of_it_is_recovered_at_once",
        ),
    ),
    Mutant(
        "a member without its writer's marker is not waited for",
        "Audit._away",
        Replace("answer.is_unmarked", "answer.is_whole"),
        (f"{AUDIT}::test_a_ledger_that_waits_for_recovery_is_named_with_the_reason",),
    ),
    Mutant(
        "a healthy bookie tells of each of its ledgers",
        "Look._looked",
        Replace("not holding.is_whole", "holding"),
        (f"{LOOKS}::test_a_healthy_bookie_says_nothing_of_its_ledgers",),
    ),
    Mutant(
        "a file of any length will do",
        "missing_file",
        Replace("size == log.length_bytes", "size is not None"),
        (f"{AUDIT}::test_entry_logs_that_are_gone_or_short_are_named",),
    ),
    Mutant(
        "an audit of some ledgers is noted as one of all",
        "audit.audit",
        Replace("if plan.is_of_all:\n    ...", "if plan:\n    ..."),
        (f"{LOOKS}::test_only_what_was_named_is_looked_at_and_no_report_is_noted",),
    ),
    Mutant(
        "status says that the last audit was well, whatever it found",
        "_last_audit",
        Replace("Level.FAIL if is_loss else Level.WARN if is_to_be_told else Level.OK", "Level.OK"),
        (STATUS,),
    ),
    Mutant(
        "before the first audit metrics say that nothing is missing",
        "_of_last_runs",
        Replace(
            "reports = {verb: found.value for verb, found in seen.items() if found is not None}",
            "reports = {verb: found.value for verb, found in seen.items() if found is "
            "not None}\n"
            "reports = {VERB: ReportRecord('audit', 0, 0, 0, "
            "{'NUM_UNDER_REPLICATED_LEDGERS': 0})} | reports",
        ),
        (f"{METRICS}::test_what_ledgers_lack_is_told_by_the_last_audit_and_by_none_before",),
    ),
    Mutant(
        "a deleted ledger has a record, and its log need not be named",
        "Audit._look",
        Replace("audited.keys", "ledgers.keys"),
        (f"{AUDIT}::test_a_log_that_lists_a_ledger_without_a_record_is_named",),
    ),
    Mutant(
        "a view waits for a silent bookie as long as an audit",
        "gaps_of",
        Replace("partial(in_threads, tell_seconds=SHOWN_TELL_SECONDS)", "in_threads"),
        (f"{HANGS}::test_a_view_waits_less_long_than_an_audit",),
    ),
    Mutant(
        "all is well though something is left",
        "Report.verdict",
        Replace("if self.left:\n    ...", "if self.left and self.summary:\n    ..."),
        (f"{VERDICTS}::test_all_is_well_if_nothing_is_left",),
    ),
    Mutant(
        "what lies beside journals is not counted",
        "AuditFindings._counters",
        Replace("len(self.problems)", "0"),
        (f"{VERDICTS}::test_what_an_audit_finds_is_in_its_words",),
    ),
)
