"""Mutants of the scrub: what is checked, what is damage, and what an audit takes from it."""

from .change import Replace
from .mutant import Mutant

SCRUB = "tests/integration/upkeep/test_scrub.py"
MARKS = "tests/integration/upkeep/test_scrub_marks.py"
PARTS = "tests/unit/admin/test_scrub_parts.py"
UNTIL_GOOD = f"{MARKS}::test_what_is_damaged_is_missing_for_an_audit_until_it_is_good_again[memory]"
BESIDE = f"{MARKS}::test_copies_that_were_made_anew_beside_the_damage_count"
BLOCK = f"{MARKS}::test_a_damaged_entry_log_is_missing_for_an_audit[memory]"

MUTANTS = (
    Mutant(
        "a scrub goes by the heads of records",
        "JournalScrub._found",
        Replace("reader.checked(begin, end)", "reader.head(begin)"),
        (UNTIL_GOOD,),
    ),
    Mutant(
        "damage beside which there is a good copy is left for ever",
        "look._ScrubWork._judged",
        Replace("bool(lacks or self.entry_logs or (not is_closed))", "True"),
        (BESIDE,),
    ),
    Mutant(
        "an audit counts marked entry logs",
        "missing_file",
        Replace("mark is not None and name in mark.entry_logs", "False"),
        (BLOCK,),
    ),
    Mutant(
        "marks of what a bookie was before hold for what it is now",
        "NotedDamage.marks",
        Replace("mark.incarnation == member.incarnation", "mark is not None"),
        (f"{PARTS}::test_what_was_initialised_anew_has_no_marks_of_before",),
    ),
    Mutant(
        "a rate is that of each read alone",
        "Pace.passed",
        Replace(
            "self._began + self.byte_count / self._bytes_per_second",
            "environment.monotonic() + byte_count / self._bytes_per_second",
        ),
        (f"{PARTS}::test_no_more_is_read_than_may_be_and_whoever_waits_shows_signs_of_life",),
    ),
    Mutant(
        "entries of its own are passed over where a record is damaged",
        "_ScrubWork._keep",
        Replace("own_part(between, place, self.ledger.quorum) is None", "True"),
        (f"{SCRUB}::test_one_entry_of_a_striped_ledger_is_marked_alone",),
    ),
)
