"""The table, the document and the picture of the benchmark beside peers."""

import json

import pytest

from tests.benchmarks.peers import report
from tests.benchmarks.peers.contest import BKSPARK, BOOKKEEPER, LIMIT, LINES, Contest

P50, RATE = "one append of 1 KiB, p50", "appends in a pipeline"


@pytest.fixture
def contest():
    found = Contest()
    for value in (1.0, 3.0, 2.0):
        found.add(P50, BKSPARK, value)
        found.add(P50, BOOKKEEPER, value / 2)
        found.add(P50, LIMIT, 0.5)
        found.add(RATE, BKSPARK, value * 100_000)
        found.add(RATE, BOOKKEEPER, value * 25_000)
    return found


def test_the_table_has_medians_spreads_and_factors(contest):
    head, _, first, second, *rest = report.table(contest).splitlines()
    assert head == "| what | bkspark | BookKeeper | limit |"
    assert first == (
        f"| {P50} | 2.00 ms (1.00–3.00) | 1.00 ms (0.50–1.50) ×0.5 | 0.50 ms (0.50–0.50) ×0.25 |"
    )
    assert second == (f"| {RATE} | 200,000/s (100,000–300,000) | 50,000/s (25,000–75,000) ×4 |  |")
    assert rest[0] == ""  # a line that nothing was measured of is left out
    assert all(line.startswith("*limit* of") for line in rest[1:])


def test_the_document_has_all_values(contest):
    found = json.loads(report.document(contest, {"rounds": 3}))
    assert found["settings"] == {"rounds": 3}
    assert found["lines"][P50]["values"][BKSPARK] == [1.0, 3.0, 2.0]
    assert set(found["lines"]) == set(LINES)


def test_the_picture_is_the_same_each_time(contest, tmp_path):
    pictures = []
    for number in range(2):
        path = tmp_path / f"{number}.svg"
        report.draw(contest, path)
        pictures.append(path.read_bytes())
    assert pictures[0] == pictures[1]
    assert b"<svg" in pictures[0]
