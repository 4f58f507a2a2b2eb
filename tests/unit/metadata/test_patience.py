"""How long a metadata store is waited for is a setting."""

import secrets
import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bkspark import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.hanging import STORE_SECONDS
from bkspark.errors import InvalidRequestError
from bkspark.ledger.handles.settings import USUAL
from bkspark.metadata import patience
from bkspark.metadata.contract import ListsNames, ReadsTogether


@pytest.fixture
def uri() -> str:
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [f"memory://{secrets.token_hex(8)}" for _ in range(3)])
    return uri


def test_the_argument_goes_before_the_variable(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Cluster(uri).store.seconds == STORE_SECONDS == 30
    for text, seconds in (("50", 50), ("1m", 60), ("1h30m", 5400)):
        monkeypatch.setenv(patience.VARIABLE, text)
        assert Cluster(uri).store.seconds == seconds
    assert Cluster(uri, 70).store.seconds == 70
    with BookKeeper(uri, metadata_timeout=90) as bk:
        assert bk._connected.store.seconds == 90


@pytest.mark.parametrize("given", [np.int64(90), np.float32(90), Fraction(90), "90", "90s"])
def test_any_kind_of_number_is_a_time(given: Any) -> None:
    assert patience.possible("x", given) == 90


@pytest.mark.parametrize(
    "given", [10**400, pytest.param(10**5_000, id="huge"), Decimal(90), np.bool_(True), b"90"]
)
def test_what_is_no_time_is_shown_as_it_is(given: Any) -> None:
    with pytest.raises(InvalidRequestError, match=r"^x must be a number of seconds"):
        patience.possible("x", given)


@pytest.mark.parametrize("given", [0, -1, float("nan"), float("inf"), True, "soon", 10**9, None])
def test_what_is_no_time_is_refused(uri: str, given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(patience.VARIABLE, str(given))
    with pytest.raises(InvalidRequestError, match=patience.VARIABLE):
        Cluster(uri)
    monkeypatch.delenv(patience.VARIABLE)
    if given is not None:
        with pytest.raises(InvalidRequestError, match="metadata_timeout"):
            BookKeeper(uri, metadata_timeout=given)


def test_every_call_inside_knows_it_also_from_another_task(uri: str) -> None:
    cluster, seen = Cluster(uri, 70), []
    inner = cluster.store._inner._inner
    get = inner.get

    def watched(key: str) -> object:
        seen.append((patience.chosen(), threading.get_ident()))
        return get(key)

    inner.get = watched
    cluster.logs.get("log")
    assert seen[0][0] == 70
    assert seen[0][1] != threading.get_ident()
    assert patience.chosen() is None


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_store_can_do_the_same_with_a_time_limit_of_the_client(kind: str, tmp_path: Path) -> None:
    """Or each search for bookies would read all records of them."""
    uri = (tmp_path / "metadata").as_uri() if kind == "file" else f"memory://{tmp_path.name}"
    init_cluster(uri, [f"memory://{secrets.token_hex(8)}" for _ in range(3)], accepts_risk=True)
    usual, limited = Cluster(uri), Cluster(uri, 70)
    for ability in (ListsNames, ReadsTogether):
        inner: Any = limited.store._inner
        assert isinstance(inner, ability) == isinstance(usual.store._inner, ability)
        assert isinstance(inner, ability) == (kind == "file")
    assert [*limited.store.get_some("bookies", sorted)] == ["bookie-1", "bookie-2", "bookie-3"]
    for cluster in (usual, limited):
        cluster.store.close()


def test_an_entry_has_time_for_the_metadata_check() -> None:
    assert USUAL.with_metadata_timeout(30) is USUAL
    assert USUAL.with_metadata_timeout(5) is USUAL
    longer = USUAL.with_metadata_timeout(130)
    assert longer.add_entry_quorum_timeout_seconds == 100 + USUAL.add_entry_quorum_timeout_seconds
    assert longer.wait_seconds_max == 100 + USUAL.wait_seconds_max
