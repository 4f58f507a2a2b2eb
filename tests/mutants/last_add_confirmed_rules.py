"""Mutants of how far an open ledger may be read, and of how its bookies are asked."""

from .change import Replace
from .mutant import Mutant

RULE = "tests/unit/protocol/test_confirmed.py"
ENDS = "tests/integration/journals/test_member_ends.py"
TAILS = "tests/integration/log/test_open_tails.py"
CLAIMS = "tests/integration/journals/test_long_claims.py"

LAGGING = f"{TAILS}::test_a_tail_is_never_shown_shorter_by_a_bookie_that_lags"

MUTANTS = (
    Mutant(
        "one bookie is enough to show an end",
        "evidence._shown",
        Replace("witnesses(quorum) - 1", "0"),
        (f"{RULE}::test_so_many_bookies_may_be_away_where_the_others_agree[sizes0-1]",),
    ),
    Mutant(
        "an end is shown when all bookies say it",
        "witnesses",
        Replace(
            "min(quorum.ack_quorum_size, (quorum.write_quorum_size + 1) // 2)",
            "quorum.write_quorum_size",
        ),
        (f"{RULE}::test_what_an_acknowledged_record_says_is_shown[sizes3]",),
    ),
    Mutant(
        "a bookie that does not answer says nothing",
        "evidence.confirmed",
        Replace(
            "said[index] if index in sure else above",
            "said[index] if index in sure else said.get(index, -1)",
        ),
        (
            f"{RULE}::test_no_reader_is_shown_less_than_one_before_him[sizes3]",
            f"{RULE}::test_it_is_known_only_with_answers_from_every_write_set",
            LAGGING,
        ),
    ),
    Mutant(
        "bookies that differ are enough",
        "Confirmed.is_known",
        Replace("self.least == self.most", "self.most is not None"),
        (f"{RULE}::test_no_reader_is_shown_less_than_one_before_him[sizes3]", LAGGING),
    ),
    Mutant(
        "a torn journal is all that there was",
        "MemberEnd.is_sure",
        Replace("end.is_whole", "True"),
        (f"{ENDS}::test_a_record_that_is_being_appended_leaves_no_doubt_once_it_is_there",),
    ),
    Mutant(
        "a journal that goes on leaves a doubt",
        "_grew",
        Replace("before.end < now.end", "before.end > now.end"),
        (f"{ENDS}::test_a_record_that_is_being_appended_leaves_no_doubt_once_it_is_there",),
    ),
    Mutant(
        "a bookie that lost the ledger's folder is empty",
        "member_journals.member_end",
        Replace("not problem", "not ends and problem"),
        (f"{ENDS}::test_a_bookie_that_lost_the_ledgers_folder_is_not_empty",),
    ),
    Mutant(
        "copies of a recovery make a bookie whole for readers",
        "member_journals.member_end",
        Replace("not problem", "not ends and (not problem)"),
        (
            "tests/integration/recovery/test_lost_records.py::"
            "test_copies_of_a_recovery_make_no_bookie_whole_for_readers",
            "tests/integration/recovery/test_lost_records.py::"
            "test_a_reader_takes_no_bookie_without_its_marker_for_whole",
        ),
    ),
    Mutant(
        "a journal that has become shorter is all that there was",
        "journal_pages._looked",
        Replace("reader.size < known.end", "reader.size < 0"),
        (f"{ENDS}::test_a_journal_that_has_become_shorter_leaves_a_doubt",),
    ),
    Mutant(
        "what rows look like is a record",
        "JournalReader.is_by_its_writer",
        Replace(
            "self._bytes.name == layout.journal(record.ledger_id, record.term, record.token)",
            "record.ledger_id >= 0",
        ),
        (f"{ENDS}::test_rows_that_look_like_a_record_are_none",),
    ),
    Mutant(
        "bookies that differ are not asked again",
        "how_far.look",
        Replace("pause is None or (is_current and (not state.may_change))", "is_current"),
        (f"{ENDS}::test_bookies_that_differ_are_asked_again_until_they_agree",),
    ),
    Mutant(
        "what is known is not read while more may be",
        "_Look.may_be_read",
        Replace("self._highest >= entry_id", "self.is_known"),
        (f"{TAILS}::test_what_is_known_to_be_confirmed_is_read_whoever_is_away",),
    ),
    # --- what a bookie claims --------------------------------------------------------------------
    Mutant(
        "a recovery believes whatever is said to be on its way",
        "_without_old_rows",
        Replace("byte_count > IN_FLIGHT_BYTES_MAX", "byte_count < 0"),
        (f"{CLAIMS}::test_more_unconfirmed_rows_than_any_writer_has_are_doubted",),
    ),
    Mutant(
        "a reader takes a long record by its word",
        "JournalReader._length",
        Replace("length > CLAIMED_BYTES_MAX and self._record(begin)[1] is None", "length < 0"),
        (f"{CLAIMS}::test_a_reader_reads_no_record_that_only_claims_to_be_long[not passed]",),
    ),
    Mutant(
        "a long record is read whatever its head says",
        "JournalReader._frame",
        Replace("length > CHUNK_BYTES_MAX and (not self._is_what_it_claims(begin))", "length < 0"),
        (
            f"{CLAIMS}::test_a_reader_reads_no_record_that_only_claims_to_be_long[passed]",
            f"{CLAIMS}::test_a_recovery_reads_no_record_that_only_claims_to_be_long",
        ),
    ),
    Mutant(
        "emptiness is taken for unwritten blocks, however long it is",
        "JournalReader.tail",
        Replace("self.size - begin > DAMAGE_BYTES_MAX", "begin < 0"),
        (
            f"{CLAIMS}::test_a_recovery_passes_little_of_the_emptiness_that_a_journal_claims",
            f"{CLAIMS}::test_more_emptiness_than_any_writer_leaves_is_damage",
        ),
    ),
)
