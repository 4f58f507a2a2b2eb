"""Mutants of recovering many ledgers: whose writers are left alone, and what holds up whom."""

from .mutant import Mutant

MANY = "tests/integration/upkeep/test_recover_many.py"
IDLE = "tests/unit/protocol/test_idleness.py"
LATER = (
    f"{MANY}::test_an_open_ledger_is_recovered_once_it_was_seen_unchanged_for_long_enough[memory]"
)
AT_WORK = f"{MANY}::test_a_writer_that_was_at_work_meanwhile_is_left_alone[memory]"
CHANGE = f"{IDLE}::test_any_change_begins_it_anew"
DRY = f"{MANY}::test_a_dry_run_recovers_and_remembers_nothing[memory]"
NAMED = f"{MANY}::test_ledgers_that_are_named_are_recovered_at_once[memory]"

RESTING = "tests/integration/log/test_resting_ledgers.py"
ENDS = "tests/integration/log/test_unbounded_upkeep.py"
RESTS = f"{RESTING}::test_one_that_rests_is_left_alone_until_something_is_written"
SHOWS = f"{RESTING}::test_one_that_rests_is_recovered_where_a_member_does_not_show_what_it_took"
TRUNCATED = f"{RESTING}::test_who_is_gone_for_good_and_had_only_what_is_truncated_closes_nothing"

MUTANTS = (
    Mutant(
        "an unbounded log goes on in a ledger of which a bookie is gone for good",
        "recovering.plan.plan_of",
        "if not one.names_only(there or ())",
        "if False",
        (f"{ENDS}::test_one_whose_bookie_is_gone_for_good_is_closed_and_repaired",),
    ),
    Mutant(
        "what rests is taken over again and again",
        "OpenLedgers.look",
        "            if is_empty and bare.issuperset(fragment.ensemble):\n",
        "            if False:\n",
        (RESTS,),
    ),
    Mutant(
        "what somebody has written to is left alone",
        "Taken.is_bare_in",
        "is_bare = bool(self.journal) and _behind_the_first(root, self.journal) == 0",
        "is_bare = bool(self.journal) and _behind_the_first(root, self.journal) >= 0",
        (RESTS,),
    ),
    Mutant(
        "what rests is well where a member has lost what it took",
        "Taken.is_bare_in",
        "        return is_bare and not self.missing_in(root, is_begun=True)\n",
        "        return is_bare\n",
        (f"{SHOWS}[permission]",),
    ),
    Mutant(
        "what rests is well where a member shows no journal, or says nothing",
        "OpenLedgers.look",
        "            if is_empty and bare.issuperset(fragment.ensemble):\n",
        "            if is_empty and bare:\n",
        (f"{SHOWS}[permission]", f"{SHOWS}[journal]", f"{SHOWS}[bookie]"),
    ),
    Mutant(
        "what rests is not closed where a bookie is gone for good",
        "recovering.plan.plan_of",
        "in resting and ledger.ledger_id not in left:",
        "in resting:",
        (f"{RESTING}::test_a_log_that_rests_is_closed_where_a_bookie_is_gone_for_good",),
    ),
    Mutant(
        "what its record confirms, and nobody has, was never written",
        "OpenLedgers.look",
        "            if is_empty and bare.",
        "            if bare.",
        (f"{RESTING}::test_one_whose_members_all_lack_what_its_record_confirms_does_not_rest",),
    ),
    Mutant(
        "a ledger is closed for copies of what its log has let go of",
        "_as_its_log_wants_it",
        "    return without_front(ledger, seen.value.dropped.of_tail)\n",
        "    return ledger\n",
        (f"{TRUNCATED}[2-False]",),
    ),
    Mutant(
        "a ledger is not closed for copies of what its log has still",
        "_as_its_log_wants_it",
        "    return without_front(ledger, seen.value.dropped.of_tail)\n",
        "    return without_front(ledger, ledger.last_confirmed + 1)\n",
        (f"{TRUNCATED}[0-True]",),
    ),
    Mutant(
        "a ledger is left alone that no log goes on in",
        "run._planned",
        "    resting = [x.ledger_id for x in unwritten if is_gone_on_with(cluster, x)]\n",
        "    resting = [x.ledger_id for x in unwritten]\n",
        (f"{RESTING}::test_one_that_rests_and_that_no_log_goes_on_in_is_closed",),
    ),
    Mutant(
        "a log goes on in a ledger of which something was given up",
        "recovering.recover_ledger",
        "            if opened.lost_from is None:\n",
        "            if True:\n",
        (f"{ENDS}::test_one_of_which_something_is_given_up_is_closed",),
    ),
    Mutant(
        "who gave his word is asked for it again",
        "_asked_once",
        "if loss not in accepted and accepts_loss(loss):",
        "if accepts_loss(loss):",
        (f"{ENDS}::test_one_of_which_something_is_given_up_is_closed",),
    ),
    Mutant(
        "who was declared lost is taken for one that comes back",
        "Cluster.lasting_members",
        "        return members - self.lost_members()\n",
        "        return members\n",
        (f"{ENDS}::test_one_whose_bookie_is_gone_for_good_is_closed_and_repaired",),
    ),
    Mutant(
        "whose record cannot be read is gone for good",
        "run._there",
        "any(key.startswith(prefixes) for key in cluster.unreadable)",
        "False",
        (f"{ENDS}::test_none_is_closed_where_nobody_knows_who_is_gone",),
    ),
    Mutant(
        "an open ledger is recovered at first sight",
        "recovering.plan.plan_of",
        "            and not is_idle(sighting, now_ms, open_grace)\n",
        "            and False\n",
        (LATER, AT_WORK),
    ),
    Mutant(
        "what was written meanwhile is no sign of life",
        "seen_again",
        "        return now\n    return replace(",
        "        return before\n    return replace(",
        (AT_WORK, CHANGE),
    ),
    Mutant(
        "who took over meanwhile is taken for who was there",
        "seen_again",
        "before.writer != now.writer or ",
        "",
        (CHANGE,),
    ),
    Mutant(
        "a bookie that does not answer is a sign of life",
        "seen_again",
        "now.sizes.get(who, size) != size",
        "now.sizes.get(who) != size",
        (
            f"{IDLE}::test_who_does_not_answer_is_remembered_and_proves_nothing",
            f"{MANY}::test_a_bookie_that_is_away_is_no_change[memory]",
        ),
    ),
    Mutant(
        "what was seen is not remembered",
        "run._planned",
        '    problem = known.note(seen) if is_noted else ""\n',
        '    problem = ""\n',
        (LATER,),
    ),
    Mutant(
        "a dry run remembers what it saw",
        "recover_many",
        "is_noted=not dry_run",
        "is_noted=True",
        (DRY,),
    ),
    Mutant(
        "a ledger that is stuck holds up the others",
        "RecoverLedger.run",
        "        except BookKeeperError as error:\n"
        "            return Recovered(self.ledger_id, problem=str(error))\n",
        "",
        (f"{MANY}::test_a_ledger_whose_password_was_not_given_is_left[memory]",),
    ),
    Mutant(
        "a ledger that was named waits for its writer",
        "run._planned",
        '        return plan_of(unclosed, {}, now_ms, wanted.open_grace), ""\n',
        "        seen = OpenLedgers(cluster).look(unclosed, run, now_ms).seen\n"
        '        return plan_of(unclosed, seen, now_ms, wanted.open_grace), ""\n',
        (NAMED,),
    ),
)
