"""Types and texts of the maintenance calls for editors, made of their declarations.

``python tests/style/admin_stub.py`` writes the file anew.
"""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent

import bkspark.admin
from bkspark import verbs

PATH = Path(bkspark.admin.__file__).with_suffix(".pyi")
_HEAD = '''\
"""Looking after a cluster. ``tests/style/admin_stub.py`` makes this file of ``bkspark.verbs``."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pyspark.sql import SparkSession

from bkspark.admin.maintenance import Report

Calls = Mapping[str, Callable[..., Any]]

def show_calls_of(giver: Callable[[], Calls]) -> None: ...
'''


def stub() -> str:
    """What the file says."""
    calls = (getattr(bkspark.admin, name) for name in verbs.__all__)
    return _HEAD + "\n".join("".join(_call(call)) for call in calls)


def _call(call: Callable[..., object]) -> Iterator[str]:
    yield f"def {call.__name__}(\n"
    is_keyword = False
    for one in inspect.signature(call).parameters.values():
        if one.kind is one.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            yield "    *,\n"
        kind = one.annotation if isinstance(one.annotation, str) else _name(one.annotation)
        default = "" if one.default is one.empty else f" = {_default(one.default)}"
        yield f"    {one.name}: {kind}{default},\n"
    yield ") -> Report:\n"
    yield indent(f'"""{inspect.getdoc(call)}\n"""\n', "    ")


def _name(kind: object) -> str:
    is_plain = isinstance(kind, type) and not hasattr(kind, "__args__")
    return kind.__name__ if is_plain else str(kind).replace("collections.abc.", "")


def _default(value: object) -> str:
    if callable(value):
        return "..."
    return f'"{value}"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    PATH.write_text(stub(), encoding="utf-8")
