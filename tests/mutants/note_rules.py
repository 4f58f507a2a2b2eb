"""Mutants of notes: what cannot be read or stored of them holds nobody up, and only delays."""

from .mutant import Mutant

TESTS = "tests/integration/upkeep/test_notes.py"
AWAY = f"{TESTS}::test_since_when_a_bookie_is_away_may_be_forgotten_which_only_delays"
UNCHANGED = f"{TESTS}::test_since_when_a_ledger_is_unchanged_may_be_forgotten_which_only_delays"
DONE = f"{TESTS}::test_what_was_done_is_done_though_it_cannot_be_noted"

MUTANTS = (
    Mutant(
        "a pipe in the place of a note of gone ledgers ends a collection",
        "gone_ledgers",
        "_UNREADABLE = (CorruptDataError, OutcomeUnknownError)\n",
        "_UNREADABLE = (CorruptDataError,)\n",
        (f"{TESTS}::test_what_is_no_note_of_gone_ledgers_stops_only_what_needs_it",),
    ),
    Mutant(
        "a pipe in the place of a note of open ledgers ends a recovery",
        "OpenLedgers.note",
        "        return self._notes.try_to_note(layout.OPEN_LEDGERS_KEY, after)\n",
        '        self._notes.note(layout.OPEN_LEDGERS_KEY, after)\n        return ""\n',
        (f"{TESTS}::test_what_is_no_note_of_open_ledgers_is_told_and_closed_ones_are_repaired",),
    ),
    Mutant(
        "open ledgers that cannot be noted wait unsaid",
        "recovering.run._report",
        '        left.append(Left(f"metadata record {layout.OPEN_LEDGERS_KEY}", reason))\n',
        "        pass\n",
        (f"{TESTS}::test_what_is_no_note_of_open_ledgers_is_told_and_closed_ones_are_repaired",),
    ),
    Mutant(
        "a damaged note holds up who would read it",
        "Notes.get",
        "        except (CorruptDataError, OutcomeUnknownError) as error:\n",
        "        except OutcomeUnknownError as error:\n",
        (f"{AWAY}[False]", UNCHANGED),
    ),
    Mutant(
        "a note that the store says nothing of holds up who would read it",
        "Notes.get",
        "        except (CorruptDataError, OutcomeUnknownError) as error:\n",
        "        except CorruptDataError as error:\n",
        (f"{AWAY}[True]",),
    ),
    Mutant(
        "a damaged note is not written over",
        "Records.write_over",
        "        stored = self._store.get(self._key(name))\n        return self._put(",
        "        stored = None\n        return self._put(",
        (
            f"{TESTS}::test_a_report_that_cannot_be_read_is_written_over[audit]",
            f"{TESTS}::test_a_report_that_cannot_be_read_is_written_over[compact]",
            f"{AWAY}[False]",
        ),
    ),
    Mutant(
        "a report that cannot be stored is an error in place of what was done",
        "Notes.try_to_note",
        "        except BookKeeperError as error:\n",
        "        except CorruptDataError as error:\n",
        (DONE, f"{TESTS}::test_what_is_no_file_in_place_of_a_note_stops_nobody[pipe]"),
    ),
    Mutant(
        "nobody is told that a report could not be stored",
        "noted",
        "    if not problem:\n        return report\n",
        "    if problem or not problem:\n        return report\n",
        (DONE,),
    ),
    Mutant(
        "a lease that the store says nothing of holds everybody up",
        "alone",
        "        return work()\n    if other is not None:\n",
        "        raise\n    if other is not None:\n",
        (f"{TESTS}::test_a_lease_that_the_store_says_nothing_of_is_done_without",),
    ),
    Mutant(
        "a bookie of which nothing is noted was away for ever",
        "_noted",
        "    return AwayBookie(member.bookie_id, member.incarnation, since_ms)\n",
        "    return AwayBookie(member.bookie_id, member.incarnation, min(since_ms, 1))\n",
        (f"{AWAY}[False]",),
    ),
    Mutant(
        "what a scrub has found is lost with its marks",
        "Scrub._bring",
        "        except BookKeeperError as error:\n",
        "        except ZeroDivisionError as error:\n",
        (
            f"{TESTS}::test_damage_that_cannot_be_marked_is_told_all_the_same",
            "tests/integration/upkeep/test_scrub_marks.py"
            "::test_what_was_found_is_told_though_the_metadata_store_is_gone_by_then",
        ),
    ),
)
