"""The Python calls of maintenance commands show and check what their declarations say."""

import inspect
from pathlib import Path

import pytest

import bkspark
from bkspark import verbs
from bkspark.admin.scrubbing.scrub import ScrubRequest
from bkspark.cluster.cluster import init_cluster
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
        ("repair", {"dry_run": "no"}),
        ("decommission", {"bookies": ["bookie-1"], "force": "no"}),
        ("decommission", {"bookies": "ab"}),
        ("audit", {"logs": "wal"}),
        ("audit", {"logs": b"wal"}),
        ("recover", {"ledgers": 5}),
        ("retain", {"log": "wal", "ignore_cursors": "no"}),
        ("retain", {"log": "wal", "forever": 0}),
    ],
)
def test_a_value_out_of_range_is_refused_before_anything_is_opened(
    name: str, given: dict[str, object]
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        getattr(bkspark.admin, name)("file:///not/there", **given)
    assert "/not/there" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("uri", [" ", "\n"])
def test_a_blank_names_no_cluster(uri: str) -> None:
    with pytest.raises(InvalidRequestError, match="no cluster is named"):
        bkspark.admin.audit(uri)


def test_a_sample_of_any_size_is_refused_in_one_line() -> None:
    with pytest.raises(InvalidRequestError, match="a sample cannot be 1000"):
        ScrubRequest(sample=10**400)


@pytest.mark.parametrize("given", ["no", 1, None])
def test_what_loses_rows_takes_yes_or_no_only(tmp_path: Path, given: object) -> None:
    init_cluster((tmp_path / "meta").as_uri(), [(tmp_path / f"{n}").as_uri() for n in range(3)])
    with bkspark.BookKeeper((tmp_path / "meta").as_uri()) as keeper:
        keeper.create_log("log")
        with pytest.raises(InvalidRequestError, match="accepts_loss must be a bool"):
            keeper.recover_ledger(0, accepts_loss=given)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequestError, match="recovery must be a bool"):
            keeper.open_ledger(0, recovery=given)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequestError, match="respects_cursors must be a bool"):
            keeper.open_log("log").retain(respects_cursors=given)  # type: ignore[arg-type]
