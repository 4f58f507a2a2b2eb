"""Executors and tasks that fail on a real cluster: each row is in the log once, or none is."""

from pathlib import Path
from typing import Any

import cluster_scenarios
import pytest
from places import make_place
from pyspark.sql import SparkSession
from standalone import SPECULATING, standalone_cluster
from submitted import run, submission

pytestmark = pytest.mark.thorough

# Only the one task that sleeps gets a second, speculative attempt.
CONF = {**SPECULATING, "spark.speculation.minTaskRuntime": "3s"}


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("faults")
    place = make_place(spark, folder)
    script = Path(cluster_scenarios.__file__)
    (folder / "cluster").mkdir()
    found: dict[str, Any] = {}
    with standalone_cluster(folder / "cluster") as address:
        settings = {**CONF, "spark.master": address}
        for which in ("writes", "recoveries"):
            arguments = [place.uri, str(folder), which]
            found |= run(submission(script, folder, settings, arguments), folder)
    return found


def _is_whole(found: dict[str, Any]) -> bool:
    everything = list(range(cluster_scenarios.ROWS))
    return found["ids"] == everything == found["offsets"] and found["whole"]


@pytest.mark.parametrize("name", ["failing", "failing-shuffled", "killed"])
def test_what_was_interrupted_is_retried_and_every_row_is_there_once(outcome, name):
    found = outcome[name]
    assert found["interrupted"]
    assert found["error"] == ""
    assert _is_whole(found)


def test_a_killed_executor_with_a_shuffle_that_cannot_be_repeated_gives_all_or_nothing(outcome):
    """Spark gives up on a stage whose input would come out otherwise, or repeats all of it."""
    found = outcome["killed-shuffled"]
    assert found["interrupted"]
    assert _is_whole(found) if not found["error"] else found["ids"] == []


@pytest.mark.parametrize("name", cluster_scenarios.RECOVERIES)
def test_a_recovery_whose_tasks_are_run_twice_keeps_every_entry_and_copy(outcome, name):
    found = outcome[name]
    assert found["attempts"] == 2
    assert found["end"] == 4
    assert found["values"] == [str(number) for number in range(5)]
    assert found["missing"] == []


def test_speculation_gives_all_or_nothing(outcome):
    """Spark lets one attempt of each task commit; the other one's files are named nowhere."""
    found = outcome["speculative"]
    assert found["interrupted"]
    assert _is_whole(found) if not found["error"] else found["ids"] == []
