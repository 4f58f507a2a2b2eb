"""Make large ledgers of a log's small ones; offsets, and what is at each, stay as they are.

    spark-submit jobs/compact.py LOG --metadata file:///data/bk

Prints one JSON line: the report, with its plan, what was done, what is left and why, and counters.
Each row of small neighbours is a task. It can be killed at any point and run again. The exit status
is 1 if something is left, and 2 if the call has to be changed.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from bkspark import verbs
from bkspark.cli.output import note
from bkspark.protocol.log.compaction import TARGET_BYTES
from bkspark.spark.job import run_job


def main(argv: list[str]) -> int:
    return run_job(_compact, argv, note)


def _compact(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", help="the log's name")
    parser.add_argument("--metadata", required=True, help="URI of the cluster's metadata")
    parser.add_argument("--target-bytes", type=int, default=TARGET_BYTES, help="of a ledger")
    parser.add_argument("--dry-run", action="store_true", help="print the plan, change nothing")
    parser.add_argument("--max-bytes-per-second", type=float, help="read no more than that")
    parser.add_argument("--password-file", default="", help="holds the log's password")
    parser.add_argument("--password-env", default="", help="environment variable that holds it")
    parser.add_argument("--yes", action="store_true", help="it never asks")
    arguments = parser.parse_args(argv)

    report = verbs.compact(
        arguments.metadata,
        log=arguments.log,
        target_bytes=arguments.target_bytes,
        dry_run=arguments.dry_run,
        password_file=arguments.password_file,
        password_env=arguments.password_env,
        max_bytes_per_second=arguments.max_bytes_per_second,
        spark=SparkSession.builder.appName("bkspark compact").getOrCreate(),
    )
    print(json.dumps(report.document))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
