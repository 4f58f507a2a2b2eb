"""Append a DataFrame to a log, read it back, read only its end, and look at what is stored.

    bkspark init file:///tmp/bk --bookie file:///tmp/bk1 --bookie file:///tmp/bk2 \\
        --bookie file:///tmp/bk3
    python examples/quickstart.py file:///tmp/bk
"""

import os
import sys

from pyspark.sql import SparkSession


def main(metadata_uri: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["BKSPARK_METADATA_URI"] = metadata_uri
    spark = SparkSession.builder.master("local[2]").appName("quickstart").getOrCreate()

    events = spark.range(1000).selectExpr("id", "concat('event ', id) AS text")
    events.write.format("bookkeeper").mode("append").save("events")

    log = spark.read.format("bookkeeper").load("events")
    print("rows in the log:", log.count())

    tail = (
        spark.read.format("bookkeeper")
        .option("includeMetadata", "true")
        .option("startingOffsets", str(log.count() - 3))
        .load("events")
    )
    tail.orderBy("_offset").show(truncate=False)

    spark.read.format("bookkeeper").option("view", "ledgers").load("events").show()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
