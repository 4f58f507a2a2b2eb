"""Which tests run one after the other in one process: those of a file, with few exceptions."""

from xdist.scheduler import LoadFileScheduling

MUTANTS = "tests/mutants/test_mutants.py"


class ByFile(LoadFileScheduling):
    """The tests of a file share what it starts; each table of mutants is like a file."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, rest = nodeid.partition("::")
        return f"{file}::{rest.partition('_rules-')[0]}" if file == MUTANTS else file
