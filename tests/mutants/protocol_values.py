"""Mutants of who holds what, and of what the metadata says."""

from .mutant import Mutant

QUORUM = "tests/unit/protocol/test_quorum.py"
LEDGER = "tests/unit/protocol/test_ledger.py"
RECORD = "tests/unit/protocol/test_record.py"
ADDING = "tests/unit/protocol/test_adding.py"

MUTANTS = (
    # --- quorum ----------------------------------------------------------------------------------
    Mutant(
        "an entry is acknowledged at Qa - 1",
        "Quorum.is_ack_quorum",
        "in write_set) >= self.ack_quorum_size",
        "in write_set) >= self.ack_quorum_size - 1",
        (
            f"{QUORUM}::test_an_entry_is_acknowledged_by_qa_of_its_own_write_set",
            f"{ADDING}::test_qa_members_complete_an_add_and_one_fewer_do_not",
        ),
    ),
    Mutant(
        "an entry is acknowledged on any Qa of E",
        "Quorum.is_ack_quorum",
        "return sum(index in acked for index in write_set) >=",
        "return len(set(acked)) >=",
        (
            f"{QUORUM}::test_answers_from_outside_the_write_set_count_for_nothing",
            f"{ADDING}::test_only_members_of_the_own_write_set_count",
        ),
    ),
    Mutant(
        "a write set begins at index 0",
        "Quorum.write_set",
        "tuple((entry_id + k) % size",
        "tuple(k % size",
        (f"{QUORUM}::test_the_write_sets_of_the_protocol_document",),
    ),
    Mutant(
        "Qw - Qa proofs make an absence",
        "Quorum.is_absent",
        "self.write_quorum_size - self.ack_quorum_size + 1",
        "max(1, self.write_quorum_size - self.ack_quorum_size)",
        (f"{QUORUM}::test_absent_means_that_every_ack_quorum_has_a_proof",),
    ),
    Mutant(
        "absences outside of the write set are proofs",
        "Quorum.is_absent",
        "proofs = sum(index in absences for index in write_set)",
        "proofs = len(set(absences))",
        (f"{QUORUM}::test_answers_from_outside_the_write_set_count_for_nothing",),
    ),
    Mutant(
        "there is one stripe if Qa = Qw",
        "Quorum.stripe_count",
        "if self.write_quorum_size == self.ensemble_size else",
        "if self.write_quorum_size == self.ack_quorum_size else",
        (f"{QUORUM}::test_there_are_as_many_write_sets_as_differ_as_sets",),
    ),
    # --- ledger ----------------------------------------------------------------------------------
    Mutant(
        "a closed ledger opens again",
        "ledger.metadata",
        "LedgerState.CLOSED: frozenset({LedgerState.CLOSED,",
        "LedgerState.CLOSED: frozenset({LedgerState.OPEN, LedgerState.CLOSED,",
        (f"{LEDGER}::test_the_table_of_state_moves",),
    ),
    Mutant(
        "a ledger that is being deleted can be closed",
        "ledger.metadata",
        "LedgerState.DELETING: frozenset({LedgerState.DELETING})",
        "LedgerState.DELETING: frozenset({LedgerState.DELETING, LedgerState.CLOSED})",
        (f"{LEDGER}::test_every_change_in_every_state",),
    ),
    Mutant(
        "a writer is known by its term alone",
        "LedgerMetadata.is_writable_by",
        "= (self.state, self.term, self.token) == (LedgerState.OPEN, term, token)",
        "= (self.state, self.term) == (LedgerState.OPEN, term)",
        (f"{LEDGER}::test_only_the_token_of_the_open_term_may_write",),
    ),
    Mutant(
        "a writer goes on while the ledger is recovered",
        "LedgerMetadata.is_writable_by",
        "= (self.state, self.term, self.token) == (LedgerState.OPEN, term, token)",
        "= (self.term, self.token) == (term, token)",
        (f"{LEDGER}::test_only_the_token_of_the_open_term_may_write",),
    ),
    Mutant(
        "anybody closes an open ledger",
        "LedgerMetadata.closed",
        "if (self.term, self.token) != (term, token) or",
        "if",
        (f"{LEDGER}::test_every_change_in_every_state",),
    ),
    Mutant(
        "closing again moves the end",
        "LedgerMetadata.closed",
        "if self.state is LedgerState.CLOSED:\n            if (self.last_entry_id",
        "if False:\n            if (self.last_entry_id",
        (f"{LEDGER}::test_closing_at_the_same_end_again_changes_nothing",),
    ),
    Mutant(
        "an ensemble change reaches into the fragment before the last",
        "LedgerMetadata.with_ensemble",
        "if first_entry_id < self.last_fragment.first_entry_id:",
        "if len([f for f in self.fragments if f.first_entry_id < first_entry_id]) "
        "< len(self.fragments) - 1:",
        (f"{LEDGER}::test_entries_before_the_last_fragment_never_move",),
    ),
    Mutant(
        "an ensemble change appends where it should replace",
        "LedgerMetadata.with_ensemble",
        "if f.first_entry_id < first_entry_id)\n        # The members",
        "if f.first_entry_id <= first_entry_id)\n        # The members",
        (f"{LEDGER}::test_a_change_at_the_last_fragments_first_entry_replaces_its_members",),
    ),
    Mutant(
        "closing cuts off acknowledged entries",
        "LedgerMetadata.closed",
        "if last_entry_id < self.last_confirmed:",
        "if False:",
        (f"{LEDGER}::test_closing_never_cuts_off_what_a_fragment_was_put_behind",),
    ),
    Mutant(
        "closing keeps a fragment without entries",
        "LedgerMetadata.closed",
        "if f.first_entry_id <= last_entry_id)",
        "if f.first_entry_id <= last_entry_id + 1)",
        (f"{LEDGER}::test_closing_keeps_the_fragments_that_hold_entries",),
    ),
    Mutant(
        "one bookie may stand twice in an ensemble",
        "LedgerMetadata._check_fragments",
        "ids = {member.bookie_id for member in fragment.ensemble}",
        "ids = set(fragment.ensemble)",
        (f"{LEDGER}::test_an_impossible_record_is_refused",),
    ),
    # --- record ----------------------------------------------------------------------------------
    Mutant(
        "the short stripes come first",
        "stripe_row_count",
        "return (row_count - stripe + stripe_count - 1) // stripe_count",
        "return (row_count + stripe) // stripe_count",
        (
            f"{RECORD}::test_stripes_take_turns",
            f"{RECORD}::test_the_rows_of_all_stripes_are_a_dense_run_of_entries",
        ),
    ),
)
