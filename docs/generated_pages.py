"""Pages made from the declarations: the command line, the options, the error messages."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from bkspark import errors
from bkspark.spark.option_table import OPTIONS

PRODUCT = Path(errors.__file__).parent
NOT_FOR_USERS = ("testing", "demo")

_OPTIONS = """\
# Options

Give these to `spark.read`, `df.write`, `spark.readStream` and `df.writeStream` of
`format("bookkeeper")`. Names match in any case. Spark passes every value as a string.
An unknown option is an error that names the nearest valid option.

| option | default | where it has an effect | meaning |
|---|---|---|---|
"""

_ERRORS = """\
# Error messages

Every error that bkspark raises on purpose is listed here, by its class. Words in ⟨⟩ stand for
a name or number. The text after the semicolon in a message says what to do next.
[Troubleshooting](../troubleshooting.md) explains the common ones.
"""


def write_all(docs: Path) -> None:
    """Write the generated pages into ``docs/reference``."""
    folder = docs / "reference"
    folder.mkdir(exist_ok=True)
    pages = {"cli.md": command_line(), "options.md": options(), "errors.md": error_messages()}
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")


def command_line() -> str:
    """The page of the command line, by typer's own generator."""
    command = [sys.executable, "-m", "typer", "bkspark.cli.program", "utils", "docs"]
    arguments = ["--name", "bkspark", "--title", "Command line"]
    done = subprocess.run([*command, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def options() -> str:
    """The page of the options of ``format("bookkeeper")``."""
    rows = (
        f"| `{name}` | {one.default} | {one.shown_uses} | {one.meaning} |"
        for name, one in OPTIONS.items()
    )
    return _OPTIONS + "\n".join(rows) + "\n"


def error_messages() -> str:
    """The page of all messages, by class."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, text in messages():
        found[name].add(text)
    parts = [_ERRORS]
    for name in sorted(found):
        parts.append(f"## {name}\n\n{_meaning(name)}\n")
        parts.extend(f"- {text}" for text in sorted(found[name]))
        parts.append("")
    return "\n".join(parts)


def messages() -> Iterator[tuple[str, str]]:
    """Each error class and message that the product raises, in the order of its files."""
    for path in sorted(PRODUCT.rglob("*.py")):
        if path.relative_to(PRODUCT).parts[0] in NOT_FOR_USERS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (name := _error(node.func)) and node.args:
                text = _text(node.args[0])
                hints = [_text(word.value) for word in node.keywords if word.arg == "hint"]
                if re.search(r"\w", re.sub(r"⟨.*?⟩", "", text)):
                    yield name, "; ".join(part for part in (text, *hints) if part)


def _error(function: ast.expr) -> str:
    """The name of the error class that a call makes, or nothing."""
    if isinstance(function, ast.Attribute):
        return _error(function.value)
    name = function.id if isinstance(function, ast.Name) else ""
    one = getattr(errors, name, None)
    is_error = isinstance(one, type) and issubclass(one, errors.BookKeeperError)
    return name if is_error else ""


def _text(value: ast.expr) -> str:
    """A message as a reader may look for it; what is filled in later stands in ⟨⟩."""
    if isinstance(value, ast.Constant):
        return str(value.value)
    if isinstance(value, ast.JoinedStr):
        return "".join(_text(part) for part in value.values)
    if isinstance(value, ast.BinOp):
        return _text(value.left) + _text(value.right)
    if isinstance(value, ast.FormattedValue):
        return f"⟨{_name(value.value)}⟩"
    return f"⟨{_name(value)}⟩"


def _name(value: ast.expr) -> str:
    """A short name for what a message is filled with."""
    if isinstance(value, ast.Name):
        return value.id.strip("_").replace("_", " ")
    if isinstance(value, ast.Attribute):
        return value.attr.strip("_").replace("_", " ")
    if isinstance(value, ast.Call):
        return _name(value.func)
    return "value"


def _meaning(name: str) -> str:
    return (getattr(errors, name).__doc__ or "").partition("\n")[0]
