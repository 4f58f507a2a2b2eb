"""Move copies from bookies that have more than others to those that have less.

    spark-submit jobs/rebalance.py --metadata file:///data/bk

Prints one JSON line: the report, with its plan, what was done, what is left and why, and counters.
Executors copy from bookie to bookie. It can be killed at any point and run again. The exit status
is 1 if something is left, and 2 if the call has to be changed.
"""

import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from bkspark import verbs
from bkspark.cli.output import note
from bkspark.protocol.upkeep.balancing import THRESHOLD
from bkspark.spark.job import NO_LEASE, PASSWORD, RATE, parser_of, run_job


def main(argv: list[str]) -> int:
    return run_job(_rebalance, argv, note)


def _rebalance(argv: Sequence[str]) -> int:
    parser = parser_of(__doc__, RATE, *PASSWORD, NO_LEASE)
    parser.add_argument("--threshold", type=float, default=THRESHOLD, help="fraction of the mean")
    arguments = parser.parse_args(argv)

    report = verbs.rebalance(
        arguments.metadata,
        threshold=arguments.threshold,
        dry_run=arguments.dry_run,
        password_file=arguments.password_file,
        password_env=arguments.password_env,
        max_bytes_per_second=arguments.max_bytes_per_second,
        no_lease=arguments.no_lease,
        spark=SparkSession.builder.appName("bkspark rebalance").getOrCreate(),
        tell=note,
    )
    print(json.dumps(report.document))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
