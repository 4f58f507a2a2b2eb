"""The ways to break what ledgers promise that go on in later terms, each with what notices it.

Killers are written as in ``required``.
"""

from .required import Killer

_TERMS = "tests/simulation/test_terms.py::"

OF_TERMS: dict[str, tuple[Killer, ...]] = {
    "markers have a gap, so a writer never meets the one that fences him": (
        ("mutant", "the fence is one term too far"),
        ("mutant", "the fence is of the recovery's term"),
        ("mutant", "the post-check does not look for the next term"),
        ("mutant", "copies count although the fence is gone"),
        ("test", f"{_TERMS}test_a_rule_of_markers_that_is_broken_is_noticed"),
    ),
    "what is left of a writer is pruned in the wrong order, or too early": (
        ("mutant", "the fence is pruned before the permission"),
        ("mutant", "the permission goes before the journal that it tells of"),
        ("mutant", "markers are pruned before the ledger is seen to be open"),
        ("mutant", "a journal goes whose records count"),
        ("mutant", "what recoveries have copied goes with the journal of their term"),
        ("schedule", "a fence is pruned before the permission, metadata check skipped"),
    ),
    "an add carries no term": (
        ("mutant", "there is no post-check"),
        ("mutant", "who was overtaken has other bookies take his journal"),
        ("schedule", "post-check skipped"),
    ),
    "a recovery's add carries no term": (
        ("mutant", "a ledger is set open by whoever comes"),
        ("mutant", "a ledger goes on in front of what is acknowledged"),
        ("mutant", "copies of an earlier recovery count without a fence"),
    ),
    "a recovery's read, or its look for the LAC, carries no term": (
        ("schedule", "fence after read"),
        ("schedule", "recovery reads without a fence"),
        ("script", "M3 "),
        ("script", "M4 "),
    ),
    "not all bookies of the new fragment are in its term": (
        ("mutant", "Qa members are enough for a new fragment"),
        ("mutant", "nobody is looked at again before the metadata name him"),
        ("mutant", "who lost what it took at once gets a place"),
    ),
    "a reader does not ask whose fragment it is": (
        ("mutant", "a record of any term counts"),
        ("mutant", "a bookie shows an entry of whatever term"),
        ("mutant", "a reader goes on with what an older term has left"),
        ("mutant", "a plan takes the record that is met last"),
    ),
    "a record of an older term counts in a later fragment": (
        ("mutant", "in the last fragment a record of any term counts"),
        ("mutant", "a record of any term up to the owner's counts"),
        ("mutant", "a recovery keeps what older terms left over"),
        ("mutant", "a recovery takes the length from what an older term left over"),
        ("mutant", "a look-up begins at what an older term left over"),
        ("mutant", "an audit counts what an older term left over"),
        ("schedule", "a new fragment is the writer's before"),
    ),
    "the highest term that is found counts": (
        ("mutant", "a record of any term from the owner's on counts"),
        ("test", f"{_TERMS}test_that_the_highest_term_counts_is_noticed"),
    ),
    "what is fully replicated is worked out by the specification's formula": (
        ("mutant", "the LAFR is worked out by the specification's formula"),
        ("mutant", "a fragment begins at the LAFR, whatever its predecessor has"),
        ("mutant", "what the newest record says that most have is fully replicated"),
        ("schedule", "the LAFR is worked out by the specification's formula"),
    ),
}
