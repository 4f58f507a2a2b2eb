"""Mutants of what an unbounded log keeps, fragment by fragment."""

from .mutant import Mutant

UNIT = "tests/unit/protocol/test_fragment_retention.py"
REOPENING = "tests/unit/protocol/test_reopening.py"
RECORDS = "tests/unit/format/test_records_of_ledgers_that_go_on.py"
LOGS = "tests/integration/log/test_truncated_unbounded_logs.py"
ROLLS = f"{LOGS}::test_a_writer_lets_old_fragments_go_when_it_rolls"
TAKEOVERS = f"{LOGS}::test_who_takes_over_says_when_and_behind_what_too"
KEPT_BEGINNING = f"{REOPENING}::test_it_is_forgotten_by_no_change_of_members_nor_told_of_another"

MUTANTS = (
    Mutant(
        "a fragment goes that a cursor has not read",
        "retained_inside",
        " or (unread is not None and end_offset > unread)",
        "",
        (f"{UNIT}::test_what_a_cursor_has_not_read_stays",),
    ),
    Mutant(
        "what fragments hold is not counted",
        "retained_inside",
        "rest = length - fragment.beginning.length_bytes",
        "rest = length",
        (f"{UNIT}::test_size_is_counted_without_the_last_one", ROLLS),
    ),
    Mutant(
        "retention gives back what was truncated",
        "retained_inside",
        "return max(offset, log.first_offset)",
        "return offset",
        (f"{UNIT}::test_it_never_gives_any_back",),
    ),
    Mutant(
        "retention goes by closed ledgers alone",
        "_kept_from",
        "if ledger is None or offset < log.end_offset:",
        "if True:",
        (ROLLS, TAKEOVERS),
    ),
    Mutant(
        "fragments go in front of which a closed ledger stays",
        "_kept_from",
        "if ledger is None or offset < log.end_offset:",
        "if ledger is None:",
        (f"{LOGS}::test_fragments_stay_behind_a_closed_ledger_that_stays",),
    ),
    Mutant(
        "what fragments hold does not lie behind closed ledgers",
        "_kept_from",
        "bytes_behind=0 if ledger is None else known_bytes(ledger)",
        "bytes_behind=0",
        (f"{LOGS}::test_closed_ledgers_go_by_what_lies_in_the_fragments_behind_them",),
    ),
    Mutant(
        "retention does nothing in front of a tail whose record is damaged",
        "_kept_from",
        "        ledger = _readable_tail(cluster, log)\n",
        "        ledger = _going_on(cluster, log)\n",
        (
            f"{LOGS}::test_in_front_of_a_tail_whose_record_is_damaged_what_is_surely_not_wanted_goes",
        ),
    ),
    Mutant(
        "a closed tail is confirmed up to where its last fragment begins",
        "truncation._confirmed",
        "ledger.last_confirmed if ledger.last_entry_id is None else ledger.last_entry_id\n",
        "ledger.last_confirmed\n",
        (f"{LOGS}::test_a_tail_that_is_closed_meanwhile_is_truncated_all_the_same",),
    ),
    Mutant(
        "a ledger has what it had before something was given up",
        "known_bytes",
        "return next(said, 0)",
        "return max(said, default=0)",
        (f"{UNIT}::test_entries_that_were_given_up_do_not_count",),
    ),
    Mutant(
        "who writes nothing makes younger what lies in front",
        "Open.applied_to",
        "beginning = known or Beginning",
        "beginning = Beginning",
        (f"{REOPENING}::test_who_writes_nothing_makes_nothing_younger",),
    ),
    Mutant(
        "half of a beginning is none",
        "_decode_beginning",
        "    if (began_ms is None) != (length_bytes is None):\n",
        "    if False:\n",
        (f"{RECORDS}::test_half_a_beginning_is_refused",),
    ),
    Mutant(
        "nothing is let go of when a fragment is begun",
        "OwnTail.begin_fragment",
        "        self._retain()\n",
        "",
        (ROLLS,),
    ),
    Mutant(
        "a writer whose log cannot be truncated fails to roll",
        "OwnTail._retain",
        "with suppress(BookKeeperError):",
        "with suppress():",
        (f"{LOGS}::test_it_does_not_end_a_writer_that_this_fails",),
    ),
    Mutant(
        "a roll does not say how much is in front of it",
        "FragmentRoll.next",
        "self._found, lac, pending.length_bytes)",
        "self._found, lac)",
        (ROLLS,),
    ),
    Mutant(
        "a roll does not say when it was",
        "Membership.swap",
        "        step = replace(step, now_ms=environment.now_ms())\n",
        "",
        (ROLLS,),
    ),
    Mutant(
        "a takeover does not say how much is in front of it",
        "Reopening.of",
        "plan = replace(plan, length_bytes=decision.last.length_bytes)",
        "pass",
        (TAKEOVERS,),
    ),
    Mutant(
        "a takeover does not say when it was",
        "Opener.open",
        "replace(plan, now_ms=environment.now_ms())",
        "plan",
        (TAKEOVERS,),
    ),
    Mutant(
        "a fragment with other members says when another was begun",
        "LedgerMetadata._beginning_at",
        "return last.beginning if last.first_entry_id == first_entry_id else None",
        "return last.beginning",
        (KEPT_BEGINNING,),
    ),
    Mutant(
        "a change of members forgets when the fragment was begun",
        "LedgerMetadata._beginning_at",
        "return last.beginning if last.first_entry_id == first_entry_id else None",
        "return None",
        (KEPT_BEGINNING,),
    ),
    Mutant(
        "ledgers with one writer get records that older versions refuse",
        "LedgerMetadata.with_ensemble",
        "(beginning if self.goes_on else None)",
        "beginning",
        (f"{REOPENING}::test_only_a_ledger_that_goes_on_says_it",),
    ),
    Mutant(
        "older versions read a record that says when fragments were begun",
        "_version_of",
        "    if any(fragment.beginning for fragment in metadata.fragments):\n"
        "        return LAST_VERSION\n",
        "",
        (f"{RECORDS}::test_who_does_not_know_when_fragments_were_begun_refuses_it",),
    ),
)
