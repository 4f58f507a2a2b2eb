"""Properties of the code itself that no linter checks; each test names all that offend."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .sources import ROOT, own_python_files

PACKAGE = ROOT / "bkspark"
FOLDERS = ("bkspark", "pyspark_bookkeeper", "jobs", "examples", "tests")
FILE_LINES_MAX = 700
JOB_LINES_MAX = 60
FUNCTION_LINES_MAX = 70
PRODUCT_FUNCTION_LINES_MAX = 50
ATTRIBUTES_MAX = 12
UNWANTED_NAMES = {"utils", "common", "helpers", "core", "misc"}
FORBIDDEN = ("FIX" + "ME", "XX" + "X")

IMPORTED_BY_NAME = r"(import_module|__import__|find_spec)\(\s*f?[\"']bkspark"

CLOCK = "environment.py"
"""Where the one function is that tells the time of day, `now_ms`."""
CLOCKS = {
    *("time.time", "time.time_ns", "time.clock_gettime", "time.clock_gettime_ns"),
    *("time.localtime", "time.gmtime", "time.ctime", "time.asctime", "time.strftime"),
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
}
FILE_TIMES = {
    *("st_mtime", "st_mtime_ns", "st_ctime", "st_ctime_ns", "st_atime", "st_atime_ns"),
    *("st_birthtime", "getmtime", "getctime", "getatime", "LastModified"),
}
COMPARES = {
    "cli/logs.py": "with which entry `log read --since 1h` begins",
    "cli/health.py": "whether the last audit is so long ago that it is told",
    "admin/agents.py": "whether a command ran lately, which only shifts its next run",
    "admin/absent_bookies.py": "when a bookie has been silent for as long as an operator said",
    "admin/recovering.py": "how long an open ledger was unchanged: advice only",
    "admin/collecting/collection.py": "how long to keep a ledger that no log names",
    "log/truncation.py": "retention by age, which says so",
    "admin/offloading/freeing.py": "when ledgers left the list, which only delays a look",
    "admin/offloading/offload.py": "which ledgers were closed long enough ago to be copied",
    "admin/offloading/tables.py": "how far offloads are behind: for people",
    "log/streams/commit.py": "when a ledger that is gone on with is old enough to be rolled",
}
STAMPS = {
    *(
        "admin/auditing/audit.py",
        "admin/maintenance.py",
        "admin/log_upkeep.py",
        "admin/offloading/ending.py",
        "admin/offloading/moving.py",
    ),
    *("admin/restored_records.py", "cli/agent.py", "cluster/settled_ledgers.py"),
    *("admin/repairing/repair_command.py", "admin/scrubbing/scrub.py"),
    *("admin/recovering.py", "cluster/lease.py", "cli/commands.py"),
    *("cluster/admission.py", "cluster/cluster.py", "ledger/creating.py"),
    *("ledger/recovery/recoverer.py", "log/creating.py", "admin/bookies/reinitialising.py"),
    *("log/cursors.py", "log/log_handle.py", "log/compaction.py"),
    *("log/recovering.py", "log/tail.py"),
    *("ledger/handles/membership.py", "ledger/recovery/recoverer.py"),
    *("ledger/handles/writer.py", "log/batch/record_writer.py"),
}
"""Write down when something was done, for people to read."""


def python_files(*folders: str) -> list[Path]:
    return own_python_files(*(folders or FOLDERS))


@dataclass(frozen=True)
class Found:
    """What one look at a file finds, so that none is parsed twice or kept as a tree.

    Attributes:
        telling: the names of clocks and of times of files that it uses.
        asks: whether it asks `CLOCK` for the time.
        classes: as `attributes_of` has them.
    These three of the product alone.
    """

    text: str
    long: tuple[str, ...]
    is_silent: bool
    telling: frozenset[str]
    asks: bool
    classes: tuple[tuple[str, set[str], set[str]], ...]


@cache
def look(path: Path) -> Found:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = list(ast.walk(tree)) if path.is_relative_to(PACKAGE) else []
    return Found(
        text,
        tuple(too_long(path, text, tree)),
        bool(tree.body) and not ast.get_docstring(tree),
        frozenset(tells_time(nodes)),
        calls(nodes, "now_ms"),
        tuple(attributes_of(nodes)),
    )


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions_in(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions below ``node``. Expressions, where most nodes are, have none."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        found = getattr(node, field, ())
        for one in found if isinstance(found, list) else ():
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                yield one
            yield from functions_in(one)


def too_long(path: Path, text: str, tree: ast.AST) -> Iterator[str]:
    count = len(text.splitlines())
    if count > (JOB_LINES_MAX if path.parent == ROOT / "jobs" else FILE_LINES_MAX):
        yield f"{shown(path)} has {count} lines"
    is_product = path.is_relative_to(PACKAGE)
    most = PRODUCT_FUNCTION_LINES_MAX if is_product else FUNCTION_LINES_MAX
    for node in functions_in(tree):
        length = (node.end_lineno or 0) - node.lineno + 1
        if length > most:
            yield f"{shown(path)}: {node.name} has {length} lines"


def test_files_and_functions_stay_small() -> None:
    assert [said for path in python_files() for said in look(path).long] == []


def attributes_of(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, set[str], set[str]]]:
    """Of each class its name, what it inherits from, and its own fields and attributes."""
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            declared = (line.target for line in node.body if isinstance(line, ast.AnnAssign))
            names = {target.id for target in declared if isinstance(target, ast.Name)}
            for one in ast.walk(node):
                if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
                    names |= {one.attr} if dotted(one.value) == "self" else set()
            yield node.name, {base.id for base in node.bases if isinstance(base, ast.Name)}, names


def test_no_class_of_the_product_has_many_attributes() -> None:
    found = (look(path).classes for path in python_files("bkspark"))
    classes = {name: rest for of_file in found for name, *rest in of_file}

    def count(name: str) -> int:
        known, bases = set[str](), [name]
        while bases:
            above, own = classes.get(bases.pop(), (set(), set()))
            known |= own
            bases += above
        return len(known)

    counts = {name: count(name) for name in classes}
    assert {name: n for name, n in counts.items() if n > ATTRIBUTES_MAX} == {}


def test_nothing_is_left_for_later_and_no_room_is_called_utils() -> None:
    files = python_files()
    left = [shown(p) for p in files if any(word in look(p).text for word in FORBIDDEN)]
    names = {path: {path.stem, *path.relative_to(ROOT).parts[:-1]} for path in files}
    unwanted = [shown(path) for path, found in names.items() if UNWANTED_NAMES & found]
    assert (left, unwanted) == ([], [])


def test_every_module_says_what_it_is_for() -> None:
    modules = [path for path in python_files() if path.parts[-2] != "tests"]
    assert [shown(path) for path in modules if look(path).is_silent] == []


def test_everything_exported_is_documented() -> None:
    import bkspark

    undocumented = [
        name
        for name in bkspark.__all__
        if not name.startswith("__") and not getattr(bkspark, name).__doc__
    ]
    assert not undocumented


def test_no_module_of_a_layer_is_imported_by_its_name() -> None:
    """Import contracts do not see that; only the package itself does it, from above all layers."""
    own = [path for path in python_files("bkspark") if path != PACKAGE / "__init__.py"]
    by_name = [shown(p) for p in own if re.search(IMPORTED_BY_NAME, look(p).text)]
    assert by_name == []


# --- clocks ------------------------------------------------------------------------------------


def dotted(node: ast.AST) -> str:
    """As `ast.unparse`, which takes long, gives it."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value, name):
            return f"{dotted(value)}.{name}"
    return ast.unparse(node)


