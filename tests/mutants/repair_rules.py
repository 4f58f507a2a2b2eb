"""Mutants of the repair: what is copied where, who is named when, and what is left alone."""

from .mutant import Mutant

REPAIR = "tests/integration/upkeep/test_repair.py"
ANEW = "tests/integration/bookies/test_reinitialised_bookies.py"
BUGS = "tests/integration/upkeep/test_bugs_of_repairs.py"
RATES = (
    "tests/integration/upkeep/test_rates.py"
    "::test_a_repair_asks_no_bookie_for_more_and_others_do_not_wait_for_it"
)
BETWEEN = "tests/integration/upkeep/test_repairs_between.py"
SILENT = f"{REPAIR}::test_a_bookie_that_is_silent_keeps_its_place"
CUT = f"{REPAIR}::test_only_the_records_that_are_missing_are_copied"
STRIPED = f"{REPAIR}::test_what_was_stored_for_another_place_is_not_what_is_missing"
AWAY = f"{REPAIR}::test_a_silent_bookie_is_replaced_when_it_was_so_for_as_long_as_was_said"

COPIED = "tests/integration/upkeep/test_copied_journal.py"

MUTANTS = (
    Mutant(
        "records are appended behind an append that failed",
        "CopiedJournal._flush",
        "        self._settle()\n        file, pieces, size =",
        "        if self._under_way: self._client._last = None\n        file, pieces, size =",
        (f"{COPIED}::test_nothing_is_put_behind_what_failed",),
    ),
    Mutant(
        "nobody waits for the last records to be durable",
        "CopiedJournal.finish",
        "        self._settle()\n        if self._file is None:\n",
        "        if self._file is None:\n",
        (f"{COPIED}::test_nothing_is_put_behind_what_failed",),
    ),
    Mutant(
        "copies that the bookie does not show are counted",
        "CopiedJournal.finish",
        "            if not root.has_journal(self._file):\n",
        "            if False:\n",
        (f"{COPIED}::test_what_the_bookie_does_not_show_was_not_copied",),
    ),
    Mutant(
        "nobody hears why sources gave no records",
        "_Work._found",
        "            self.faults |= reader.faults\n",
        "",
        (f"{BUGS}::test_where_nobody_gives_a_copy_it_says_who_was_silent",),
    ),
    Mutant(
        "nobody hears why sources gave no entry log",
        "_Work._copy_log",
        "            self.faults |= error.problems\n",
        "",
        (f"{BUGS}::test_where_nobody_gives_a_copy_it_says_who_was_silent",),
    ),
    Mutant(
        "a bookie that does not answer is replaced",
        "way_of",
        "        return Way.REPLACE if is_given_up else Way.WAIT\n",
        "        return Way.REPLACE\n",
        (SILENT,),
    ),
    Mutant(
        "a bookie that was declared lost gets copies",
        "way_of",
        "standing is Standing.GONE or is_lost else",
        "standing is Standing.GONE else",
        (f"{REPAIR}::test_what_a_lost_bookie_still_shows_is_a_source_and_it_gets_nothing",),
    ),
    Mutant(
        "a bookie that was initialised anew never gets its place back",
        "Repair._target",
        "set() if here is None else {place.member.bookie_id}",
        "{place.member.bookie_id}",
        (f"{ANEW}::test_it_gets_its_place_back_where_no_other_bookie_is_free",),
    ),
    Mutant(
        "a ledger that is not closed is repaired",
        "repairing.plan.plan_of",
        "        if ledger.state is not LedgerState.CLOSED:\n",
        "        if ledger.state is LedgerState.DELETING:\n",
        (f"{REPAIR}::test_a_ledger_that_is_not_closed_is_left_as_it_is",),
    ),
    Mutant(
        "the order is that of ledgers",
        "repairing.plan.plan_of",
        "key=lambda need: need.urgency)",
        "key=lambda need: need.urgency[1:])",
        (f"{REPAIR}::test_the_plan_names_the_worst_first_and_changes_nothing",),
    ),
    Mutant(
        "records for another place are the place's own",
        "JournalsShown.held_at",
        "if is_alike or place == index]",
        "if is_alike or place != index + 9]",
        (STRIPED,),
    ),
    Mutant(
        "all records are copied, also those that are there",
        "_Work._look",
        "        return list(lacking(role, shown, planned)), logs\n",
        "        return [role.entries], logs\n",
        (CUT,),
    ),
    Mutant(
        "what nobody gives is no hole",
        "_Work._found",
        "            self.holes += [hole] if hole else []\n",
        "            self.holes += []\n",
        (f"{REPAIR}::test_a_gone_member_is_replaced_also_where_nobody_has_a_part",),
    ),
    Mutant(
        "a place goes to a bookie that does not show the copies",
        "fill._Work._judged",
        "        if problem:\n            return NotFilled(problem)\n",
        "        if problem == 0:\n            return NotFilled(problem)\n",
        (f"{BETWEEN}::test_a_bookie_that_forgets_what_it_took_is_not_named",),
    ),
    Mutant(
        "what was found in place is counted before it is durable",
        "_Work._look",
        "            root.sync(name)\n",
        "            root.size(name)\n",
        (f"{BETWEEN}::test_what_a_killed_repair_left_is_made_durable_before_it_counts",),
    ),
    Mutant(
        "a bookie that is being removed gets the place",
        "Repair._swap",
        "        if self._cluster.is_going(target.member):\n",
        "        if not target.member:\n",
        (f"{BETWEEN}::test_a_bookie_that_is_being_removed_does_not_get_the_place",),
    ),
    Mutant(
        "a bookie that forgot what it took keeps the place",
        "Repair._swap",
        "        problem = problem or problem_of(self._run, one.fill, result)\n",
        "",
        (f"{BETWEEN}::test_a_bookie_that_lost_it_behind_the_swap_gives_the_place_back",),
    ),
    Mutant(
        "a lost race is a change that was made",
        "Repair._swap",
        '            return one.task.with_copies(target, "its record changed meanwhile")\n',
        "            return None\n",
        (f"{BETWEEN}::test_a_record_that_changed_meanwhile_is_looked_at_anew",),
    ),
    Mutant(
        "copies are made again after a lost race",
        "Repair._target",
        "        target = task.kept\n",
        "        target = None\n",
        (f"{BETWEEN}::test_a_record_that_changed_meanwhile_is_looked_at_anew",),
    ),
    Mutant(
        "a place is taken from whoever has it by now",
        "fragment_at",
        "            return fragment if fragment.ensemble[place.index] == place.member else None\n",
        "            return fragment\n",
        (f"{BETWEEN}::test_two_repairs_at_once_give_a_place_to_one",),
    ),
    Mutant(
        "a bookie whose record cannot be read is none",
        "_require_readable",
        '            if key.startswith(f"{prefix}/"):\n',
        '            if key == f"{prefix}/":\n',
        (f"{BETWEEN}::test_a_record_of_a_bookie_that_cannot_be_read_stops_everything",),
    ),
    Mutant(
        "a bookie that has come back is replaced all the same",
        "Repair._target",
        "        if need.standing is Standing.GONE and here is not None and not is_lost:\n",
        "        if need.standing is Standing.GONE and here is None and is_lost:\n",
        (f"{BETWEEN}::test_a_bookie_that_comes_back_before_its_turn_keeps_its_place",),
    ),
    Mutant(
        "a silent bookie is given up at once",
        "_is_since",
        "0 < away.since_ms <= then_ms",
        "0 < away.since_ms",
        (AWAY,),
    ),
    Mutant(
        "a bookie that has answered was away all the while",
        "note_silent",
        "            since_ms = environment.now_ms() if member.bookie_id in silent else 0\n",
        "            since_ms = environment.now_ms()\n",
        (f"{REPAIR}::test_a_bookie_that_has_answered_is_not_away_any_more",),
    ),
    Mutant(
        "a silent bookie is waited for where another one lacks something too",
        "Away.is_given_up",
        "member in self.long or (member in self.shortly and not is_alone)",
        "member in self.long",
        (
            f"{REPAIR}::test_a_silent_bookie_is_replaced_at_once_where_another_one_lacks_something_too",
        ),
    ),
    Mutant(
        "a bookie that may have the only copy is replaced",
        "Repair._end",
        "        if result.holes and not is_here and need.standing is not Standing.GONE:\n",
        "        if result.holes and is_here and need.standing is not Standing.GONE:\n",
        (f"{REPAIR}::test_a_silent_bookie_that_may_have_the_only_copy_keeps_its_place",),
    ),
    Mutant(
        "a damaged journal is told of for ever, whatever was repaired",
        "holding_of",
        '("" if is_told else shown.damage)',
        "shown.damage",
        (
            "tests/integration/upkeep/test_scrub_marks.py"
            "::test_a_damaged_journal_is_told_of_until_its_records_are_there_again",
        ),
    ),
    Mutant(
        "a rate is of each copy, whoever is asked for many",
        "shares",
        " / max(askers[bookie_id] for bookie_id in work) for work in works]",
        " for work in works]",
        (
            "tests/unit/admin/test_pace.py::test_works_of_other_bookies_do_not_share",
            RATES,
        ),
    ),
    Mutant(
        "who is only read from does not count",
        "Fill.bookie_ids",
        "        return {self.address.bookie_id, *sources}\n",
        "        return {self.address.bookie_id}\n",
        (RATES,),
    ),
)
