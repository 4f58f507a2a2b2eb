"""Scenarios that need a Spark session unlike the shared one; run as a program, print JSON.

Usage: python -m facts.own_process SCENARIO FOLDER
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local_session import build_session, stop_session
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from facts.journal import calls
from facts.probe_source import Range, Sink

Outcome = dict[str, Any]


def attempts_and_registration(folder: Path) -> Outcome:
    spark = build_session(folder, "local[2,3]")
    spark.dataSource.register(Sink)
    outcome = {
        "registered": _condition(spark, "facts_sink"),
        "registered in a new session": _condition(spark.newSession(), "facts_sink"),
        "found": _condition(spark, "facts_found"),
        "found in a new session": _condition(spark.newSession(), "facts_found"),
    }
    writer = spark.range(0, 4, 1, 2).write.format("facts_sink").mode("append")
    writer.options(journal=str(folder), failpartition=0, failattempts=2, tasks=2).save()
    outcome["calls"] = calls(folder)
    stop_session(spark)
    return outcome


def broken_neighbour(folder: Path) -> Outcome:
    spark = build_session(folder, "local[1]")
    outcome = {"found": _condition(spark, "facts_found")}
    spark.dataSource.register(Range)
    options = {"journal": str(folder), "rows": "3"}
    outcome["registered"] = spark.read.format("facts_range").options(**options).load().count()
    stop_session(spark)
    return outcome


def _condition(spark: SparkSession, source: str) -> str | None:
    """The error that looking for a data source ends with; none if it is there."""
    try:
        spark.read.format(source).schema("id BIGINT").load()
    except Py4JJavaError as error:
        return re.findall(r"\[([A-Z_]+)\]", str(error.java_exception))[0]
    return None


SCENARIOS: dict[str, Callable[[Path], Outcome]] = {
    scenario.__name__: scenario for scenario in (attempts_and_registration, broken_neighbour)
}

if __name__ == "__main__":
    print(json.dumps(SCENARIOS[sys.argv[1]](Path(sys.argv[2]))))
