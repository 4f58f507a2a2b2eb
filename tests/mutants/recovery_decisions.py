"""Mutants of what a recovery concludes, waits for and gives up."""

from .mutant import Mutant

UNIT = "tests/unit/protocol/test_recovery.py"
BUGS = "tests/integration/document/test_recovery_bugs.py"
LOSSES = "tests/integration/recovery/test_recovery_losses.py"
LOST = "tests/unit/cli/test_lost.py"
LOSS_UNIT = "tests/unit/protocol/test_losses.py"
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
MISSING_BESIDE = (
    f"{STRANGE}::test_what_is_missing_beside_something_strange_is_reported_with_its_name"
)

MUTANTS = (
    Mutant(
        "damage in the middle is an absence once everybody has answered",
        "verdicts",
        "CAN_TELL = (None, Doubt.TORN)",
        "CAN_TELL = (None, Doubt.TORN, Doubt.DAMAGED)",
        (f"{UNIT}::test_damage_in_the_middle_of_a_journal_never_becomes_an_absence",),
    ),
    Mutant(
        "a damaged journal in the writer's term is a torn one",
        "fencing",
        "Tail.CORRUPT: Doubt.DAMAGED}",
        "Tail.CORRUPT: Doubt.TORN}",
        (f"{TAILS}::test_rb_11_damage_on_every_bookie_that_has_an_entry_is_not_its_absence",),
    ),
    Mutant(
        "a journal that ends badly leaves no doubt",
        "FenceAndRead._doubt",
        "if is_in_doubt and doubt is not Doubt.DAMAGED:",
        "if False:",
        (f"{BUGS}::test_rb_11_damage_is_not_an_absence",),
    ),
    Mutant(
        "damage in a dead recovery's journal silences its bookie",
        "FenceAndRead._doubt",
        "is_in_doubt = term == self.writer.term and",
        "is_in_doubt =",
        (f"{TAILS}::test_damage_in_what_a_dead_recovery_wrote_silences_nobody[False]",),
    ),
    Mutant(
        "the torn end of an earlier writer leaves a doubt",
        "FenceAndRead._doubt",
        "is_in_doubt = term == self.writer.term and",
        "is_in_doubt = term <= self.writer.term and",
        (f"{EARLIER}::test_only_the_torn_end_of_the_last_writer_leaves_a_doubt[False-True]",),
    ),
    Mutant(
        "no torn end leaves a doubt in a ledger that others went on in",
        "FenceAndRead._doubt",
        "is_in_doubt = term == self.writer.term and",
        "is_in_doubt = term == 1 and",
        (f"{EARLIER}::test_only_the_torn_end_of_the_last_writer_leaves_a_doubt[True-False]",),
    ),
    Mutant(
        "a follower asks for the journals of all terms",
        "member_end.member_end",
        "        if layout.journal_term(name) >= base:\n",
        "        if base:\n",
        (f"{EARLIER}::test_a_follower_asks_for_the_journals_of_the_last_term_only",),
    ),
    Mutant(
        "a log whose tail is damaged cannot be deleted",
        "deleting._fence",
        "with suppress(NoSuchLedgerError, CorruptDataError):",
        "with suppress(ArithmeticError):",
        (
            f"{EARLIER}::test_a_log_whose_tail_has_no_good_record_can_be_deleted[False]",
            f"{EARLIER}::test_a_log_whose_tail_has_no_good_record_can_be_deleted[True]",
        ),
    ),
    Mutant(
        "what a bookie with something strange lacks is absent",
        "verdicts",
        "CAN_TELL = (None, Doubt.TORN)",
        "CAN_TELL = (None, Doubt.TORN, Doubt.UNCLEAR)",
        (f"{UNIT}::test_something_strange_is_waited_for_and_proves_nothing",),
    ),
    Mutant(
        "what is strange on a bookie is given up by one word",
        "decide_group",
        "    silent += tuple(index for index, one in answers.items() if one.doubt in WAITED_FOR)\n",
        "",
        (
            f"{UNIT}::test_something_strange_is_waited_for_and_proves_nothing",
            f"{STRANGE}::test_strange_things_on_all_bookies_are_waited_for_and_no_loss_is_offered",
        ),
    ),
    Mutant(
        "something strange leaves no doubt in a recovery",
        "FenceAndRead._read",
        "        unclear = [found.problem] if found.problem else []\n",
        "        unclear = list[str]()\n",
        (f"{STRANGE}::test_what_a_bookie_with_a_stray_file_lacks_is_unknown[memory]",),
    ),
    Mutant(
        "a journal that is gone leaves no doubt in a recovery",
        "FenceAndRead._read",
        "                unclear.append(",
        "                str(",
        (f"{STRANGE}::test_a_journal_that_is_gone_when_it_is_read_is_no_empty_one",),
    ),
    Mutant(
        "a journal that is gone is empty",
        "journal_size",
        "    if size is None:\n        raise _gone(name)\n    return size",
        "    return size or 0",
        (f"{STRANGE}::test_a_journal_that_is_gone_has_neither_length_nor_bytes",),
    ),
    Mutant(
        "a journal that is gone has no bytes",
        "read_journal",
        "    if data is None:\n        raise _gone(name)\n    return data",
        '    return data or b""',
        (f"{STRANGE}::test_a_journal_that_is_gone_has_neither_length_nor_bytes",),
    ),
    Mutant(
        "a confirmed record that may be hidden is gone",
        "RecordSearch.receive",
        "is_sure = isinstance(result, steps.Shown) and not result.problem",
        "is_sure = isinstance(result, steps.Shown)",
        (
            f"{STRANGE}::test_a_bookie_with_something_strange_may_have_the_record_of_the_confirmed_entry",
        ),
    ),
    Mutant(
        "a follower takes a bookie with something strange for an answer",
        "member_end.member_end",
        "    problem = found.problem\n",
        '    problem = ""\n',
        (
            f"{STRANGE}::test_how_far_an_open_ledger_may_be_read_needs_a_bookie_without_strange_"
            "things[memory]",
        ),
    ),
    Mutant(
        "a plan does not say what is strange",
        "_journal_names",
        "    if found.problem:\n        problems.append(found.problem)\n",
        "",
        (MISSING_BESIDE,),
    ),
    Mutant(
        "a reader does not say what is strange",
        "EntryReader._note_problem",
        "            self._step_over(member, problem)\n",
        "            pass\n",
        (MISSING_BESIDE,),
    ),
    Mutant(
        "links and folders are left out of a listing",
        "names_in",
        "            if not (is_temp(entry.name) or _REMOVED.fullmatch(entry.name))\n",
        "            if not is_temp(entry.name) and entry.is_file(follow_symlinks=False)\n",
        (
            f"{STRANGE}::test_what_stands_in_the_place_of_a_journal_is_no_empty_one[file-folder]",
            f"{STRANGE}::test_what_stands_in_the_place_of_a_journal_is_no_empty_one[file-link]",
        ),
    ),
    Mutant(
        "every name with our beginning is a temporary one",
        "posix_calls",
        '[0-9a-f]{{32}}")',
        '.*")',
        (
            "tests/conformance/test_posix_bookie.py::TestPosixBookie::"
            "test_list_hides_nothing_that_others_left",
        ),
    ),
    Mutant(
        "a torn end is an absence while others are silent",
        "verdicts._is_absent",
        "if is_shown_nowhere else (None,)",
        "if is_shown_nowhere else (None, Doubt.TORN)",
        (f"{UNIT}::test_torn_ends_everywhere_are_an_absence_but_not_while_one_member_is_silent",),
    ),
    Mutant(
        "a lost bookie proves an absence",
        "verdicts._is_absent",
        " if is_shown_nowhere else (None,)",
        " if is_shown_nowhere else (None, Doubt.LOST)",
        (IS_LOST,),
    ),
    Mutant(
        "a torn end beside a lost bookie is an absence",
        "verdicts",
        "CAN_TELL = (None, Doubt.TORN)",
        "CAN_TELL = (None, Doubt.TORN, Doubt.LOST)",
        (
            f"{UNIT}::test_a_torn_end_beside_a_lost_member_is_no_absence",
            f"{LOSSES}::test_a_torn_end_beside_a_lost_bookie_takes_the_word[memory]",
        ),
    ),
    Mutant(
        "a lost bookie that comes back proves an absence",
        "Evidence.answers",
        "answers[index] = replace(answers[index], doubt=Doubt.LOST)",
        "pass",
        (
            f"{LOSSES}::test_a_lost_bookie_that_comes_back_without_an_entry_is_no_proof_of_its_"
            "absence[memory]",
        ),
    ),
    Mutant(
        "a lost bookie that comes back damaged is lost again",
        "Evidence.answers",
        "if answers[index].doubt is not Doubt.DAMAGED:",
        "if True:",
        (f"{LOSSES}::test_damage_on_a_lost_bookie_that_comes_back_stays_damage",),
    ),
    Mutant(
        "a lost bookie that comes back is not asked",
        "Evidence.answers",
        "if index not in answers:",
        "if True:",
        (f"{LOSSES}::test_what_a_lost_bookie_still_shows_is_kept[memory]",),
    ),
    Mutant(
        "entries are lost while one that only knows what is confirmed is silent",
        "decide_group",
        "for index in range(quorum.ensemble_size) if index not in answers)",
        "for ws in write_sets for index in ws if index not in answers)",
        (
            f"{UNIT}::test_nothing_is_lost_while_anybody_is_silent",
            f"{LOSSES}::test_no_entry_is_given_up_while_a_bookie_outside_of_its_write_set_is_"
            "silent[memory]",
        ),
    ),
    Mutant(
        "lost bookies are waited for",
        "decide_group",
        "if index not in answers)\n",
        "if index not in answers or answers[index].doubt is Doubt.LOST)\n",
        (IS_LOST, TWO_WORDS),
    ),
    Mutant(
        "the repair of a damaged journal is waited for",
        "decide_group",
        "if index not in answers)\n",
        "if index not in answers or answers[index].doubt is Doubt.DAMAGED)\n",
        (
            f"{UNIT}::test_damage_in_the_middle_of_a_journal_never_becomes_an_absence",
            f"{LOST}::test_a_damaged_journal_is_waited_for_by_nobody_and_given_up_by_one_word",
        ),
    ),
    Mutant(
        "entries are lost while somebody could still tell of them",
        "decide_group",
        "    if silent:\n",
        "    answers = dict.fromkeys(silent, MemberAnswer({}, Doubt.LOST)) | dict(answers)\n"
        "    if False:\n",
        (IS_LOST, TWO_WORDS),
    ),
    Mutant(
        "entries are given up without the operator's word",
        "InDoubt.receive",
        "return self._give_up() if event.is_given else self.stop(())",
        "return self._give_up()",
        (TWO_WORDS, f"{LOST}::test_a_loss_that_nobody_agrees_to_is_none"),
    ),
    Mutant(
        "the operator's word gives up what a silent bookie may have",
        "recovering._decide",
        "return in_doubt.ask(notes) if group.verdict is Verdict.LOST else in_doubt.stop(notes)",
        "return in_doubt.ask(notes)",
        (TWO_WORDS, f"{LOST}::test_a_loss_that_nobody_agrees_to_is_none"),
    ),
    Mutant(
        "the last confirmed record is given up without a word",
        "Seeking.receive",
        "return self._give_up() if is_given else self._stop()",
        "return self._give_up()",
        (NO_RECORD,),
    ),
    Mutant(
        "the last confirmed record is given up while a bookie is silent",
        "RecordSearch.silent",
        "if member not in self.lost}",
        "if False}",
        (NO_RECORD,),
    ),
    Mutant(
        "a lost bookie's copy of the last confirmed record is waited for",
        "RecordSearch.silent",
        "if member not in self.lost}",
        "}",
        (NO_RECORD,),
    ),
    Mutant(
        "a bookie that answers is declared lost",
        "declare_lost",
        "if _answers(cluster, cluster.bookies()[bookie_id], member):",
        "if False:",
        (f"{LOST}::test_a_bookie_that_answers_is_not_lost",),
    ),
    Mutant(
        "a lost bookie gets into a new ensemble",
        "Cluster.candidates",
        "            if status.may_join and status.member not in lost\n",
        "            if status.may_join\n",
        (f"{LOST}::test_a_lost_bookie_is_lost_for_ever_and_is_chosen_no_more",),
    ),
    Mutant(
        "confirmed entries go with their bookies without a word",
        "recovering._write_back",
        "evidence.term, evidence.losses(decision.confirmed)",
        "evidence.term, []",
        (NAMED_LOSSES,),
    ),
    Mutant(
        "bookies that were initialised anew still have their entries",
        "Evidence.losses",
        "if m in self.lost or m not in self.term.known}",
        "if m in self.lost}",
        (NAMED_LOSSES,),
    ),
    Mutant(
        "only what is surely lost is told",
        "_of_fragment",
        "if len(missing) < quorum.ack_quorum_size:",
        "if len(missing) < quorum.write_quorum_size:",
        (
            "tests/unit/protocol/test_losses.py"
            "::test_each_entry_that_may_be_lost_is_in_a_loss_and_no_other_is",
            NAMED_LOSSES,
        ),
    ),
    Mutant(
        "entries that no writer confirmed are told as lost",
        "_of_fragment",
        "quorum.write_sets() if first <= last_entry_id else ()",
        "quorum.write_sets()",
        (
            "tests/unit/protocol/test_losses.py"
            "::test_only_confirmed_entries_of_their_own_fragment_are_lost",
        ),
    ),
    Mutant(
        "intact records behind damage are given up",
        "read_tail",
        "        found += behind\n",
        "",
        (
            f"{LOSSES}::test_intact_records_behind_damage_are_kept_where_another_bookie_fills_the_"
            "gap[memory]",
            f"{LOSSES}::test_confirmed_entries_that_damage_hides_on_qa_bookies_are_named"
            "[memory-True]",
        ),
    ),
    Mutant(
        "what damage hides is told only if all bookies are damaged",
        "Evidence.losses",
        "tail.hidden for index, tail in self.tails.items()}",
        "() for index in self.tails}",
        (
            f"{LOSSES}::test_confirmed_entries_that_damage_hides_on_qa_bookies_are_named"
            "[memory-False]",
            f"{LOSSES}::test_damage_and_loss_count_together",
        ),
    ),
    Mutant(
        "what another journal on the bookie shows is hidden all the same",
        "not_shown",
        "            at = max(at, end + 1)\n",
        "",
        (f"{LOSS_UNIT}::test_what_is_shown_elsewhere_is_not_hidden",),
    ),
    Mutant(
        "what is whole is said to be lost by itself",
        "losses.given_up",
        "verdict is Verdict.KEEP",
        "verdict is Verdict.LOST",
        (f"{LOSSES}::test_what_is_given_up_is_told_range_by_range",),
    ),
)
