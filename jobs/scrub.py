"""Scrub a cluster: read every copy and check every byte, on executors.

    spark-submit jobs/scrub.py --metadata file:///data/bk

Prints one JSON line: the report, with its plan, what was read, what is damaged and counters. What
is damaged is marked, so that an audit counts it as missing. Without a ledger's password only what
needs none is checked of it. The exit status is 1 if something is damaged or could not be read, and
2 if the call has to be changed.
"""

import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from bkspark import verbs
from bkspark.cli.output import note
from bkspark.spark.job import NO_LEASE, OF_SOME, PASSWORD, RATE, parser_of, run_job


def main(argv: list[str]) -> int:
    return run_job(_scrub, argv, note)


def _scrub(argv: Sequence[str]) -> int:
    parser = parser_of(__doc__, *OF_SOME, RATE, *PASSWORD, NO_LEASE)
    parser.add_argument("--sample", type=float, default=1.0, help="so much of the files, by chance")
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
