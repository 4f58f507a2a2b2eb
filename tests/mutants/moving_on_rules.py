"""Mutants of how a log moves on from a ledger whose entries get fewer copies."""

from .mutant import Mutant

BACK = "tests/integration/log/test_bookies_that_are_back.py"
ROLLS = f"{BACK}::test_it_serves_again_at_the_next_roll[at once-unbounded]"
BY_ITSELF = f"{BACK}::test_a_writer_that_is_short_moves_on_by_itself"
STAYS = f"{BACK}::test_while_it_is_away_the_writer_stays_where_it_is"
CLOSES = f"{BACK}::test_one_that_ends_short_of_bookies_closes_its_ledger"

MUTANTS = (
    Mutant(
        "a roll stays in the ledger that a bookie has failed",
        "OwnTail.begin_fragment",
        "self._is_left(segment) or not may_go_on(",
        "not may_go_on(",
        (ROLLS,),
    ),
    Mutant(
        "a log moves on to bookies that are not there",
        "OwnTail.may_move",
        ">= size",
        ">= 0",
        (STAYS,),
    ),
    Mutant(
        "a writer that is short never looks for bookies",
        "Segment.why_due",
        ' or (SHORT if self._is_to_be_looked_at() else "")',
        "",
        (BY_ITSELF,),
    ),
    Mutant(
        "a writer that is short looks at each append",
        "Segment._is_to_be_looked_at",
        "now - self.looked_at >= LOOK_SECONDS",
        "now >= self.looked_at",
        (BY_ITSELF,),
    ),
    Mutant(
        "a writer that is short rolls without a look",
        "LogWriter._roll_in_background",
        "if reason != rolling.SHORT or self._tail.may_move(self._segment):",
        "if reason:",
        (STAYS,),
    ),
    Mutant(
        "a writer that ends short leaves its ledger open",
        "LogWriter.close",
        " and not self._segment.handle.is_short_of_bookies",
        "",
        (CLOSES,),
    ),
)
