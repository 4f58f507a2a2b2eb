"""Mutants of terms: whose record an entry is taken from, and what overtook a writer."""

from .mutant import Mutant

UNIT = "tests/unit/protocol/test_ownership.py"
LEFT = "tests/integration/recovery/test_left_over_records.py"
GROUP = "tests/unit/ledger/handles/test_record_replies.py"
LEDGER = "tests/unit/protocol/test_ledger.py"
DOCUMENT = "tests/integration/document/test_unbounded_ledgers.py"
REOPENING = "tests/unit/protocol/test_reopening.py"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
OWNERSHIP = "protocol/ledger/ownership.py"
MACHINE = "protocol/ledger/reopening.py"
STEPS = "protocol/ledger/reopening_steps.py"

TWENTY = f"{LEFT}::test_h43_an_unacknowledged_entry_takes_the_place_of_none_that_is"
SEVENTEEN = f"{LEFT}::test_h43_what_was_found_absent_does_not_come_back"
FENCED = f"{LEFT}::test_rb_34_fenced_writers_that_still_have_their_disks_are_read_by_nobody"
ALONE = f"{LEFT}::test_rb_34_each_bookie_alone_gives_the_owners_entries"

MUTANTS = (
    Mutant(
        "a record of any term counts",
        OWNERSHIP,
        "    if last < first:\n",
        "    if first >= 0:\n",
        (TWENTY, SEVENTEEN, f"{FENCED}[False]", f"{FENCED}[True]", ALONE),
    ),
    Mutant(
        "a record of any term up to the owner's counts",
        OWNERSHIP,
        "range(next(named, FIRST_TERM), ",
        "range(FIRST_TERM, ",
        (
            f"{UNIT}::test_an_older_term_counts_nowhere_behind_the_recovered_end_in_any_later_fragment",
        ),
    ),
    Mutant(
        "in the last fragment a record of any term counts",
        OWNERSHIP,
        "        return record.term == (end.owner or end.term)\n",
        "        return True\n",
        (
            *(TWENTY, SEVENTEEN, f"{FENCED}[True]"),
            f"{GROUP}::test_a_record_of_a_term_that_is_not_open_is_none",
        ),
    ),
    Mutant(
        "a record of any term from the owner's on counts",
        OWNERSHIP,
        "fragments[at].term + 1)\n",
        "2**31)\n",
        (f"{UNIT}::test_an_entry_is_the_last_writers_that_opened_at_it_or_in_front",),
    ),
    Mutant(
        "the last token in front does not tell where a recovery moved what",
        OWNERSHIP,
        "for i in range(at, -1, -1) if fragments[i].token)",
        "for i in range(at, -1, -1))",
        (f"{UNIT}::test_what_a_recovery_moved_is_of_a_writer_in_front",),
    ),
    Mutant(
        "a record counts by its first entry",
        OWNERSHIP,
        " and record.term in owners(fragments, last)\n",
        "\n",
        (f"{UNIT}::test_a_record_counts_only_with_all_its_entries",),
    ),
    Mutant(
        "a confirmation counts by its term",
        OWNERSHIP,
        "    if last < first:\n        return True\n",
        "",
        (f"{UNIT}::test_a_confirmation_counts_for_ever",),
    ),
    Mutant(
        "a recovery keeps what older terms left over",
        "ledger/recovery/journal_tail.py",
        "    found = [stored for stored in found if counts(fragments, stored.record)]\n",
        "",
        (TWENTY, SEVENTEEN, f"{FENCED}[True]"),
    ),
    Mutant(
        "a recovery takes the length from what an older term left over",
        "ledger/recovery/journal_tail.py",
        "        if is_in_front and counts(fragments, record):\n",
        "        if is_in_front:\n",
        (f"{LEFT}::test_a_search_for_the_last_confirmed_record_passes_what_is_left_over",),
    ),
    Mutant(
        "a bookie that shows an older term's record is not asked for another",
        "ledger/journals/member_journals.py",
        "if not any(found.page.counting(ledger, entry_id) for found in pages):",
        "if not any(found.page.record_of(entry_id) for found in pages):",
        (f"{LEFT}::test_a_reader_that_knows_the_older_journal_looks_for_the_owners",),
    ),
    Mutant(
        "a plan takes the record that is met last",
        "log/reading/ledger_files.py",
        "    if is_one and counts(ledger.fragments, record):\n",
        "    if is_one:\n",
        (f"{LEFT}::test_a_plan_takes_the_owners_record_wherever_it_is_met",),
    ),
    Mutant(
        "an audit counts what an older term left over",
        "admin/auditing/journals_shown.py",
        "reader.is_by_its_writer(one) and self._counts(one) for",
        "reader.is_by_its_writer(one) for",
        (f"{LEFT}::test_an_audit_counts_no_record_that_is_left_over",),
    ),
    # --- what overtook a writer -------------------------------------------------------------------
    Mutant(
        "a permission that is gone is a later term",
        "cluster/post_check.py",
        "        if _is_there(address, fence):\n",
        "        if True:\n",
        (f"{DOCUMENT}::test_a_bookie_that_lost_its_permission_names_no_term",),
    ),
    Mutant(
        "a writer is overtaken by its own term",
        "errors.py",
        "        if 1 <= term < newer_term:\n",
        "        if 1 <= term <= newer_term:\n",
        (f"{LEDGER}::test_only_a_later_term_has_overtaken_anybody",),
    ),
    Mutant(
        "an error in other words forgets what overtook a writer",
        "errors.py",
        "        vars(told).update(vars(self), hint=hint)\n",
        "        told.hint = hint\n",
        (f"{DOCUMENT}::test_a_writer_disengages_and_says_what_overtook_it",),
    ),
    # --- going on in a later term -----------------------------------------------------------------
    Mutant(
        "what a recovery moved is of its own term",
        STEPS,
        "            owner = writers.owner or writers.term\n",
        "            owner = self.term\n",
        (f"{REOPENING}::test_what_was_moved_stays_its_writers_also_when_it_replaces_his_fragment",),
    ),
    Mutant(
        "what a closing recovery moved may be of any term in front",
        "protocol/ledger/metadata.py",
        "        owner = self.last_fragment.owner  # that it keeps, where it says so\n",
        "        owner = 0\n",
        (f"{REOPENING}::test_closing_it_for_good_keeps_the_owner_of_what_was_moved",),
    ),
    Mutant(
        "a ledger is set open by whoever comes",
        STEPS,
        "        if (ledger.state, ledger.term, ledger.token) != owner:\n",
        "        if not owner:\n",
        (f"{REOPENING}::test_only_the_recovery_that_took_it_over_sets_it_open",),
    ),
    Mutant(
        "a ledger goes on in front of what is acknowledged",
        STEPS,
        "        if self.last_entry_id < ledger.last_confirmed:\n",
        "        if self.last_entry_id < -1:\n",
        (f"{REOPENING}::test_nothing_that_is_acknowledged_is_cut_off",),
    ),
    Mutant(
        "an answer that was lost is another's change",
        STEPS,
        "        if (ledger.state, ledger.token) == (LedgerState.OPEN, self.writer_token):\n"
        "            return ledger\n",
        "",
        (f"{REOPENING}::test_an_answer_that_was_lost_is_read_back",),
    ),
    Mutant(
        "a ledger that goes on is laid down",
        "protocol/ledger/metadata.py",
        "        if self.last_fragment.owner:\n",
        "        if not self.fragments:\n",
        (f"{REOPENING}::test_it_is_not_laid_down",),
    ),
    Mutant(
        "Qa members are enough for a new fragment",
        MACHINE,
        "        if self.taken != every:\n",
        "        if len(self.taken) < self.ledger.quorum.ack_quorum_size:\n",
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "nobody is looked at again before the metadata name him",
        MACHINE,
        "        if self.shown != every:\n",
        "        if not every:\n",
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "who did not surely take it may be asked again",
        MACHINE,
        "            names = self.asked | {member.bookie_id for member in self.plan.ensemble}\n",
        "            names = frozenset(member.bookie_id for member in self.plan.ensemble)\n",
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "markers are pruned before the ledger is seen to be open",
        MACHINE,
        "        return self, (*instructions, self.plan)\n",
        "        return self, (*instructions, *self._prune(self.ledger)[1], self.plan)\n",
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
)