def names_in(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """What code names, whichever way it was imported: ``time.time``, ``datetime.now``, …"""
    homes: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            homes |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            homes |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute):
            first, _, rest = dotted(node).partition(".")
            name = ".".join(filter(None, [homes.get(first, first), rest]))
            yield name.removeprefix("datetime.")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def tells_time(nodes: Sequence[ast.AST]) -> set[str]:
    found = set(names_in(nodes))
    return (found & CLOCKS) | {name for name in found if name.rpartition(".")[2] in FILE_TIMES}


def test_every_spelling_of_a_clock_is_seen() -> None:
    for text in (
        "import time\ntime.time_ns()",
        "import time as t\nt.time()",
        "from time import time_ns\ntime_ns()",
        "from time import time as now\nnow()",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime\ndatetime.now(UTC)",
        "import os\nos.stat(p).st_mtime_ns",
        "import os\nos.path.getmtime(p)",
        "found['LastModified']",
    ):
        assert tells_time(list(ast.walk(ast.parse(text)))), text
    others = ast.parse("import time\ntime.monotonic()\nlog.time(1)")
    assert not tells_time(list(ast.walk(others)))


def test_decisions_never_look_at_file_times() -> None:
    """Nor at any clock (R17), by any name: one function tells the time, few compare it."""
    found = {str(p.relative_to(PACKAGE)): look(p) for p in python_files("bkspark")}
    telling = {name: seen.telling for name, seen in found.items() if seen.telling}
    assert telling == {CLOCK: {"time.time_ns"}}
    assert {name for name, seen in found.items() if seen.asks} - {CLOCK} == STAMPS | COMPARES.keys()


def calls(nodes: Iterable[ast.AST], function: str) -> bool:
    """Whether code calls ``function``, or only takes a value of that name."""
    return any(
        isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == function
        for node in nodes
    )
