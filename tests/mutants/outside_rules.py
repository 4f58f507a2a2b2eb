"""Mutants of how kinds of storage of other packages are found."""

from .change import Replace
from .mutant import Mutant

OUTSIDE = "tests/conformance/test_outside.py"

MUTANTS = (
    Mutant(
        "another package replaces a scheme of bkspark",
        "bookie.uri._scheme",
        Replace("scheme in _BOOKIES", "False"),
        (f"{OUTSIDE}::test_no_package_replaces_a_scheme_of_this_one",),
    ),
    Mutant(
        "one of two packages with one scheme is taken",
        "outside.kind_of",
        Replace("len(found) > 1", "False"),
        (f"{OUTSIDE}::test_two_packages_with_one_scheme_are_refused",),
    ),
    Mutant(
        "whatever an entry point names is taken for a kind",
        "outside.kind_of",
        Replace("not isinstance(kind, wanted)", "False"),
        (f"{OUTSIDE}::test_what_cannot_be_used_is_refused_in_a_line_that_names_the_package",),
    ),
)
