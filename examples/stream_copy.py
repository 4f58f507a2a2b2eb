"""Copy a log into another log by a streaming query, every row once, and continue after a stop.

    bkspark init file:///tmp/bk --bookie file:///tmp/bk1 --bookie file:///tmp/bk2 \\
        --bookie file:///tmp/bk3
    python examples/stream_copy.py file:///tmp/bk

It prints the folder of its checkpoint. Run it again with this folder as the second argument, also
after you killed it: the copy has every row once, because the checkpoint says which rows were read,
and the copy says which batches were written. With a new checkpoint it copies all rows once more.
"""

import os
import sys
import tempfile

from pyspark.sql import SparkSession


def copy(spark: SparkSession, source: str, target: str, checkpoint: str) -> int:
    """Copy what ``source`` has now and ``target`` has not; returns how many rows that was."""
    rows = spark.readStream.format("bookkeeper").option("maxEntriesPerTrigger", 400).load(source)
    writer = rows.writeStream.format("bookkeeper").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start(target)
    query.awaitTermination()
    for progress in query.recentProgress:
        print("batch", progress["batchId"], "rows", progress["numInputRows"])
    return sum(int(progress["numInputRows"]) for progress in query.recentProgress)


def main(metadata_uri: str, checkpoint: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["BKSPARK_METADATA_URI"] = metadata_uri
    spark = SparkSession.builder.master("local[2]").appName("copy").getOrCreate()
    print("checkpoint:", checkpoint)

    spark.range(1000).write.format("bookkeeper").mode("append").save("orders")
    print("copied", copy(spark, "orders", "orders-copy", checkpoint))

    spark.range(1000, 1100).write.format("bookkeeper").mode("append").save("orders")
    print("copied", copy(spark, "orders", "orders-copy", checkpoint))

    print("rows in the copy:", spark.read.format("bookkeeper").load("orders-copy").count())
    spark.stop()


if __name__ == "__main__":
    main(
        sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="bkspark-copy-")
    )
