"""Recover a ledger: fence its writer and close it, without losing an acknowledged entry.

    spark-submit jobs/recover.py --metadata file:///data/bk --ledger 7

Prints one JSON line: the ledger, its state and its last entry; ``lost_from`` if entries were given
up on the operator's word, ``losses`` if entries went, or may have gone, with their bookies. Steps
are told on stderr. If it cannot be decided yet, one line on stderr says what would help, and the
exit status is 1; it is 2 if the call has to be changed.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

import bkspark
from bkspark.cli.output import note
from bkspark.spark.job import run_job


def main(argv: list[str]) -> int:
    return run_job(_recover, argv, note)


def _recover(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metadata", required=True, help="URI of the cluster's metadata")
    parser.add_argument("--ledger", required=True, type=int)
    parser.add_argument("--password-file", default="", help="holds the ledger password")
    parser.add_argument("--password-env", default="", help="environment variable that holds it")
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="close the ledger even if entries are lost, which are named; only where all that "
        "could prevent it is declared lost or damaged",
    )
    arguments = parser.parse_args(argv)

    spark = SparkSession.builder.appName("bkspark recover").getOrCreate()
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
