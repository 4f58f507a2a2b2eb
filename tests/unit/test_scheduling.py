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


@pytest.mark.parametrize(
    "tests",
    [
        (
            "tests/mutants/test_catalog.py::test_names_are_unique",
            "tests/mutants/test_mutants.py::test_the_mutant_is_noticed[log_rules-one]",
            "tests/mutants/test_mutants.py::test_the_mutant_is_noticed[lease_rules-one]",
        ),
        ("tests/spark/test_appends.py::test_a", "tests/spark/test_types.py::test_a"),
        (
            "tests/conformance/test_s3_keys.py::test_a",
            "tests/conformance/test_conflicts.py::test_a",
        ),
    ],
)
def test_what_takes_long_to_start_is_started_once_for_the_few_that_run_always(
    tests: tuple[str, ...],
) -> None:
    assert len({scope(test, is_thorough=False) for test in tests}) == 1
    assert len({scope(test) for test in tests}) == len(tests)
