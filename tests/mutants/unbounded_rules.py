"""Mutants of logs that are one ledger, which changes hands."""

from .mutant import Mutant

LOGS = "tests/integration/log/test_unbounded_logs.py"
CONTINUING = "tests/integration/log/test_continuing.py"
CONTINUED = "tests/integration/log/test_continuing.py"
CONVERTED = "tests/integration/log/test_converted_logs.py"
LEAVING = "tests/integration/log/test_leaving_ledgers.py"
UPKEEP = "tests/integration/log/test_unbounded_upkeep.py"
OUTCOMES = "tests/integration/log/test_unbounded_outcomes.py"
RECOVERED = "tests/spark/test_recover_unbounded.py"
RECORDS = "tests/unit/format/test_unbounded_records.py"
COSTS = "tests/integration/log/test_fragment_costs.py"

MUTANTS = (
    # --- the flag --------------------------------------------------------------------------------
    Mutant(
        "older versions may put ledgers behind the one of an unbounded log",
        "log_record._version",
        "    if record.is_unbounded:\n        return _UNBOUNDED\n",
        "",
        (f"{RECORDS}::test_it_is_refused_by_who_does_not_know_it",),
    ),
    Mutant(
        "who wants an unbounded log writes to one that is not",
        "resolve_settings",
        "        log.settings.require_unbounded(log.name, request.is_unbounded)\n",
        "",
        (f"{LOGS}::test_a_log_that_is_there_stays_what_it_is",),
    ),
    Mutant(
        "a log that was made in between may be of the other kind",
        "LogRecord._base_for",
        "        self.settings.require_unbounded(self.name, is_unbounded)\n",
        "",
        (f"{LOGS}::test_a_log_that_is_there_stays_what_it_is",),
    ),
    Mutant(
        "who creates it where a chained log is, is not told how to convert that",
        "LogSettings.way_to_use",
        "        if wanted.is_unbounded and not self.is_unbounded:\n",
        "        if False:\n",
        (f"{LOGS}::test_who_creates_one_where_a_chained_one_is_is_told_how_to_convert",),
    ),
    # --- converting ------------------------------------------------------------------------------
    Mutant(
        "a log is converted under a writer who knows nothing of it",
        "LogHandle.convert",
        "        update_with_closed_tail(self._cluster, self.name, self._password, converted)\n"
        "        return True\n",
        "        self._cluster.logs.update(self.name, converted)\n        return True\n",
        (f"{CONVERTED}::test_its_writer_is_fenced_and_opens_it_again",),
    ),
    Mutant(
        "converting reaches a log made anew",
        "LogHandle.convert",
        ".still_of(before.generation)",
        "",
        (f"{CONVERTED}::test_what_is_sealed_overwritten_meanwhile_or_no_kind_is_refused",),
    ),
    Mutant(
        "converting fences a writer for nothing",
        "LogHandle.convert",
        "        if before.is_unbounded == wanted and not before.is_sealed:\n"
        "            return False\n",
        "",
        (f"{CONVERTED}::test_one_that_is_so_already_is_left_alone",),
    ),
    Mutant(
        "a log without a writer is converted with any password",
        "LogHandle.convert",
        "        make_digester(before.digest, self._password)\n",
        "",
        (f"{CONVERTED}::test_a_wrong_password_fences_nobody",),
    ),
    Mutant(
        "a sealed log is converted",
        "LogRecord.converted",
        "        self._require_unsealed()\n        return replace(self, settings",
        "        return replace(self, settings",
        (f"{CONVERTED}::test_what_is_sealed_overwritten_meanwhile_or_no_kind_is_refused",),
    ),
    # --- writers ---------------------------------------------------------------------------------
    Mutant(
        "a run that slept in front of its takeover writes behind a newer one",
        "_confirmed_by_list",
        "is_current = run is None or seen.value.with_stream(run) == seen.value",
        "is_current = True",
        (f"{CONTINUING}::test_a_run_that_was_overtaken_before_it_fenced_does_not_write",),
    ),
    Mutant(
        "who goes on while the log is being deleted writes to no log",
        "_confirmed_by_list",
        "            return cluster.logs.replace(log_name, "
        "seen.value.stamped(environment.now_ms()), seen)\n",
        "            return seen\n",
        (f"{CONTINUING}::test_a_log_that_is_being_deleted_takes_nothing_any_more",),
    ),
    Mutant(
        "the next writer closes the ledger of an unbounded log",
        "_Opening.attempt",
        "        if (tail := self._to_continue(log)) is not None:\n"
        "            return self._continued(seen, tail)\n",
        "",
        (f"{LOGS}::test_writers_take_turns_in_one_ledger",),
    ),
    Mutant(
        "who goes on in another's ledger leaves his own behind",
        "_Opening._continued",
        "        self.give_up()\n        self._own = None\n        try:\n",
        "        try:\n",
        (f"{LOGS}::test_who_finds_the_first_ones_ledger_on_the_list_goes_on_in_it",),
    ),
    Mutant(
        "the ledger of an unbounded log has one writer",
        "_Opening._ledger",
        "goes_on=is_stream or log.is_unbounded,",
        "goes_on=is_stream,",
        (f"{LOGS}::test_writers_take_turns_in_one_ledger",),
    ),
    Mutant(
        "the next writer begins at the ledger's first entry",
        "OwnTail.segment",
        "            standing=standing,\n",
        "",
        (f"{LOGS}::test_writers_take_turns_in_one_ledger",),
    ),
    Mutant(
        "who leaves an unbounded log closes its ledger",
        "LogWriter.close",
        "                    self._segment.handle.leave()\n                    return\n",
        "                    pass\n",
        (f"{LOGS}::test_writers_take_turns_in_one_ledger",),
    ),
    Mutant(
        "readers are not told how far it is acknowledged when its writer ends",
        "LedgerWriter.receive",
        "[*(self._confirm() if self.metadata.goes_on else ()), steps.End(None)]",
        "[steps.End(None)]",
        (
            f"{LOGS}::test_readers_see_all_that_is_acknowledged_once_its_writer_is_closed",
            "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says[ends]",
        ),
    ),
    Mutant(
        "an unbounded log goes on in another ledger when it is rolled",
        "OwnTail.begin_fragment",
        "        if self._is_left(segment) or not may_go_on(self._cluster, ledger):\n",
        "        if segment:\n",
        (f"{LOGS}::test_limits_are_those_of_a_fragment_and_the_log_stays_one_ledger",),
    ),
    # --- what is undecided -----------------------------------------------------------------------
    Mutant(
        "who asks what became of his entries closes the ledger",
        "undecided._end_of",
        "        if seen is None or not seen.value.goes_on:\n",
        "        if True:\n",
        (f"{OUTCOMES}::test_what_nobody_has_decided_yet_is_decided_and_the_ledger_is_open_again",),
    ),
    Mutant(
        "entries of the terms behind are taken for his",
        "_end_of_term",
        "    found = first_behind(ledger.fragments, term)\n",
        "    found = None\n",
        (f"{OUTCOMES}::test_what_a_recovery_kept_of_it_is_the_map_of_terms_s_to_say",),
    ),
    Mutant(
        "what a term has ends where it begins",
        "first_behind",
        "(f.owner or f.term) > term)",
        "(f.owner or f.term) >= term)",
        (f"{OUTCOMES}::test_what_a_recovery_kept_of_it_is_the_map_of_terms_s_to_say",),
    ),
    Mutant(
        "what was truncated is taken for his",
        "_end_of_term",
        "    if undecided.first_entry_id < begin and",
        "    if False and",
        (f"{OUTCOMES}::test_what_is_undecided_in_front_of_a_truncation_is_nobody_s_to_tell",),
    ),
    Mutant(
        "what is undecided is of the ledger's first term",
        "LogWriter.undecided",
        ".first_offset + first, count, term)",
        ".first_offset + first, count)",
        (f"{OUTCOMES}::test_what_is_undecided_is_of_its_writer_s_term",),
    ),
    # --- upkeep ----------------------------------------------------------------------------------
    Mutant(
        "a recovery closes what an unbounded log goes on in",
        "recovering.recover_ledger",
        "    if not seals and is_gone_on_with(",
        "    if False and is_gone_on_with(",
        (
            f"{UPKEEP}::test_who_is_recovered_from_is_overtaken_and_the_next_goes_on",
            f"{UPKEEP}::test_many_at_once_say_which_are_open_again",
            f"{UPKEEP}::test_who_opens_it_by_its_id_reads_all_and_closes_nothing",
        ),
    ),
    Mutant(
        "what is to be sealed is OPEN again",
        "recovering.recover_ledger",
        "    if not seals and is_gone_on_with(",
        "    if is_gone_on_with(",
        (f"{UPKEEP}::test_one_that_is_sealed_is_closed_and_the_log_goes_on_in_another",),
    ),
    Mutant(
        "ledgers of no log are OPEN again",
        "is_gone_on_with",
        " and ledger.ledger_id in seen.value.tail\n",
        "\n",
        (f"{UPKEEP}::test_a_ledger_that_no_log_goes_on_in_is_closed",),
    ),
    Mutant(
        "ledgers of a chained log are OPEN again",
        "is_gone_on_with",
        "seen is not None and seen.value.is_unbounded and",
        "seen is not None and",
        (f"{UPKEEP}::test_a_ledger_that_no_log_goes_on_in_is_closed",),
    ),
    Mutant(
        "a ledger that was sealed is gone on with, for ever in vain",
        "continuing.going_on",
        "ledger.state is not LedgerState.CLOSED",
        "True",
        (f"{UPKEEP}::test_one_that_is_sealed_is_closed_and_the_log_goes_on_in_another",),
    ),
    Mutant(
        "who has recovered it does not say that it is OPEN again",
        "RecoverLedger.run",
        ", is_open=report.is_open)",
        ")",
        (f"{UPKEEP}::test_many_at_once_say_which_are_open_again",),
    ),
    # --- fragments -------------------------------------------------------------------------------
    Mutant(
        "fragments begin at their ids, wherever their ledger does",
        "_every",
        "                place.first_offset + fragment.first_entry_id,\n",
        "                fragment.first_entry_id,\n",
        (f"{LOGS}::test_fragments_of_a_log_of_several_ledgers_begin_at_their_offsets",),
    ),
    Mutant(
        "fragments are in the term that moved them",
        "_every",
        "                fragment.owner or fragment.term,\n",
        "                fragment.term,\n",
        (f"{LOGS}::test_a_fragment_that_a_recovery_moved_keeps_its_term",),
    ),
    # --- records stay short ----------------------------------------------------------------------
    Mutant(
        "a ledger is gone on with for ever",
        "continuing.may_go_on",
        "    if not (ledger.goes_on and ledger.has_room):\n",
        "    if not ledger.goes_on:\n",
        (f"{CONTINUED}::test_a_ledger_of_many_fragments_has_another_one_behind_it",),
    ),
    Mutant(
        "a writer begins fragments for ever",
        "OwnTail.begin_fragment",
        "        if self._is_left(segment) or not may_go_on(self._cluster, ledger):\n",
        "        if not ledger.goes_on:\n",
        (f"{CONTINUED}::test_a_writer_who_rolls_goes_on_in_another_ledger_then",),
    ),
    Mutant(
        "a ledger whose bookie is gone for good is gone on with",
        "continuing.may_go_on",
        "    return is_lasting or len(",
        "    return True or len(",
        (f"{LEAVING}::test_who_takes_over_leaves_one_whose_bookie_is_gone",),
    ),
    Mutant(
        "only the last fragment's bookies tell whether a ledger can be repaired",
        "LedgerMetadata.names_only",
        "all(member in members for one in self.fragments for member in one.ensemble)",
        "all(member in members for member in self.last_fragment.ensemble)",
        ("tests/unit/protocol/test_ledger.py::test_a_place_in_an_earlier_fragment_is_a_place_too",),
    ),
    Mutant(
        "a ledger of a bookie that is being emptied is gone on with",
        "Cluster.lasting_members",
        "if not (r.is_read_only or r.is_going))\n",
        "if not r.is_going)\n",
        (f"{LEAVING}::test_a_bookie_is_emptied_beside_a_writer_once_he_has_rolled",),
    ),
    Mutant(
        "a ledger is left where there is no place for another",
        "continuing.may_go_on",
        "    return is_lasting or len(cluster.candidates(enough=size, needed=size)) < size\n",
        "    return is_lasting\n",
        (f"{LEAVING}::test_one_goes_on_where_there_is_no_place_for_another",),
    ),
    Mutant(
        "no ledger is gone on with",
        "continuing.may_go_on",
        "    is_lasting = is_full_size and ledger.names_only(cluster.lasting_members())\n",
        "    is_lasting = False\n",
        (f"{LEAVING}::test_one_whose_bookie_is_only_away_goes_on",),
    ),
    Mutant(
        "who goes on in the last ledger looks at all ledgers before it",
        "continuing.going_on",
        "    if len(log.tail) != 1 or log.is_sealed:\n        return None\n    try:\n"
        "        ledger = cluster.ledger(log.tail[0]).value\n",
        "    if len(log.tail) != 1 or log.is_sealed:\n        return None\n    try:\n"
        "        ledger = [cluster.ledger(one) for one in log.listed_ids][-1].value\n",
        (f"{COSTS}::test_a_log_of_very_many_fragments_costs_at_its_end_what_one_of_300_does",),
    ),
    Mutant(
        "nobody goes on in a ledger that was rolled into",
        "next_ledger",
        "password, goes_on=log.is_unbounded)",
        "password)",
        (f"{CONTINUED}::test_a_writer_who_rolls_goes_on_in_another_ledger_then",),
    ),
    Mutant(
        "a recovery by Spark seals nothing",
        "actions.recover_ledger",
        "            seals=seals,\n",
        "",
        (f"{RECOVERED}::test_it_is_open_again_unless_it_is_sealed_and_both_say_so",),
    ),
    Mutant(
        "anything seals",
        "bkspark.recover_ledger",
        'arguments.yes_or_no("seal", given=seal)',
        "bool(seal)",
        (f"{RECOVERED}::test_a_seal_is_of_one_ledger_and_yes_or_no",),
    ),
)
