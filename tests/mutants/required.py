"""The sixty-two ways to break the protocol that must be noticed, each with what notices it.

A killer is written as (where, name): a ``mutant`` of this folder's catalogue, a ``schedule`` by
chance (a mutant of the simulation), a ``script`` (a counterexample), or a ``test`` by its node id,
where the rule holds by the shape of the code and the test shows that. ``none`` says what is not
there yet, so that the rule has nothing to hold for.
"""

Killer = tuple[str, str]

_BUGS = "tests/integration/document/test_recovery_bugs.py::"
_POSIX = "tests/unit/bookie/test_posix_calls.py::"

REQUIRED: dict[int, tuple[str, tuple[Killer, ...]]] = {
    1: (
        "the fence is looked for before the record is written",
        (("schedule", "post-check before the append"), ("script", "M1 ")),
    ),
    2: (
        "the fence is not looked for",
        (
            ("schedule", "post-check skipped"),
            ("script", "M2 "),
            ("mutant", "there is no post-check"),
        ),
    ),
    3: (
        "recovery lists, then fences",
        (("schedule", "fence after read"), ("script", "M3 ")),
    ),
    4: (
        "an absence counts from a bookie that was not fenced",
        (("schedule", "recovery reads without a fence"), ("script", "M4 ")),
    ),
    5: (
        "an absence takes Qw - Qa answers",
        (("schedule", "absence from Qw - Qa answers"), ("script", "M5 ")),
    ),
    6: (
        "an absence takes any one answer",
        (("script", "M5b "), ("mutant", "Qw - Qa proofs make an absence")),
    ),
    7: (
        "an entry is acknowledged at Qa - 1",
        (("schedule", "ack at Qa - 1"), ("script", "M6 ")),
    ),
    8: (
        "a record is acknowledged on any Qa of E",
        (
            ("mutant", "an entry is acknowledged on any Qa of E"),
            (
                "mutant",
                "a record that names entry logs needs the write sets of its own entries only",
            ),
        ),
    ),
    9: (
        "absences are counted over E",
        (("mutant", "absences outside of the write set are proofs"), ("script", "M9 ")),
    ),
    10: ("a fence or an absence comes from a cache", (("script", "M7 "),)),
    11: (
        "a damaged or torn record is an absence",
        (
            ("schedule", "torn record is absent"),
            ("script", "M18 "),
            ("mutant", "damage in the middle is an absence once everybody has answered"),
        ),
    ),
    12: (
        "a place without the right cookie is an empty bookie",
        (("schedule", "cookie not checked"), ("script", "M20 ")),
    ),
    13: (
        "recovery looks at the cookie, the writer does not",
        (("script", "M21 "), ("mutant", "the cookie of a directory is not checked")),
    ),
    14: (
        "no metadata check, and a fence was lost",
        (("schedule", "metadata check skipped"), ("script", "M19 ")),
    ),
    15: (
        "the metadata check is not made again after an ensemble change",
        (("mutant", "a replacement leaves a check under way valid"),),
    ),
    16: ("the metadata check shows what was, and there are no fences", (("script", "M22 "),)),
    17: (
        "a late ack of a replaced bookie counts",
        (("schedule", "acks of a replaced bookie kept"), ("script", "M11 ")),
    ),
    18: (
        "a copy on a spare counts before the CAS",
        (("schedule", "replacement counted without CAS"), ("script", "M12 ")),
    ),
    19: ("recovery uses the ensemble from before its CAS", (("script", "M13 "),)),
    20: (
        "recovery commits its ensemble change at once",
        (("mutant", "a replacement is visible before the closing CAS"),),
    ),
    21: (
        "recovery reads from its own new ensemble",
        (("test", f"{_BUGS}test_rb_05_every_recovery_asks_the_ensemble_of_the_writer"),),
    ),
    22: (
        "recovery begins below the last fragment",
        (("mutant", "a recovery looks below the last fragment"),),
    ),
    23: (
        "records are written back with another LAC",
        (("schedule", "write-back under its own LAC"),),
    ),
    24: (
        "the ledger is closed without a write-back",
        (("schedule", "close without write-back"), ("script", "M17 ")),
    ),
    25: (
        "an ack comes after one's own close",
        (("mutant", "a ledger is sealed although its writer has not ended"),),
    ),
    26: ("the closing CAS has no version", (("schedule", "update without compare"),)),
    27: (
        "the loser of the closing CAS reports its own end",
        (
            (
                "test",
                f"{_BUGS}test_rb_17_a_recovery_that_was_overtaken_adopts_what_the_other_decided",
            ),
        ),
    ),
    28: (
        "one marker for all terms, which is overwritten",
        (
            ("mutant", "a marker found in place is counted as it is"),
            ("test", f"{_POSIX}test_order_of_put_new"),
        ),
    ),
    29: (
        "a record's name has neither term nor writer",
        (("mutant", "two writers of a ledger write to one journal"),),
    ),
    30: (
        "a name that is taken is all the fence there is, with Qa <= Qw / 2",
        (("schedule", "post-check and metadata check skipped"),),
    ),
    31: (
        "a record lives in whatever term it is of",
        (
            ("mutant", "a record of a term that is not open is read"),
            ("mutant", "a last add confirmed of a term that is not open is believed"),
        ),
    ),
    32: (
        "what is fully replicated is worked out from the LAC",
        (
            (
                "test",
                "tests/integration/ledger/test_ensemble_changes.py"
                "::test_rb_43_a_bookie_that_fails_behind_the_ack_is_replaced_all_the_same",
            ),
            ("mutant", "the LAFR is worked out by the specification's formula"),
            ("schedule", "the LAFR is worked out by the specification's formula"),
        ),
    ),
    33: (
        "equal bytes under a taken name are one's own ack",
        (("test", "bkspark/testing/bookie_conformance.py::test_journal_must_be_new"),),
    ),
    34: (
        "a record is written before its rows are durable",
        (("mutant", "the record is written before the missing copies are made"),),
    ),
    35: ("acks overtake one another", (("mutant", "adds overtake one another"),)),
    36: (
        "the LAC in a record is its own last entry",
        (("schedule", "a record confirms itself"),),
    ),
    37: (
        "a failed commit is made again with other rows under the same ids",
        (
            ("mutant", "a batch is not looked up"),
            ("mutant", "a writer is known by its term alone"),
        ),
    ),
    38: ("an abort deletes", (("mutant", "abort deletes the files of the write"),)),
    39: (
        "files are collected by age",
        (
            ("test", "tests/style/test_tidy.py::test_decisions_never_look_at_file_times"),
            ("mutant", "the folders of an open ledger are swept"),
        ),
    ),
    40: (
        "files are collected because a listing lacks their ledger",
        (
            ("mutant", "the folders of an open ledger are swept"),
            ("mutant", "files without a record are collected"),
        ),
    ),
    41: (
        "a collection reads the metadata before it looks at the bookie",
        (
            ("mutant", "copies go by the plan, whatever the record says by now"),
            ("mutant", "what a plan takes for garbage is deleted unseen"),
            (
                "test",
                "tests/simulation/test_upkeep_states.py"
                "::test_records_may_be_read_before_bookies_are_looked_at",
            ),
        ),
    ),
    42: (
        "a collection removes fences with the data",
        (
            ("mutant", "sweeping takes finished files too"),
            ("mutant", "a collection removes markers before what they vouch for"),
        ),
    ),
    43: (
        "a conflict with one's own change is a defeat",
        (("mutant", "one's own change is not recognised"),),
    ),
    44: (
        "an unknown outcome is a failure",
        (
            ("mutant", "one's own change is not recognised"),
            ("test", "tests/conformance/test_conflicts.py::test_rb_27c_is_unknown_and_not_lost"),
        ),
    ),
    45: (
        "a library tries a write again by itself",
        (
            (
                "test",
                "tests/conformance/test_conflicts.py::test_rb_27c_what_was_applied_is_ones_own",
            ),
        ),
    ),
    46: (
        "a file is not synced",
        (
            ("mutant", "a small file is named before it is on disk"),
            ("mutant", "a record counts before it is on disk"),
        ),
    ),
    47: (
        "a folder is not synced",
        (("mutant", "the name of a small file is not made durable"),),
    ),
    48: (
        "the folder above a new one is not synced",
        (("mutant", "a new folder is not made durable in the one above it"),),
    ),
    49: (
        "a sync that failed is tried again",
        (
            ("test", f"{_POSIX}test_journal_ends_at_its_first_error"),
            (
                "test",
                "tests/unit/metadata/test_files_faults.py::test_failed_fsync_is_never_success",
            ),
        ),
    ),
    50: (
        "a fence is not durable before what is looked up behind it",
        (("mutant", "a marker found in place is counted as it is"),),
    ),
    51: (
        "a bookie without the ledger's folder is not fenced",
        (("schedule", "a bookie that has nothing is not fenced"),),
    ),
    52: (
        "what is found in place counts without another sync",
        (
            ("mutant", "a marker found in place is counted as it is"),
            (
                "test",
                f"{_BUGS}test_rb_36_a_marker_found_in_place_is_made_durable_again_"
                "before_anything_is_read",
            ),
        ),
    ),
    53: (
        "opening a log fences the last ledger only",
        (("mutant", "only the last ledger is fenced"),),
    ),
    54: (
        "a reader trusts that an entry is there",
        (("mutant", "a reader believes whatever a bookie has"),),
    ),
    55: (
        "a reader steps over a missing file",
        (("mutant", "rows that no replica gives are left out in silence"),),
    ),
    56: (
        "the LAC of a handle goes back",
        (("mutant", "bookies that differ are enough"),),
    ),
    57: (
        "a recovery decides from two looks at the bookies",
        (
            (
                "test",
                "tests/spark/test_recover.py::test_each_step_is_one_job_with_a_task_for_each_bookie",
            ),
        ),
    ),
    58: (
        "a missing answer is an absence",
        (
            ("schedule", "silence counts as absence"),
            (
                "test",
                "tests/spark/test_recover.py::test_a_missing_result_is_a_failure_and_never_an_absence",
            ),
        ),
    ),
    59: (
        "a digest covers the payload alone",
        (
            ("mutant", "the digest of an add record does not bind its ledger"),
            ("mutant", "the digest of a block does not bind its position in the file"),
        ),
    ),
    60: (
        "the digest of another entry log is good enough",
        (("mutant", "the digest of a block does not bind its attempt"),),
    ),
    61: (
        "a decision looks at a clock or at the time of a file",
        (("test", "tests/style/test_tidy.py::test_decisions_never_look_at_file_times"),),
    ),
    62: (
        "a commit takes None or too few messages",
        (("mutant", "a lost report is overlooked"),),
    ),
}


def _always() -> dict[str, set[str]]:
    """Where -> what is broken there always: for each rule what costs least to break and notice."""
    found: dict[str, set[str]] = {"script": set(), "mutant": set(), "schedule": set()}
    for _, killers in REQUIRED.values():
        for chosen in found:
            names = [name for where, name in killers if where == chosen]
            if names:
                found[chosen].add(names[0])
                break
    return found


ALWAYS = _always()
"""Each rule is broken once in front of whoever is new; CI breaks it in all the ways there are."""

EQUIVALENT: dict[str, tuple[Killer, ...]] = {
    "a close without a version while recoveries change no ensemble": (
        ("test", "tests/unit/protocol/test_ledger.py::test_every_change_in_every_state"),
    ),
}
"""Safe whatever a schedule does, so that only tests of the functions notice them."""
