"""Mutants of freeing the ledgers whose rows a table has."""

from .change import Drop, Replace
from .mutant import Mutant

FREEING = "tests/integration/tier/test_freeing.py"
LOOKS = f"{FREEING}::TestTwoLooks"
NOTHING = f"{FREEING}::TestNothingIsFreedWithoutItsRows"
SILENT = f"{FREEING}::TestATableThatGivesNoAnswer"
BETWEEN = f"{FREEING}::TestBetweenALookAndTheRecord"

MUTANTS = (
    Mutant(
        "ledgers leave the list without a look at the rows",
        "offloading.freeing._carry_out",
        Drop("_require_rows"),
        (
            f"{NOTHING}::test_at_the_first_look[deleted]",
            f"{NOTHING}::test_at_the_first_look[updated]",
            f"{NOTHING}::test_at_the_second_look_and_an_operator_brings_them_back[lost_commit]",
        ),
    ),
    Mutant(
        "rows are looked at only if the table's log says that some were removed",
        "freeing._require_rows",
        Replace("is_all or _is_of(step, segment)", "is_all"),
        (
            f"{NOTHING}::test_at_the_first_look[lied]",
            f"{NOTHING}::test_at_the_second_look_and_an_operator_brings_them_back[doubled]",
        ),
    ),
    Mutant(
        "ledgers are freed if the table does not say whether it has their rows",
        "offloading.freeing._carry_out",
        Replace(
            "_require_rows(cluster, log, tier, view, step)",
            "try:\n"
            "    _require_rows(cluster, log, tier, view, step)\n"
            "except BookKeeperError as error:\n"
            "    if 'cannot be read' not in str(error):\n"
            "        raise",
        ),
        (
            f"{SILENT}::test_nothing_is_freed[0-open]",
            f"{SILENT}::test_nothing_is_freed[1-open]",
        ),
    ),
    Mutant(
        "a table that does not answer is taken for an absent one, and is not fenced",
        "ending._fence",
        Replace("except NoSuchTableError: ...", "except Exception: ..."),
        (
            f"{SILENT}::test_it_is_not_left_behind[sizes]",
            f"{SILENT}::test_it_is_not_left_behind[read]",
        ),
    ),
    Mutant(
        "ledgers are deleted without a second look",
        "next_step",
        Replace("tier.of_freed.ms > due.freed_before_ms", "False"),
        (f"{LOOKS}::test_ledgers_wait_between_the_looks",),
    ),
    Mutant(
        "segments are freed at once",
        "freeable_end",
        Replace("segment.copied_ms > copied_before_ms", "False"),
        (
            f"{LOOKS}::test_only_old_segments_are_freed",
            f"{LOOKS}::test_a_day_passes_before_each_look",
        ),
    ),
    Mutant(
        "a tier that changed after the look is freed",
        "offloading.freeing.change_seen",
        Drop("offloading.require_seen"),
        (f"{BETWEEN}::test_the_tier_changes_without_end",),
    ),
)
