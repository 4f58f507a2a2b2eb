"""Copy rows that are appended to a Delta table into a log, and the log into another Delta table.

    bkspark init file:///tmp/bk --bookie file:///tmp/bk1 --bookie file:///tmp/bk2 \\
        --bookie file:///tmp/bk3
    python examples/delta_changes.py file:///tmp/bk

Spark gets Delta from Maven Central when it starts. Both copies are streaming queries, each with its
own checkpoint. You may kill and restart each. The tables and the checkpoints are in a folder that
it prints: the second argument, or a new temporary folder.
"""

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import bkspark


def session() -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName("delta-changes")
    builder = builder.config("spark.sql.shuffle.partitions", 2)  # these tables are small
    builder = builder.config("spark.databricks.delta.snapshotPartitions", 2)
    return bkspark.configure_delta(builder).getOrCreate()


def pass_on(rows: DataFrame, to_format: str, target: str, checkpoint: Path) -> None:
    """Write what there is of a stream to ``target``, and stop."""
    writer = rows.writeStream.format(to_format).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start(target).awaitTermination()


def main(metadata_uri: str, folder: Path) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["BKSPARK_METADATA_URI"] = metadata_uri
    spark = session()
    print("folder:", folder)
    table, copy = str(folder / "orders"), str(folder / "orders-again")

    for day in (1, 2):
        orders = spark.range(day * 10, day * 10 + 10).selectExpr("id", f"{day} AS day")
        orders.write.format("delta").mode("append").save(table)
        appended = spark.readStream.format("delta").load(table)
        pass_on(appended, "bookkeeper", "orders-changes", folder / "to-log")

    log = spark.readStream.format("bookkeeper").load("orders-changes")
    pass_on(log, "delta", copy, folder / "from-log")

    captured = spark.read.format("bookkeeper").load("orders-changes")
    again = spark.read.format("delta").load(copy)
    print("captured:", captured.count())
    print("differences:", again.exceptAll(spark.read.format("delta").load(table)).count())
    print("in the table made again:", again.count())
    spark.stop()


if __name__ == "__main__":
    given = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="bkspark-delta-")
    main(sys.argv[1], Path(given).resolve())
