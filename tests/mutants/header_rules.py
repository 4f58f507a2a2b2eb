"""Mutants of the header that a writer's journal begins with."""

from .change import Replace
from .mutant import Mutant

CHANGES = "tests/integration/recovery/test_begun_journals.py"
JOURNALS = "tests/integration/recovery/test_lost_journals.py"
LANE = "tests/unit/ledger/handles/test_lane.py"
LEDGER = "tests/unit/protocol/test_ledger.py"

LOST = f"{JOURNALS}::test_a_lost_journal_is_no_absence"

MUTANTS = (
    # --- what is there before the metadata names a bookie ----------------------------------------
    Mutant(
        "who takes a place begins no journal",
        "Membership.enlist",
        Replace(
            "Joining.last_writer(mine, self._digester)",
            "Joining.of(mine.ledger_id, mine.quorum, term=mine.term, token=mine.token, "
            "digester=None)",
        ),
        (f"{CHANGES}::test_who_takes_a_place_has_begun_its_journal",),
    ),
    Mutant(
        "another ensemble forgets that its members began their journals",
        "LedgerMetadata.with_ensemble",
        Replace("self.last_fragment.has_headers", "False"),
        (
            f"{LEDGER}::test_members_that_stay_have_begun_no_more_than_before[True]",
            f"{CHANGES}::test_who_takes_a_place_has_begun_its_journal",
        ),
    ),
    Mutant(
        "members that stay are said to have begun journals",
        "LedgerMetadata.with_ensemble",
        Replace("self.last_fragment.has_headers", "bool(token)"),
        (
            f"{LEDGER}::test_members_that_stay_have_begun_no_more_than_before[False]",
            f"{CHANGES}::test_members_that_stay_have_begun_no_more_than_before",
        ),
    ),
    # --- who misses it -------------------------------------------------------------------------
    Mutant(
        "a journal that holds nothing is there",
        "_behind_the_first",
        Replace(
            "-1 if length is None else (root.size(name) or 0) - length",
            "-1 if prefix is None else 0",
        ),
        (f"{LOST}[memory-sizes0-empty]", f"{LOST}[memory-sizes1-never written]"),
    ),
    Mutant(
        "a header that is cut off is there",
        "_behind_the_first",
        Replace("(root.size(name) or 0) - length", "0"),
        (f"{LOST}[memory-sizes0-cut in the header]",),
    ),
    Mutant(
        "a recovery does not miss it",
        "FenceAndRead._judged",
        Replace("tail.is_begun", "True"),
        (f"{LOST}[memory-sizes0-gone]",),
    ),
    Mutant(
        "a recovery takes what others have copied there for it",
        "FenceAndRead._together",
        Replace(
            "tails.get(self.writer.taken.journal)",
            "next((tail for tail in each if tail.has_records), None)",
        ),
        (f"{JOURNALS}::test_copies_that_a_recovery_gives_do_not_make_it_whole",),
    ),
    Mutant(
        "a reader does not miss it",
        "member_journals._lost",
        Replace("own is not None and own.record is not None", "True"),
        (f"{JOURNALS}::test_a_reader_takes_no_bookie_without_its_journal_for_whole[memory-gone]",),
    ),
    Mutant(
        "who adopts a ledger asks for its permission again",
        "TailWriter._with_journals",
        Replace(
            "replace(Joining.last_writer(after, digester), permission='')",
            "Joining.last_writer(after, digester)",
        ),
        (f"{CHANGES}::test_a_permission_is_not_asked_for_again_by_who_adopts_a_ledger",),
    ),
    Mutant(
        "headers are said to be where a bookie began none",
        "TailWriter._with_journals",
        Replace("begun.bookie_ids == set(Locations(ledger).last.bookie_ids)", "True"),
        (f"{CHANGES}::test_a_tail_is_adopted_without_a_bookie_that_begins_no_journal",),
    ),
    # --- who makes it ----------------------------------------------------------------------------
    Mutant(
        "a sink makes a journal that is not there",
        "enlisting.journal_on",
        Replace("fragment.has_headers", "not fragment"),
        (f"{JOURNALS}::test_a_sink_never_makes_a_journal_that_was_begun",),
    ),
    Mutant(
        "a journal is handed over again and again",
        "Begun.hand_over",
        Replace("self._journals.pop(bookie_id, None)", "self._journals.get(bookie_id)"),
        (f"{JOURNALS}::test_a_journal_is_handed_over_once",),
    ),
    Mutant(
        "what comes first is framed as if there was no header",
        "Lane.__init__",
        Replace("appender.end", "0"),
        (f"{LANE}::test_what_comes_first_comes_behind_the_header",),
    ),
    Mutant(
        "the first record of a journal is asked for again and again",
        "ObjectJournal._store",
        Replace("is_first", "False", at=1),
        ("tests/conformance/test_s3_once.py::test_the_first_record_of_a_journal_is_sent_once",),
    ),
)
