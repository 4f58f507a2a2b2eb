"""Mutants of where an older answer of a metadata store is enough, and of looks at many bookies."""

from .change import Replace
from .mutant import Mutant

OPERATIONS = "tests/unit/metadata/zookeeper/test_operations.py"
ADDRESSES = "tests/unit/cluster/test_addresses.py"
HOW_FAR = "tests/unit/ledger/handles/test_how_far.py"

MUTANTS = (
    Mutant(
        "bookies are looked at again before the ledger names them",
        "creating.create_ledger",
        Replace(
            "seen = cluster.ledgers.create(str(ledger_id), made)\n"
            "is_going = any(map(cluster.is_going, fragment.ensemble))",
            "is_going = any(map(cluster.is_going, fragment.ensemble))\n"
            "seen = cluster.ledgers.create(str(ledger_id), made)",
        ),
        (f"{OPERATIONS}::test_a_bookie_that_is_being_removed_is_in_no_new_ledger",),
    ),
    Mutant(
        "a change of nothing is one of an older record",
        "Records._change_by_a_guess",
        Replace("changed == seen.value", "False"),
        (f"{OPERATIONS}::TestUpdate::test_no_change_is_one_as_of_now",),
    ),
    Mutant(
        "an older record refuses a change",
        "Records._change_by_a_guess",
        Replace("except BookKeeperError: ...", "except ZeroDivisionError: ..."),
        (f"{OPERATIONS}::TestUpdate::test_a_refusal_is_one_as_of_now",),
    ),
    Mutant(
        "a time limit without an answer is waited for twice",
        "Records._change_by_a_guess",
        Replace("CorruptDataError", "BookKeeperError"),
        (f"{OPERATIONS}::TestUpdate::test_a_time_limit_without_an_answer_is_not_doubled",),
    ),
    Mutant(
        "what looks like damage is compared with older metadata",
        "how_far._is_newest",
        Replace("not state.is_plain", "False"),
        (f"{HOW_FAR}::test_what_looks_like_damage_is_compared_with_the_newest_metadata[True]",),
    ),
    Mutant(
        "a reader that waits goes back",
        "LogWatch.look_again",
        Replace("self.look() if is_behind else self._note(view)", "self._note(view)"),
        (f"{OPERATIONS}::test_a_reader_never_goes_back",),
    ),
    Mutant(
        "a stream of what is there may miss what is there",
        "BookKeeperStreamReader.prepareForTriggerAvailableNow",
        Replace("self._look(is_strict=True)", "self._look()"),
        (f"{OPERATIONS}::test_a_stream_of_what_is_there_misses_nothing",),
    ),
    Mutant(
        "a silent bookie is not looked for at another place",
        "OpenBookies._has_moved",
        Replace("channel is None", "True"),
        (f"{ADDRESSES}::test_a_reader_finds_a_bookie_that_was_moved",),
    ),
    Mutant(
        "a removed bookie has an address",
        "Cluster.addresses_of",
        Replace("not record.is_removed", "True"),
        (f"{ADDRESSES}::test_a_bookie_that_is_left_out_or_removed_is_gone",),
    ),
    Mutant(
        "bookies that were not drawn make a ledger smaller",
        "_Pool.__init__",
        Replace("self._candidates.others and len(self._candidates) < (wanted or 0)", "False"),
        (f"{ADDRESSES}::test_bookies_that_cannot_be_used_make_no_ledger_smaller",),
    ),
    Mutant(
        "failure domains of bookies that were not drawn are not used",
        "_Pool._chosen",
        Replace("_is_spread([*chosen, *near])", "True"),
        (f"{ADDRESSES}::test_a_failure_domain_that_was_not_drawn_is_looked_for",),
    ),
    Mutant(
        "a new ledger looks at all bookies",
        "_Pool.__init__",
        Replace("None if wanted is None else max(DRAWN_MIN, DRAWN_TIMES * wanted)", "None"),
        (f"{ADDRESSES}::test_the_cost_of_a_ledger_does_not_grow_with_the_bookies",),
    ),
    Mutant(
        "the same bookies are drawn each time",
        "Cluster._drawn",
        Replace("environment.draw()", "0.0"),
        (f"{ADDRESSES}::test_each_of_many_bookies_has_its_turn",),
    ),
    Mutant(
        "a roll looks at its log before it changes the counter",
        "LogTail.roll",
        Replace(
            "self._cluster.new_ledger_id() if self._made is None else None",
            "None",
        ),
        (f"{OPERATIONS}::test_quorum_writes_of_ledgers_and_writers",),
    ),
    Mutant(
        "the metadata check of a commit is as old as the commit",
        "batch.commit.commit",
        Replace("freshness.now()", "freshness.at(began)"),
        (f"{OPERATIONS}::test_quorum_writes_of_rows",),
    ),
    Mutant(
        "a commit looks for its ledger as of now",
        "batch.commit.commit",
        Replace("freshness.at(began)", "freshness.now()"),
        (f"{OPERATIONS}::test_quorum_writes_of_rows",),
    ),
)
