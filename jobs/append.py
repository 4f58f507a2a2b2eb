"""Append files that Spark can read to a log, once, however often the job is submitted.

    spark-submit jobs/append.py --metadata file:///data/bk --log events \\
        --format parquet --path /landing/2026-11-21 --app-id load --version 20261121

Prints one JSON line: the log and where it ends now. What went wrong is told in one line on stderr;
the exit status is then 2 if the call has to be changed, and 1 otherwise.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

import bkspark
from bkspark.cli.output import note
from bkspark.cluster.cluster import Cluster
from bkspark.spark.job import add_metadata, run_job


def main(argv: list[str]) -> int:
    return run_job(_append, argv, note)


def _append(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_metadata(parser)
    parser.add_argument("--log", required=True)
    parser.add_argument("--format", default="parquet")
    parser.add_argument("--path", required=True)
    parser.add_argument("--app-id", default="", help="with --version: append at most once")
    parser.add_argument("--version", default="", help="of what --app-id appends; only grows")
    arguments = parser.parse_args(argv)
    if bool(arguments.app_id) != bool(arguments.version):
        raise bkspark.InvalidRequestError(
            "--app-id and --version belong together",
            hint="give both to append at most once, or none to append each time",
        )

    spark = SparkSession.builder.appName("bkspark append").getOrCreate()
    bkspark.register(spark, metadataServiceUri=arguments.metadata)
    rows = spark.read.format(arguments.format).load(arguments.path)
    writer = rows.write.format("bookkeeper").mode("append")
    if arguments.app_id:
        writer.option("txnAppId", arguments.app_id).option("txnVersion", arguments.version)
    writer.save(arguments.log)
    with Cluster(arguments.metadata) as cluster:
        end_offset = cluster.log(arguments.log).value.end_offset
    print(json.dumps({"log": arguments.log, "end_offset": end_offset}))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
