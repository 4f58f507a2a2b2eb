"""Mutants of terms: whose record an entry is taken from, and what overtook a writer."""

from .mutant import Mutant

UNIT = "tests/unit/protocol/test_ownership.py"
LEFT = "tests/integration/recovery/test_left_over_records.py"
GROUP = "tests/unit/ledger/handles/test_record_replies.py"
LEDGER = "tests/unit/protocol/test_ledger.py"
OWNERS = "tests/integration/journals/test_owners_journal.py"
DOCUMENT = "tests/integration/document/test_unbounded_ledgers.py"
REOPENING = "tests/unit/protocol/test_reopening.py"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
TAKING = "tests/integration/recovery/test_taking_over.py"
EACH = f"{TAKING}::test_each_goes_on_behind_the_one_before"
COMMITTED = f"{TAKING}::test_what_was_committed_before_is_said_by_all_later_records"
UNJOINED = f"{TAKING}::test_who_may_have_taken_it_and_is_no_member_is_not_asked_by_the_writer"
FORGET = "        place.forget(*plan.writer, with_journal=plan.is_empty)\n"
UNFENCE = "        place.unfence(plan.writer[0])\n"

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
        "    if last < first:\n",
        "    if first >= 0:\n",
        (
            *(TWENTY, SEVENTEEN, f"{FENCED}[False]", f"{FENCED}[True]", ALONE),
            *(f"{FOLDERS}[9-pruned]", f"{FOLDERS}[9-not pruned]"),
        ),
    ),
    Mutant(
        "a reader goes on with what an older term has left",
        "_Rows.show",
        "        return is_here and counts(ledger.fragments, self.record)\n",
        "        return is_here\n",
        (UNPROMISED,),
    ),
    Mutant(
        "a bookie shows an entry of whatever term",
        "Page.counting",
        "        return stored if stored and counts(ledger.fragments, stored.record) else None\n",
        "        return stored\n",
        (UNPROMISED, SIX_STEPS),
    ),
    Mutant(
        "a record of any term up to the owner's counts",
        "owners",
        "range(next(named, FIRST_TERM), ",
        "range(FIRST_TERM, ",
        (
            f"{UNIT}::test_an_older_term_counts_nowhere_behind_the_recovered_end_in_any_later_fragment",
        ),
    ),
    Mutant(
        "in the last fragment a record of any term counts",
        "counts",
        "        return record.term == (end.owner or end.term)\n",
        "        return True\n",
        (
            *(TWENTY, SEVENTEEN, f"{FENCED}[True]"),
            f"{GROUP}::test_a_record_of_a_term_that_is_not_open_is_none",
        ),
    ),
    Mutant(
        "a record of any term from the owner's on counts",
        "owners",
        "fragments[at].term + 1)\n",
        "2**31)\n",
        (f"{UNIT}::test_an_entry_is_the_last_writers_that_opened_at_it_or_in_front",),
    ),
    Mutant(
        "the last token in front does not tell where a recovery moved what",
        "owners",
        "for i in range(at, -1, -1) if fragments[i].token)",
        "for i in range(at, -1, -1))",
        (f"{UNIT}::test_what_a_recovery_moved_is_of_a_writer_in_front",),
    ),
    Mutant(
        "a record counts by its first entry",
        "counts",
        " and record.term in owners(fragments, last)\n",
        "\n",
        (f"{UNIT}::test_a_record_counts_only_with_all_its_entries",),
    ),
    Mutant(
        "a confirmation counts by its term",
        "counts",
        "    if last < first:\n        return True\n",
        "",
        (f"{UNIT}::test_a_confirmation_counts_for_ever",),
    ),
    Mutant(
        "a recovery keeps what older terms left over",
        "read_tail",
        "    found = [stored for stored in found if counts(fragments, stored.record)]\n",
        "",
        (TWENTY, SEVENTEEN, f"{FENCED}[True]"),
    ),
    Mutant(
        "a recovery takes the length from what an older term left over",
        "newest_record",
        "        if is_in_front and counts(fragments, record):\n",
        "        if is_in_front:\n",
        (f"{LEFT}::test_a_search_for_the_last_confirmed_record_passes_what_is_left_over",),
    ),
    Mutant(
        "a look-up begins at what an older term left over",
        "newest_record",
        "if found.record.last_entry_id <= entry_id and counts(fragments, found.record)\n",
        "if found.record.last_entry_id <= entry_id\n",
        (f"{LEFT}::test_a_search_for_the_last_confirmed_record_passes_what_is_left_over",),
    ),
    Mutant(
        "a plan takes the record that is met last",
        "is_owned",
        "    return is_one and counts(ledger.fragments, record)\n",
        "    return is_one\n",
        (f"{LEFT}::test_a_plan_takes_the_owners_record_wherever_it_is_met",),
    ),
    Mutant(
        "an audit counts what an older term left over",
        "_Journal.span",
        "reader.is_by_its_writer(one) and self._counts(one) for",
        "reader.is_by_its_writer(one) for",
        (f"{LEFT}::test_an_audit_counts_no_record_that_is_left_over",),
    ),
    # --- what overtook a writer -------------------------------------------------------------------
    Mutant(
        "a permission that is gone is a later term",
        "post_check.post_check",
        "        if _is_there(address, fence):\n",
        "        if True:\n",
        (f"{DOCUMENT}::test_a_bookie_that_lost_its_permission_names_no_term",),
    ),
    Mutant(
        "a writer is overtaken by its own term",
        "LedgerFencedError.by",
        "        if 1 <= term < newer_term:\n",
        "        if 1 <= term <= newer_term:\n",
        (f"{LEDGER}::test_only_a_later_term_has_overtaken_anybody",),
    ),
    Mutant(
        "an error in other words forgets what overtook a writer",
        "BookKeeperError.reworded",
        "        vars(told).update(vars(self), hint=hint)\n",
        "        told.hint = hint\n",
        (f"{DOCUMENT}::test_a_writer_disengages_and_says_what_overtook_it",),
    ),
    # --- going on in a later term -----------------------------------------------------------------
    Mutant(
        "what a recovery moved is of its own term",
        "Open._kept",
        "token=self.token, owner=writers.owner)\n",
        "token=self.token, owner=self.term)\n",
        (f"{REOPENING}::test_what_was_moved_stays_its_writers_also_when_it_replaces_his_fragment",),
    ),
    Mutant(
        "what a closing recovery moved may be of any term in front",
        "LedgerMetadata.with_recovered_ensemble",
        "        owner = self.last_fragment.owner  # that it keeps, where it says so\n",
        "        owner = 0\n",
        (f"{REOPENING}::test_closing_it_for_good_keeps_the_owner_of_what_was_moved",),
    ),
    Mutant(
        "a ledger is set open by whoever comes",
        "Open.applied_to",
        "        if (ledger.state, ledger.term, ledger.token) != owner:\n",
        "        if not owner:\n",
        (f"{REOPENING}::test_only_the_recovery_that_took_it_over_sets_it_open",),
    ),
    Mutant(
        "a ledger goes on in front of what is acknowledged",
        "Open.applied_to",
        "        if self.last_entry_id < ledger.last_confirmed:\n",
        "        if self.last_entry_id < -1:\n",
        (f"{REOPENING}::test_nothing_that_is_acknowledged_is_cut_off",),
    ),
    Mutant(
        "an answer that was lost is another's change",
        "Open.applied_to",
        "        if (ledger.state, ledger.token) == (LedgerState.OPEN, self.writer_token):\n"
        "            return ledger\n",
        "",
        (f"{REOPENING}::test_an_answer_that_was_lost_is_read_back",),
    ),
    Mutant(
        "Qa members are enough for a new fragment",
        "Reopening._going_on",
        "        if self.taken != every:\n",
        "        if len(self.taken) < self.ledger.quorum.ack_quorum_size:\n",
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "nobody is looked at again before the metadata name him",
        "Reopening._going_on",
        "        if self.shown != every:\n",
        "        if not every:\n",
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "who did not surely take it may be asked again",
        "Reopening._unwanted",
        "        return frozenset(dict(self.problems)).union(names)\n",
        "        return frozenset(names)\n",
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "markers are pruned before the ledger is seen to be open",
        "Reopening._going_on",
        "        return self, (*instructions, self.plan)\n",
        "        return self, (*instructions, *self._prune(self.ledger)[1], self.plan)\n",
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "a ledger is set open that says nothing of later terms",
        "Open.applied_to",
        "        if not ledger.goes_on:\n",
        "        if not ledger.fragments:\n",
        (f"{REOPENING}::test_one_that_does_not_say_so_from_the_start_is_not_set_open_again",),
    ),
    Mutant(
        "one who never may go on fences the writer",
        "taking_over.take_over",
        "    if not ledger.goes_on:\n",
        "    if not ledger.fragments:\n",
        (f"{TAKING}::test_one_that_says_nothing_of_later_terms_has_one_writer",),
    ),
    Mutant(
        "a ledger does not say from the start that it goes on",
        "_first_fragment",
        "owner = FIRST_TERM if goes_on else 0",
        "owner = 0",
        (EACH,),
    ),
    Mutant(
        "the fence is pruned before the permission",
        "pruning.prune",
        FORGET + UNFENCE,
        UNFENCE + FORGET,
        (f"{TAKING}::test_the_permission_goes_before_the_fence",),
    ),
    Mutant(
        "fences of writers long gone stay",
        "_Place.unfence",
        "        self.root.delete(layout.term_marker(self.ledger.ledger_id, term + 1))\n",
        "",
        (f"{TAKING}::test_who_never_wrote_leaves_nothing_behind",),
    ),
    Mutant(
        "who lost what it took at once gets a place",
        "opener._missing",
        '    return f"bookie {address.bookie_id} lacks {missing}" if missing else ""\n',
        '    return ""\n',
        (f"{TAKING}::test_who_loses_at_once_what_it_took_gets_no_place",),
    ),
    Mutant(
        "journals of one who does not write stay open",
        "taking_over.take_over",
        "    except BaseException:\n        opener.begun.close()\n",
        "    except BaseException:\n",
        (f"{TAKING}::test_journals_of_one_that_does_not_open_it_are_closed",),
    ),
    Mutant(
        "a writer begins at the first entry of the ledger",
        "WriteHandle.__init__",
        "last_add_confirmed=standing.last_entry_id,",
        "last_add_confirmed=-1,",
        (EACH,),
    ),
    Mutant(
        "a writer forgets the length of what was there",
        "WriteHandle.__init__",
        "length_bytes=standing.length_bytes,",
        "length_bytes=0,",
        (EACH,),
    ),
    Mutant(
        "records forget what was committed in earlier terms",
        "RecordEncoder.encode",
        "self._record(add, parts, self._transactions)",
        "self._record(add, parts, {})",
        (COMMITTED,),
    ),
    Mutant(
        "a writer forgets at its end what was committed in earlier terms",
        "WriteHandle._seal",
        "machine.closed, transactions=self._transactions)",
        "machine.closed)",
        (COMMITTED,),
    ),
    Mutant(
        "who may have been asked before is asked by the writer",
        "EnsembleChanges.__init__",
        "        self._unjoined = self._excluded\n",
        "        self._unjoined = frozenset()\n",
        (UNJOINED,),
    ),
    Mutant(
        "nobody is told who was asked",
        "Reopening.unjoined",
        "        return self.asked - {member.bookie_id for member in self.plan.ensemble}\n",
        "        return frozenset()\n",
        (
            UNJOINED,
            f"{SCRIPTS}[recovery_reopening]",
        ),
    ),
    Mutant(
        "a writer whose permission is pruned does not learn of the term",
        "Membership.explained",
        "        if not is_asked or isinstance(error, InvalidTermError):\n",
        "        if mine.fragments:\n",
        (EACH,),
    ),
    Mutant(
        "a takeover reads the journals of all writers before",
        "FenceAndRead._matters",
        "        return not is_owned or layout.journal_term(name) >= self.writer.term\n",
        "        return True\n",
        (f"{TAKING}::test_it_reads_no_more_behind_many_others_than_behind_few",),
    ),
    Mutant(
        "a look-up goes on behind the record that it is for",
        "LookUp._shown",
        "            if newest is not None and newest.last_entry_id == self.entry_id:\n",
        "            if newest is not None and newest.last_entry_id > self.entry_id:\n",
        (f"{TAKING}::test_it_reads_no_more_behind_many_others_than_behind_few",),
    ),
    Mutant(
        "a look-up begins with any journal",
        "LookUp._likely_first",
        "key=lambda name: layout.journal_term(name) not in terms)\n",
        "reverse=True)\n",
        (f"{TAKING}::test_it_reads_no_more_behind_many_others_than_behind_few",),
    ),
    Mutant(
        "markers are pruned where nobody is any more",
        "Reopening.begun",
        "        members = dict.fromkeys((*ensemble, *self.ledger.last_fragment.ensemble))\n",
        "        members = dict.fromkeys(ensemble)\n",
        (f"{REOPENING}::test_nothing_is_pruned_where_nobody_is_any_more",),
    ),
    Mutant(
        "a reader looks into the journals of all later terms",
        "MemberJournals._pages",
        "        if any(is_enough(named.page) for named in found):\n",
        "        if False:\n",
        (f"{OWNERS}::test_an_entry_is_taken_from_its_owners_journal_alone[0]",),
    ),
    Mutant(
        "a reader looks into the owner's journal only",
        "MemberJournals._pages",
        "        return found + self._pages_in(root, others, entry_id)\n",
        "        return found\n",
        (
            f"{OWNERS}::test_a_copy_that_lies_in_a_journal_of_a_later_term_is_found[False]",
            f"{OWNERS}::test_a_copy_that_lies_in_a_journal_of_a_later_term_is_found[True]",
        ),
    ),
    Mutant(
        "a record of which parts are missing is taken for all that is there",
        "_shows_all",
        "    return stored is not None and len(stored.messages) == len(stored.record.parts)\n",
        "    return stored is not None\n",
        (f"{OWNERS}::test_a_record_with_a_part_missing_does_not_end_the_search",),
    ),
    Mutant(
        "a record that a reader refused ends the search",
        "MemberJournals.pages_of",
        " and stored.record not in refused\n",
        "\n",
        (f"{OWNERS}::test_behind_a_record_that_is_refused_the_search_goes_on",),
    ),
)
