"""What an older Spark can do with a log; the argument is a cluster. Prints it as JSON."""

import json
import sys

import pyspark
from pyspark.sql import SparkSession


def main(uri: str, folder: str) -> None:
    spark = SparkSession.builder.master("local[1]").getOrCreate()

    def writer(rows):
        return rows.format("bookkeeper").option("metadataServiceUri", uri)

    rows = spark.range(5).selectExpr("id", "timestamp_seconds(id) AS at")
    writer(rows.write).mode("append").save("batch")
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).load()
    query = writer(numbers.selectExpr("value AS id").writeStream).trigger(once=True)
    query.option("checkpointLocation", f"{folder}/sink").start("stream").awaitTermination()
    found = {"version": pyspark.__version__}
    for name in ("batch", "stream"):
        read = spark.read.format("bookkeeper").option("metadataServiceUri", uri).load(name)
        found[name] = sorted(row.id for row in read.collect())
    try:
        followed = spark.readStream.format("bookkeeper").option("metadataServiceUri", uri)
        query = followed.load("batch").writeStream.format("noop").trigger(availableNow=True)
        query.option("checkpointLocation", f"{folder}/source").start().awaitTermination()
    except Exception as error:  # the test looks at what it says
        found["followed"] = str(error)
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
