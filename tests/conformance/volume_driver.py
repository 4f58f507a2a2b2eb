"""Write two million rows, or read them: ``python volume_driver.py URI write|read``.

Prints what was read as JSON.
"""

import json
import sys

from pyspark.sql import SparkSession

ROWS, TASKS = 2_000_000, 4


def main(uri: str, what: str) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "2g").getOrCreate()
    options = {"metadataServiceUri": uri}
    found = []
    if what == "write":
        rows = spark.range(0, ROWS, 1, TASKS).selectExpr(
            "id", "sha2(cast(id AS string), 256) AS text"
        )
        rows.write.format("bookkeeper").options(**options).mode("append").save("events")
    else:
        log = spark.read.format("bookkeeper").options(**options).load("events")
        one = log.selectExpr("count(*)", "sum(id)", "count(DISTINCT text)").first()
        found = list(one or ())
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
