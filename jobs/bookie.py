"""Look after one bookie: what ``bkspark bookie`` does, from spark-submit.

    spark-submit jobs/bookie.py --metadata file:///data/bk readonly bookie-3
    spark-submit jobs/bookie.py --metadata file:///data/bk move bookie-3 file:///disk9/bk

Prints one JSON line: what was planned, what was done, and what is left with the reason. Exit status
0: nothing is left to do; 1: something is; 2: the call has to be changed.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from bkspark.admin import bookies
from bkspark.admin.maintenance import Report
from bkspark.cli.output import note
from bkspark.spark.job import add_metadata, run_job


def main(argv: list[str]) -> int:
    return run_job(_look_after, argv, note)


def _look_after(argv: Sequence[str]) -> int:
    call = vars(_parser().parse_args(argv))
    verb, uri, bookie_id = call.pop("verb"), call.pop("metadata"), call.pop("bookie_id")
    call.pop("yes", None)
    report: Report = getattr(bookies, verb)(uri, bookie_id, **call)
    print(json.dumps(report.document))
    return report.exit_status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    add_metadata(parser)
    verbs = parser.add_subparsers(dest="verb", required=True)
    names = ("readonly", "marks", "label", "move", "reinit", "remove")
    readonly, marks, label, move, reinit, remove = made = [*map(verbs.add_parser, names)]
    for verb in made:
        verb.add_argument("bookie_id")
        verb.add_argument("--dry-run", action="store_true")
    for verb in (move, reinit):
        verb.add_argument("--accept-storage-risk", dest="accepts_risk", action="store_true")
    reinit.add_argument("--make-folder", dest="makes_folder", action="store_true")
    readonly.add_argument("--off", action="store_true")
    marks.add_argument("--high", type=float)
    marks.add_argument("--low", type=float)
    label.add_argument("labels", nargs="*", metavar="NAME=VALUE")
    label.add_argument("--remove", action="append", default=[], metavar="NAME")
    move.add_argument("url")
    move.add_argument("--store", default="", metavar="NAME")
    for verb in (reinit, remove):
        verb.add_argument("--yes", action="store_true", required=True, help="nobody is asked")
    remove.add_argument("--force", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
