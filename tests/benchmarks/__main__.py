"""bkspark beside its peers on this machine, in one run: a table, a JSON file and a picture.

    python -m tests.benchmarks [--rounds 3] [--rows 2000000] [--dir DIR] [--out FOLDER]
                               [--without BookKeeper] [--without Kafka] [--quick]

Downloads BookKeeper, Kafka and Delta from Maven Central (mvn and Java 17 are needed), and starts
three servers of each on this machine. It takes about a quarter of an hour. Let nothing else run.
"""

import argparse
import signal
import sys
from pathlib import Path

from tests.benchmarks.peers import report
from tests.benchmarks.peers.contest import BOOKKEEPER, KAFKA, Counts, run

QUICK = Counts(singles=50, callers=80, pipelined=2_000, tail=5, entries=100)
"""Shows only that everything works."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--dir", type=Path, help="on the disk to measure; default: a temporary one")
    parser.add_argument("--out", type=Path, default=Path(), help="for peers.json and peers.svg")
    parser.add_argument("--without", action="append", choices=(BOOKKEEPER, KAFKA), default=[])
    parser.add_argument("--quick", action="store_true", help="a round of few entries")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the servers end with the run
    counts = QUICK if given.quick else Counts()
    contest = run(given.dir, given.rounds, given.rows, set(given.without), counts)
    how = report.settings(given.rounds, given.rows)
    (given.out / "peers.json").write_text(report.document(contest, how), encoding="utf-8")
    report.draw(contest, given.out / "peers.svg")
    print(report.table(contest))
    for name, value in how.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
