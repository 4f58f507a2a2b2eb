"""Mutants of ledgers that guarantee their write quorum."""

from .change import Replace
from .mutant import Mutant

WRITER = "tests/protocol/test_write_quorum.py"
LOOP = f"{WRITER}::test_a_guaranteed_write_quorum_is_there_in_front_of_each_fragment_and_at_the_end"
SCRIPT = (
    "tests/protocol/test_scripts.py::"
    "test_the_machine_does_what_the_script_says[guaranteed_write_quorum]"
)
PAPER = "tests/integration/document/test_guaranteed_write_quorum.py"
LOGS = "tests/integration/log/test_guaranteed_logs.py"

MUTANTS = (
    # --- the last add fully replicated -----------------------------------------------------------
    Mutant(
        "the LAFR is worked out by the specification's formula",
        "Lagging.advance",
        Replace(
            "self.adds and self.adds[0].is_fully_replicated",
            "any((add.is_fully_replicated for add in self.adds))",
        ),
        (f"{PAPER}::test_h9_a_later_entry_tells_nothing_of_an_earlier_one", SCRIPT),
    ),
    Mutant(
        "an entry is fully replicated with Qa copies",
        "PendingAdd.is_fully_replicated",
        Replace(
            "all((self.counted.issuperset(write_set) for write_set in self.write_sets))", "True"
        ),
        (f"{PAPER}::test_entries_are_acknowledged_on_the_ack_quorum_all_the_same", SCRIPT),
    ),
    Mutant(
        "a new member gets only what is not acknowledged",
        "PendingAdds.unfinished",
        Replace(
            "chain(self.lagging.adds if self.lagging else (), self._pending)", "iter(self._pending)"
        ),
        (f"{PAPER}::test_all_entries_in_closed_ledgers_reach_the_write_quorum", SCRIPT),
    ),
    Mutant(
        "what names entry logs is acknowledged on Qa",
        "PendingAdds.needed",
        Replace("self.lagging is not None and add.names_entry_logs", "False"),
        (SCRIPT,),
    ),
    # --- fragments -------------------------------------------------------------------------------
    Mutant(
        "a fragment begins behind what is acknowledged, whatever the one before lacks",
        "PendingAdds.fragment_without",
        Replace("index in add.indexes and index not in add.counted", "False"),
        (f"{PAPER}::test_all_entries_in_closed_ledgers_reach_the_write_quorum", SCRIPT),
    ),
    Mutant(
        "a fragment begins at the LAFR, whatever its predecessor has",
        "PendingAdds.fragment_without",
        Replace(
            "lacking = (add.first_entry_id for add in (self.lagging.adds if self.lagging "
            "else ()) if index in add.indexes and index not in add.counted)",
            "lacking = (add.first_entry_id for add in (self.lagging.adds if self.lagging else ()))",
        ),
        (f"{PAPER}::test_all_but_the_last_fragment_reach_the_write_quorum", SCRIPT),
    ),
    # --- the end ---------------------------------------------------------------------------------
    Mutant(
        "a close does not wait for the last copies",
        "LedgerWriter.receive",
        Replace("any(self.pending.unfinished)", "self.pending"),
        (f"{LOOP}[sizes0-0]", SCRIPT),
    ),
    Mutant(
        "what lacks copies may grow without an end",
        "Lagging.is_full",
        Replace("size >= LAGGING_BYTES_MAX or len(self.adds) >= LAGGING_ADDS_MAX", "False"),
        (f"{WRITER}::test_what_lacks_copies_does_not_grow_without_an_end",),
    ),
    # --- recovery --------------------------------------------------------------------------------
    Mutant(
        "a recovery leaves alone what is confirmed",
        "recovering._write_back",
        Replace("evidence.lagging(decision.confirmed)", "((), ())"),
        (
            f"{PAPER}::test_recovery_starts_at_the_last_entry_that_is_fully_replicated",
            f"{PAPER}::test_what_only_silent_bookies_could_show_is_waited_for",
        ),
    ),
    Mutant(
        "what the newest record says that most have is fully replicated",
        "AddRecord.last_add_fully_replicated",
        Replace("min(self.stored)", "max(self.stored)"),
        (f"{PAPER}::test_recovery_starts_at_the_last_entry_that_is_fully_replicated",),
    ),
    Mutant(
        "who takes a place is held to what was stored there in front of the LAC",
        "Recoverer._located",
        Replace("ledger.last_confirmed", "after"),
        (f"{PAPER}::test_a_new_member_is_not_held_to_what_was_acknowledged_before",),
    ),
    # --- logs ------------------------------------------------------------------------------------
    Mutant(
        "ledgers of DataFrames guarantee nothing",
        "private_target",
        Replace("bool(log and log.settings.guarantees_write_quorum)", "False"),
        (f"{LOGS}::test_a_data_frame_is_committed_with_all_its_copies",),
    ),
    # --- the choice ------------------------------------------------------------------------------
)
