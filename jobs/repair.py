"""Make the copies that are missing of closed ledgers again, the worst first.

    spark-submit jobs/repair.py --metadata file:///data/bk

Prints one JSON line: the report, with its plan, what was done, what is left and why, and counters.
Executors copy from bookie to bookie. A repair of all recovers first what has lost its writer. With
``--watch`` it goes on until it is stopped, one line a round. The exit status is 1 if something is
left, and 2 if the call has to be changed.
"""

import json
import sys
from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from bkspark import verbs
from bkspark.cli import watching
from bkspark.cli.output import note
from bkspark.quantities import seconds_of
from bkspark.spark.job import NO_LEASE, OF_SOME, OPEN_GRACE, PASSWORD, RATE, parser_of, run_job


def main(argv: list[str]) -> int:
    return run_job(_repair, argv, note)


def _repair(argv: Sequence[str]) -> int:
    parser = parser_of(__doc__, *OF_SOME, RATE, *PASSWORD, NO_LEASE, OPEN_GRACE)
    parser.add_argument("--watch", type=seconds_of("--watch"), nargs="?", const=watching.SECONDS)
    parser.add_argument(
        "--lost-after", type=seconds_of("--lost-after"), help="replace who is silent so long"
    )
    given = parser.parse_args(argv)

    once = partial(
        verbs.repair,
        given.metadata,
        logs=given.log,
        ledgers=given.ledger,
        dry_run=given.dry_run,
        open_grace=given.open_grace,
        lost_after=given.lost_after,
        password_file=given.password_file,
        password_env=given.password_env,
        max_bytes_per_second=given.max_bytes_per_second,
        no_lease=given.no_lease,
        spark=SparkSession.builder.appName("bkspark repair").getOrCreate(),
        tell=note,
    )
    if given.watch is not None:
        return watching.watch(once, given.watch, note, as_json=True, dry_run=given.dry_run)
    report = once()
    print(json.dumps(report.document))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
