"""Mutants of the audit: what is missing, what is unknown, and what is believed of a look."""

from .mutant import Mutant

AUDIT = "tests/integration/upkeep/test_audit.py"
LOOKS = "tests/integration/upkeep/test_audit_looks.py"
HANGS = "tests/integration/upkeep/test_audit_with_hangs.py"
BUGS = "tests/integration/upkeep/test_bugs_of_repairs.py"
SUMS = "tests/unit/admin/test_audit_arithmetic.py"
SILENT = f"{AUDIT}::test_what_does_not_answer_is_unknown_and_never_missing"
NOTED = f"{LOOKS}::test_the_last_audit_of_all_is_noted_and_a_dry_run_is_none"
COPIES = f"{SUMS}::test_each_entry_has_as_many_copies_as_counting_says"
UNNAMED = f"{AUDIT}::test_a_bookie_without_its_record_is_asked_for_the_files_that_others_name"
DROPPED = f"{LOOKS}::test_what_a_log_has_let_go_of_is_not_missing"
VERDICTS = "tests/unit/admin/test_verdicts.py"
METRICS = "tests/unit/cli/test_metrics.py"
STATUS = "tests/unit/cli/test_audit.py::test_what_is_missing_is_a_row_and_status_fails"

MUTANTS = (
    Mutant(
        "a bookie that does not answer counts as one that has nothing",
        "_is_unknown",
        "        return not answer.is_gone\n",
        "        return False\n",
        (SILENT, COPIES),
    ),
    Mutant(
        "what is unknown is no copy that there may be",
        "classify",
        "    possible = held + unknown\n",
        "    possible = held\n",
        (SILENT, f"{SUMS}::test_what_is_unknown_makes_nothing_worse_than_what_is_surely_missing"),
    ),
    Mutant(
        "an entry is counted over the whole ensemble",
        "_of_piece",
        "held=len(write_set) - len(without), unknown=unknown",
        "held=quorum.ensemble_size - len(lacking), unknown=unknown",
        (COPIES,),
    ),
    Mutant(
        "a stripe without an entry in the range counts too",
        "_of_piece",
        "if not without or (is_inline and not has_entry_of(piece, stripe, quorum)):",
        "if not without:",
        (COPIES,),
    ),
    Mutant(
        "a file counts on a bookie that has nothing at all",
        "_gaps_of_files",
        "len({*gone, *by_index})",
        "len({*by_index})",
        (f"{SUMS}::test_a_file_that_another_lacks_as_a_whole_counts_for_neither",),
    ),
    Mutant(
        "a bookie that is silent and was declared lost may still have everything",
        "Audit._absent",
        '            return Absent(f"{who} was declared lost", is_gone=True)\n',
        '            return Absent(f"{who} was declared lost", is_gone=False)\n',
        (f"{AUDIT}::test_a_bookie_that_was_wiped_or_declared_lost_surely_has_nothing",),
    ),
    Mutant(
        "what was found is believed of a ledger that has changed since",
        "Audit._look",
        "if is_told and self._has_changed(ledgers[ledger.ledger_id]):",
        "if not (found or waiting or ledgers):",
        (f"{LOOKS}::test_what_was_found_is_not_believed_of_a_ledger_that_changed_meanwhile",),
    ),
    Mutant(
        "a journal that went with the writer before is damage",
        "Audit._look",
        "found or waiting or self._is_strange(ledger, seen)",
        "found or waiting",
        (f"{LOOKS}::test_a_journal_that_a_takeover_removes_meanwhile_is_no_damage",),
    ),
    Mutant(
        "a bookie that was silent is waited for in every step",
        "Audit._ask",
        "if member.bookie_id not in self.findings.silent and (step.shards",
        "if (step.shards",
        (f"{LOOKS}::test_a_bookie_that_was_silent_is_not_waited_for_in_every_step",),
    ),
    Mutant(
        "files that no record of a bookie names are not looked for",
        "Audit._look_for_unnamed_files",
        "        if not lacking:\n            return\n",
        "        if lacking or not lacking:\n            return\n",
        (UNNAMED,),
    ),
    Mutant(
        "what a log has let go of is missing",
        "Audit._look",
        "if ledger.state is not LedgerState.DELETING and ledger_id not in self._dropped",
        "if ledger.state is not LedgerState.DELETING",
        (DROPPED,),
    ),
    Mutant(
        "an open ledger misses no bookie of which nothing is known",
        "Audit._away",
        "            if isinstance(answer, Absent):\n                yield member",
        "            if answer is None:\n                yield member",
        (
            f"{BUGS}::test_rb_25_an_open_ledger_that_lost_a_bookie_with_nothing_of_it_is_recovered_at_once",
        ),
    ),
    Mutant(
        "a member without its writer's marker is not waited for",
        "Audit._away",
        "            elif answer is not None and answer.is_unmarked:\n",
        "            elif answer is not None and answer.is_whole:\n",
        (f"{AUDIT}::test_a_ledger_that_waits_for_recovery_is_named_with_the_reason",),
    ),
    Mutant(
        "a healthy bookie tells of each of its ledgers",
        "Look._looked",
        "            if not holding.is_whole:\n",
        "            if holding:\n",
        (f"{LOOKS}::test_a_healthy_bookie_says_nothing_of_its_ledgers",),
    ),
    Mutant(
        "entries that are others' are missing",
        "look.lacking",
        "own_part(entries, role.index, ledger.quorum) if shown.is_inline else entries",
        "entries",
        (f"{LOOKS}::test_a_healthy_bookie_says_nothing_of_its_ledgers",),
    ),
    Mutant(
        "a file of any length will do",
        "missing_file",
        "    if size == log.length_bytes:\n",
        "    if size is not None:\n",
        (f"{AUDIT}::test_entry_logs_that_are_gone_or_short_are_named",),
    ),
    Mutant(
        "a recovery's journal holds all between its first and its last record",
        "_Journal.span",
        "        if not all(reader.is_by_its_writer(one) and self._counts(one)",
        "        if not all(self._counts(one)",
        (f"{LOOKS}::test_a_journal_of_copies_is_read_record_by_record",),
    ),
    Mutant(
        "what lies behind damage in a journal is not seen",
        "_Journal.heads",
        "        yield from behind\n",
        "",
        (f"{AUDIT}::test_a_damaged_beginning_hides_only_what_is_damaged",),
    ),
    Mutant(
        "without a password nothing is seen of a ledger that has one",
        "for_showing",
        "    return TrustingDigester(spec) if spec.digest_type == MAC else Digester(spec)\n",
        "    return Digester(spec)\n",
        (f"{AUDIT}::test_a_deleted_journal_is_seen_also_where_a_password_is_needed",),
    ),
    Mutant(
        "the entries of a fragment that is still written are known",
        "known_fragments",
        "if is_closed and ledger.last_entry_id != -1 else []",
        "if ledger.last_entry_id != -1 else []",
        (f"{AUDIT}::test_a_ledger_that_waits_for_recovery_is_named_with_the_reason",),
    ),
    Mutant(
        "an audit of some ledgers is noted as one of all",
        "run.audit",
        "    if plan.is_of_all:\n",
        "    if plan:\n",
        (f"{LOOKS}::test_only_what_was_named_is_looked_at_and_no_report_is_noted",),
    ),
    Mutant(
        "a dry run looks all the same",
        "run.audit",
        "    if dry_run:\n        return planned(VERB, plan)\n",
        "",
        (NOTED,),
    ),
    Mutant(
        "with something left to do the exit status is 0",
        "Report.exit_status",
        "        return 1 if self.left else 0\n",
        "        return 0\n",
        (STATUS,),
    ),
    Mutant(
        "status says that the last audit was well, whatever it found",
        "_last_audit",
        "        Level.FAIL if is_loss else Level.WARN if is_to_be_told else Level.OK,\n",
        "        Level.OK,\n",
        (STATUS,),
    ),
    Mutant(
        "before the first audit metrics say that nothing is missing",
        "_of_last_runs",
        "    for verb, report in reports.items():\n",
        '    reports = {VERB: ReportRecord("audit", 0, 0, 0, {"NUM_UNDER_REPLICATED_LEDGERS": 0})}'
        " | reports\n    for verb, report in reports.items():\n",
        (f"{METRICS}::test_what_ledgers_lack_is_told_by_the_last_audit_and_by_none_before",),
    ),
    Mutant(
        "a bookie that was declared lost is only unavailable",
        "state_of",
        '    if is_lost:\n        return "lost"\n',
        "",
        (f"{METRICS}::test_bookies_are_told_by_state_and_space",),
    ),
    Mutant(
        "a deleted ledger has a record, and its log need not be named",
        "Audit._look",
        "        self.seen |= audited.keys()\n",
        "        self.seen |= ledgers.keys()\n",
        (f"{AUDIT}::test_a_log_that_lists_a_ledger_without_a_record_is_named",),
    ),
    Mutant(
        "a view waits for a silent bookie as long as an audit",
        "gaps_of",
        "    run = partial(in_threads, tell_seconds=SHOWN_TELL_SECONDS)\n",
        "    run = in_threads\n",
        (f"{HANGS}::test_a_view_waits_less_long_than_an_audit",),
    ),
    Mutant(
        "all is well though something is left",
        "Report.verdict",
        "        if self.left:\n            return",
        "        if self.left and self.summary:\n            return",
        (f"{VERDICTS}::test_all_is_well_if_nothing_is_left",),
    ),
    Mutant(
        "what lies beside journals is not counted",
        "Findings._counters",
        "            UNSOUND: len(self.problems),\n",
        "",
        (f"{VERDICTS}::test_what_an_audit_finds_is_in_its_words",),
    ),
)
