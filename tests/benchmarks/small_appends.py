"""What a DataFrame append of one row costs, beside a sink in Python that throws the row away.

    python -m tests.benchmarks.small_appends [--rounds 9] [--appends 10] [--dir FOLDER]

The difference is what bkspark takes; all the rest is Spark's, whatever the sink. Rounds take turns.
Prints medians of the processor time of all processes, and of the time that passes.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import bkspark
from bkspark.cluster.cluster import init_cluster
from tests.benchmarks.bare_pipe import BarePipe
from tests.benchmarks.lakehouse import Cost, measured, median
from tests.benchmarks.stage import stage

WARM_APPENDS = 30
"""Before them the JVM still compiles."""

ROW = "id", "timestamp_micros(id) ts", "'key' key", "unhex('00') payload"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--appends", type=int, default=10, help="of a round")
    parser.add_argument("--dir", type=Path)
    given = parser.parse_args()
    with stage(given.dir, {}) as (spark, folder):
        uri = (folder / "metadata").as_uri()
        init_cluster(uri, [(folder / f"bookie{number}").as_uri() for number in range(3)])
        bkspark.register(spark, metadataServiceUri=uri)
        spark.dataSource.register(BarePipe)
        rows = spark.range(0, 1, 1, 1).selectExpr(*ROW)

        def append(sink: str, log: str) -> None:
            rows.write.format(sink).mode("append").save(log)

        sides: dict[str, Callable[[], None]] = {
            "sink that throws the row away": lambda: append("barepipe", ""),
            "log": lambda: append("bookkeeper", "a"),
        }
        costs: dict[str, list[Cost]] = {name: [] for name in sides}
        for _ in range(WARM_APPENDS):
            for act in sides.values():
                act()
        for _ in range(given.rounds):
            for name, act in sides.items():
                with measured(costs[name]):
                    for _ in range(given.appends):
                        act()
    print("| append of one row to a | ms of processor | ms |")
    print("|---|---|---|")
    for name, found in costs.items():
        cost, count = median(found), given.appends / 1000
        print(f"| {name} | {cost.cpu / count:.0f} | {cost.wall / count:.0f} |")


if __name__ == "__main__":
    main()
