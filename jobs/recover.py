"""Recover ledgers: fence their writers and close them, without losing an acknowledged entry.

    spark-submit jobs/recover.py --metadata file:///data/bk --ledger 7
    spark-submit jobs/recover.py --metadata file:///data/bk --all

Prints one JSON line. Of one ledger: its state and its last entry; ``lost_from`` if entries were
given up on the operator's word, ``losses`` if entries went, or may have gone, with their bookies.
Steps are told on stderr. If it cannot be decided yet, one line on stderr says what would help, and
the exit status is 1; it is 2 if the call has to be changed.

With ``--all``: the report of every ledger whose writer is gone, recovered by a task each of one
job; an open one is, once it was seen unchanged for ``--open-grace`` seconds. Executors need the
metadata store then. The exit status is 1 if one is left.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

import bkspark
from bkspark import verbs
from bkspark.admin.recovering.plan import OPEN_GRACE_SECONDS
from bkspark.cli.output import note
from bkspark.spark.job import NO_LEASE, PASSWORD, parser_of, run_job


def main(argv: list[str]) -> int:
    return run_job(_recover, argv, note)


def _recover(argv: Sequence[str]) -> int:
    parser = parser_of(__doc__, *PASSWORD, NO_LEASE)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--ledger", type=int)
    which.add_argument("--all", action="store_true", help="every ledger whose writer is gone")
    parser.add_argument("--open-grace", type=float, default=OPEN_GRACE_SECONDS, help="in seconds")
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="close the ledger even if entries are lost, which are named; only where all that "
        "could prevent it is declared lost or damaged",
    )
    arguments = parser.parse_args(argv)

    one_only, all_only = arguments.accept_loss, arguments.dry_run
    if one_only if arguments.all else all_only:
        raise bkspark.InvalidRequestError(
            "--accept-loss is about one ledger, and --dry-run goes with --all",
            hint="name the ledger, or leave the option out",
        )
    spark = SparkSession.builder.appName("bkspark recover").getOrCreate()
    if arguments.all:
        return _recover_all(arguments, spark)
    report = bkspark.recover_ledger(
        spark,
        arguments.metadata,
        arguments.ledger,
        password_file=arguments.password_file,
        password_env=arguments.password_env,
        tell=note,
        accepts_loss=arguments.accept_loss,
    )
    facts = {
        "ledger": report.ledger_id,
        "state": "CLOSED",
        "last_entry_id": report.last_entry_id,
        "groups_kept": report.kept,
    }
    if report.lost_from is not None:
        facts["lost_from"] = report.lost_from
    if report.losses:
        facts["losses"] = report.losses
    print(json.dumps(facts))
    return 0


def _recover_all(arguments: argparse.Namespace, spark: SparkSession) -> int:
    report = verbs.recover(
        arguments.metadata,
        open_grace=arguments.open_grace,
        dry_run=arguments.dry_run,
        no_lease=arguments.no_lease,
        password_file=arguments.password_file,
        password_env=arguments.password_env,
        spark=spark,
        tell=note,
    )
    print(json.dumps(report.document))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
