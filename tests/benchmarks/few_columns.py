"""One column of a log that is not in a table, beside parquet and beside Spark's own floor.

    python -m tests.benchmarks.few_columns [--rows N] [--columns N] [--rounds N] [--dir FOLDER]

The floor is a data source in Python that gives the same batch from memory again and again: no
source in Python takes less. The three take turns. Prints medians of the processor time of all
processes.
"""

import argparse
import os
from functools import partial
from pathlib import Path
from statistics import median

import bkspark
from tests.benchmarks.bare_pipe import BareColumn
from tests.benchmarks.lakehouse import LOG, QUERIES, Stand
from tests.benchmarks.stage import stage

ROUNDS_OF_WARMTH = 3
"""Before them the JVM still compiles."""

ASKED = "one column"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dir", type=Path)
    given = parser.parse_args()
    settings = {"spark.driver.memory": "4g", "spark.sql.session.timeZone": "UTC"}
    with stage(given.dir, settings) as (spark, folder):
        spark.dataSource.register(BareColumn)
        stand = Stand(spark, folder, given.rows, given.columns)
        stand.rows().write.format("bookkeeper").mode("append").save(LOG)
        stand.rows().write.parquet(stand.parquet)
        sides = {
            "parquet": spark.read.parquet(stand.parquet),
            "log": bkspark.read(spark, LOG, columns=["k"]),
            "floor": spark.read.format("barecolumn").option("rows", given.rows).load(),
        }
        for _ in range(ROUNDS_OF_WARMTH + given.rounds):
            for name, rows in sides.items():
                stand.timed(ASKED, name, partial(QUERIES[ASKED], rows))
    found = {
        name: median(cost.cpu for cost in stand.costs[ASKED, name][ROUNDS_OF_WARMTH:])
        for name in sides
    }
    print(f"load of the machine {os.getloadavg()[1]:.1f}")
    print("| of what | seconds of processor | beside parquet |")
    print("|---|---|---|")
    for name, cpu in found.items():
        print(f"| {name} | {cpu:.2f} | {cpu / found['parquet']:.2f} |")


if __name__ == "__main__":
    main()
