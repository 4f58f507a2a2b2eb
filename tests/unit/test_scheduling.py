"""Tests that share something run in one process."""

import pytest

from ..scheduling import scope  # noqa: TID252


@pytest.mark.parametrize(
    ("one", "other", "are_together"),
    [
        ("tests/unit/test_a.py::test_a", "tests/unit/test_a.py::test_b[1]", True),
        ("tests/unit/test_a.py::test_a", "tests/unit/test_b.py::test_a", False),
        ("tests/spark/test_appends.py::test_a", "tests/spark/test_recover.py::test_a", True),
        ("tests/spark/test_appends.py::test_a", "tests/spark/test_types.py::test_a", False),
        ("tests/spark/facts/test_reads.py::test_a", "tests/spark/facts/test_types.py::test", False),
    ],
)
def test_a_scope_is_a_file_or_a_part_of_the_spark_tests(
    one: str, other: str, are_together: bool
) -> None:
    assert (scope(one) == scope(other)) is are_together


def test_each_table_of_mutants_is_a_scope() -> None:
    test = "tests/mutants/test_mutants.py::test_the_mutant_is_noticed"
    assert scope(f"{test}[log_rules-one]") == scope(f"{test}[log_rules-other_rules-x]")
    assert scope(f"{test}[log_rules-one]") != scope(f"{test}[lease_rules-one]")


def test_the_mutants_that_run_always_are_one_scope_with_their_catalogue() -> None:
    catalogue = "tests/mutants/test_catalog.py::test_names_are_unique"
    mutants = [
        f"tests/mutants/test_mutants.py::test_the_mutant_is_noticed[{table}-one]"
        for table in ("log_rules", "lease_rules")
    ]
    assert len({scope(test, has_all_mutants=False) for test in (catalogue, *mutants)}) == 1
    assert len({scope(test) for test in (catalogue, *mutants)}) == 3
