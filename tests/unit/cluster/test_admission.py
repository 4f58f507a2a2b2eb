"""Making a cluster and adding to it: what was killed half-way is finished by the same command."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.bookie import posix, posix_place, uri
from bkspark.cli.health import risk_findings
from bkspark.cluster import admission
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import InvalidRequestError
from bkspark.format import cluster as cluster_format
from bkspark.metadata import directory, files
from bkspark.metadata.uri import format_store, open_store
from bkspark.storage import posix_calls
from tests.kit.faulty import Crash, FaultyOs, Moment
from tests.thorough import always

CALLS_MAX = 1000


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyOs]:
    """What every module that touches a disk uses in place of ``os``."""
    system = FaultyOs()
    use(monkeypatch, system)
    yield system
    system.close_all()


def use(patch: pytest.MonkeyPatch, system: FaultyOs) -> None:
    for module in (posix, posix_calls, posix_place, directory, files):
        patch.setattr(module, "os", system)


class Places:
    """A metadata folder and bookies below ``folder``, none of which is there yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.uri = (folder / "meta").as_uri()

    def bookie(self, number: int) -> str:
        return (self.folder / f"disk-{number}").as_uri()

    def make(self, count: int = 2) -> None:
        init_cluster(self.uri, [self.bookie(number) for number in range(1, count + 1)])

    def usable(self) -> dict[str, str]:
        with Cluster(self.uri) as cluster:
            assert not [status.problem for status in cluster.probe() if status.problem]
            return {name: record.url for name, record in cluster.bookies().items()}


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "places")


def crash_everywhere(
    patch: pytest.MonkeyPatch, moment: Moment, attempt: Callable[[int], Callable[[], object]]
) -> int:
    """Kill ``attempt(number)()`` at system call ``number``, for all numbers; how many there are."""
    for number in range(CALLS_MAX):
        action = attempt(number)
        system = FaultyOs()
        system.crash_at(number, moment)
        with patch.context() as killed:
            use(killed, system)
            try:
                action()
            except Crash:
                continue
            finally:
                system.close_all()
        return number
    raise AssertionError(f"more than {CALLS_MAX} calls")


@contextmanager
def unless_done(words: str) -> Iterator[None]:
    """Who was killed behind the last thing there was to do is told so, in these words."""
    try:
        yield
    except InvalidRequestError as error:
        if words not in str(error):
            raise


@pytest.mark.parametrize("moment", always([Moment.HALF], [Moment.BEFORE, Moment.HALF]))
def test_init_that_was_killed_anywhere_is_finished_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: Moment
) -> None:
    tried: list[Places] = []

    def attempt(number: int) -> Callable[[], None]:
        tried.append(Places(tmp_path / f"{number}"))
        return tried[-1].make

    assert crash_everywhere(monkeypatch, moment, attempt) > 50
    for places in tried:
        with unless_done("and all its bookies"):
            places.make()
        assert places.usable() == {"bookie-1": places.bookie(1), "bookie-2": places.bookie(2)}


@pytest.mark.parametrize("moment", always([Moment.HALF], [Moment.BEFORE, Moment.HALF]))
def test_adding_that_was_killed_anywhere_is_finished_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: Moment
) -> None:
    tried: list[Places] = []

    def add(places: Places) -> None:
        with Cluster(places.uri) as cluster:
            cluster.add_bookie("", places.bookie(2))

    def attempt(number: int) -> Callable[[], None]:
        places = Places(tmp_path / f"{number}")
        tried.append(places)
        places.make(1)
        return lambda: add(places)

    assert crash_everywhere(monkeypatch, moment, attempt) > 50
    for places in tried:
        with unless_done("is bookie-2 of this cluster already"):
            add(places)
        assert places.usable() == {"bookie-1": places.bookie(1), "bookie-2": places.bookie(2)}


def test_a_name_that_a_killed_format_left_is_made_durable(places: Places, system: FaultyOs) -> None:
    format_store(places.uri)
    begin = len(system.trace)
    format_store(places.uri)
    synced = [name for call, name in system.trace[begin:] if call == "fsync"]
    assert synced[-2:] == [".", str(places.folder)]


def test_a_cookie_that_a_killed_client_left_is_made_durable(
    places: Places, system: FaultyOs
) -> None:
    places.make(1)
    begin_bookie(places, 2)
    begin = len(system.trace)
    with Cluster(places.uri) as cluster:
        cluster.add_bookie("", places.bookie(2))
    synced = [name for call, name in system.trace[begin:] if call == "fsync"]
    at = synced.index("COOKIE")
    assert synced[at - 1 : at + 2] == [str(places.folder), "COOKIE", str(places.folder / "disk-2")]


