"""The catalogue: single rules of the source, broken, and for each the tests that must notice.

A mutant is killed if every test listed for it fails. To add one: pick a rule, name the function
that keeps it (``places``) and what says it there (``change``), name the test that says the rule,
and put it in the table of its layer, a file ``*_rules.py`` beside this one.
"""

from importlib import import_module
from pathlib import Path

from .mutant import Mutant

TABLES: dict[str, tuple[Mutant, ...]] = {
    path.stem: import_module(f".{path.stem}", __package__).MUTANTS
    for path in sorted(Path(__file__).parent.glob("*_rules.py"))
    if not path.stem.startswith("test_")
}
"""By the name of their file."""

MUTANTS = tuple(mutant for table in TABLES.values() for mutant in table)
