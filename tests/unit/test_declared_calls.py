"""The Python calls of maintenance commands show and check what their declarations say."""

import inspect
from pathlib import Path

import pytest

import bkspark
from bkspark import verbs
from bkspark.errors import InvalidRequestError
from bkspark.verbs.declaring import VERBS

JOBS = Path(__file__).parents[2] / "jobs"


def test_each_command_is_a_call_that_editors_complete_and_has_a_job() -> None:
    assert set(verbs.__all__) == set(VERBS) <= set(dir(bkspark.admin))
    assert {path.stem for path in JOBS.glob("*.py")} - set(VERBS) == {"append", "bookie"}
    for name, declared in VERBS.items():
        call = getattr(bkspark.admin, name)
        assert inspect.signature(call) == declared.signature
        for one in declared.parameters:
            assert one.option is None or f"    {one.name}: " in (inspect.getdoc(call) or "")


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("audit", {"nope": 1}, r"audit\(\) got an unexpected keyword argument 'nope'"),
        ("audit", {"password": "x"}, "unexpected keyword argument 'password'"),
        ("compact", {}, r"compact\(\) missing a required .*'log'"),
    ],
)
def test_a_call_with_other_options_is_a_type_error_of_python(
    name: str, given: dict[str, object], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        getattr(bkspark.admin, name)("file:///not/there", **given)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("audit", {"ledgers": ["7"]}),
        ("collect", {"abandoned_after": -1}),
        ("recover", {"open_grace": "soon"}),
        ("repair", {"lost_after": -1}),
        ("scrub", {"max_bytes_per_second": 0}),
        ("rebalance", {"threshold": 0}),
        ("compact", {"log": "wal", "target_bytes": 0}),
    ],
)
def test_a_value_out_of_range_is_refused_before_anything_is_opened(
    name: str, given: dict[str, object]
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        getattr(bkspark.admin, name)("file:///not/there", **given)
    assert "/not/there" not in str(refused.value)
