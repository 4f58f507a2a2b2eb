"""Mutants of decommission and rebalance: what moves where, what stays, what is never given up."""

from .mutant import Mutant

DRAINING = "protocol/upkeep/draining.py"
PLAN = "admin/draining/plan.py"
RUN = "admin/draining/run.py"
FILL = "admin/repairing/fill.py"
PURE = "tests/unit/protocol/test_draining.py"
BALANCING = "protocol/upkeep/balancing.py"
EVEN = "tests/unit/protocol/test_balancing.py"
EVENED = "tests/integration/upkeep/test_rebalance.py"
CHANCE = f"{EVEN}::test_it_gets_better_keeps_all_promises_and_another_plan_has_nothing_to_do"
READERS = "tests/integration/upkeep/test_readers_beside_moves.py"
EMPTIED = "tests/integration/upkeep/test_decommission.py"

MUTANTS = (
    Mutant(
        "an open ledger leaves the bookie that is emptied",
        DRAINING,
        "    if ledger.state is not LedgerState.CLOSED:\n",
        "    if ledger.state is LedgerState.DELETING:\n",
        (f"{PURE}::test_a_ledger_that_is_not_closed_keeps_its_members",),
    ),
    Mutant(
        "an entry of an open ledger is had by all of its write set",
        DRAINING,
        "    is_closed = ledger.state is LedgerState.CLOSED\n",
        "    is_closed = ledger.state is not LedgerState.DELETING\n",
        (
            f"{PURE}::test_what_is_given_up_is_had_by_others",
            f"{EMPTIED}::test_with_an_ack_quorum_of_one_no_open_ledger_is_given_up",
        ),
    ),
    Mutant(
        "a record that cannot be read names nobody",
        PLAN,
        "    blocked += unreadable(records)\n",
        "",
        (f"{EMPTIED}::test_a_record_that_cannot_be_read_may_name_anybody",),
    ),
    Mutant(
        "what a log has let go of is copied",
        PLAN,
        "    if ledger.ledger_id in dropped:\n",
        "    if ledger.ledger_id in dropped and ledger.state is LedgerState.OPEN:\n",
        (f"{EMPTIED}::test_what_a_log_has_let_go_of_is_not_copied",),
    ),
    Mutant(
        "whether there are others is found out later",
        RUN,
        "    if scarce and not wanted.force:\n",
        "    if scarce and wanted.force:\n",
        (f"{EMPTIED}::test_without_other_bookies_nothing_is_changed",),
    ),
    Mutant(
        "a plan does not say that there are no others",
        RUN,
        "    plan = replace(plan, blocked=(*plan.blocked, *scarce))\n",
        "",
        (f"{EMPTIED}::test_the_plan_says_that_there_are_too_few_others",),
    ),
    Mutant(
        "new ledgers are placed on bookies that are emptied",
        RUN,
        "            set_read_only(self._cluster, bookie_id)\n",
        "            set_read_only(self._cluster, bookie_id, dry_run=True)\n",
        (f"{EMPTIED}::test_no_new_ledger_is_placed_on_one_that_is_being_emptied",),
    ),
    Mutant(
        "who opens a bookie again is not heard",
        RUN,
        "                self._opened.add(bookie_id)\n",
        "                self._opened.discard(bookie_id)\n",
        (f"{EMPTIED}::test_it_is_taken_back_by_opening_it_again",),
    ),
    Mutant(
        "what is closed meanwhile is left for another run",
        RUN,
        "            self._carry_out(steps, progress)\n",
        "            return self._carry_out(steps, progress)\n",
        (f"{EMPTIED}::test_a_ledger_that_is_closed_meanwhile_is_moved_by_the_same_run",),
    ),
    Mutant(
        "the last copy is given up by force",
        RUN,
        "        if kept:\n",
        "        if not kept:\n",
        (f"{EMPTIED}::test_one_that_does_not_answer_and_may_have_the_only_copy_stays",),
    ),
    Mutant(
        "others are taken for whole by force",
        "admin/draining/giving_up.py",
        "            or (ledger.ledger_id, fragment.first_entry_id, member) in short\n",
        "",
        (f"{EMPTIED}::test_one_that_does_not_answer_and_may_have_the_only_copy_stays",),
    ),
    Mutant(
        "who leaves is the last to be asked for files",
        FILL,
        "[here, *others] if self.to.is_move else [*others, here]",
        "[*others, here]",
        (f"{EMPTIED}::test_who_leaves_is_the_first_to_give_the_copies",),
    ),
    Mutant(
        "a place without entries is none",
        FILL,
        "            return Filled(0, 0)\n",
        '            return NotFilled("it has none")\n',
        (f"{EMPTIED}::test_a_ledger_without_entries_has_places_too",),
    ),
    Mutant(
        "a place to which no entry belongs lacks all of them",
        FILL,
        "[*self.holes, *self.others]",
        "self.holes",
        (f"{EMPTIED}::test_a_place_to_which_no_entry_belongs_is_given_as_it_is",),
    ),
    Mutant(
        "what is nearly even is made more so",
        BALANCING,
        "    if farthest(loads) <= threshold:\n",
        "    if farthest(loads) <= 0:\n",
        (f"{EVEN}::test_nothing_moves_within_the_threshold_nor_where_no_move_helps",),
    ),
    Mutant(
        "bytes move also where that helps nobody",
        BALANCING,
        "        most = 2 * gap / (",
        "        most = 4 * gap / (",
        (CHANCE,),
    ),
    Mutant(
        "the size of a disk is nothing",
        BALANCING,
        "        return self.used / self.capacity\n",
        "        return self.used\n",
        (f"{EVEN}::test_a_bookie_with_twice_the_disk_gets_twice_as_much",),
    ),
    Mutant(
        "who is closed to new ledgers gets places",
        BALANCING,
        "if x.takes and x.level < source.level",
        "if x.level < source.level",
        (f"{EVEN}::test_who_takes_nothing_gets_nothing_and_may_give", CHANCE),
    ),
    Mutant(
        "a bookie gets two places of one fragment",
        BALANCING,
        "        if target.bookie_id in ids or target in fragment.barred:\n",
        "        if target in fragment.barred:\n",
        (CHANCE,),
    ),
    Mutant(
        "a member that is barred gets a place",
        BALANCING,
        "        if target.bookie_id in ids or target in fragment.barred:\n",
        "        if target.bookie_id in ids:\n",
        (f"{EVEN}::test_who_takes_nothing_gets_nothing_and_may_give",),
    ),
    Mutant(
        "copies come nearer together",
        BALANCING,
        "        return keeps_spread(fragment.quorum, now, after, self._domains)\n",
        "        return bool(after)\n",
        (f"{EVEN}::test_copies_stay_as_far_apart_as_they_were",),
    ),
    Mutant(
        "write sets are not looked at",
        BALANCING,
        "    sets = [range(len(own)), *quorum.write_sets()]\n",
        "    sets = [range(len(own))]\n",
        (f"{EVEN}::test_the_spread_of_each_write_set_counts",),
    ),
    Mutant(
        "open ledgers are weighed and moved",
        "admin/balancing/run.py",
        "    return ledger.state is LedgerState.CLOSED and ledger",
        "    return ledger",
        (f"{EVENED}::test_a_closed_fragment_of_an_open_ledger_stays",),
    ),
    Mutant(
        "who was to take a place and cannot is stood in for",
        "cluster/ensembles.py",
        "        if only:\n",
        "        if not staying:\n",
        (f"{EVENED}::test_who_was_to_take_a_place_and_cannot_is_named_and_nobody_else_gets_it",),
    ),
    Mutant(
        "what a bookie lost makes its ledger light",
        "admin/balancing/weighing.py",
        "    each = median_low(known) if known else 0.0\n",
        "    each = min(known) if known else 0.0\n",
        (f"{EVENED}::test_what_one_bookie_lost_makes_no_ledger_light",),
    ),
    Mutant(
        "a reader asks only bookies that the ledger was on when it began",
        "ledger/handles/read_handle.py",
        "self._found(entry_id) or self._found_elsewhere(entry_id)",
        "self._found(entry_id)",
        (f"{READERS}::test_rb_22_an_open_reader_finds_bookies_that_were_added_since",),
    ),
    Mutant(
        "where bookies are is known for ever",
        "ledger/handles/read_handle.py",
        "        self._entry_reader.refresh_addresses()\n",
        "",
        (f"{READERS}::test_rb_22_an_open_reader_finds_bookies_that_were_added_since",),
    ),
    Mutant(
        "who was given a place is missed a journal that it never had",
        "log/reading/ledger_files.py",
        " if not (shows_any and p == absent)]",
        "]",
        (f"{READERS}::test_a_ledger_that_moved_is_read_without_a_warning",),
    ),
    Mutant(
        "what gains hardly anything is moved",
        BALANCING,
        "        gap = source.level - target.level - self._least\n",
        "        gap = source.level - target.level\n",
        (f"{EVEN}::test_what_gains_hardly_anything_stays",),
    ),
    Mutant(
        "places are given to who has a damaged copy in place",
        "admin/balancing/run.py",
        "ledger.left | marked[ledger.ledger_id],",
        "ledger.left,",
        (f"{EVENED}::test_who_has_a_damaged_copy_of_a_ledger_is_given_no_place_of_it",),
    ),
)
