"""An operator's commands for a table in a bucket; prints what queries find as JSON.

python s3_driver.py URI TABLE
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import bkspark
from bkspark import cli
from bkspark.spark.hadoop_s3 import for_spark
from tests.integration.rig import LOG


def main(uri: str, table: str) -> None:
    def run(*arguments: str) -> None:
        assert cli.main(["--metadata", uri, *arguments]) == 0, arguments

    run("offload", LOG, "--table", table)
    for _ in range(2):
        run("collect", "--offload-grace", "0", "--abandoned-after", "0")
    run("offload", LOG, "--table", table.replace("s3:", "s3a:"))  # the same table
    spark = SparkSession.getActiveSession()  # the command made it
    assert spark is not None
    bkspark.register(spark, metadataServiceUri=uri)
    native: Any = bkspark.read(spark, LOG)
    plain = spark.read.format("delta").load(for_spark(table))
    found = {
        "plan": native._jdf.queryExecution().executedPlan().toString(),
        "native": sorted(row.n for row in native.collect()),
        "log": sorted(row.n for row in spark.read.format("bookkeeper").load(LOG).collect()),
        "table": sorted(row._offset for row in plain.collect()),
    }
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
