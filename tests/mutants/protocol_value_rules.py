"""Mutants of who holds what, and of what the metadata says."""

from .change import Replace
from .mutant import Mutant

QUORUM = "tests/unit/protocol/test_quorum.py"
LEDGER = "tests/unit/protocol/test_ledger.py"
RECORD = "tests/unit/protocol/test_record.py"
LOCATIONS = "tests/unit/protocol/test_locations.py"
ADDING = "tests/unit/protocol/test_adding.py"

MUTANTS = (
    # --- quorum ----------------------------------------------------------------------------------
    Mutant(
        "an entry is acknowledged at Qa - 1",
        "Quorum.is_ack_quorum",
        Replace("self.ack_quorum_size", "self.ack_quorum_size - 1"),
        (
            f"{QUORUM}::test_an_entry_is_acknowledged_by_qa_of_its_own_write_set",
            f"{ADDING}::test_qa_members_complete_an_add_and_one_fewer_do_not",
        ),
    ),
    Mutant(
        "an entry is acknowledged on any Qa of E",
        "Quorum.is_ack_quorum",
        Replace("sum((index in acked for index in write_set))", "len(set(acked))"),
        (
            f"{QUORUM}::test_answers_from_outside_the_write_set_count_for_nothing",
            f"{ADDING}::test_only_members_of_the_own_write_set_count",
        ),
    ),
    Mutant(
        "Qw - Qa proofs make an absence",
        "Quorum.is_absent",
        Replace(
            "self.write_quorum_size - self.ack_quorum_size + 1",
            "max(1, self.write_quorum_size - self.ack_quorum_size)",
        ),
        (f"{QUORUM}::test_absent_means_that_every_ack_quorum_has_a_proof",),
    ),
    Mutant(
        "absences outside of the write set are proofs",
        "Quorum.is_absent",
        Replace("sum((index in absences for index in write_set))", "len(set(absences))"),
        (f"{QUORUM}::test_answers_from_outside_the_write_set_count_for_nothing",),
    ),
    Mutant(
        "there is one stripe if Qa = Qw",
        "Quorum.stripe_count",
        Replace(
            "self.write_quorum_size == self.ensemble_size",
            "self.write_quorum_size == self.ack_quorum_size",
        ),
        (f"{QUORUM}::test_there_are_as_many_write_sets_as_differ_as_sets",),
    ),
    # --- ledger ----------------------------------------------------------------------------------
    Mutant(
        "a closed ledger opens again",
        "ledger.metadata",
        Replace(
            "{LedgerState.CLOSED, LedgerState.DELETING}",
            "{LedgerState.OPEN, LedgerState.CLOSED, LedgerState.DELETING}",
        ),
        (f"{LEDGER}::test_the_table_of_state_moves",),
    ),
    Mutant(
        "a ledger that is being deleted can be closed",
        "ledger.metadata",
        Replace("{LedgerState.DELETING}", "{LedgerState.DELETING, LedgerState.CLOSED}"),
        (f"{LEDGER}::test_every_change_in_every_state",),
    ),
    Mutant(
        "a writer is known by its term alone",
        "LedgerMetadata.is_writable_by",
        (
            Replace("(self.state, self.term, self.token)", "(self.state, self.term)"),
            Replace("(LedgerState.OPEN, term, token)", "(LedgerState.OPEN, term)"),
        ),
        (f"{LEDGER}::test_only_the_token_of_the_open_term_may_write",),
    ),
    Mutant(
        "a writer goes on while the ledger is recovered",
        "LedgerMetadata.is_writable_by",
        (
            Replace("(self.state, self.term, self.token)", "(self.term, self.token)"),
            Replace("(LedgerState.OPEN, term, token)", "(term, token)"),
        ),
        (f"{LEDGER}::test_only_the_token_of_the_open_term_may_write",),
    ),
    Mutant(
        "an ensemble change reaches into the fragment before the last",
        "LedgerMetadata.with_ensemble",
        Replace(
            "first_entry_id < self.last_fragment.first_entry_id",
            "len([f for f in self.fragments if f.first_entry_id < first_entry_id]) < "
            "len(self.fragments) - 1",
        ),
        (f"{LEDGER}::test_entries_before_the_last_fragment_never_move",),
    ),
    Mutant(
        "closing keeps a fragment without entries",
        "LedgerMetadata.closed",
        Replace("f.first_entry_id <= last_entry_id", "f.first_entry_id <= last_entry_id + 1"),
        (f"{LEDGER}::test_closing_keeps_the_fragments_that_hold_entries",),
    ),
    Mutant(
        "one bookie may stand twice in an ensemble",
        "LedgerMetadata._check_fragments",
        Replace("{member.bookie_id for member in fragment.ensemble}", "set(fragment.ensemble)"),
        (f"{LEDGER}::test_an_impossible_record_is_refused",),
    ),
    # --- locations -------------------------------------------------------------------------------
    Mutant(
        "the end of an open ledger's last location counts as known",
        "Locations.known",
        Replace("self.ledger.state is not LedgerState.CLOSED", "False"),
        (f"{LOCATIONS}::test_nothing_is_known_of_a_location_without_entries",),
    ),
    Mutant(
        "a location without entries counts as known",
        "Locations.known",
        Replace("x.entries[1] >= x.first_entry_id", "True"),
        (f"{LOCATIONS}::test_nothing_is_known_of_a_location_without_entries",),
    ),
    Mutant(
        "two locations have the entry between them",
        "Locations._location",
        Replace("fragments[index + 1].first_entry_id - 1", "fragments[index + 1].first_entry_id"),
        (f"{LOCATIONS}::test_each_entry_is_in_one_location_and_on_its_write_set",),
    ),
    Mutant(
        "only the last location names a member",
        "Locations.names",
        Replace("self.ledger.fragments", "self.ledger.fragments[-1:]"),
        (f"{LOCATIONS}::test_a_member_of_any_location_is_named_but_only_in_its_incarnation",),
    ),
    Mutant(
        "only the last location names a bookie",
        "Locations.names_bookie",
        Replace("self.ledger.fragments", "self.ledger.fragments[-1:]"),
        (f"{LOCATIONS}::test_a_member_of_any_location_is_named_but_only_in_its_incarnation",),
    ),
    # --- record ----------------------------------------------------------------------------------
    Mutant(
        "the short stripes come first",
        "stripe_row_count",
        Replace("row_count - stripe + stripe_count - 1", "row_count + stripe"),
        (
            f"{RECORD}::test_stripes_take_turns",
            f"{RECORD}::test_the_rows_of_all_stripes_are_a_dense_run_of_entries",
        ),
    ),
)
