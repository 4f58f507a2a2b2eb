"""Mutants of decommission and rebalance: what moves where, what stays, what is never given up."""

from .mutant import Mutant

DRAINING = "protocol/ledger/draining.py"
PLAN = "admin/draining/plan.py"
RUN = "admin/draining/run.py"
FILL = "admin/repairing/fill.py"
PURE = "tests/unit/protocol/test_draining.py"
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
)
