"""What is asked of a schema before its rows are stored, and how often."""

import pyarrow as pa
import pytest

from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema
from bkspark.format.arrow_schema import ACCEPTED_MAX, find_doubled, require_storable
from bkspark.format.spark_types import SPARK_TYPE_KEY


class CountedName(str):
    """A name that counts how often it is compared with another."""

    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedName.comparisons += 1
        return str.__eq__(self, other)  # type: ignore[arg-type]


def test_names_given_twice_are_found_in_order() -> None:
    assert find_doubled(["b", "a", "b", "c", "a"]) == ["a", "b"]


def test_each_name_is_compared_once() -> None:
    names = [CountedName(f"c{number}") for number in range(1_000)]
    CountedName.comparisons = 0
    assert find_doubled([*names, CountedName("c7")]) == ["c7"]
    assert CountedName.comparisons < 2 * len(names)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[pa.Schema]:
    """The schemas that were really checked."""
    found: list[pa.Schema] = []
    check = arrow_schema._check_storable
    monkeypatch.setattr(arrow_schema, "_accepted", [])
    monkeypatch.setattr(
        arrow_schema, "_check_storable", lambda schema: (check(schema), found.append(schema))
    )
    return found


def test_a_schema_is_checked_once(checks: list[pa.Schema]) -> None:
    for _ in range(3):
        require_storable(pa.schema([("id", pa.int64())]))
    assert len(checks) == 1


def test_a_refused_schema_is_refused_again(checks: list[pa.Schema]) -> None:
    for _ in range(2):
        with pytest.raises(InvalidRequestError):
            require_storable(pa.schema([("_offset", pa.int64())]))
    assert checks == []


def test_a_schema_with_other_notes_is_checked_too(checks: list[pa.Schema]) -> None:
    require_storable(pa.schema([("id", pa.int64())]))
    contradicting = pa.field("id", pa.int64(), metadata={SPARK_TYPE_KEY: b"no JSON"})
    with pytest.raises(InvalidRequestError, match="contradicts itself"):
        require_storable(pa.schema([contradicting]))


def test_few_schemas_are_remembered(checks: list[pa.Schema]) -> None:
    for number in range(ACCEPTED_MAX + 3):
        require_storable(pa.schema([(f"c{number}", pa.int64())]))
    assert len(arrow_schema._accepted) == ACCEPTED_MAX
