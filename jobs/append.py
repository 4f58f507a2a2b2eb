"""Append files that Spark can read to a log, once, however often the job is submitted.

    spark-submit jobs/append.py --metadata file:///data/bk --log events \\
        --format parquet --path /landing/2026-11-21 --app-id load --version 20261121

Prints one JSON line: the log and where it ends now.
"""

import argparse
import json
import sys

from pyspark.sql import SparkSession

import bkspark
from bkspark.client.cluster import Cluster


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metadata", required=True, help="URI of the cluster's metadata")
    parser.add_argument("--log", required=True)
    parser.add_argument("--format", default="parquet")
    parser.add_argument("--path", required=True)
    parser.add_argument("--app-id", help="with --version: append at most once")
    parser.add_argument("--version")
    arguments = parser.parse_args(argv)

    spark = SparkSession.builder.appName("bkspark append").getOrCreate()
    bkspark.register(spark, metadataServiceUri=arguments.metadata)
    rows = spark.read.format(arguments.format).load(arguments.path)
    writer = rows.write.format("bookkeeper").mode("append")
    if arguments.app_id is not None:
        writer.option("txnAppId", arguments.app_id).option("txnVersion", arguments.version)
    writer.save(arguments.log)
    with Cluster(arguments.metadata) as cluster:
        end_offset = cluster.log(arguments.log).value.end_offset
    print(json.dumps({"log": arguments.log, "end_offset": end_offset}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
