"""Mutants of what a recovery concludes, waits for and gives up."""

from .change import Replace
from .mutant import Mutant

UNIT = "tests/unit/protocol/test_recovery.py"
LOSSES = "tests/integration/recovery/test_recovery_losses.py"
LOST = "tests/unit/cli/test_lost.py"
EARLIER = "tests/integration/journals/test_earlier_terms.py"
TAILS = "tests/integration/journals/test_journal_tails.py"
STRANGE = "tests/integration/journals/test_strange_journals.py"

IS_LOST = f"{UNIT}::test_a_lost_member_has_answered_but_proves_nothing"
NO_RECORD = (
    "tests/integration/recovery/test_recovery.py"
    "::test_without_the_record_of_the_confirmed_entry_it_takes_a_word_and_closes_behind_it"
)
NAMED_LOSSES = f"{LOSSES}::test_confirmed_entries_whose_bookies_are_gone_are_named"
TWO_WORDS = f"{LOST}::test_entries_are_given_up_by_two_words_of_the_operator_and_named"

MUTANTS = (
    Mutant(
        "damage in the middle is an absence once everybody has answered",
        "verdicts",
        Replace("(None, Doubt.TORN)", "(None, Doubt.TORN, Doubt.DAMAGED)"),
        (f"{UNIT}::test_damage_in_the_middle_of_a_journal_never_becomes_an_absence",),
    ),
    Mutant(
        "a damaged journal in the writer's term is a torn one",
        "fencing",
        Replace(
            "{Tail.INCOMPLETE: Doubt.TORN, Tail.CORRUPT: Doubt.DAMAGED}",
            "{Tail.INCOMPLETE: Doubt.TORN, Tail.CORRUPT: Doubt.TORN}",
        ),
        (f"{TAILS}::test_rb_11_damage_on_every_bookie_that_has_an_entry_is_not_its_absence",),
    ),
    Mutant(
        "no torn end leaves a doubt in a ledger that others went on in",
        "FenceAndRead._doubt",
        Replace("self.writer.term", "1"),
        (f"{EARLIER}::test_only_the_torn_end_of_the_last_writer_leaves_a_doubt[True]",),
    ),
    Mutant(
        "a follower asks for the journals of all terms",
        "member_journals.member_end",
        Replace("layout.journal_term(name) >= base", "base"),
        (f"{EARLIER}::test_a_follower_asks_for_the_journals_of_the_last_term_only",),
    ),
    Mutant(
        "a log whose tail is damaged cannot be deleted",
        "deleting._fence",
        Replace("suppress(NoSuchLedgerError, CorruptDataError)", "suppress(ArithmeticError)"),
        (
            f"{EARLIER}::test_a_log_whose_tail_has_no_good_record_can_be_deleted[False]",
            f"{EARLIER}::test_a_log_whose_tail_has_no_good_record_can_be_deleted[True]",
        ),
    ),
    Mutant(
        "what a bookie with something strange lacks is absent",
        "verdicts",
        Replace("(None, Doubt.TORN)", "(None, Doubt.TORN, Doubt.UNCLEAR)"),
        (f"{UNIT}::test_something_strange_is_waited_for_and_proves_nothing",),
    ),
    Mutant(
        "something strange leaves no doubt in a recovery",
        "FenceAndRead._read",
        Replace("[found.problem] if found.problem else []", "list[str]()"),
        (f"{STRANGE}::test_what_a_bookie_with_a_stray_file_lacks_is_unknown[memory]",),
    ),
    Mutant(
        "a journal that is gone leaves no doubt in a recovery",
        "FenceAndRead._read",
        Replace("unclear.append", "str"),
        (f"{STRANGE}::test_a_journal_that_is_gone_when_it_is_read_is_no_empty_one",),
    ),
    Mutant(
        "a journal that is gone is empty",
        "journal_size",
        Replace("if size is None:\n    raise _gone(name)\nreturn size", "return size or 0"),
        (f"{STRANGE}::test_a_journal_that_is_gone_has_neither_length_nor_bytes",),
    ),
    Mutant(
        "a journal that is gone has no bytes",
        "read_journal",
        Replace("if data is None:\n    raise _gone(name)\nreturn data", "return data or b''"),
        (f"{STRANGE}::test_a_journal_that_is_gone_has_neither_length_nor_bytes",),
    ),
    Mutant(
        "a follower takes a bookie with something strange for an answer",
        "member_journals.member_end",
        Replace("found.problem", "''"),
        (
            f"{STRANGE}::test_how_far_an_open_ledger_may_be_read_needs_a_bookie_without_strange_"
            "things[memory]",
        ),
    ),
    Mutant(
        "links and folders are left out of a listing",
        "names_in",
        Replace(
            "not (is_temp(entry.name) or _REMOVED.fullmatch(entry.name))",
            "not is_temp(entry.name) and entry.is_file(follow_symlinks=False)",
        ),
        (
            f"{STRANGE}::test_what_stands_in_the_place_of_a_journal_is_no_empty_one[file-folder]",
            f"{STRANGE}::test_what_stands_in_the_place_of_a_journal_is_no_empty_one[file-link]",
        ),
    ),
    Mutant(
        "every name with our beginning is a temporary one",
        "posix_calls",
        Replace("f'{re.escape(TEMP_PREFIX)}[0-9a-f]{{32}}'", "f'{re.escape(TEMP_PREFIX)}.*'"),
        (
            "tests/conformance/test_posix_bookie.py::TestPosixBookie::"
            "test_list_hides_nothing_that_others_left",
        ),
    ),
    Mutant(
        "a torn end is an absence while others are silent",
        "verdicts._is_absent",
        Replace(
            "CAN_TELL if is_shown_nowhere else (None,)",
            "CAN_TELL if is_shown_nowhere else (None, Doubt.TORN)",
        ),
        (f"{UNIT}::test_torn_ends_everywhere_are_an_absence_but_not_while_one_member_is_silent",),
    ),
    Mutant(
        "a lost bookie proves an absence",
        "verdicts._is_absent",
        Replace(
            "CAN_TELL if is_shown_nowhere else (None,)",
            "CAN_TELL if is_shown_nowhere else (None, Doubt.LOST)",
        ),
        (IS_LOST,),
    ),
    Mutant(
        "a torn end beside a lost bookie is an absence",
        "verdicts",
        Replace("(None, Doubt.TORN)", "(None, Doubt.TORN, Doubt.LOST)"),
        (
            f"{UNIT}::test_a_torn_end_beside_a_lost_member_is_no_absence",
            f"{LOSSES}::test_a_torn_end_beside_a_lost_bookie_takes_the_word[memory]",
        ),
    ),
    Mutant(
        "entries are lost while one that only knows what is confirmed is silent",
        "decide_group",
        Replace(
            "(index for index in range(quorum.ensemble_size) if index not in answers)",
            "(index for ws in write_sets for index in ws if index not in answers)",
        ),
        (
            f"{UNIT}::test_nothing_is_lost_while_anybody_is_silent",
            f"{LOSSES}::test_no_entry_is_given_up_while_a_bookie_outside_of_its_write_set_is_"
            "silent[memory]",
        ),
    ),
    Mutant(
        "lost bookies are waited for",
        "decide_group",
        Replace(
            "index not in answers", "index not in answers or answers[index].doubt is Doubt.LOST"
        ),
        (IS_LOST, TWO_WORDS),
    ),
    Mutant(
        "the repair of a damaged journal is waited for",
        "decide_group",
        Replace(
            "index not in answers", "index not in answers or answers[index].doubt is Doubt.DAMAGED"
        ),
        (
            f"{UNIT}::test_damage_in_the_middle_of_a_journal_never_becomes_an_absence",
            f"{LOST}::test_a_damaged_journal_is_waited_for_by_nobody_and_given_up_by_one_word",
        ),
    ),
    Mutant(
        "entries are lost while somebody could still tell of them",
        "decide_group",
        Replace(
            "if silent:\n    ...",
            "answers = dict.fromkeys(silent, MemberAnswer({}, Doubt.LOST)) | "
            "dict(answers)\n"
            "if False:\n"
            "    return GroupDecision(first_entry_id, Verdict.UNDECIDED, record, silent)",
        ),
        (IS_LOST, TWO_WORDS),
    ),
    Mutant(
        "the last confirmed record is given up while a bookie is silent",
        "RecordSearch.silent",
        Replace("member not in self.lost", "False"),
        (NO_RECORD,),
    ),
    Mutant(
        "a lost bookie's copy of the last confirmed record is waited for",
        "RecordSearch.silent",
        Replace(
            "{member: why for member, why in self.problems if member not in self.lost}",
            "{member: why for member, why in self.problems}",
        ),
        (NO_RECORD,),
    ),
    Mutant(
        "confirmed entries go with their bookies without a word",
        "recovering._write_back",
        Replace("evidence.losses(decision.confirmed)", "[]"),
        (NAMED_LOSSES,),
    ),
    Mutant(
        "only what is surely lost is told",
        "_of_fragment",
        Replace("quorum.ack_quorum_size", "quorum.write_quorum_size"),
        (
            "tests/unit/protocol/test_losses.py"
            "::test_each_entry_that_may_be_lost_is_in_a_loss_and_no_other_is",
            NAMED_LOSSES,
        ),
    ),
    Mutant(
        "what damage hides is told only if all bookies are damaged",
        "Evidence.losses",
        Replace(
            "{self.term.ensemble[index]: tail.hidden for index, tail in self.tails.items()}",
            "{self.term.ensemble[index]: () for index in self.tails}",
        ),
        (
            f"{LOSSES}::test_confirmed_entries_that_damage_hides_on_qa_bookies_are_named"
            "[memory-False]",
            f"{LOSSES}::test_damage_and_loss_count_together",
        ),
    ),
    Mutant(
        "what is whole is said to be lost by itself",
        "verdicts.given_up",
        Replace("Verdict.KEEP", "Verdict.LOST"),
        (f"{LOSSES}::test_what_is_given_up_is_told_range_by_range",),
    ),
)
