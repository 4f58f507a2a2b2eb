"""Empty bookies while the cluster is used, and remove them from it, for ever.

    spark-submit jobs/decommission.py --metadata file:///data/bk --yes bookie-3 bookie-4

Prints one JSON line: the report, with its plan, what was done, what is left and why, and counters.
Executors copy from bookie to bookie. It can be killed at any point and run again. The exit status
is 1 if something is left, and 2 if the call has to be changed.
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
    return run_job(_decommission, argv, note)


def _decommission(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metadata", required=True, help="URI of the cluster's metadata")
    parser.add_argument("bookies", nargs="+", metavar="ID", help="which bookies")
    parser.add_argument("--force", action="store_true", help="where others have what is left")
    parser.add_argument("--yes", action="store_true", help="nobody is asked")
    parser.add_argument("--dry-run", action="store_true", help="print the plan, change nothing")
    parser.add_argument("--max-bytes-per-second", type=float, help="of each bookie")
    parser.add_argument("--password-file", default="", help="holds the ledger password")
    parser.add_argument("--password-env", default="", help="environment variable that holds it")
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
