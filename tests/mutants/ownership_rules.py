"""Mutants of terms: whose record an entry is taken from, and what overtook a writer."""

from .change import Drop, Replace
from .mutant import Mutant

UNIT = "tests/unit/protocol/test_ownership.py"
LEFT = "tests/integration/recovery/test_left_over_records.py"
GROUP = "tests/unit/ledger/handles/test_record_replies.py"
DOCUMENT = "tests/integration/document/test_unbounded_ledgers.py"
REOPENING = "tests/unit/protocol/test_reopening.py"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
TAKING = "tests/integration/recovery/test_taking_over.py"
EACH = f"{TAKING}::test_each_goes_on_behind_the_one_before"
COMMITTED = f"{TAKING}::test_what_was_committed_before_is_said_by_all_later_records"
UNJOINED = f"{TAKING}::test_who_may_have_taken_it_and_is_no_member_is_not_asked_by_the_writer"

TWENTY = f"{LEFT}::test_h43_an_unacknowledged_entry_takes_the_place_of_none_that_is"
SEVENTEEN = f"{LEFT}::test_h43_what_was_found_absent_does_not_come_back"
FENCED = f"{LEFT}::test_rb_34_fenced_writers_that_still_have_their_disks_are_read_by_nobody"
UNPROMISED = f"{LEFT}::test_h43_a_reader_forgets_what_it_was_shown_without_a_promise"
FOLDERS = (
    "tests/integration/recovery/test_left_over_folders.py::"
    "test_rb_34_what_is_left_over_is_read_by_nobody_whatever_befalls_bookies"
)
SIX_STEPS = (
    "tests/integration/document/test_unbounded_ledgers_document.py::"
    "test_fencing_only_differs_what_is_left_stays_and_is_read_by_nobody"
)
ALONE = f"{LEFT}::test_rb_34_each_bookie_alone_gives_the_owners_entries"

