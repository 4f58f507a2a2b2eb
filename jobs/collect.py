"""Free what deleted ledgers, truncations, overwrites and aborted writes have left on bookies.

    spark-submit jobs/collect.py --metadata file:///data/bk

Prints one JSON line: the report, with its plan, what was done, what is left and why, and counters.
Executors work on the bookies. It can be killed at any point and run again. The exit status is 1 if
something is left, and 2 if the call has to be changed.
"""

import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from bkspark import verbs
from bkspark.admin.collecting.run import ABANDONED_AFTER_SECONDS
from bkspark.cli.output import note
from bkspark.quantities import seconds_of
from bkspark.spark.job import NO_LEASE, parser_of, run_job


def main(argv: list[str]) -> int:
    return run_job(_collect, argv, note)


def _collect(argv: Sequence[str]) -> int:
    parser = parser_of(__doc__, NO_LEASE)
    parser.add_argument(
        "--abandoned-after",
        type=seconds_of("--abandoned-after"),
        default=ABANDONED_AFTER_SECONDS,
        metavar="TIME",
        help="before an unfinished write counts as abandoned; a longer write fails at commit",
    )
    arguments = parser.parse_args(argv)

    report = verbs.collect(
        arguments.metadata,
        abandoned_after=arguments.abandoned_after,
        dry_run=arguments.dry_run,
        no_lease=arguments.no_lease,
        spark=SparkSession.builder.appName("bkspark collect").getOrCreate(),
        tell=note,
    )
    print(json.dumps(report.document))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
