"""The results as a table, as JSON, and as a picture."""

import datetime
import json
import os
import platform
from pathlib import Path
from typing import Any

from tests.benchmarks.peers.contest import BKSPARK, LIMIT, LINES, Contest, Line
from tests.benchmarks.peers.servers import BOOKKEEPER, KAFKA

_COLOURS = {BKSPARK: "#d9480f", LIMIT: "#ced4da"}
_OTHERS = "#748ffc"


def settings(rounds: int, row_count: int) -> dict[str, Any]:
    """Where and how the figures were measured."""
    import pyspark

    return {
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "processors": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "spark": pyspark.__version__,
        "bookkeeper": f"{BOOKKEEPER}, ensemble 3, write quorum 3, ack quorum 2, CRC32C, "
        "journalFlushWhenQueueEmpty",
        "kafka": f"{KAFKA}, three brokers, acks=all, min.insync.replicas 2, flush.messages 1",
        "rounds": rounds,
        "rows": row_count,
    }


def table(contest: Contest) -> str:
    """A table in Markdown: medians, with least and most, and how many times quicker bkspark is."""
    names = _contenders(contest)
    lines = [
        "| what | " + " | ".join(names) + " |",
        "|---|" + "---|" * len(names),
    ]
    for what, line in LINES.items():
        cells = [_cell(contest, line, name) for name in names]
        if any(cells):
            lines.append(f"| {what} | " + " | ".join(cells) + " |")
    told = [f'*limit* of "{line.what}": {line.limit}.' for line in LINES.values() if line.limit]
    return "\n".join([*lines, "", *told])


def _contenders(contest: Contest) -> list[str]:
    found = dict.fromkeys(name for values in contest.values.values() for name in values)
    rest = [name for name in found if name not in (BKSPARK, LIMIT)]
    return [BKSPARK, *rest, *([LIMIT] if LIMIT in found else [])]


def _cell(contest: Contest, line: Line, name: str) -> str:
    values = contest.values[line.what].get(name)
    if not values:
        return ""
    median = contest.median(line.what, name)
    assert median is not None
    told = f"{_shown(line, median)} ({_number(line, min(values))}–{_number(line, max(values))})"
    own = contest.median(line.what, BKSPARK)
    if name == BKSPARK or not own:
        return told
    factor = own / median if line.is_rate else median / own
    return f"{told} ×{factor:.2g}"


def _shown(line: Line, value: float) -> str:
    return _number(line, value) + ("/s" if line.is_rate else f" {line.unit}")


def _number(line: Line, value: float) -> str:
    return f"{value:,.0f}" if line.is_rate else f"{value:.2f}"


def document(contest: Contest, how: dict[str, Any]) -> str:
    """All values of all rounds, as JSON."""
    lines = {
        what: {"unit": line.unit, "limit": line.limit, "values": contest.values[what]}
        for what, line in LINES.items()
    }
    return json.dumps({"settings": how, "lines": lines}, indent=2)


def draw(contest: Contest, path: Path) -> None:
    """Draw a bar for each contender of each line: the median, and from least to most."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "bkspark"  # the same picture of the same figures
    from matplotlib import pyplot

    lines = [line for line in LINES.values() if contest.values[line.what]]
    rows = -(-len(lines) // 2)
    figure, axes = pyplot.subplots(rows, 2, figsize=(11, 1.9 * rows), squeeze=False)
    for axis in axes.flat[len(lines) :]:
        axis.set_visible(False)
    for axis, line in zip(axes.flat, lines):
        _draw_line(axis, line, contest)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _draw_line(axis: Any, line: Line, contest: Contest) -> None:
    values = contest.values[line.what]
    names = [name for name in _contenders(contest) if name in values][::-1]
    for number, name in enumerate(names):
        median = contest.median(line.what, name)
        assert median is not None
        spread = [[median - min(values[name])], [max(values[name]) - median]]
        colour = _COLOURS.get(name, _OTHERS)
        axis.barh(number, median, color=colour, xerr=spread, ecolor="#495057", capsize=2)
        axis.annotate(
            f" {_shown(line, median)}",
            (median, number),
            xytext=(6, 6),
            textcoords="offset points",
            fontsize=8,
        )
    axis.set_yticks(range(len(names)), names, fontsize=9)
    better = "more is better" if line.is_rate else "less is better"
    axis.set_title(f"{line.what} ({line.unit}, {better})", fontsize=9, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(x=0.25)
    axis.tick_params(axis="x", labelsize=8)
