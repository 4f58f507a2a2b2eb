"""Mutants of logs that are one ledger, which changes hands."""

from .change import Drop, Replace
from .mutant import Mutant

LOGS = "tests/integration/log/test_unbounded_logs.py"
CONTINUING = "tests/integration/log/test_continuing.py"
CONTINUED = "tests/integration/log/test_continuing.py"
CONVERTED = "tests/integration/log/test_converted_logs.py"
LEAVING = "tests/integration/log/test_leaving_ledgers.py"
UPKEEP = "tests/integration/log/test_unbounded_upkeep.py"
OUTCOMES = "tests/integration/log/test_unbounded_outcomes.py"
RECOVERED = "tests/spark/test_recover_unbounded.py"
COSTS = "tests/integration/log/test_fragment_costs.py"

MUTANTS = (
    # --- the flag --------------------------------------------------------------------------------
    # --- converting ------------------------------------------------------------------------------
    Mutant(
        "a log is converted under a writer who knows nothing of it",
        "LogHandle.convert",
        Replace(
            "update_with_closed_tail(self._cluster, self.name, self._password, converted)",
            "self._cluster.logs.update(self.name, converted)",
        ),
        (f"{CONVERTED}::test_its_writer_is_fenced_and_opens_it_again",),
    ),
    Mutant(
        "converting reaches a log made anew",
        "LogHandle.convert",
        Replace("self._existing(record).still_of(before.generation)", "self._existing(record)"),
        (f"{CONVERTED}::test_what_is_sealed_overwritten_meanwhile_or_no_kind_is_refused",),
    ),
    # --- writers ---------------------------------------------------------------------------------
    Mutant(
        "a run that slept in front of its takeover writes behind a newer one",
        "_confirm_in_log_record",
        Replace("run is None or seen.value.with_stream(run) == seen.value", "True"),
        (f"{CONTINUING}::test_a_run_that_was_overtaken_before_it_fenced_does_not_write",),
    ),
    Mutant(
        "who goes on while the log is being deleted writes to no log",
        "_confirm_in_log_record",
        Replace("self._cluster.logs.replace(self.log_name, after, seen)", "seen"),
        (f"{CONTINUING}::test_a_log_that_is_being_deleted_takes_nothing_any_more",),
    ),
    Mutant(
        "who goes on in another's ledger leaves his own behind",
        "LogTail._continued",
        Drop("self.drop_made()"),
        (f"{LOGS}::test_who_finds_the_first_ones_ledger_on_the_list_goes_on_in_it",),
    ),
    Mutant(
        "who leaves an unbounded log closes its ledger",
        "LogWriter.close",
        Drop("self._segment.handle.leave()\nreturn"),
        (f"{LOGS}::test_writers_take_turns_in_one_ledger",),
    ),
    Mutant(
        "an unbounded log goes on in another ledger when it is rolled",
        "LogTail.begin_fragment",
        Replace("self._is_left(segment) or not may_go_on(self._cluster, ledger)", "segment"),
        (f"{LOGS}::test_limits_are_those_of_a_fragment_and_the_log_stays_one_ledger",),
    ),
    # --- what is undecided -----------------------------------------------------------------------
    Mutant(
        "entries of the terms behind are taken for his",
        "_end_of_term",
        Replace("first_behind(ledger, term)", "None"),
        (f"{OUTCOMES}::test_what_a_recovery_kept_of_it_is_the_map_of_terms_s_to_say",),
    ),
    Mutant(
        "what was truncated is taken for his",
        "_end_of_term",
        Replace("undecided.first_entry_id < begin", "False"),
        (f"{OUTCOMES}::test_what_is_undecided_in_front_of_a_truncation_is_nobody_s_to_tell",),
    ),
    # --- upkeep ----------------------------------------------------------------------------------
    Mutant(
        "a recovery closes what an unbounded log goes on in",
        "recovering.recover_ledger",
        Replace("not seals", "False"),
        (
            f"{UPKEEP}::test_who_is_recovered_from_is_overtaken_and_the_next_goes_on",
            f"{UPKEEP}::test_many_at_once_say_which_are_open_again",
            f"{UPKEEP}::test_who_opens_it_by_its_id_reads_all_and_closes_nothing",
        ),
    ),
    Mutant(
        "a ledger that was sealed is gone on with, for ever in vain",
        "tail.going_on",
        Replace("ledger.state is not LedgerState.CLOSED", "True"),
        (f"{UPKEEP}::test_one_that_is_sealed_is_closed_and_the_log_goes_on_in_another",),
    ),
    # --- fragments -------------------------------------------------------------------------------
    # --- records stay short ----------------------------------------------------------------------
    Mutant(
        "a writer begins fragments for ever",
        "LogTail.begin_fragment",
        Replace(
            "self._is_left(segment) or not may_go_on(self._cluster, ledger)", "not ledger.goes_on"
        ),
        (f"{CONTINUED}::test_a_writer_who_rolls_goes_on_in_another_ledger_then",),
    ),
    Mutant(
        "a ledger whose bookie is gone for good is gone on with",
        "tail.may_go_on",
        Replace(
            "is_lasting or len(cluster.refresh_candidates(enough=size, needed=size)) < size",
            "True or len(cluster.refresh_candidates(enough=size, needed=size)) < size",
        ),
        (f"{LEAVING}::test_who_takes_over_leaves_one_whose_bookie_is_gone",),
    ),
    Mutant(
        "only the last fragment's bookies tell whether a ledger can be repaired",
        "Locations.names_only",
        Replace(
            "(m in members for one in self.ledger.fragments for m in one.ensemble)",
            "(m in members for m in self.last.members)",
        ),
        ("tests/unit/protocol/test_ledger.py::test_a_place_in_an_earlier_fragment_is_a_place_too",),
    ),
    Mutant(
        "no ledger is gone on with",
        "tail.may_go_on",
        Replace(
            "is_full_size and Locations(ledger).names_only(cluster.lasting_members())", "False"
        ),
        (f"{LEAVING}::test_one_whose_bookie_is_only_away_goes_on",),
    ),
    Mutant(
        "who goes on in the last ledger looks at all ledgers before it",
        "tail.going_on",
        Replace(
            "cluster.ledger(log.tail[0])", "[cluster.ledger(one) for one in log.listed_ids][-1]"
        ),
        (f"{COSTS}::test_a_log_of_very_many_fragments_costs_at_its_end_what_one_of_300_does",),
    ),
    Mutant(
        "anything seals",
        "bkspark.recover_ledger",
        Replace("arguments.yes_or_no('seal', given=seal)", "bool(seal)"),
        (f"{RECOVERED}::test_a_seal_is_of_one_ledger_and_yes_or_no",),
    ),
)
