"""Audit a cluster: which copies are missing, and which ledgers wait for recovery and for what.

    spark-submit jobs/audit.py --metadata file:///data/bk

Prints one JSON line: the report, with its plan, what was done, what is left and why, and counters.
Executors look at the bookies, and read no rows. The exit status is 1 if something is not well, and
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
    return run_job(_audit, argv, note)


def _audit(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metadata", required=True, help="URI of the cluster's metadata")
    parser.add_argument("--log", action="append", default=[], help="only this log")
    parser.add_argument("--ledger", action="append", default=[], type=int, help="only this ledger")
    parser.add_argument("--dry-run", action="store_true", help="print the plan, look at nothing")
    arguments = parser.parse_args(argv)

    report = verbs.audit(
        arguments.metadata,
        logs=arguments.log,
        ledgers=arguments.ledger,
        dry_run=arguments.dry_run,
        spark=SparkSession.builder.appName("bkspark audit").getOrCreate(),
        tell=note,
    )
    print(json.dumps(report.document))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