def begin_bookie(places: Places, number: int, **changes: str) -> cluster_format.Cookie:
    """A cookie that no record goes with, as of a client that was killed in between."""
    with Cluster(places.uri) as cluster:
        found = {"cluster_id": cluster.cluster_id, "bookie_id": f"bookie-{number}"} | changes
    cookie = cluster_format.Cookie(found["cluster_id"], found["bookie_id"], "7" * 32, 1)
    uri.storage(places.bookie(number)).format(cluster_format.encode_cookie(cookie))
    return cookie


def test_what_was_begun_is_registered_as_its_cookie_says(places: Places) -> None:
    places.make(1)
    begin_bookie(places, 5)
    with Cluster(places.uri) as cluster:
        record = cluster.add_bookie("", places.bookie(5))
    assert (record.bookie_id, record.incarnation) == ("bookie-5", "7" * 32)
    assert places.usable()["bookie-5"] == places.bookie(5)


def refused(places: Places, number: int, bookie_id: str = "") -> str:
    with Cluster(places.uri) as cluster:
        before = cluster.bookies()
        with pytest.raises(InvalidRequestError) as error:
            cluster.add_bookie(bookie_id, places.bookie(number))
        assert cluster.bookies() == before
    return str(error.value)


def test_another_id_than_was_begun_is_refused_and_the_right_one_named(places: Places) -> None:
    places.make(1)
    begin_bookie(places, 5)
    assert "--id bookie-5" in refused(places, 5, "bookie-6")


def test_an_id_that_was_taken_since_is_refused(places: Places) -> None:
    places.make(1)
    begin_bookie(places, 2)
    with Cluster(places.uri) as cluster:
        cluster.add_bookie("bookie-2", places.bookie(3))
    assert "remove its COOKIE" in refused(places, 2)


def test_a_bookie_that_holds_something_is_not_one_that_was_begun(places: Places) -> None:
    """Its record may be of a metadata store that went back in time."""
    places.make(1)
    begin_bookie(places, 2)
    (places.folder / "disk-2" / "ledgers").mkdir()
    assert "is not empty: it holds 'ledgers'" in refused(places, 2)


@pytest.mark.parametrize("cookie", [b"none", None])
def test_somebody_elses_bookie_is_refused(places: Places, cookie: bytes | None) -> None:
    places.make(1)
    begin_bookie(places, 2, cluster_id="9" * 32)
    if cookie is not None:
        (places.folder / "disk-2" / "COOKIE").write_bytes(cookie)
    assert ("unreadable cookie" if cookie else f"of cluster {'9' * 32}") in refused(places, 2)


def test_what_is_done_is_refused_and_said_to_be_done(places: Places) -> None:
    places.make()
    assert "is bookie-2 of this cluster already" in refused(places, 2)
    with pytest.raises(InvalidRequestError, match="and all its bookies"):
        places.make()


@pytest.mark.parametrize("count", [0, 1])
def test_another_init_is_refused_and_changes_nothing(places: Places, count: int) -> None:
    places.make()
    with pytest.raises(InvalidRequestError, match="bookie add URL"):
        places.make(count)
    assert len(places.usable()) == 2


def test_init_over_another_init_is_refused_before_anything_is_made(places: Places) -> None:
    places.make(1)
    with pytest.raises(InvalidRequestError, match="bookie add URL"):
        init_cluster(places.uri, [places.bookie(3), places.bookie(1)])
    assert not (places.folder / "disk-3").exists()


def test_hints_of_a_store_without_a_cluster_lead_to_init(places: Places) -> None:
    format_store(places.uri)
    with pytest.raises(InvalidRequestError, match=f"bkspark init {places.uri}"):
        Cluster(places.uri)
    places.make(1)
    assert list(places.usable()) == ["bookie-1"]


def test_nothing_is_made_where_one_bookie_cannot_be_finished(places: Places) -> None:
    format_store(places.uri)
    (places.folder / "disk-2").mkdir()
    (places.folder / "disk-2" / "photos").mkdir()
    with pytest.raises(InvalidRequestError, match="photos"):
        places.make()
    assert not (places.folder / "disk-1").exists()
    assert open_store(places.uri).get("cluster") is None


