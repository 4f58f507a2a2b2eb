"""Mutants of ledgers that are made on fewer bookies than wanted, and of how they are widened."""

from .change import Drop, Replace
from .mutant import Mutant

SIZES = "tests/unit/protocol/test_smaller_ledgers.py"
RECORDS = "tests/unit/format/test_smaller_records.py"
MADE = "tests/integration/log/test_smaller_ledgers.py"
WIDENED = "tests/integration/upkeep/test_widening.py"
MEANWHILE = "tests/integration/upkeep/test_widening_meanwhile.py"
REPAIRING = "tests/unit/protocol/test_repairing.py"

MUTANTS = (
    # --- made ------------------------------------------------------------------------------------
    Mutant(
        "a smaller ledger acknowledges on fewer bookies",
        "Quorum.on_fewer",
        Replace("self.ack_quorum_size", "min(size, self.ack_quorum_size)"),
        (f"{SIZES}::test_no_ledger_is_made_below_its_ack_quorum",),
    ),
    Mutant(
        "a strict ledger is made smaller",
        "ensembles.choose",
        Replace(
            "quorum.ensemble_size if is_strict else quorum.ack_quorum_size",
            "quorum.ack_quorum_size",
        ),
        (f"{MADE}::test_none_is_where_that_is_refused[strict]",),
    ),
    Mutant(
        "a ledger that guarantees its copies is made smaller",
        "creating.create_ledger",
        Replace("is_strict or guarantees_write_quorum", "is_strict"),
        (f"{MADE}::test_none_is_where_that_is_refused[guarantees_write_quorum]",),
    ),
    Mutant(
        "one lost answer makes a ledger smaller",
        "ensembles.choose",
        Replace("max(least, min(pool.size, quorum.ensemble_size))", "least"),
        (f"{MADE}::test_an_answer_that_is_lost_makes_no_ledger_smaller",),
    ),
    Mutant(
        "a smaller ledger does not say what was wanted",
        "creating._smaller",
        Replace("None if made == wanted else MadeSmaller(made, wanted)", "None"),
        (f"{MADE}::test_a_ledger_is_made_on_the_bookies_that_there_are",),
    ),
    Mutant(
        "a log wants what its first ledger got",
        "LogSettings.of",
        Replace("sizes.wanted(ledger)", "ledger.quorum"),
        (f"{SIZES}::test_a_log_that_a_smaller_ledger_makes_wants_what_the_ledger_should_have_had",),
    ),
    Mutant(
        "a strict log is written to all the same",
        "create_log_ledger",
        Replace("is_strict or log.settings.is_strict", "is_strict"),
        (f"{MADE}::test_a_log_that_refuses_smaller_ledgers_is_not_written_to[chained-strict]",),
    ),
    Mutant(
        "a new writer waits for a bookie that its fragment would need",
        "LogTail._continued",
        Replace("if not seen.value.settings.permits_smaller:\n    ...", "if True:\n    ..."),
        (
            f"{MADE}::test_a_writer_of_an_unbounded_log_that_finds_one_bookie_away_closes_the_ledger",
        ),
    ),
    Mutant(
        "a roll waits for a bookie that its fragment would need",
        "LogTail.begin_fragment",
        Replace("if not self._needs_smaller(ledger):\n    ...", "if True:\n    ..."),
        (f"{MADE}::test_a_log_is_written_to_by_new_writers_and_rolled[unbounded]",),
    ),
    Mutant(
        "a log stays in a smaller ledger when its bookies are back",
        "tail.may_go_on",
        Replace("ledger.quorum.ensemble_size == size", "True"),
        (f"{MADE}::test_an_unbounded_log_goes_back_to_ledgers_of_full_size[a new writer]",),
    ),
    Mutant(
        "rows of other stripes are taken as they come",
        "rewrite_into",
        Replace("target.quorum.stripe_count != staging.quorum.stripe_count", "not target"),
        (f"{MADE}::test_rows_that_were_striped_for_another_ledger_are_striped_anew",),
    ),
    # --- what records say ------------------------------------------------------------------------
    Mutant(
        "an open ledger has grown",
        "MadeSmaller.may_be",
        Replace("is_closed and is_between and (now == grown)", "is_between and now == grown"),
        (f"{SIZES}::test_one_that_is_not_closed_has_not_grown",),
    ),
    Mutant(
        "a ledger has grown beyond what was wanted",
        "MadeSmaller.may_be",
        Replace("self.wanted.write_quorum_size", "self.wanted.ensemble_size"),
        (f"{SIZES}::test_sizes_that_it_cannot_have_grown_to_are_refused",),
    ),
    Mutant(
        "records of a wider ledger are taken for another's",
        "is_owned",
        Replace("sizes.of_records(ledger)", "ledger.quorum"),
        (f"{WIDENED}::test_a_ledger_gets_a_further_member_that_has_everything[CRC32C]",),
    ),
    # --- counted ---------------------------------------------------------------------------------
    Mutant(
        "a ledger with fewer copies than wanted is well",
        "Audit._note",
        Replace("sizes.is_short(ledger)", "False"),
        (f"{WIDENED}::test_an_audit_counts_them_and_ends_with_1",),
    ),
    Mutant(
        "fewer stripes are fewer copies",
        "sizes.is_short",
        Replace(
            "copies = ledger.quorum.write_quorum_size\n"
            "return copies < wanted(ledger).write_quorum_size and (not is_empty)",
            "return ledger.quorum != wanted(ledger) and (not is_empty)",
        ),
        (f"{SIZES}::test_what_is_short_has_fewer_copies_than_wanted",),
    ),
    # --- widened ---------------------------------------------------------------------------------
    Mutant(
        "an open ledger is widened",
        "repairing.may_widen",
        Replace(
            "is_closed and ledger.quorum.stripe_count == 1 and sizes.is_short(ledger)",
            "ledger.quorum.stripe_count == 1 and sizes.is_short(ledger)",
        ),
        (f"{REPAIRING}::test_only_a_closed_unstriped_ledger_that_is_short_gets_further_members",),
    ),
    Mutant(
        "the record names a member before it has the copies",
        "Widening._take_step",
        Replace("self._copied(fills, learnt)", "[Filled(0, 0) for _ in fills]"),
        (f"{MEANWHILE}::test_no_copy_is_missing_when_the_record_names_the_member",),
    ),
    Mutant(
        "who has left the ledger joins it",
        "Widening._targets",
        Replace("named | barred", "named"),
        (f"{MEANWHILE}::test_who_has_left_the_ledger_does_not_join_it_again",),
    ),
    Mutant(
        "a bookie that is being removed joins",
        "Widening._is_going",
        Replace("self._cluster.is_going(fill.address.member)", "False"),
        (f"{MEANWHILE}::test_a_bookie_that_is_being_removed_joins_nothing",),
    ),
    Mutant(
        "a bookie that forgot what it took stays a member",
        "Widening._name_all",
        Drop("problem = problem or problem_of(self._run, fill, result)"),
        (f"{MEANWHILE}::test_a_bookie_that_lost_its_copies_again_joins_nothing",),
    ),
    Mutant(
        "a lost race ends a widening",
        "Widening._name_all",
        Replace(
            "learnt.why = 'another client changed the record of the ledger'\nreturn None",
            "return Widened(False, 'another client changed the record of the ledger')",
        ),
        (f"{MEANWHILE}::test_a_record_that_changed_is_read_again",),
    ),
    Mutant(
        "holes are widened over",
        "Widening._copied",
        Replace("result.holes", "False"),
        (f"{WIDENED}::test_what_no_bookie_gives_keeps_it_as_it_is",),
    ),
    Mutant(
        "a further member gets only what its place had when the records were written",
        "_FillWork._is_on",
        Drop("if self.to.planned.quorum.stripe_count == 1:\n    ..."),
        (f"{WIDENED}::test_a_ledger_gets_a_further_member_that_has_everything[CRC32C]",),
    ),
    Mutant(
        "one more member is all that a ledger gets",
        "repairing.repair_command._widen",
        Replace(
            "while found.is_wider:\n    ...",
            "for _ in range(1):\n"
            "    found = widening.widen(one.ledger_id)\n"
            "    work.counts.update(records=found.records, bytes=found.byte_count)\n"
            "    work.counts.update(places=int(found.is_wider))\n"
            "    work.repaired |= {one.ledger_id} if found.is_wider else set()",
        ),
        (f"{WIDENED}::test_one_that_lacks_several_gets_all_that_there_are",),
    ),
)