MUTANTS = (
    Mutant(
        "a record of any term counts",
        "counts",
        Replace("last < first", "first >= 0"),
        (
            *(TWENTY, SEVENTEEN, f"{FENCED}[False]", f"{FENCED}[True]", ALONE),
            *(f"{FOLDERS}[9-pruned]", f"{FOLDERS}[9-not pruned]"),
        ),
    ),
    Mutant(
        "a reader goes on with what an older term has left",
        "_GroupRows.show",
        Replace("is_here and counts_in(ledger, self.record)", "is_here"),
        (UNPROMISED,),
    ),
    Mutant(
        "a bookie shows an entry of whatever term",
        "JournalPage.counting",
        Replace("stored if stored and counts_in(ledger, stored.record) else None", "stored"),
        (UNPROMISED, SIX_STEPS),
    ),
    Mutant(
        "a record of any term up to the owner's counts",
        "owners",
        Replace("next(named, FIRST_TERM)", "FIRST_TERM"),
        (
            f"{UNIT}::test_an_older_term_counts_nowhere_behind_the_recovered_end_in_any_later_fragment",
        ),
    ),
    Mutant(
        "in the last fragment a record of any term counts",
        "counts",
        Replace("record.term == (end.owner or end.term)", "True"),
        (
            *(TWENTY, SEVENTEEN, f"{FENCED}[True]"),
            f"{GROUP}::test_a_record_of_a_term_that_is_not_open_is_none",
        ),
    ),
    Mutant(
        "a record of any term from the owner's on counts",
        "owners",
        Replace("fragments[at].term + 1", "2 ** 31"),
        (f"{UNIT}::test_an_entry_is_the_last_writers_that_opened_at_it_or_in_front",),
    ),
    Mutant(
        "the last token in front does not tell where a recovery moved what",
        "owners",
        Replace(
            "(fragments[i].term for i in range(at, -1, -1) if fragments[i].token)",
            "(fragments[i].term for i in range(at, -1, -1))",
        ),
        (f"{UNIT}::test_what_a_recovery_moved_is_of_a_writer_in_front",),
    ),
    Mutant(
        "a recovery keeps what older terms left over",
        "read_tail",
        Drop("found = [stored for stored in found if counts(fragments, stored.record)]"),
        (TWENTY, SEVENTEEN, f"{FENCED}[True]"),
    ),
    Mutant(
        "a recovery takes the length from what an older term left over",
        "newest_record",
        Replace("is_in_front and counts(fragments, record)", "is_in_front"),
        (f"{LEFT}::test_a_search_for_the_last_confirmed_record_passes_what_is_left_over",),
    ),
    Mutant(
        "a look-up begins at what an older term left over",
        "newest_record",
        Replace(
            "found.record.last_entry_id <= entry_id and counts(fragments, found.record)",
            "found.record.last_entry_id <= entry_id",
        ),
        (f"{LEFT}::test_a_search_for_the_last_confirmed_record_passes_what_is_left_over",),
    ),
    Mutant(
        "a plan takes the record that is met last",
        "is_owned",
        Replace("is_one and counts_in(ledger, record)", "is_one"),
        (f"{LEFT}::test_a_plan_takes_the_owners_record_wherever_it_is_met",),
    ),
    Mutant(
        "an audit counts what an older term left over",
        "_Journal.span",
        Replace(
            "reader.is_by_its_writer(one) and counts_in(ledger, one)",
            "reader.is_by_its_writer(one)",
        ),
        (f"{LEFT}::test_an_audit_counts_no_record_that_is_left_over",),
    ),
    # --- what overtook a writer -------------------------------------------------------------------
    Mutant(
        "an error in other words forgets what overtook a writer",
        "BookKeeperError.reworded",
        Replace("vars(told).update(vars(self), hint=hint)", "told.hint = hint"),
        (f"{DOCUMENT}::test_a_writer_disengages_and_says_what_overtook_it",),
    ),
    # --- going on in a later term -----------------------------------------------------------------
    Mutant(
        "what a recovery moved is of its own term",
        "Open._kept",
        Replace("writers.owner", "self.term"),
        (f"{REOPENING}::test_what_was_moved_stays_its_writers_also_when_it_replaces_his_fragment",),
    ),
    Mutant(
        "what a closing recovery moved may be of any term in front",
        "LedgerMetadata.with_recovered_ensemble",
        Replace("self.last_fragment.owner", "0"),
        (f"{REOPENING}::test_closing_it_for_good_keeps_the_owner_of_what_was_moved",),
    ),
    Mutant(
        "a ledger is set open by whoever comes",
        "Open.applied_to",
        Replace("(ledger.state, ledger.term, ledger.token) != owner", "not owner"),
        (f"{REOPENING}::test_only_the_recovery_that_took_it_over_sets_it_open",),
    ),
    Mutant(
        "a ledger goes on in front of what is acknowledged",
        "Open.applied_to",
        Replace("ledger.last_confirmed", "-1"),
        (f"{REOPENING}::test_nothing_that_is_acknowledged_is_cut_off",),
    ),
    Mutant(
        "Qa members are enough for a new fragment",
        "Reopening._going_on",
        Replace("self.taken != every", "len(self.taken) < self.ledger.quorum.ack_quorum_size"),
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "nobody is looked at again before the metadata name him",
        "Reopening._going_on",
        Replace("self.shown != every", "not every"),
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "who did not surely take it may be asked again",
        "Reopening._unwanted",
        Replace("frozenset(dict(self.problems)).union", "frozenset"),
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "markers are pruned before the ledger is seen to be open",
        "Reopening._going_on",
        Replace(
            "(*instructions, self.plan)", "(*instructions, *self._prune(self.ledger)[1], self.plan)"
        ),
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "a ledger is set open that says nothing of later terms",
        "Open.applied_to",
        Replace("ledger.goes_on", "ledger.fragments"),
        (f"{REOPENING}::test_one_that_does_not_say_so_from_the_start_is_not_set_open_again",),
    ),
    Mutant(
        "one who never may go on fences the writer",
        "recover.take_over",
        Replace("ledger.goes_on", "ledger.fragments"),
        (f"{TAKING}::test_one_that_says_nothing_of_later_terms_has_one_writer",),
    ),
    Mutant(
        "the fence is pruned before the permission",
        "recoverer.prune",
        (
            Replace(
                "place.forget(*plan.writer, with_journal=plan.is_empty)",
                "place.unfence(plan.writer[0])",
            ),
            Replace(
                "place.unfence(plan.writer[0])",
                "place.forget(*plan.writer, with_journal=plan.is_empty)",
                at=1,
            ),
        ),
        (f"{TAKING}::test_the_permission_goes_before_the_fence",),
    ),
    Mutant(
        "who lost what it took at once gets a place",
        "recoverer._missing",
        Replace("f'bookie {address.bookie_id} lacks {missing}' if missing else ''", "''"),
        (f"{TAKING}::test_who_loses_at_once_what_it_took_gets_no_place",),
    ),
    Mutant(
        "a writer begins at the first entry of the ledger",
        "WriteHandle.__init__",
        Replace("standing.last_entry_id", "-1"),
        (EACH,),
    ),
    Mutant(
        "a writer forgets the length of what was there",
        "WriteHandle.__init__",
        Replace("standing.length_bytes", "0"),
        (EACH,),
    ),
    Mutant(
        "records forget what was committed in earlier terms",
        "RecordEncoder.encode",
        Replace("self._transactions", "{}"),
        (COMMITTED,),
    ),
    Mutant(
        "who may have been asked before is asked by the writer",
        "EnsembleChanges.__init__",
        Replace("self._unjoined = self._excluded", "self._unjoined = frozenset()"),
        (UNJOINED,),
    ),
    Mutant(
        "nobody is told who was asked",
        "Reopening.unjoined",
        Replace("self.asked - {member.bookie_id for member in self.plan.ensemble}", "frozenset()"),
        (
            UNJOINED,
            f"{SCRIPTS}[recovery_reopening]",
        ),
    ),
    Mutant(
        "a writer whose permission is pruned does not learn of the term",
        "Membership.explained",
        Replace("not is_asked or isinstance(error, InvalidTermError)", "mine.fragments"),
        (EACH,),
    ),
    Mutant(
        "a takeover reads the journals of all writers before",
        "FenceAndRead._matters",
        Replace("not is_owned or layout.journal_term(name) >= self.writer.term", "True"),
        (f"{TAKING}::test_it_reads_no_more_behind_many_others_than_behind_few",),
    ),
    Mutant(
        "a look-up goes on behind the record that it is for",
        "FindRecord._shown",
        Replace("newest.last_entry_id == self.entry_id", "newest.last_entry_id > self.entry_id"),
        (f"{TAKING}::test_it_reads_no_more_behind_many_others_than_behind_few",),
    ),
    Mutant(
        "a look-up begins with any journal",
        "FindRecord._likely_first",
        Replace(
            "sorted(names, key=lambda name: layout.journal_term(name) not in terms)",
            "sorted(names, reverse=True)",
        ),
        (f"{TAKING}::test_it_reads_no_more_behind_many_others_than_behind_few",),
    ),
    Mutant(
        "markers are pruned where nobody is any more",
        "Reopening.begun",
        Replace("(*ensemble, *self.ledger.last_fragment.ensemble)", "ensemble"),
        (f"{REOPENING}::test_nothing_is_pruned_where_nobody_is_any_more",),
    ),
)
