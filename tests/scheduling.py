"""Which tests run one after the other in one process, and in what order.

The tests of a file share what it starts. Each table of mutants is like a file; the few mutants that
run always are one group with their catalogue, since each process that runs one has to compile a
copy of the package. The files that use a Spark session are two groups, so that no more than two
processes start one. Those that use one with Delta are a third, after them: it takes the place of
the other.
"""

from typing import Any

import pytest

MUTANTS = "tests/mutants/test_mutants.py"
CATALOGUE = "tests/mutants/test_catalog.py"
SPARK = "tests/spark/test_"
DELTA = "tests/delta/test_"


def scope(nodeid: str, *, has_all_mutants: bool = True) -> str:
    """What is shared with the tests that give the same."""
    file, _, test = nodeid.partition("::")
    if file in (MUTANTS, CATALOGUE) and not has_all_mutants:
        return MUTANTS
    if file == MUTANTS:
        return f"{file}::{test.partition('_rules-')[0]}"
    if file.startswith(SPARK):
        return f"{SPARK}{'a-r' if file[len(SPARK)] < 's' else 's-z'}"
    return DELTA if file.startswith(DELTA) else file


def in_order(item: pytest.Item) -> Any:
    """Spark first, since its groups are long; then by folder; downloads last.

    On a slow host, downloads are what there is no time for.
    """
    is_download = item.get_closest_marker("download") is not None
    return is_download, not item.nodeid.startswith(SPARK)


def make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling  # a mutant's tests run without it

    has_all_mutants = "not thorough" not in config.option.markexpr

    class ByScope(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid, has_all_mutants=has_all_mutants)

    return ByScope(config, log)
