"""A checkpoint that is restored from a backup, on a real cluster."""

from pathlib import Path

import checkpoint_scenario
import pytest
from places import make_place
from pyspark.sql import SparkSession
from standalone import standalone_cluster
from submitted import run, submission

pytestmark = pytest.mark.thorough


def test_no_row_is_lost_or_twice_and_the_error_says_what_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = make_place(spark, tmp_path)
    (tmp_path / "cluster").mkdir()
    script = Path(checkpoint_scenario.__file__)
    with standalone_cluster(tmp_path / "cluster") as address:
        conf = {
            "spark.master": address,
            "spark.executor.memory": "512m",
            "spark.cores.max": "2",
        }
        found = run(submission(script, tmp_path, conf, [place.uri, str(tmp_path)]), tmp_path)
    assert found["errors"] == ["", "", "", ""]
    assert "has its micro-batch 2 already" in found["restored"]
    assert "new checkpoint" in found["restored"]
    assert sorted(found["ids"]) == list(range(30))
    assert sorted(found["in the end"]) == list(range(40))
