"""Recover ledgers: fence their writers and close them, without losing an acknowledged entry.

    spark-submit jobs/recover.py --metadata file:///data/bk --all
    spark-submit jobs/recover.py --metadata file:///data/bk --ledger 7

Prints one JSON line, and steps on stderr. ``--all``: every ledger whose writer is gone, by a task
each of one job; an open one is, once it was seen unchanged for ``--open-grace`` seconds. Executors
need the metadata store then. The exit status is 1 if a ledger cannot be closed yet, with what would
help, and 2 if the call has to be changed.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

import bkspark
from bkspark import verbs
from bkspark.cli.output import note
from bkspark.spark.job import NO_LEASE, OPEN_GRACE, PASSWORD, parser_of, run_job


def main(argv: list[str]) -> int:
    return run_job(_recover, argv, note)


def _recover(argv: Sequence[str]) -> int:
    parser = parser_of(__doc__, *PASSWORD, NO_LEASE, OPEN_GRACE)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--ledger", type=int)
    which.add_argument("--all", action="store_true", help="every ledger whose writer is gone")
    loss = "close it though entries are lost, which are named, if nothing can bring them back"
    parser.add_argument("--accept-loss", action="store_true", help=loss)
    seal = "close also the one that an unbounded log goes on in"
    parser.add_argument("--seal", action="store_true", help=seal)
    given = parser.parse_args(argv)

    if given.accept_loss or given.seal if given.all else given.dry_run:
        what = "--accept-loss and --seal are about one ledger, and --dry-run goes with --all"
        raise bkspark.InvalidRequestError(what, hint="name the ledger, or leave the option out")
    spark = SparkSession.builder.appName("bkspark recover").getOrCreate()
    of_all: dict[str, Any] = {n: getattr(given, n) for n in ("open_grace", "dry_run", "no_lease")}
    both: dict[str, Any] = {n: getattr(given, n) for n in ("password_file", "password_env")}
    if given.all:
        report = verbs.recover(given.metadata, spark=spark, tell=note, **of_all, **both)
        print(json.dumps(report.document))
        return report.exit_status
    both |= {"accepts_loss": given.accept_loss, "seal": given.seal}
    done = bkspark.recover_ledger(spark, given.metadata, given.ledger, tell=note, **both)
    print(json.dumps(done.facts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
