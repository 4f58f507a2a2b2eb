"""The page on very large clusters: its figures follow from what is counted, and stay true."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks.on_paper import PRICES, Counted, Scale, count, table
from tests.conformance.test_costs import S3_REQUESTS

PAGE = Path(__file__).parents[2] / "docs/very-large-clusters.md"
ROWS = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    return count(tmp_path_factory.mktemp("on-paper"), ledgers=4)


def first_number(text: str) -> float:
    return float(re.sub(r"[^\d.].*", "", text.replace(",", "")))


def test_the_page_has_the_counted_figures(counted: Counted) -> None:
    found = {
        "record of a bookie": counted.bookie_record,
        "record of a closed ledger": counted.ledger_record,
        "an entry of 100 bytes on a bookie": counted.stored,
        "files and folders of a bookie": counted.bookie_files * 30_000,
        "metadata in a directory": counted.metadata_files * 10**8,
    }
    told = {name: first_number(ROWS[name]) for name in found}
    assert told == pytest.approx(found, rel=0.1)


def test_the_page_promises_no_fewer_requests_than_the_table_of_costs_holds() -> None:
    told = {
        name: int(one) + int(two)
        for row, figure in ROWS.items()
        for name in re.findall(r"times `(.+)` in a bucket", row)
        for one, two in re.findall(r"(\d+) \+ (\d+) requests", figure)
    }
    assert len(told) == 4
    assert {name: n for name, n in told.items() if n < 0.9 * S3_REQUESTS[name]} == {}


def test_the_page_follows_from_what_was_counted(counted: Counted) -> None:
    """Each row of the page is one that the benchmark prints, in its order."""
    puts = dict.fromkeys(("append_many of 1,000", "roll", "log.writer()", "DataFrame append"), 1)
    printed = table(replace(counted, puts=puts, gets=puts), Scale(), PRICES)
    assert [row.what for row in printed] == [
        name for name in ROWS if name in {row.what for row in printed}
    ]
    half = table(replace(counted, puts=puts, gets=puts), Scale(ledgers=5 * 10**7), PRICES)
    whole, less = ({row.what: row.value for row in rows} for rows in (printed, half))
    assert (whole["ledgers of a bookie"], less["ledgers of a bookie"]) == ("30,000", "15,000")
