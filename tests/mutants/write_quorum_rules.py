"""Mutants of ledgers that guarantee their write quorum."""

from .mutant import Mutant

WRITER = "tests/protocol/test_write_quorum.py"
LOOP = f"{WRITER}::test_a_guaranteed_write_quorum_is_there_in_front_of_each_fragment_and_at_the_end"
SCRIPT = (
    "tests/protocol/test_scripts.py::"
    "test_the_machine_does_what_the_script_says[guaranteed_write_quorum]"
)
PAPER = "tests/integration/document/test_guaranteed_write_quorum.py"
LOGS = "tests/integration/log/test_guaranteed_logs.py"
RECORDS = "tests/unit/format/test_write_quorum_records.py"

MUTANTS = (
    # --- the last add fully replicated -----------------------------------------------------------
    Mutant(
        "the LAFR is worked out by the specification's formula",
        "Lagging.advance",
        "        while self.adds and self.adds[0].is_fully_replicated:\n",
        "        while any(add.is_fully_replicated for add in self.adds):\n",
        (f"{PAPER}::test_h9_a_later_entry_tells_nothing_of_an_earlier_one", SCRIPT),
    ),
    Mutant(
        "an entry is fully replicated with Qa copies",
        "PendingAdd.is_fully_replicated",
        "        return all(self.counted.issuperset(write_set) for write_set in self.write_sets)\n",
        "        return True\n",
        (f"{PAPER}::test_entries_are_acknowledged_on_the_ack_quorum_all_the_same", SCRIPT),
    ),
    Mutant(
        "a new member gets only what is not acknowledged",
        "PendingAdds.unfinished",
        "        return chain(self.lagging.adds if self.lagging else (), self._pending)\n",
        "        return iter(self._pending)\n",
        (f"{PAPER}::test_all_entries_in_closed_ledgers_reach_the_write_quorum", SCRIPT),
    ),
    Mutant(
        "what names entry logs is acknowledged on Qa",
        "PendingAdds.needed",
        "        must_be_full = self.lagging is not None and add.names_entry_logs\n",
        "        must_be_full = False\n",
        (SCRIPT,),
    ),
    # --- fragments -------------------------------------------------------------------------------
    Mutant(
        "a fragment begins behind what is acknowledged, whatever the one before lacks",
        "PendingAdds.fragment_without",
        "            if index in add.indexes and index not in add.counted\n",
        "            if False\n",
        (f"{PAPER}::test_all_entries_in_closed_ledgers_reach_the_write_quorum", SCRIPT),
    ),
    Mutant(
        "a fragment begins at the LAFR, whatever its predecessor has",
        "PendingAdds.fragment_without",
        "            if index in add.indexes and index not in add.counted\n",
        "",
        (f"{PAPER}::test_all_but_the_last_fragment_reach_the_write_quorum", SCRIPT),
    ),
    Mutant(
        "a fragment takes effect while the one before lacks copies",
        "LedgerWriter._swap",
        "            if lagging.last_add_fully_replicated < first - 1:\n",
        "            if False:\n",
        (f"{PAPER}::test_all_but_the_last_fragment_reach_the_write_quorum", SCRIPT),
    ),
    Mutant(
        "whoever failed first goes first",
        "EnsembleChanges.lacking_most",
        "        if most != mine:\n",
        "        if False:\n",
        (SCRIPT,),
    ),
    Mutant(
        "a fragment does not say up to where entries were acknowledged",
        "LedgerMetadata.last_confirmed",
        "        return max(self.last_fragment.first_entry_id - 1, self.last_fragment.confirmed)\n",
        "        return self.last_fragment.first_entry_id - 1\n",
        (
            f"{PAPER}::test_a_fragment_may_begin_in_front_of_what_is_acknowledged",
            "tests/unit/format/test_small_records.py::"
            "test_a_record_says_whether_the_write_quorum_is_guaranteed",
        ),
    ),
    # --- the end ---------------------------------------------------------------------------------
    Mutant(
        "a close does not wait for the last copies",
        "LedgerWriter.receive",
        "        if self.is_stopping and not any(self.pending.unfinished):\n",
        "        if self.is_stopping and not self.pending:\n",
        (f"{LOOP}[sizes0-0]", SCRIPT),
    ),
    Mutant(
        "a ledger is closed though copies are lacking",
        "LedgerWriter._there",
        "        if self.pending.lagging is not None and self.pending.lagging.adds:\n",
        "        if False:\n",
        (f"{WRITER}::test_nobody_closes_a_ledger_that_owes_copies",),
    ),
    Mutant(
        "nobody is looked for at the end",
        "LedgerWriter._try_again",
        "            self.changes.try_again()\n",
        "            pass\n",
        (SCRIPT,),
    ),
    Mutant(
        "who cannot have the last copies made waits for ever",
        "LedgerWriter._require_hope",
        "        if self._owes_copies:\n            raise",
        "        if False:\n            raise",
        (f"{PAPER}::test_a_ledger_stays_open_that_no_bookie_is_left_for", SCRIPT),
    ),
    Mutant(
        "what lacks copies may grow without an end",
        "Lagging.is_full",
        "        return size >= LAGGING_BYTES_MAX or len(self.adds) >= LAGGING_ADDS_MAX\n",
        "        return False\n",
        (f"{WRITER}::test_what_lacks_copies_does_not_grow_without_an_end",),
    ),
    # --- recovery --------------------------------------------------------------------------------
    Mutant(
        "a recovery writes back to Qa",
        "Replication._needed",
        "        return quorum.full if self.ledger.settings.guarantees_write_quorum else quorum\n",
        "        return quorum\n",
        (f"{PAPER}::test_recovery_writes_reach_the_write_quorum",),
    ),
    Mutant(
        "a recovery leaves alone what is confirmed",
        "recovering._write_back",
        "    lagging, gaps = evidence.lagging(decision.confirmed)\n",
        "    lagging, gaps = (), ()\n",
        (
            f"{PAPER}::test_recovery_starts_at_the_last_entry_that_is_fully_replicated",
            f"{PAPER}::test_what_only_silent_bookies_could_show_is_waited_for",
        ),
    ),
    Mutant(
        "a recovery reads journals back to the LAC only",
        "Since.said_by",
        "        if self.is_fully_replicated:\n",
        "        if False:\n",
        (f"{PAPER}::test_recovery_starts_at_the_last_entry_that_is_fully_replicated",),
    ),
    Mutant(
        "what the newest record says that most have is fully replicated",
        "AddRecord.last_add_fully_replicated",
        "min(self.stored) - 1",
        "max(self.stored) - 1",
        (f"{PAPER}::test_recovery_starts_at_the_last_entry_that_is_fully_replicated",),
    ),
    Mutant(
        "a recovery does not wait for who could show what is confirmed",
        "recovering._write_back",
        "    if gaps and evidence.unsure:\n",
        "    if False:\n",
        (f"{PAPER}::test_what_only_silent_bookies_could_show_is_waited_for",),
    ),
    Mutant(
        "a recovery waits for what is lost for ever",
        "recovering._write_back",
        "    if gaps and evidence.unsure:\n",
        "    if gaps:\n",
        (f"{PAPER}::test_what_is_lost_is_waited_for_no_more",),
    ),
    Mutant(
        "who takes a place is held to what was stored there in front of the LAC",
        "Recoverer._located",
        "Since(after, ledger.last_confirmed, ledger",
        "Since(after, after, ledger",
        (f"{PAPER}::test_a_new_member_is_not_held_to_what_was_acknowledged_before",),
    ),
    # --- logs ------------------------------------------------------------------------------------
    Mutant(
        "ledgers of a log's handles guarantee nothing",
        "create_log_ledger",
        "        guarantees_write_quorum=log.settings.guarantees_write_quorum,\n",
        "",
        (f"{LOGS}::test_what_handles_write_has_all_copies_in_each_ledger",),
    ),
    Mutant(
        "ledgers of DataFrames guarantee nothing",
        "private_target",
        "bool(log and log.settings.guarantees_write_quorum)",
        "False",
        (f"{LOGS}::test_a_data_frame_is_committed_with_all_its_copies",),
    ),
    Mutant(
        "ledgers of compactions guarantee nothing",
        "_Rewriting.carry_out",
        "            guarantees_write_quorum=self.log.settings.guarantees_write_quorum,\n",
        "",
        (f"{LOGS}::test_what_a_compaction_writes_guarantees_as_much",),
    ),
    Mutant(
        "ledgers that guarantee less join a log",
        "LogRecord._require_settings_of",
        '            ("guaranteed copies", own.guarantees_write_quorum, '
        "given.guarantees_write_quorum),\n",
        "",
        (
            "tests/unit/protocol/test_log_generations.py::"
            "test_a_ledger_joins_only_a_log_that_guarantees_as_much[False]",
        ),
    ),
    Mutant(
        "older versions may drop what a log guarantees",
        "log_record._version",
        "    if record.settings.guarantees_write_quorum:\n        return _GUARANTEED\n",
        "",
        (f"{RECORDS}::test_they_are_refused_by_who_does_not_know_them",),
    ),
    # --- the choice ------------------------------------------------------------------------------
    Mutant(
        "a record that guarantees the write quorum is of an older version",
        "_version_of",
        "    if metadata.settings.guarantees_write_quorum:\n        return QUORUM_VERSION\n",
        "",
        (
            "tests/unit/format/test_small_records.py::"
            "test_a_record_says_whether_the_write_quorum_is_guaranteed",
        ),
    ),
)
