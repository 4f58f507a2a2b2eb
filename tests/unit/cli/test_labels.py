"""A bookie's labels are given with it, changed later, and shown."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bkspark.admin import bookies, views
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import InvalidRequestError

Run = Callable[..., tuple[int, str, str]]


def labels_of(uri: str, bookie_id: str) -> dict[str, str]:
    with Cluster(uri) as cluster:
        return dict(cluster.bookie(bookie_id).value.labels)


def test_labels_are_given_when_bookies_are_made(run: Run, tmp_path: Path) -> None:
    uri = (tmp_path / "m").as_uri()
    urls = [(tmp_path / f"b{number}").as_uri() for number in range(3)]
    words = ["--bookie", urls[0], "--bookie", urls[1], "--label", "zone=eu-1", "--json"]
    status, out, _ = run("init", uri, *words)
    assert status == 0
    assert [row["labels"] for row in json.loads(out)["bookies"]] == [{"zone": "eu-1"}] * 2
    of = ("--metadata", uri)
    assert run("bookie", "add", urls[2], "--label", "zone=a=b", "--label", "rack=", *of)[0] == 0
    assert labels_of(uri, "bookie-3") == {"zone": "a=b", "rack": ""}


def test_labels_that_cannot_be_make_no_bookie(run: Run, small_cluster: Any, tmp_path: Path) -> None:
    place = tmp_path / "new"
    for words in (["rack"], ["Rack=7"], ["a=1", "a=1"], ["a=\n"], [f"n{n}=x" for n in range(33)]):
        given = [word for label in words for word in ("--label", label)]
        status, out, err = run("bookie", "add", place.as_uri(), *given)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "label" in err
        with pytest.raises(InvalidRequestError, match="label"):
            init_cluster((tmp_path / "m").as_uri(), [place.as_uri()], labels=words)
    assert not place.exists()
    assert not (tmp_path / "m").exists()


def test_labels_are_changed_and_shown(run: Run, small_cluster: Any) -> None:
    change = ("bookie", "label", "bookie-1", "zone=eu-1", "rack=r7")
    status, _, err = run(*change, "--dry-run")
    assert (status, err.splitlines()[0]) == (0, "would set label rack of bookie-1 to r7")
    assert labels_of(small_cluster.uri, "bookie-1") == {}
    assert run(*change)[0] == 0
    assert run(*change)[2] == "nothing to do\n"
    status, out, _ = run("bookie", "label", "bookie-1", "rack=r8", "--remove", "zone", "--json")
    assert (status, len(json.loads(out)["plan"]["steps"])) == (0, 2)
    rows = {row["bookie_id"]: row for row in json.loads(run("bookies", "--json")[1])}
    assert (rows["bookie-1"]["labels"], rows["bookie-2"]["labels"]) == ({"rack": "r8"}, {})
    assert run("bookies")[1].splitlines()[1].endswith("\track=r8")
    with Cluster(small_cluster.uri) as cluster:
        [row, *_] = views.table("bookies", cluster, None).to_pylist()
    assert row["labels"] == [("rack", "r8")]
    for command in ("readonly", "marks --high 0.97", "readonly --off"):
        verb, *options = command.split()
        assert run("bookie", verb, "bookie-1", *options)[0] == 0
    assert labels_of(small_cluster.uri, "bookie-1") == {"rack": "r8"}


def test_a_label_is_not_set_and_removed_at_once(run: Run, small_cluster: Any) -> None:
    status, _, err = run("bookie", "label", "bookie-1", "a=1", "--remove", "a")
    assert (status, err.count("\n")) == (2, 1)
    for remove in (["A"], [7], "a"):
        with pytest.raises(InvalidRequestError):
            bookies.label(small_cluster.uri, "bookie-1", remove=remove)


def test_a_bookie_has_so_many_labels(small_cluster: Any) -> None:
    many = {f"n{number}": "x" for number in range(32)}
    assert bookies.label(small_cluster.uri, "bookie-1", labels=many).done == {"steps": 32}
    with pytest.raises(InvalidRequestError, match="more than 32"):
        bookies.label(small_cluster.uri, "bookie-1", labels={"one": "x"})
    bookies.label(small_cluster.uri, "bookie-1", labels={"one": "x"}, remove=["n0"])
    assert labels_of(small_cluster.uri, "bookie-1").keys() == many.keys() - {"n0"} | {"one"}


def test_the_job_labels(small_cluster: Any, capfd: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[3] / "jobs" / "bookie.py"
    spec = importlib.util.spec_from_file_location("job_bookie_labels", path)
    assert spec is not None
    assert spec.loader is not None
    job = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(job)
    call = ["--metadata", small_cluster.uri, "label", "bookie-1"]
    assert job.main([*call, "rack=r7", "zone=a"]) == 0
    assert json.loads(capfd.readouterr().out)["done"] == {"steps": 2}
    assert job.main([*call, "--remove", "zone"]) == 0
    assert labels_of(small_cluster.uri, "bookie-1") == {"rack": "r7"}
    assert job.main([*call, "rack"]) == 2
