"""Delete the oldest entries of a log that its settings do not keep.

    spark-submit jobs/retain.py LOG --metadata file:///data/bk --dry-run
    spark-submit jobs/retain.py LOG --metadata file:///data/bk --max-seconds 604800 --yes

Prints one JSON line: the report, with its plan (which entries go), what was done and what is left.
Nothing is deleted without --yes. The exit status is 1 if something is left, and 2 if the call has
to be changed.
"""

import json
import sys
from collections.abc import Sequence

from bkspark import verbs
from bkspark.cli.output import note
from bkspark.quantities import seconds_of, size_of
from bkspark.spark.job import parser_of, run_job


def main(argv: list[str]) -> int:
    return run_job(_retain, argv, note)


def _retain(argv: Sequence[str]) -> int:
    parser = parser_of(__doc__)
    parser.add_argument("log", help="the log's name")
    parser.add_argument(
        "--max-bytes", type=size_of("--max-bytes"), help="from now on keep at least as much"
    )
    parser.add_argument(
        "--max-seconds", type=seconds_of("--max-seconds"), help="from now on keep ledgers so long"
    )
    parser.add_argument("--forever", action="store_true", help="from now on keep all")
    parser.add_argument("--ignore-cursors", action="store_true", help="also what they are to read")
    given = parser.parse_args(argv)
    if not (given.yes or given.dry_run):
        parser.error("entries are deleted for ever: give --yes, or --dry-run to see which")

    report = verbs.retain(
        given.metadata,
        log=given.log,
        max_bytes=given.max_bytes,
        max_seconds=given.max_seconds,
        forever=given.forever,
        ignore_cursors=given.ignore_cursors,
        dry_run=given.dry_run,
    )
    print(json.dumps(report.document))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
