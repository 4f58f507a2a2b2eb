"""Runs every mutation that a program can make, and says which of them no test notices.

    python -m tests.mutants.survivors                              # protocol, format and storage
    python -m tests.mutants.survivors bkspark/protocol/log         # a folder or a module

It takes a day for all three folders, so it runs once a week beside CI. A mutation is tried with the
unit tests that import its module, and with the killers of the catalogue that break the module.
`survivors.txt` lists the survivors that are known, each with its reason. The command fails if it
finds others, and names those of the list that are gone.
"""

import ast
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .catalog import MUTANTS
from .generator import mutations
from .places import ROOT, place
from .running import Copy, copy_of_package

FOLDERS = ("bkspark/protocol", "bkspark/format", "bkspark/storage")
KNOWN = Path(__file__).parent / "survivors.txt"
TESTS = ("tests/unit", "tests/protocol")
SECONDS_MAX = 10.0
"""A test that takes longer with a mutation hangs."""


def known() -> dict[str, str]:
    """Each survivor of the list, with the reason why no test has to notice it."""
    lines = KNOWN.read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line and not line.startswith("#")]
    return {" | ".join(row[:-1]): row[-1] for row in rows}


def modules(paths: list[str]) -> Iterator[str]:
    for path in paths:
        found = ROOT / path
        files = [found] if found.is_file() else sorted(found.rglob("*.py"))
        yield from (str(file.relative_to(ROOT)) for file in files)


def tests_of(module: str) -> list[list[str]]:
    """In turns: the tests of its name, the killers of its rules, others that import it."""
    dotted = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    folder, _, name = dotted.rpartition(".")
    importing = [
        str(path.relative_to(ROOT))
        for tests in TESTS
        for path in sorted((ROOT / tests).rglob("test_*.py"))
        if _imports(ast.parse(path.read_text(encoding="utf-8")), dotted, folder, name)
    ]
    own = [path for path in importing if path.endswith(f"/test_{name}.py")]
    rules = [mutant for mutant in MUTANTS if place(mutant.place).path == module]
    killers = {killer for mutant in rules for killer in mutant.killers}
    turns = [own, sorted(killers), [path for path in importing if path not in own]]
    return [turn for turn in turns if turn]


def _imports(tree: ast.Module, dotted: str, folder: str, name: str) -> bool:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=given, names=names):
                if given == dotted or (given == folder and name in {one.name for one in names}):
                    return True
            case ast.Import(names=names):
                if dotted in {one.name for one in names}:
                    return True
    return False


def survivors(package: Copy, module: str) -> Iterator[str]:
    tests = tests_of(module)
    text = (ROOT / module).read_text(encoding="utf-8")
    for number, mutation in enumerate(mutations(ast.parse(text))):
        print(f"\r{module} {number}", end="", file=sys.stderr, flush=True)
        with package.changed(module, ast.unparse(mutation.tree)):
            turns = (package.run(["-x", *turn], SECONDS_MAX).status for turn in tests)
            is_noticed = any(status != 0 for status in turns)
        if not is_noticed:
            yield f"{module} | {mutation.name}"


def main(paths: list[str]) -> int:
    reasons, found = known(), set[str]()
    chosen = list(modules(paths or list(FOLDERS)))
    with tempfile.TemporaryDirectory() as folder, copy_of_package(Path(folder)) as package:
        for module in chosen:
            for name in survivors(package, module):
                found.add(name)
                print(f"{name} | {reasons.get(name, 'NEW')}", flush=True)
    gone = [name for name in reasons if name.split(" | ")[0] in chosen and name not in found]
    for name in gone:
        print(f"no longer a survivor: {name}")
    new = found - reasons.keys()
    print(f"{len(found)} survivors, {len(new)} of them new; {len(gone)} listed ones are gone")
    return 1 if new or gone else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
