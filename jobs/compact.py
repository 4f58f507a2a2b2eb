"""Make large ledgers of a log's small ones; offsets, and what is at each, stay as they are.

    spark-submit jobs/compact.py LOG --metadata file:///data/bk

Prints one JSON line: the report, with its plan, what was done, what is left and why, and counters.
Each row of small neighbours is a task. It can be killed at any point and run again. The exit status
is 1 if something is left, and 2 if the call has to be changed.
"""

import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from bkspark import verbs
from bkspark.cli.output import note
from bkspark.protocol.log.compaction import TARGET_BYTES
from bkspark.quantities import size_of
from bkspark.spark.job import PASSWORD, RATE, parser_of, run_job


def main(argv: list[str]) -> int:
    return run_job(_compact, argv, note)


def _compact(argv: Sequence[str]) -> int:
    parser = parser_of(__doc__, RATE, *PASSWORD)
    parser.add_argument("log", help="the log's name")
    parser.add_argument(
        "--target-bytes", type=size_of("--target-bytes"), default=TARGET_BYTES, help="of a ledger"
    )
    arguments = parser.parse_args(argv)

    report = verbs.compact(
        arguments.metadata,
        log=arguments.log,
        target_bytes=arguments.target_bytes,
        dry_run=arguments.dry_run,
        password_file=arguments.password_file,
        password_env=arguments.password_env,
        max_bytes_per_second=arguments.max_bytes_per_second,
        spark=SparkSession.builder.appName("bkspark compact").getOrCreate(),
    )
    print(json.dumps(report.document))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
