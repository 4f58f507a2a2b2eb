"""Facts that need another master, another Python path or a fresh JVM: each a process of its own."""

import importlib.util
import json
import pkgutil
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
from local_session import run_python

# What Spark imports because of its name and registers because of DefaultSource.
FOUND = """\
from pyspark.sql.datasource import DataSource

class DefaultSource(DataSource):
    @classmethod
    def name(cls):
        return "facts_found"
"""


def _run(scenario: str, folder: Path, path: Path) -> dict[str, Any]:
    work = folder / "work"
    work.mkdir()
    arguments = ["-m", "facts.own_process", scenario, str(work)]
    done = run_python(arguments, extra_path=[path])
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("attempts_and_registration")
    path = folder / "path"
    path.mkdir()
    (path / "pyspark_facts.py").write_text(FOUND)
    (path / "pyspark_facts_without_source.py").write_text("")
    return _run("attempts_and_registration", folder, path)


def _calls(outcome: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [call for call in outcome["calls"] if call["call"] == name]


# Registration.


def test_a_top_level_module_named_pyspark_something_registers_its_default_source(outcome):
    """`pyspark_bookkeeper` makes `format("bookkeeper")` work without a call."""
    assert outcome["found"] is None


def test_a_pyspark_module_without_default_source_harms_nothing(outcome):
    """`pyspark_bookkeeper` may define no DefaultSource where ours cannot be imported."""
    assert outcome["found"] is None


def test_a_new_session_sees_found_sources_but_not_registered_ones(outcome):
    """`bkspark.register` is needed in each session, `pyspark_bookkeeper` in none."""
    assert outcome["registered"] is None
    assert outcome["found in a new session"] is None
    assert outcome["registered in a new session"] == "DATA_SOURCE_NOT_FOUND"


def test_one_broken_pyspark_module_hides_all_found_sources_but_not_registered_ones(tmp_path):
    """`pyspark_bookkeeper` never raises on import, and `bkspark.register` stays.

    `bkspark doctor` imports every `pyspark_*` module to name the broken one: Spark does not.
    """
    path = tmp_path / "path"
    path.mkdir()
    (path / "pyspark_facts.py").write_text(FOUND)
    (path / "pyspark_zz_broken.py").write_text("import no_such_module_anywhere")
    outcome = _run("broken_neighbour", tmp_path, path)
    assert outcome["found"] == "DATA_SOURCE_NOT_FOUND"
    assert outcome["registered"] == 3


def test_modules_of_an_import_hook_are_importable_but_not_listed(tmp_path, monkeypatch):
    """An editable install does not register the source by itself: tests set PYTHONPATH for it.

    Spark lists modules with `pkgutil.iter_modules`, and setuptools serves a project in the flat
    layout through such a hook.
    """
    file = tmp_path / "pyspark_facts_hooked.py"
    file.write_text(FOUND)

    class Hook:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
            if name != file.stem:
                return None
            loader = SourceFileLoader(name, str(file))
            return importlib.util.spec_from_loader(name, loader)

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Hook])
    assert importlib.util.find_spec(file.stem) is not None
    assert file.stem not in {module.name for module in pkgutil.iter_modules()}


# Attempts.


def test_every_attempt_writes_and_only_the_last_has_its_message_committed(outcome):
    """File names carry the attempt, and only what the messages list becomes visible."""
    attempts = [(call["partition"], call["attempt"]) for call in _calls(outcome, "write")]
    assert sorted(attempts) == [(0, 0), (0, 1), (0, 2), (1, 0)]
    (commit,) = _calls(outcome, "commit")
    messages = [(message["partition"], message["attempt"]) for message in commit["messages"]]
    assert messages == [(0, 2), (1, 0)]


def test_a_failed_attempt_that_is_retried_calls_no_abort(outcome):
    """A failed attempt has to clean up after itself, or the token's garbage is collected later."""
    assert _calls(outcome, "abort") == []


def test_all_attempts_start_from_the_writer_made_once(outcome):
    """Attempts are told apart by the task context, not by anything the writer holds."""
    (writer,) = _calls(outcome, "writer")
    assert {call["made_in"] for call in _calls(outcome, "write")} == {writer["pid"]}
