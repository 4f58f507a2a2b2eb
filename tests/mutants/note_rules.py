"""Mutants of notes: what cannot be read or stored of them holds nobody up, and only delays."""

from .change import Replace
from .mutant import Mutant

TESTS = "tests/integration/upkeep/test_notes.py"
AWAY = f"{TESTS}::test_since_when_a_bookie_is_away_may_be_forgotten_which_only_delays"
UNCHANGED = f"{TESTS}::test_since_when_a_ledger_is_unchanged_may_be_forgotten_which_only_delays"
DONE = f"{TESTS}::test_what_was_done_is_done_though_it_cannot_be_noted"

MUTANTS = (
    Mutant(
        "a pipe in the place of a note of open ledgers ends a recovery",
        "OpenLedgers.note",
        Replace(
            "return self._notes.try_to_note(layout.OPEN_LEDGERS_KEY, after)",
            "self._notes.note(layout.OPEN_LEDGERS_KEY, after)\nreturn ''",
        ),
        (f"{TESTS}::test_what_is_no_note_of_open_ledgers_is_told_and_closed_ones_are_repaired",),
    ),
    Mutant(
        "a damaged note holds up who would read it",
        "Notes.get",
        Replace("(CorruptDataError, NothingSentError, OutcomeUnknownError)", "OutcomeUnknownError"),
        (f"{AWAY}[False]", UNCHANGED),
    ),
    Mutant(
        "a note that the store says nothing of holds up who would read it",
        "Notes.get",
        Replace("(CorruptDataError, NothingSentError, OutcomeUnknownError)", "CorruptDataError"),
        (f"{AWAY}[True]",),
    ),
    Mutant(
        "a damaged note is not written over",
        "Records.write_over",
        Replace("self._store.get(self._key(name))", "None"),
        (
            f"{TESTS}::test_a_report_that_cannot_be_read_is_written_over[audit]",
            f"{TESTS}::test_a_report_that_cannot_be_read_is_written_over[compact]",
            f"{AWAY}[False]",
        ),
    ),
    Mutant(
        "a report that cannot be stored is an error in place of what was done",
        "Notes.try_to_note",
        Replace("BookKeeperError", "CorruptDataError"),
        (DONE, f"{TESTS}::test_what_is_no_file_in_place_of_a_note_stops_nobody[pipe]"),
    ),
    Mutant(
        "nobody is told that a report could not be stored",
        "noted",
        Replace("not problem", "problem or not problem"),
        (DONE,),
    ),
    Mutant(
        "a lease that the store says nothing of holds everybody up",
        "alone",
        Replace("return work()", "raise", at=1),
        (f"{TESTS}::test_a_lease_that_the_store_says_nothing_of_is_done_without",),
    ),
    Mutant(
        "a bookie of which nothing is noted was away for ever",
        "_noted",
        Replace(
            "AwayBookie(member.bookie_id, member.incarnation, since_ms)",
            "AwayBookie(member.bookie_id, member.incarnation, min(since_ms, 1))",
        ),
        (f"{AWAY}[False]",),
    ),
    Mutant(
        "what a scrub has found is lost with its marks",
        "Scrub._bring",
        Replace("BookKeeperError", "ZeroDivisionError"),
        (
            f"{TESTS}::test_damage_that_cannot_be_marked_is_told_all_the_same",
            "tests/integration/upkeep/test_scrub_marks.py"
            "::test_what_was_found_is_told_though_the_metadata_store_is_gone_by_then",
        ),
    ),
)
