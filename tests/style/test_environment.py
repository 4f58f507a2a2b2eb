"""Time, chance and threads come from the environment alone, so a simulation need patch nothing."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_tidy import PACKAGE, dotted, python_files, shown

ENVIRONMENT = PACKAGE / "environment.py"
OUTSIDE = PACKAGE / "testing"
"""Servers and rivals for tests have threads and clocks of their own."""

MODULES = {
    *("time", "sched", "random", "secrets", "uuid", "queue", "asyncio"),
    *("_thread", "multiprocessing", "concurrent.futures"),
}
"""Nothing of these is used elsewhere, but for ``ALLOWED``."""

ALLOWED = {"concurrent.futures.Future", "concurrent.futures.CancelledError"}

NAMES = {
    *("threading.Thread", "threading.Timer", "os.urandom", "os.getrandom", "os.fork"),
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"),
    *("datetime.date.today", "os.times"),
}


def uses(tree: ast.AST) -> Iterator[str]:
    """What code uses of the standard library's clocks, chance and threads, however it is named."""
    homes: dict[str, str] = {}
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                homes[alias.asname or first] = alias.name if alias.asname else first
                if alias.name in MODULES:
                    yield alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                homes[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute):
            first, _, rest = dotted(node).partition(".")
            if first in homes:
                yield ".".join(filter(None, [homes[first], rest]))
    yield from (home for home in homes.values() if home.rpartition(".")[0] in MODULES)


def is_from_around(name: str) -> bool:
    parts = name.split(".")
    heads = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return bool(heads & (MODULES | NAMES)) and not heads & ALLOWED


def found_in(text: str) -> set[str]:
    return set(filter(is_from_around, uses(ast.parse(text))))


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "import time as t\nt.sleep(1)",
        "from time import monotonic",
        "from time import monotonic as now\nfield(default_factory=now)",
        "from random import *",
        "import secrets\nsecrets.token_hex()",
        "from uuid import uuid4",
        "import queue\nqueue.SimpleQueue()",
        "def late():\n    import random",
        "import threading\nthreading.Thread(target=f)",
        "import threading\nclass Server(threading.Thread): ...",
        "from threading import Timer as T\nT(1, f)",
        "import threading as t\nt.Thread",
        "from concurrent.futures import Future, ThreadPoolExecutor",
        "from concurrent import futures\nfutures.ThreadPoolExecutor()",
        "import concurrent.futures\nconcurrent.futures.ThreadPoolExecutor()",
        "import os\nos.urandom(16)",
        "from datetime import datetime\ndatetime.now(UTC)",
        "import datetime as d\nd.datetime.now()",
    ],
)
def test_every_way_around_it_is_seen(text: str) -> None:
    assert found_in(text)


def test_what_waits_for_nobody_is_no_way_around_it() -> None:
    text = """
import os, threading
from concurrent.futures import Future
from datetime import UTC, datetime, time
from bkspark import environment
environment.sleep(environment.monotonic())
threading.Lock(), threading.get_ident(), os.getpid(), Future(), log.time(1), datetime(1, 1, 1)
"""
    assert not found_in(text)


def product() -> list[Path]:
    own = [path for path in python_files("bkspark") if not path.is_relative_to(OUTSIDE)]
    return [path for path in own if path != ENVIRONMENT]


def test_only_the_environment_has_a_clock_chance_and_threads() -> None:
    found = {shown(path): found_in(path.read_text(encoding="utf-8")) for path in product()}
    assert {name: names for name, names in found.items() if names} == {}
    assert found_in(ENVIRONMENT.read_text(encoding="utf-8"))
