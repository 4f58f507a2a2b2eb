"""Audit a cluster: which copies are missing, and which ledgers wait for recovery and for what.

    spark-submit jobs/audit.py --metadata file:///data/bk

Prints one JSON line: the report, with its plan, what was done, what is left and why, and counters.
Executors look at the bookies, and read no rows. The exit status is 1 if something is not well, and
2 if the call has to be changed.
"""

import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from bkspark import verbs
from bkspark.cli.output import note
from bkspark.spark.job import OF_SOME, parser_of, run_job


def main(argv: list[str]) -> int:
    return run_job(_audit, argv, note)


def _audit(argv: Sequence[str]) -> int:
    parser = parser_of(__doc__, *OF_SOME)
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
