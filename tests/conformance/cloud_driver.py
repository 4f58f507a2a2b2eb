"""A DataFrame that Spark writes and reads, and a stream of it; prints what it found as JSON.

python cloud_driver.py URI FOLDER
"""

import json
import sys

from pyspark.sql import SparkSession

LOG = "events"


def main(uri: str, folder: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )

    def rows() -> list[int]:
        found = spark.read.format("bookkeeper").option("metadataServiceUri", uri).load(LOG)
        return sorted(row.id for row in found.collect())

    for first in (0, 1000):
        frame = spark.range(first, first + 1000, 1, 4)
        writer = frame.write.format("bookkeeper").option("metadataServiceUri", uri)
        writer.mode("append").save(LOG)
    batch = rows()
    source = spark.readStream.format("bookkeeper").option("metadataServiceUri", uri).load(LOG)
    query = (
        source.writeStream.format("bookkeeper")
        .option("metadataServiceUri", uri)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start("copy")
    )
    query.awaitTermination()
    copied = spark.read.format("bookkeeper").option("metadataServiceUri", uri).load("copy")
    print(json.dumps({"batch": batch, "copied": sorted(row.id for row in copied.collect())}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
