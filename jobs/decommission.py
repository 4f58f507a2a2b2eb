"""Empty bookies while the cluster is used, and remove them from it, for ever.

    spark-submit jobs/decommission.py --metadata file:///data/bk --yes bookie-3 bookie-4

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
from bkspark.spark.job import PASSWORD, RATE, parser_of, run_job


def main(argv: list[str]) -> int:
    return run_job(_decommission, argv, note)


def _decommission(argv: Sequence[str]) -> int:
    parser = parser_of(__doc__, RATE, *PASSWORD)
    parser.add_argument("bookies", nargs="+", metavar="ID", help="which bookies")
    parser.add_argument("--force", action="store_true", help="where others have what is left")
    arguments = parser.parse_args(argv)
    if not (arguments.yes or arguments.dry_run):
        parser.error("bookies are removed for ever: give --yes")

    report = verbs.decommission(
        arguments.metadata,
        bookies=arguments.bookies,
        force=arguments.force,
        dry_run=arguments.dry_run,
        password_file=arguments.password_file,
        password_env=arguments.password_env,
        max_bytes_per_second=arguments.max_bytes_per_second,
        spark=SparkSession.builder.appName("bkspark decommission").getOrCreate(),
        tell=note,
    )
    print(json.dumps(report.document))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
