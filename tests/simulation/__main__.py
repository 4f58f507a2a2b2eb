"""The soak command, and the one that exhausts a small scope.

    python -m tests.simulation --seconds 3600 --jobs 2
    python -m tests.simulation --schedules 1 --seed 4711 --tell
    python -m tests.simulation --logs --seconds 3600 --jobs 2
    python -m tests.simulation --losses --seconds 3600 --jobs 2
    python -m tests.simulation --power-cuts --seconds 3600 --jobs 2
    python -m tests.simulation --upkeep --losses --seconds 3600 --jobs 2
    python -m tests.simulation --racks --upkeep --seconds 3600 --jobs 2
    python -m tests.simulation --exhaust 3/3/2 --recoverers 1 --crashes 1
    python -m tests.simulation --exhaust 3/3/2 --recoverers 2 --states
    python -m tests.simulation --exhaust 2/2/2 --states --upkeep

Exits 1 if a schedule breaks a promise, and prints it step by step; its seed alone brings it back.
SIGINT and SIGTERM end it: it says what was run until then and exits with 130 or 143, as shells do.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial

from bkspark.protocol.ledger.quorum import Quorum
from tests.simulation.exhaustive.exhaust import exhaust
from tests.simulation.exhaustive.run import Scope
from tests.simulation.frame import Outcome
from tests.simulation.log_schedule import run_log_schedule
from tests.simulation.many import run_many, told_by_signals
from tests.simulation.schedule import run_schedule
from tests.simulation.states import upkeep
from tests.simulation.story import told


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.exhaust:
        return _look_at_states(options) if options.states else _exhaust(options)
    count = options.schedules or (None if options.seconds else 1000)
    scheduled: Callable[..., Outcome] = run_log_schedule if options.logs else run_schedule
    kinds = {name: True for name in ("upkeep", "racks") if getattr(options, name)}
    run = partial(scheduled, loses_files=options.losses, loses_power=options.power_cuts, **kinds)
    if options.tell:
        for number in range(count or 1):
            print(told(run(options.seed + number)))
    began = time.perf_counter()
    with told_by_signals() as end:
        total = run_many(
            options.seed,
            count=count,
            seconds=options.seconds,
            jobs=options.jobs,
            run=run,
            end=end,
        )
    if total.failed and not options.tell:
        print(told(total.failed))
    print(total.shown(time.perf_counter() - began))
    if total.violations:
        return 1
    return 0 if end.signal_number is None else 128 + end.signal_number


def _exhaust(options: argparse.Namespace) -> int:
    scope = Scope(
        options.exhaust,
        recoverers=options.recoverers,
        dies=options.crashes > 0,
        changes=options.change,
        closes=options.close,
    )
    began = time.perf_counter()
    result = exhaust(scope, options.limit, uses_symmetry=not options.all_names)
    if result.failed:
        print(told(result.failed))
    print(f"{result}, {time.perf_counter() - began:.1f} s")
    return 1 if result.failed else 0


def _look_at_states(options: argparse.Namespace) -> int:
    if options.close or options.all_names:
        _parser().error("--states knows neither --close nor --all-names")
    scope = upkeep.Scope(
        options.exhaust,
        recoverers=options.recoverers,
        entries=options.entries,
        failures=int(options.change),
        spares=int(options.change or options.upkeep),
        dies=options.crashes > 0,
        jobs=("repair", "collect") if options.upkeep else (),
    )
    began = time.perf_counter()
    found = upkeep.search(scope, options.limit)
    print(f"{found}, {time.perf_counter() - began:.1f} s")
    return 1 if found.violation else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--schedules", type=int, help="how many; 1000 unless --seconds is given")
    parser.add_argument("--seconds", type=float, help="how long")
    parser.add_argument("--seed", type=int, default=0, help="of the first schedule")
    parser.add_argument("--jobs", type=int, default=1, help="processes to run them in")
    parser.add_argument("--tell", action="store_true", help="print every step of every schedule")
    parser.add_argument("--logs", action="store_true", help="logs of ledgers, in place of a ledger")
    parser.add_argument(
        "--losses", action="store_true", help="bookies lose files and folders, cookies intact"
    )
    parser.add_argument(
        "--power-cuts", action="store_true", help="bookies lose what is not durable yet"
    )
    parser.add_argument(
        "--upkeep", action="store_true", help="repairs, scrubs and collections beside all else"
    )
    parser.add_argument(
        "--racks", action="store_true", help="ledgers insist on racks; not with --logs"
    )
    small = parser.add_argument_group("every schedule of a small scope")
    small.add_argument("--exhaust", type=_quorum, metavar="E/Qw/Qa")
    small.add_argument("--recoverers", type=int, default=1)
    small.add_argument("--crashes", type=int, default=0, choices=(0, 1), help="of the writer")
    small.add_argument("--change", action="store_true", help="the writer changes its ensemble")
    small.add_argument("--close", action="store_true", help="the writer closes the ledger")
    small.add_argument("--states", action="store_true", help="each state of the machines once")
    small.add_argument("--entries", type=int, default=1, help="that are added; with --states")
    small.add_argument("--all-names", action="store_true", help="also what differs in names only")
    small.add_argument("--limit", type=int, help="end after so many schedules, or states")
    return parser


def _quorum(text: str) -> Quorum:
    return Quorum(*(int(size) for size in text.split("/")))


if __name__ == "__main__":
    sys.exit(main())