# --- where it is ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("meta", "bookies"),
    [
        ("meta", ["a", "a/b"]),
        ("meta", ["a/b", "a"]),
        ("meta", ["a", "link/b"]),
        ("a", ["a"]),
        ("a", ["a/b"]),
        ("a/b", ["a"]),
        ("a", ["link"]),
    ],
)
def test_no_place_may_lie_inside_another_and_nothing_is_made(
    tmp_path: Path, meta: str, bookies: list[str]
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(InvalidRequestError, match=r"lies inside|is given twice"):
        init_cluster((tmp_path / meta).as_uri(), [(tmp_path / name).as_uri() for name in bookies])
    assert {path.name for path in tmp_path.rglob("*")} == {"a", "link"}


@pytest.mark.parametrize("name", ["disk-1/inner", "meta/inner", "."])
def test_no_bookie_is_added_inside_another_place(places: Places, name: str) -> None:
    places.make(1)
    url = (places.folder / name).as_uri()
    with Cluster(places.uri) as cluster:
        with pytest.raises(InvalidRequestError, match="lies inside"):
            cluster.add_bookie("", url)
        assert list(cluster.bookies()) == ["bookie-1"]
    assert not (places.folder / name / "COOKIE").exists()


def test_places_that_an_older_version_put_into_one_another_are_told(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.make(1)
    url = (places.folder / "disk-1" / "inner").as_uri()
    with monkeypatch.context() as older, Cluster(places.uri) as cluster:
        older.setattr(admission.TakenPlaces, "_require_free", lambda *_: None)
        cluster.add_bookie("", url)
        assert list(risk_findings(cluster, cluster.probe())) == []
    with Cluster(places.uri) as cluster:
        [found] = risk_findings(cluster, cluster.probe())
    assert found.message == f"{url} lies inside {places.bookie(1)}"


def test_places_beside_one_another_may_begin_alike(places: Places) -> None:
    init_cluster(places.uri, [(places.folder / name).as_uri() for name in ("a", "ab", "meta2")])
    assert len(places.usable()) == 3


def looked_up(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> int:
    """How often a place's links are followed meanwhile."""
    asked, parts = list[str](), admission._parts

    def counted(url: str) -> tuple[str, ...]:
        asked.append(url)
        return parts(url)

    with monkeypatch.context() as counting:
        counting.setattr(admission, "_parts", counted)
        action()
    return len(asked)


def test_each_place_is_looked_up_as_often_whatever_the_number_of_bookies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With pairs of places it took minutes for a thousand bookies."""
    counts = list[int]()
    for count in (10, 20):
        fresh = Places(tmp_path / f"{count}")
        counts.append(looked_up(monkeypatch, partial(fresh.make, count)))
        with Cluster(fresh.uri) as cluster:
            added = (fresh.folder / "one-more").as_uri()
            one = looked_up(monkeypatch, partial(cluster.add_bookie, "", added))
            probed = cluster.probe()
            told = looked_up(monkeypatch, lambda: list(risk_findings(cluster, probed)))  # noqa: B023
        assert (one, told) == (count + 3, count + 2)
    assert counts[1] - counts[0] == 30  # three for each bookie


def test_the_rest_of_a_killed_init_looks_the_bookies_up_once(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.make(10)
    with Cluster(places.uri) as cluster:
        for number in range(6, 11):
            for kept in (places.folder / "meta" / "bookies" / f"bookie-{number}").iterdir():
                kept.unlink()
        assert len(cluster.bookies()) == 5
    assert looked_up(monkeypatch, partial(places.make, 10)) < 40
    assert len(places.usable()) == 10


paths = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map("/".join)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.lists(paths, max_size=5), st.lists(st.sampled_from(["memory", "s3"]), min_size=5))
def test_places_are_apart_if_each_pair_of_them_is(inner: list[str], schemes: list[str]) -> None:
    urls = [f"{scheme}://bucket/{path}" for scheme, path in zip(schemes, inner)]
    own = [(url.partition(":")[0], url.split("/")) for url in urls]
    overlap = any(
        one[0] == two[0] and (one == two if one[0] == "memory" else begins_alike(one[1], two[1]))
        for one, two in combinations(own, 2)
    )
    with pytest.raises(InvalidRequestError) if overlap else nullcontext():
        admission.require_apart(urls)


def begins_alike(one: list[str], two: list[str]) -> bool:
    length = min(len(one), len(two))
    return one[:length] == two[:length]


def test_prefixes_of_one_bucket_are_places_like_folders() -> None:
    for inner in ("s3://bucket/a/b", "s3://bucket/a"):
        with pytest.raises(InvalidRequestError, match=r"lies inside|is given twice"):
            admission.require_apart(["zk://host/x", "s3://bucket/a/", inner])
    admission.require_apart(["s3://bucket/ab", "s3://bucket/a", "s3://other/a/b"])


@pytest.mark.parametrize("name", ["a\nb", "a%0Ab", "a\x1b[2J", "a%1B", "a%E2%80%AEb", "a%FF"])
@pytest.mark.parametrize("is_meta", [True, False])
def test_a_path_that_cannot_be_shown_is_refused_before_anything_is_made(
    places: Places, name: str, is_meta: bool
) -> None:
    strange, plain = f"{places.folder.as_uri()}/{name}", (places.folder / "plain").as_uri()
    uri, bookie = (strange, plain) if is_meta else (plain, strange)
    with pytest.raises(InvalidRequestError):
        init_cluster(uri, [bookie])
    assert list(places.folder.iterdir()) == []
    places.make(1)
    with Cluster(places.uri) as cluster, pytest.raises(InvalidRequestError):
        cluster.add_bookie("", strange)
