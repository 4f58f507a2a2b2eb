"""Run a job twice, and its rows are in the log once: ``txnAppId`` and ``txnVersion``, as in Delta.

python examples/idempotent_append.py file:///tmp/bk
"""

import os
import sys

from pyspark.sql import DataFrame, SparkSession


def append_once(rows: DataFrame, log: str, *, job: str, run: int) -> None:
    """Append ``rows`` unless run number ``run`` of ``job``, or a later one, is in the log."""
    writer = rows.write.format("bookkeeper").mode("append")
    writer.option("txnAppId", job).option("txnVersion", run).save(log)


def main(metadata_uri: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["BKSPARK_METADATA_URI"] = metadata_uri
    spark = SparkSession.builder.master("local[2]").appName("idempotent").getOrCreate()
    rows = spark.range(10)
    append_once(rows, "daily", job="nightly-load", run=1)
    append_once(rows, "daily", job="nightly-load", run=1)  # a retry: nothing happens
    append_once(rows, "daily", job="nightly-load", run=2)
    print("rows in the log:", spark.read.format("bookkeeper").load("daily").count())
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
