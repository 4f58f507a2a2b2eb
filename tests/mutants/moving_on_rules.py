"""Mutants of how a log moves on from a ledger whose entries get fewer copies."""

from .change import Drop, Replace
from .mutant import Mutant

BACK = "tests/integration/log/test_bookies_that_are_back.py"
ROLLS = f"{BACK}::test_it_serves_again_at_the_next_roll[at once-unbounded]"
BY_ITSELF = f"{BACK}::test_a_writer_that_is_short_moves_on_by_itself"
STAYS = f"{BACK}::test_while_it_is_away_the_writer_stays_where_it_is"
CLOSES = f"{BACK}::test_one_that_ends_short_of_bookies_closes_its_ledger"
IDLE = f"{BACK}::test_a_writer_that_is_idle_moves_on_as_well"
ENDS = f"{BACK}::test_a_watch_ends_with_its_writer"
GUARANTEED = (
    f"{BACK}::test_a_log_that_guarantees_its_write_quorum_moves_on_once_others_have_all_copies"
)
OPEN_END = f"{BACK}::test_an_audit_counts_what_an_open_ledger_lacks"
DIED = f"{BACK}::test_a_repair_makes_copies_of_a_writer_that_died"
SMALL = f"{BACK}::test_a_repair_widens_a_ledger_of_a_writer_that_died"
WHOLE = f"{BACK}::test_a_whole_log_is_not_closed_by_a_repair"
UNITS = "tests/unit/admin/test_open_end.py"

MUTANTS = (
    Mutant(
        "a roll stays in the ledger that a bookie has failed",
        "LogTail.begin_fragment",
        Replace(
            "self._is_left(segment) or not may_go_on(self._cluster, ledger)",
            "not may_go_on(self._cluster, ledger)",
        ),
        (ROLLS,),
    ),
    Mutant(
        "a log moves on to bookies that are not there",
        "LogTail.may_move",
        Replace(
            "len(self._cluster.refresh_candidates(enough=size, needed=size)) >= size",
            "len(self._cluster.refresh_candidates(enough=size, needed=size)) >= 0",
        ),
        (STAYS,),
    ),
    Mutant(
        "a writer that is short never looks for bookies",
        "Segment.why_due",
        Replace(
            "self.filling.why_full() or (SHORT if self._is_to_be_looked_at() else '')",
            "self.filling.why_full()",
        ),
        (BY_ITSELF,),
    ),
    Mutant(
        "a writer that is short looks at each append",
        "Segment._is_to_be_looked_at",
        Replace("now - self.looked_at >= LOOK_SECONDS", "now >= self.looked_at"),
        (BY_ITSELF,),
    ),
    Mutant(
        "a writer that is short rolls without a look",
        "LogWriter._roll_in_background",
        Replace("reason != rolling.SHORT or self._tail.may_move(self._segment)", "reason"),
        (STAYS,),
    ),
    Mutant(
        "a writer that ends short leaves its ledger open",
        "LogWriter.close",
        Replace(
            "self._is_unbounded and (not self._segment.handle.is_short_of_bookies)",
            "self._is_unbounded",
        ),
        (CLOSES,),
    ),
    Mutant(
        "a writer that is short does not look for bookies while it is idle",
        "Membership.released",
        Drop("self.on_failure"),
        (f"{IDLE}[one failed]",),
    ),
    Mutant(
        "a writer of a small ledger does not look for bookies while it is idle",
        "Segments.begin",
        Replace("segment.is_short", "False"),
        (f"{IDLE}[made on two]",),
    ),
    Mutant(
        "a writer looks for bookies for as long as its process lives",
        "LogWriter._stop_taking",
        Drop("self._segments.watch.stop"),
        (ENDS,),
    ),
    Mutant(
        "a log that guarantees its write quorum never moves on from a bookie that failed",
        "WriteHandle.may_be_sealed",
        Replace(
            "machine.pending.lagging is None or not machine.changes.failed",
            "machine.pending.lagging is None",
        ),
        (GUARANTEED,),
    ),
    Mutant(
        "an audit does not look at the open ends of ledgers",
        "Audit._look",
        Replace(
            "[*self._gaps(ledger, seen), *at_ends.get(ledger.ledger_id, ())]",
            "[*self._gaps(ledger, seen)]",
        ),
        (OPEN_END,),
    ),
    Mutant(
        "an audit takes a slow bookie for one that lacks entries",
        "audit._lacking",
        Replace("end is None or after.get((member, number)) != end", "end is None"),
        (f"{UNITS}::test_a_bookie_that_gets_on_lacks_nothing",),
    ),
    Mutant(
        "an audit looks twice at once",
        "lacking_at_ends",
        Replace("environment.monotonic() < until", "after is before"),
        (f"{UNITS}::test_a_bookie_that_needs_seconds_for_a_record_lacks_nothing",),
    ),
    Mutant(
        "an audit counts entries that are not acknowledged",
        "audit._lacking",
        Replace("end.confirmed", "end.last"),
        (f"{UNITS}::test_entries_without_an_ack_are_not_counted",),
    ),
    Mutant(
        "the open end of a log that lacks copies stays open",
        "admin.recovering.plan_of",
        Replace(
            "gone.union(lacking)",
            "gone",
        ),
        (DIED, SMALL),
    ),
    Mutant(
        "a small ledger is closed though no further bookie can be used",
        "recovering._has_bookies",
        Replace(
            "sum((one.may_join and one.member not in lost for one in found)) >= count",
            "sum((one.may_join and one.member not in lost for one in found)) >= 0",
        ),
        (SMALL,),
    ),
    Mutant(
        "a whole log's ledger is closed by a repair",
        "recovering.lacking_copies",
        Replace("certain | small", "(one.ledger_id for one in ledgers)"),
        (WHOLE,),
    ),
    Mutant(
        "a writer that was overtaken puts a ledger behind its successor's",
        "LogTail._listed_after",
        Replace("newest.term > mine.term", "False"),
        (
            "tests/integration/log/test_log_takeovers.py"
            "::test_a_writer_that_was_overtaken_puts_no_ledger_behind_its_successors",
        ),
    ),
)
