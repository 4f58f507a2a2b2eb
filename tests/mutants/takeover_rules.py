"""Mutants of takeovers: what is left behind of those who were overtaken."""

from .change import Replace
from .mutant import Mutant

UNIT = "tests/unit/protocol/test_ownership.py"
REOPENING = "tests/unit/protocol/test_reopening.py"
SCRIPTS = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says"
TAKING = "tests/integration/recovery/test_taking_over.py"
OWNERS = "tests/integration/journals/test_owners_journal.py"
OVERTAKEN = "tests/integration/recovery/test_overtaken_recoveries.py"
FORGOTTEN = "tests/integration/recovery/test_forgotten_journals.py"

MUTANTS = (
    Mutant(
        "a fence goes with the first permission of its term",
        "recoverer.prune",
        Replace(
            "place.forget(term, token, with_journal=place.is_blank(term, token))",
            "place.forget(term, token, with_journal=place.is_blank(term, token))\n"
            "place.unfence(term)",
        ),
        (
            "tests/integration/recovery/test_pruning.py::"
            "test_a_fence_stays_while_any_permission_of_its_term_does",
        ),
    ),
    Mutant(
        "journals of those who never wrote stay for ever",
        "_Place.forget",
        Replace("if with_journal:\n    ...", "if not term:\n    ..."),
        (
            f"{TAKING}::test_who_never_wrote_leaves_nothing_behind",
            f"{TAKING}::test_the_permission_goes_before_the_fence",
        ),
    ),
    Mutant(
        "a journal goes whose records count",
        "Reopening._prune",
        Replace(
            "not is_owner(metadata.fragments, before.term) and (not self.is_loss)",
            "not self.is_loss",
        ),
        (
            f"{SCRIPTS}[recovery_reopening]",
            f"{REOPENING}::test_nothing_is_pruned_where_nobody_is_any_more",
            f"{FORGOTTEN}::test_of_a_writer_whose_entries_count_all_stays_whoever_has_his_place",
        ),
    ),
    Mutant(
        "a journal goes whose records count where somebody else has his place",
        "is_owner",
        Replace("term in owners(fragments, fragment.first_entry_id)", "term == fragment.term"),
        (
            f"{UNIT}::test_a_term_owns_something_or_nothing",
            f"{REOPENING}::test_nothing_is_pruned_where_nobody_is_any_more",
        ),
    ),
    Mutant(
        "what recoveries have copied goes with the journal of their term",
        "_Place.forget",
        Replace(
            "self.root.forget_journal(layout.journal(ledger_id, term, token))",
            "folder = layout.journal_folder(ledger_id)\n"
            "for name in self.root.list(folder):\n"
            "    if layout.journal_term(name) == term:\n"
            "        self.root.forget_journal(f'{folder}/{name}')",
        ),
        (
            f"{FORGOTTEN}::test_what_recoveries_have_copied_in_the_term_of_one_who_never_wrote_stays",
        ),
    ),
    Mutant(
        "a journal on object storage goes whose writer may go on in it",
        "BucketBookieRoot.forget_journal",
        Replace("split_name(name)\nreturn False", "return self.delete(name)"),
        (
            "tests/conformance/test_s3_bookie.py::TestS3Bookie::"
            "test_of_a_journal_that_is_forgotten_nothing_appears_again",
        ),
    ),
    Mutant(
        "who was overtaken has other bookies take his journal",
        "Membership.enlist",
        Replace("self._still_mine()", "self.seen.value"),
        (
            f"{FORGOTTEN}::test_who_wakes_up_in_mid_append_counts_nothing_and_takes_nothing[memory]",
            f"{FORGOTTEN}::test_who_wakes_up_in_mid_append_counts_nothing_and_takes_nothing[file]",
        ),
    ),
    Mutant(
        "the permission goes before the journal that it tells of",
        "_Place.forget",
        Replace(
            "ledger_id = self.ledger.ledger_id",
            "ledger_id = self.ledger.ledger_id\n"
            "self.root.delete(layout.permission(ledger_id, term, token))",
        ),
        (f"{TAKING}::test_the_permission_goes_before_the_fence",),
    ),
    Mutant(
        "what takeovers have left that died stays for ever",
        "_Place.left_over",
        Replace("writer[0] < before", "writer[0] < 0"),
        (f"{FORGOTTEN}::test_what_a_takeover_left_that_died_goes_with_the_next",),
    ),
    Mutant(
        "a journal goes that says something, where its takeover died",
        "_Place.is_blank",
        Replace(
            "all((head.record.is_header for head in reader.forwards(reader.head)))",
            "bool(list(reader.forwards(reader.head)))",
        ),
        (f"{FORGOTTEN}::test_a_journal_that_says_anything_stays_where_its_takeover_died",),
    ),
    Mutant(
        "who reads the end looks into the journals of all terms",
        "MemberJournals._pages",
        Replace("layout.journal_term(pages.name) >= terms.start", "terms"),
        (f"{OWNERS}::test_no_journal_of_an_earlier_term_than_the_owners_is_looked_into",),
    ),
    Mutant(
        "a recovery believes a loss though it may be overtaken",
        "Fencing.going_on",
        Replace(
            "(judged, looks) if judged.evidence.shows_loss else judged._told(instructions)",
            "judged._told(instructions)",
        ),
        (
            f"{SCRIPTS}[recovery_duels]",
            f"{OVERTAKEN}::test_one_that_was_overtaken_after_its_change_says_nothing_of_losses",
        ),
    ),
    Mutant(
        "what cannot be read is told though it may have been removed",
        "Evidence.shows_loss",
        Replace("(Doubt.DATA_LOST, Doubt.UNCLEAR)", "(Doubt.DATA_LOST,)"),
        (f"{SCRIPTS}[recovery_duels]",),
    ),
    Mutant(
        "an overtaken recovery goes on",
        "recovering._overtaken",
        Replace(
            "(newest.term, newest.token) == (term.ledger.term, term.ledger.token)",
            "newest.ledger_id == term.ledger.ledger_id",
        ),
        (
            f"{SCRIPTS}[recovery_duels]",
            f"{OVERTAKEN}::test_one_that_was_overtaken_after_its_change_says_nothing_of_losses",
        ),
    ),
    Mutant(
        "a takeover believes a loss though it may be overtaken",
        "Reopening._going_on",
        Replace("self.missing", "not self.asked"),
        (f"{SCRIPTS}[recovery_reopening]",),
    ),
    Mutant(
        "an overtaken takeover goes on",
        "Reopening._believe",
        Replace("(newest.term, newest.token) != (mine.term, mine.token)", "not newest"),
        (
            f"{SCRIPTS}[recovery_reopening]",
            f"{OVERTAKEN}::test_one_that_was_overtaken_before_its_last_look_says_nothing_of_losses",
        ),
    ),
    Mutant(
        "a reader that is overtaken says what bookies lack",
        "how_far.look",
        Replace("state.unknown() if is_current else _overtaken(ledger_id)", "state.unknown()"),
        (f"{OVERTAKEN}::test_a_reader_that_is_overtaken_in_every_look_says_so",),
    ),
)
