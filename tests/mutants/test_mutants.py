"""Each broken rule of the catalogue is noticed."""

import pytest

from ..thorough import always  # noqa: TID252
from .catalog import TABLES
from .mutant import Mutant
from .required import ALWAYS
from .running import Copy, unnoticed

ROWS = [(table, mutant) for table, mutants in TABLES.items() for mutant in mutants]
REQUIRED = [row for row in ROWS if row[1].name in ALWAYS["mutant"]]


def shown(value: str | Mutant) -> str:
    return value if isinstance(value, str) else value.name.replace(" ", "-")


@pytest.mark.parametrize(("table", "mutant"), always(REQUIRED, ROWS, are_rows=True), ids=shown)
def test_the_mutant_is_noticed(table: str, mutant: Mutant, package: Copy) -> None:
    passed, output = unnoticed(mutant, package)
    assert not passed, f"not noticed by {sorted(passed)}:\n{output}"
