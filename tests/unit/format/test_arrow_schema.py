"""Names of columns: how often each is looked at."""

from bkspark.format.arrow_schema import find_doubled


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
