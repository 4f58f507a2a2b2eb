"""Runs tests in forks of a process that has imported everything but the package itself.

    python -P tests/mutants/forked.py FOLDER

FOLDER has a package that hides the installed one. Reads requests, each a line of JSON: node ids of
tests, and how many seconds one may take. Answers each with a line: pytest's exit status, the tests
that failed, those that took too long, and the seconds that the longest of the others took; what
they printed is in FOLDER/output. The fork imports the package, so whatever
that says by then is what is tested.
"""

import dataclasses
import gc
import importlib
import json
import os
import sys
import threading
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import pytest_timeout
from hypothesis import Phase, settings

IMPORTED = (
    "fastcrc",
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.sql.datasource",
    "rich.table",
    "s3fs",
    "typer",
)
"""These take longer to import than most of the tests take to run."""

OPTIONS = (
    *("-q", "--tb=short", "-o", "addopts=", "--import-mode=importlib", "--strict-config"),
    *("-p", "no:cacheprovider", "-o", "tmp_path_retention_policy=none"),
)


class Methods:
    """What dataclasses write as source, methods, is compiled once for all forks, not in each.

    It is known by its whole text, so a dataclass that was changed has its own.

    Attributes:
        compiled: the texts that this process had to compile since it last forgot.
    """

    def __init__(self) -> None:
        self.compiled: list[str] = []
        self._codes: dict[str, CodeType] = {}

    def execute(self, text: str, *names: Any) -> None:
        """In place of ``exec``, as ``dataclasses`` uses it."""
        exec(self.learn(text), *names)

    def learn(self, text: str) -> CodeType:
        if text not in self._codes:
            self._codes[text] = compile(text, "<string>", "exec", dont_inherit=True)
            self.compiled.append(text)
        return self._codes[text]


class Watch:
    """Notes which tests fail. With one that takes too long the process ends."""

    def __init__(self, outcome: Path, methods: Methods, seconds_max: float) -> None:
        self._outcome = outcome
        self._methods = methods
        self._seconds_max = seconds_max
        self._failed: list[str] = []
        self._slow: list[str] = []
        self._seconds = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._limited([item.nodeid]):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        with self._limited([]):
            return (yield)

    @contextmanager
    def _limited(self, running: list[str]) -> Iterator[None]:
        timer = threading.Timer(self._seconds_max, self._give_up, [running])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        self._seconds = max(self._seconds, report.duration)
        if report.failed:
            self._failed.append(report.nodeid)

    def _give_up(self, running: list[str]) -> None:
        self._slow += running
        self.end(pytest.ExitCode.TESTS_FAILED)

    def end(self, status: int) -> None:
        """Without a word to threads and finalizers that may hang: that is what mutants do."""
        outcome = {
            "status": status,
            "failed": self._failed,
            "slow": self._slow,
            "seconds": self._seconds,
            "compiled": self._methods.compiled,
        }
        self._outcome.write_text(json.dumps(outcome))
        sys.stdout.flush()
        os._exit(0)


def _run(folder: Path, methods: Methods, node_ids: Sequence[str], seconds_max: float) -> None:
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    watch = Watch(folder / "outcome", methods, seconds_max)
    options = [*OPTIONS, f"--basetemp={folder / 'tmp'}"]
    try:
        watch.end(pytest.main([*options, *node_ids], plugins=[watch, pytest_timeout]))
    except BaseException:  # also what the package may do in place of being imported
        traceback.print_exc()
        watch.end(pytest.ExitCode.INTERNAL_ERROR)


def serve(folder: Path) -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # or each fork would go through all of it again
    phases = [Phase.explicit, Phase.generate]
    settings.register_profile("mutants", database=None, deadline=None, phases=phases)
    settings.load_profile("mutants")  # that a test fails is enough, it need not be made small
    assert not any(name.partition(".")[0] == "bkspark" for name in sys.modules)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = str(folder)  # for processes that the tests start
    # Each fork would compile the package and the tests again, where that is not done in place.
    sys.pycache_prefix, sys.dont_write_bytecode = str(folder / "compiled"), False
    methods = Methods()
    dataclasses.exec = methods.execute  # type: ignore[attr-defined]
    for line in sys.stdin:
        methods.compiled.clear()
        if (child := os.fork()) == 0:
            _run(folder, methods, **json.loads(line))
        os.waitpid(child, 0)
        answer = json.loads((folder / "outcome").read_text())
        for text in answer.pop("compiled"):
            methods.learn(text)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
