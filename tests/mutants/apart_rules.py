"""Mutants of labels on which ledgers insist: each brings copies nearer together than wanted."""

from .change import Replace
from .mutant import Mutant

APART = "tests/unit/protocol/test_apart.py"
EVEN = "tests/unit/protocol/test_balancing.py"
LABELLED = "tests/integration/bookies/test_labelled_bookies.py"
MOVED = f"{LABELLED}::test_a_place_moves_only_to_where_the_copies_stay_apart"

MUTANTS = (
    Mutant(
        "the usual choice is taken although it is not apart",
        "apart.choose_ensemble",
        Replace("not wanted.shortfall([candidate.labels for candidate in usual])", "True"),
        (f"{APART}::test_an_ensemble_is_apart_whenever_the_bookies_allow",),
    ),
    Mutant(
        "bookies without the label count as apart",
        "Apart._counts",
        Replace("{own[i][k] for i in ws} - {''}", "{own[i][k] for i in ws}"),
        (f"{APART}::test_what_is_short_is_told",),
    ),
    Mutant(
        "an arrangement is taken that has too few values",
        "_Arrangement._may_do",
        Replace("{values[k] for values in known} - {''}", "{values[k] for values in known}"),
        (f"{APART}::test_an_ensemble_is_apart_whenever_the_bookies_allow",),
    ),
    Mutant(
        "a change may bring copies together",
        "Apart.is_kept",
        Replace("now >= min(was, least)", "now >= 0"),
        (f"{APART}::test_no_change_goes_below_what_is_wanted",),
    ),
    Mutant(
        "a ledger that lacks labels cannot be repaired",
        "Apart.is_kept",
        Replace("now >= min(was, least)", "now >= least"),
        (f"{APART}::test_no_change_goes_below_what_is_wanted",),
    ),
    Mutant(
        "a recovery does not care for labels",
        "apart.choose_stand_ins",
        Replace("fitting or free", "free"),
        (f"{APART}::test_a_recovery_prefers_what_keeps_copies_apart_and_takes_the_others",),
    ),
    Mutant(
        "a recovery insists on labels",
        "apart.choose_stand_ins",
        Replace("fitting or free", "fitting"),
        (f"{APART}::test_a_recovery_prefers_what_keeps_copies_apart_and_takes_the_others",),
    ),
    Mutant(
        "a recovery does not know what the ledger insists on",
        "stand_ins",
        Replace("vacant is None or not vacant.wanted.distinct", "True"),
        (f"{LABELLED}::test_a_recovery_prefers_a_bookie_that_keeps_the_copies_apart",),
    ),
    Mutant(
        "the ledger does not say what it insists on",
        "creating.create_ledger",
        Replace("{**min_distinct}", "{}"),
        (f"{LABELLED}::test_every_new_ledger_has_two_racks",),
    ),
    Mutant(
        "a log forgets what its first write insisted on",
        "LogSettings.of",
        Replace("given.min_distinct", "{}"),
        (f"{LABELLED}::test_a_log_keeps_what_its_first_write_insists_on",),
    ),
    Mutant(
        "a writer's ledger does not insist as its log does",
        "create_log_ledger",
        Replace("log.settings.min_distinct", "{}"),
        (f"{LABELLED}::test_none_is_made_where_the_bookies_are_not_so",),
    ),
    Mutant(
        "a stream adopts a ledger that insists on less",
        "streams.commit._is_untouched",
        Replace(
            "dict(ledger.settings.min_distinct) == dict(log.settings.min_distinct)", "bool(ledger)"
        ),
        (f"{LABELLED}::test_a_stream_adopts_no_ledger_that_insists_on_less_than_the_log",),
    ),
    Mutant(
        "a failed bookie is replaced by any other",
        "ensembles._suited",
        Replace(
            "pool.choose(1, exclude=used.union(failed), near=near, fits=fits)",
            "pool.choose(1, exclude=used.union(failed), near=near)",
        ),
        (f"{LABELLED}::test_none_replaces_it_if_that_brings_copies_together",),
    ),
    Mutant(
        "a spare is taken as it comes",
        "ensembles._suited",
        Replace("(address for address in free if fits(address.labels))", "free"),
        (f"{LABELLED}::test_spares_are_taken_only_if_the_copies_stay_apart",),
    ),
    Mutant(
        "a new fragment has its bookies in any order",
        "ensembles._places",
        Replace("wanted.wanted.is_kept(labels, after)", "True"),
        (f"{LABELLED}::test_a_new_fragment_of_a_striped_ledger_has_them_in_each_write_set",),
    ),
    Mutant(
        "a place moves to a bookie that brings copies together",
        "Successors.fitting",
        Replace("_fitting(self._cluster, Apart.of(ledger), ensemble, index)", "_any_labels"),
        (f"{MOVED}[aaaab-repair]", f"{MOVED}[aaaab-decommission]"),
    ),
    Mutant(
        "a balance forgets what the ledger insists on",
        "_Balance._keeps",
        Replace(
            "not fragment.distinct or wanted.is_kept(self._labels(before), self._labels(after))",
            "True",
        ),
        (f"{EVEN}::test_a_move_keeps_what_the_ledger_insists_on",),
    ),
    Mutant(
        "a balance looks at disks alone",
        "balancing._levels",
        Replace("k == 0 or any(column)", "k == 0"),
        (f"{EVEN}::test_a_move_keeps_copies_in_as_many_racks_as_they_are",),
    ),
    Mutant(
        "placement does not look at labels",
        "bookies._least_used",
        Replace("candidate.levels", "candidate.levels[:1]"),
        (f"{APART}::test_copies_are_spread_over_zones_and_then_racks",),
    ),
    Mutant(
        "an audit does not tell that copies are near together",
        "audit.misplaced",
        Replace("if lacks:\n    ...", "if not members:\n    ..."),
        (f"{LABELLED}::test_a_recovery_takes_any_bookie_and_an_audit_tells_it",),
    ),
)
