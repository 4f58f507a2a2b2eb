"""What operations cost at real servers: no operation may get dearer unnoticed."""

import tomllib
from collections import Counter
from collections.abc import Callable

import pytest

from tests.benchmarks.costs import (
    PRICES,
    REQUESTS,
    WRITES,
    Cost,
    dollars,
    of_s3,
    of_zookeeper,
    terabyte,
)
from tests.kit.zookeeper import missing

QUORUM_WRITES = {
    "create_ledger": 2,
    "append": 1,
    "append_many of 1,000": 1,
    "open_ledger": 1,
    "read of 5,021 entries": 1,
    "recovery of 5 entries": 4,
    "create_log": 2,
    "log.writer()": 5,
    "append to a log": 1,
    "roll": 6,
    "a look of an idle follower": 0,
    "close": 2,
    "DataFrame append": 8,
    "a read's plan": 1,
    "a look of an idle stream": 0,
    "micro-batch": 2,
    "a session": 2,
}
S3_REQUESTS = {
    "create_ledger": 20,
    "append": 16,
    "append_many of 1,000": 16,
    "open_ledger": 1,
    "read of 5,021 entries": 37,
    "recovery of 5 entries": 60,  # 53, and more if a bookie answers late
    "create_log": 4,
    "log.writer()": 27,
    "append to a log": 16,
    "roll": 30,
    "a look of an idle follower": 8,
    "close": 5,
    "DataFrame append": 75,
    "a read's plan": 20,
    "a look of an idle stream": 1,
    "micro-batch": 56,
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("count", "kind", "most"),
    [
        pytest.param(
            of_zookeeper,
            WRITES,
            QUORUM_WRITES,
            id="zookeeper",
            marks=pytest.mark.skipif(bool(missing()), reason=missing()),
        ),
        pytest.param(of_s3, REQUESTS, S3_REQUESTS, id="s3"),
    ],
)
def test_no_operation_costs_more(
    count: Callable[[], list[Cost]], kind: str, most: dict[str, int]
) -> None:
    costs = count()
    found = {cost.operation: cost.counts[kind] for cost in costs}
    assert found.keys() == most.keys()
    assert {name: n for name, n in found.items() if n > most[name]} == {}
    prices = tomllib.loads(PRICES.read_text())
    assert kind == WRITES or all(dollars(cost, prices["s3"]) >= 0 for cost in costs)


def test_the_price_is_of_a_million_operations() -> None:
    cost = Cost("append", Counter({"get_object": 13, "put_object": 3, REQUESTS: 16}), ())
    assert dollars(cost, {"get_object": 0.5, "put_object": 5.0}) == 21.5
    with pytest.raises(KeyError):
        dollars(cost, {"get_object": 0.5})


def test_a_terabyte_is_three_copies_in_parts() -> None:
    bulk = terabyte()
    assert bulk.counts["upload_part"] == 3 * 932 * 128
    assert bulk.counts.total() == 363_480
    assert dollars(bulk, dict.fromkeys(bulk.counts, 5.0)) / 1e6 == pytest.approx(1.8174)
