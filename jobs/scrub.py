"""Scrub a cluster: read every copy and check every byte, on executors.

    spark-submit jobs/scrub.py --metadata file:///data/bk

Prints one JSON line: the report, with its plan, what was read, what is damaged and counters. What
is damaged is marked, so that an audit counts it as missing. Without a ledger's password only what
needs none is checked of it. The exit status is 1 if something is damaged or could not be read, and
2 if the call has to be changed.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from bkspark import verbs
from bkspark.cli.output import note
from bkspark.spark.job import run_job


def main(argv: list[str]) -> int:
    return run_job(_scrub, argv, note)


def _scrub(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metadata", required=True, help="URI of the cluster's metadata")
    parser.add_argument("--log", action="append", default=[], help="only this log")
    parser.add_argument("--ledger", action="append", default=[], type=int, help="only this ledger")
    parser.add_argument("--sample", type=float, default=1.0, help="so much of the files, by chance")
    parser.add_argument("--max-bytes-per-second", type=float, help="of each bookie")
    parser.add_argument("--password-file", default="", help="holds the password of ledgers")
    parser.add_argument("--password-env", default="", help="environment variable that holds it")
    parser.add_argument("--dry-run", action="store_true", help="print the plan, read nothing")
    parser.add_argument("--no-lease", action="store_true", help="also beside another run")
    arguments = parser.parse_args(argv)

    report = verbs.scrub(
        arguments.metadata,
        logs=arguments.log,
        ledgers=arguments.ledger,
        sample=arguments.sample,
        max_bytes_per_second=arguments.max_bytes_per_second,
        password_file=arguments.password_file,
        password_env=arguments.password_env,
        dry_run=arguments.dry_run,
        no_lease=arguments.no_lease,
        spark=SparkSession.builder.appName("bkspark scrub").getOrCreate(),
        tell=note,
    )
    print(json.dumps(report.document))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
