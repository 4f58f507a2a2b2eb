"""Mutants of how far an open ledger may be read, and of how its bookies are asked."""

from .mutant import Mutant

RULE = "tests/unit/protocol/test_confirmed.py"
ENDS = "tests/integration/journals/test_member_ends.py"
TAILS = "tests/integration/log/test_open_tails.py"
CLAIMS = "tests/integration/journals/test_long_claims.py"

LAGGING = f"{TAILS}::test_a_tail_is_never_shown_shorter_by_a_bookie_that_lags"

MUTANTS = (
    Mutant(
        "one bookie is enough to show an end",
        "confirmed._shown",
        "    place = witnesses(quorum) - 1\n",
        "    place = 0\n",
        (f"{RULE}::test_so_many_bookies_may_be_away_where_the_others_agree[sizes0-1]",),
    ),
    Mutant(
        "an end is shown when all bookies say it",
        "witnesses",
        "min(quorum.ack_quorum_size, (quorum.write_quorum_size + 1) // 2)",
        "quorum.write_quorum_size",
        (f"{RULE}::test_what_an_acknowledged_record_says_is_shown[sizes3]",),
    ),
    Mutant(
        "a bookie that does not answer says nothing",
        "confirmed.confirmed",
        "said[index] if index in sure else above for",
        "said[index] if index in sure else said.get(index, -1) for",
        (
            f"{RULE}::test_no_reader_is_shown_less_than_one_before_him[sizes3]",
            f"{RULE}::test_it_is_known_only_with_answers_from_every_write_set",
            LAGGING,
        ),
    ),
    Mutant(
        "bookies that differ are enough",
        "Confirmed.is_known",
        "        return self.least == self.most\n",
        "        return self.most is not None\n",
        (f"{RULE}::test_no_reader_is_shown_less_than_one_before_him[sizes3]", LAGGING),
    ),
    Mutant(
        "what is in front of the last fragment is not known to be confirmed",
        "confirmed.confirmed",
        "    return Confirmed(max(floor, least), ",
        "    return Confirmed(least, ",
        (f"{RULE}::test_what_is_known_by_other_means_counts",),
    ),
    Mutant(
        "a torn journal is all that there was",
        "MemberEnd.is_sure",
        "            end.is_whole or (",
        "            True or (",
        (f"{ENDS}::test_a_record_that_is_being_appended_leaves_no_doubt_once_it_is_there",),
    ),
    Mutant(
        "a journal that goes on leaves a doubt",
        "_grew",
        "before.end < now.end",
        "before.end > now.end",
        (f"{ENDS}::test_a_record_that_is_being_appended_leaves_no_doubt_once_it_is_there",),
    ),
    Mutant(
        "a journal that stays torn leaves no doubt",
        "_grew",
        "before.end < now.end",
        "before.end <= now.end",
        (f"{ENDS}::test_a_record_that_is_being_appended_leaves_no_doubt_once_it_is_there",),
    ),
    Mutant(
        "a bookie that lost the ledger's folder is empty",
        "member_end.member_end",
        "    if not problem:\n        problem = _lost",
        "    if not ends and problem:\n        problem = _lost",
        (f"{ENDS}::test_a_bookie_that_lost_the_ledgers_folder_is_not_empty",),
    ),
    Mutant(
        "copies of a recovery make a bookie whole for readers",
        "member_end.member_end",
        "    if not problem:\n        problem = _lost",
        "    if not ends and not problem:\n        problem = _lost",
        (
            "tests/integration/recovery/test_lost_records.py::"
            "test_copies_of_a_recovery_make_no_bookie_whole_for_readers",
            "tests/integration/recovery/test_lost_records.py::"
            "test_a_reader_takes_no_bookie_without_its_marker_for_whole",
        ),
    ),
    Mutant(
        "a journal that has become shorter is all that there was",
        "journal_end._looked",
        "    if reader.size < known.end:  #",
        "    if reader.size < 0:  #",
        (f"{ENDS}::test_a_journal_that_has_become_shorter_leaves_a_doubt",),
    ),
    Mutant(
        "what rows look like is a record",
        "JournalReader.is_by_its_writer",
        "return self._bytes.name == layout.journal(record.ledger_id, record.term, record.token)",
        "return record.ledger_id >= 0",
        (f"{ENDS}::test_rows_that_look_like_a_record_are_none",),
    ),
    Mutant(
        "a record is looked for in all of a journal",
        "JournalReader.last_in_front_of_damage",
        "max(self._bytes.known, self.size - SEARCH_BYTES)",
        "self._bytes.known",
        (f"{ENDS}::test_a_long_journal_is_not_read_to_find_its_end",),
    ),
    Mutant(
        "who reads on reads more and more",
        "_Bytes.read",
        "min(2 * self.chunk, CHUNK_BYTES_MAX)",
        "2 * self.chunk",
        (
            "tests/integration/journals/test_journal_pages.py"
            "::test_who_reads_on_is_given_more_at_once_and_no_more_than_so_much",
        ),
    ),
    Mutant(
        "bookies that differ are not asked again",
        "how_far.look",
        "        if pause is None or (is_current and not state.may_change):\n",
        "        if is_current:\n",
        (f"{ENDS}::test_bookies_that_differ_are_asked_again_until_they_agree",),
    ),
    Mutant(
        "bookies that are away are asked again at once",
        "how_far.look",
        "(is_current and not state.may_change)",
        "(is_current and state.may_change)",
        (f"{ENDS}::test_bookies_that_differ_are_asked_again_until_they_agree",),
    ),
    Mutant(
        "what is known is not read while more may be",
        "_Look.may_be_read",
        "entry_id is not None and self._highest >= entry_id",
        "entry_id is not None and self.is_known",
        (f"{TAILS}::test_what_is_known_to_be_confirmed_is_read_whoever_is_away",),
    ),
    Mutant(
        "whoever waits is told no where nobody knows",
        "ReadHandle.wait_for",
        "            if left <= 0 and unknown is not None:\n",
        "            if left <= 0 and unknown is None:\n",
        (f"{ENDS}::test_bookies_that_differ_are_asked_again_until_they_agree",),
    ),
    # --- what a bookie claims --------------------------------------------------------------------
    Mutant(
        "a recovery holds the rows of all records that it reads",
        "_without_old_rows",
        "            found[old] = replace(found[old], messages={})\n",
        "",
        (f"{CLAIMS}::test_a_recovery_holds_no_rows_that_are_confirmed",),
    ),
    Mutant(
        "a recovery believes whatever is said to be on its way",
        "_without_old_rows",
        "        if byte_count > IN_FLIGHT_BYTES_MAX:\n",
        "        if byte_count < 0:\n",
        (f"{CLAIMS}::test_more_unconfirmed_rows_than_any_writer_has_are_doubted",),
    ),
    Mutant(
        "a reader takes a long record by its word",
        "JournalReader._length",
        "        if length > CLAIMED_BYTES_MAX and self._record(begin)[1] is None:\n",
        "        if length < 0:\n",
        (f"{CLAIMS}::test_a_reader_reads_no_record_that_only_claims_to_be_long[not passed]",),
    ),
    Mutant(
        "a long record is read whatever its head says",
        "JournalReader._frame",
        "(length > CHUNK_BYTES_MAX and not self._is_what_it_claims(begin)):",
        "length < 0:",
        (
            f"{CLAIMS}::test_a_reader_reads_no_record_that_only_claims_to_be_long[passed]",
            f"{CLAIMS}::test_a_recovery_reads_no_record_that_only_claims_to_be_long",
        ),
    ),
    Mutant(
        "a record is looked for in whatever emptiness a journal claims",
        "JournalReader._ends_in_front_of",
        "while end > floor and zeros < SEARCH_BYTES:",
        "while end > floor:",
        (f"{CLAIMS}::test_a_recovery_passes_little_of_the_emptiness_that_a_journal_claims",),
    ),
    Mutant(
        "a record is looked for further than damage can reach",
        "JournalReader._ends_in_front_of",
        "        floor = max(floor, damage - DAMAGE_BYTES_MAX)\n",
        "",
        (f"{CLAIMS}::test_a_recovery_looks_no_further_than_damage_can_reach",),
    ),
    Mutant(
        "emptiness is taken for unwritten blocks, however long it is",
        "JournalReader.tail",
        "if self.size - begin > DAMAGE_BYTES_MAX:",
        "if begin < 0:",
        (
            f"{CLAIMS}::test_a_recovery_passes_little_of_the_emptiness_that_a_journal_claims",
            f"{CLAIMS}::test_more_emptiness_than_any_writer_leaves_is_damage",
        ),
    ),
    Mutant(
        "records in front of emptiness are not good enough",
        "JournalReader._ends_in_front_of",
        "zeros = zeros + end - base if _is_empty(data) else 0",
        "zeros = zeros + end - base",
        (f"{CLAIMS}::test_a_long_record_that_is_torn_is_passed_on_the_way_back",),
    ),
)
