"""Which tests run one after the other in one process, and in what order.

The tests of a file share what it starts. Each table of mutants is like a file. The files that use
a Spark session are two groups, so that no more than two processes start one. Those that use one
with Delta are a third, after them: it takes the place of the other.

Where only the tests run that run always, what takes longer to start than to use is started once:
the files that use a Spark session are one group, those that use servers of S3 and ZooKeeper are
another, and so are the mutants with their catalogue, as each process that runs one compiles a copy
of the package.
"""

from typing import Any

import pytest

MUTANTS = "tests/mutants/test_mutants.py"
CATALOGUE = "tests/mutants/test_catalog.py"
CONFORMANCE = "tests/conformance/test_"
SPARK = "tests/spark/test_"
DELTA = "tests/delta/test_"


def scope(nodeid: str, *, is_thorough: bool = True) -> str:
    """What is shared with the tests that give the same."""
    file, _, test = nodeid.partition("::")
    if file in (MUTANTS, CATALOGUE) and not is_thorough:
        return MUTANTS
    if file.startswith(CONFORMANCE) and not is_thorough:
        return CONFORMANCE
    if file == MUTANTS:
        return f"{file}::{test.partition('_rules-')[0]}"
    if file.startswith(SPARK):
        return f"{SPARK}{'a-r' if is_thorough and file[len(SPARK)] < 's' else 's-z'}"
    return DELTA if file.startswith(DELTA) else file


def in_order(item: pytest.Item) -> Any:
    """Spark first, since its group is the longest; then by folder; downloads last.

    On a slow host, downloads are what there is no time for.
    """
    is_download = item.get_closest_marker("download") is not None
    return is_download, not item.nodeid.startswith(SPARK)


def make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling  # a mutant's tests run without it

    is_thorough = "not thorough" not in config.option.markexpr

    class ByScope(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid, is_thorough=is_thorough)

    return ByScope(config, log)
