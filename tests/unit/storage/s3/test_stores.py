"""Bookies in several object stores of one process: two servers, each with a bucket of one name."""

import hashlib
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bkspark import BookKeeper, environment
from bkspark.admin import bookies
from bkspark.admin.absent_bookies import declare_lost
from bkspark.admin.damaged_records import set_aside
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie, storage
from bkspark.cli import doctor, health, main
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.metadata.uri import open_store
from bkspark.storage import connection, stores
from bkspark.storage.clients import Clients
from bkspark.storage.connection import Pressures

from .stand_in import BUCKET, BUSY, S3Store

FILE = """
[west]
endpoint_url = "http://store:9000"
[east]
endpoint_url = "http://other:9000"
[again]
endpoint_url = "http://OTHER:9000/"
"""
WEST, EAST = (
    hashlib.sha256(f"{host}:9000".encode()).hexdigest()[:8] for host in ("store", "other")
)
SILENT = WriterSettings(explicit_lac_ms=0)
URLS = [f"s3://{BUCKET}/b{number}" for number in (1, 2, 3)]


@pytest.fixture
def east(s3: S3Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> S3Store:
    """The second server; the first one is the default, and is called west."""
    file = tmp_path / "stores.toml"
    file.write_text(FILE)
    monkeypatch.setenv(stores.VARIABLE, str(file))
    other = S3Store()
    other.s3.meta.endpoint_url = "http://other:9000"
    known = {"": s3, "west": s3, "east": other, "again": other}
    monkeypatch.setattr(connection, "_filesystems", Clients(connection._connect, known))
    return other


@pytest.fixture
def uri(tmp_path: Path, east: S3Store) -> str:
    """A cluster with two bookies in the default store, and bookie-3 in the store east."""
    uri = (tmp_path / "meta").as_uri()
    init_cluster(uri, URLS[:2])
    with Cluster(uri) as cluster:
        cluster.add_bookie("", URLS[2], store="east")
    return uri


@pytest.fixture
def forgotten(uri: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Let this process be one on a machine that does not know the named stores."""

    def forget() -> None:
        monkeypatch.delenv(stores.VARIABLE)
        for name in ("west", "east", "again"):
            connection._filesystems._made.pop((name, ""))

    return forget


def folders(store: S3Store) -> set[str]:
    return {key.partition("/")[0] for key in store.objects}


def test_one_cluster_uses_two_servers(s3: S3Store, east: S3Store, uri: str) -> None:
    with BookKeeper(uri) as keeper:
        with keeper.create_ledger(ack_quorum_size=3, settings=SILENT) as ledger:
            ledger.append(b"one")
        assert [entry.value for entry in keeper.open_ledger(ledger.ledger_id).read()] == [b"one"]
    assert (folders(s3), folders(east)) == ({"b1", "b2"}, {"b3"})
    assert any("journal" in key for key in east.objects)
    with Cluster(uri) as cluster:
        found = [(r.url, r.store, r.domain) for r in cluster.bookies().values()]
    assert found == [
        (URLS[0], "", f"bucket-{BUCKET}@{WEST}"),
        (URLS[1], "", f"bucket-{BUCKET}@{WEST}"),
        (URLS[2], "east", f"bucket-{BUCKET}@{EAST}"),
    ]


def test_an_address_sent_to_a_task_names_its_store_and_no_server(uri: str) -> None:
    with Cluster(uri) as cluster:
        [address] = [a for a in cluster.addresses().values() if a.bookie_id == "bookie-3"]
    assert address.place == f"{URLS[2]}?store=east"
    sent = pickle.dumps(open_bookie(address))
    assert b"other" not in sent
    with pickle.loads(sent).open_root() as root:
        assert root.put_new("probe", b"x")


def test_equal_addresses_on_two_servers_are_two_places(uri: str, east: S3Store) -> None:
    with Cluster(uri) as cluster:
        assert cluster.add_bookie("", URLS[0], store="east").domain.endswith(f"@{EAST}")
        assert cluster.add_bookie("", f"{URLS[1]}?store=again").store == "again"
    assert {"b1", "b2", "b3"} == folders(east)


@pytest.mark.parametrize("name", ["again", "east"])
def test_two_names_of_a_server_are_one_place_and_one_domain(
    uri: str, east: S3Store, name: str
) -> None:
    place = storage(f"s3://{BUCKET}/x?store={name}")
    assert place.failure_domain() == f"bucket-{BUCKET}@{EAST}"
    for url in (f"{URLS[2]}/inside", f"s3://{BUCKET}"):
        with Cluster(uri) as cluster, pytest.raises(InvalidRequestError, match="lies inside"):
            cluster.add_bookie("", url, store=name)
    east.objects.pop("b3/COOKIE")
    with Cluster(uri) as cluster, pytest.raises(InvalidRequestError, match="cookie is missing"):
        cluster.add_bookie("", URLS[2], store=name)
    with pytest.raises(InvalidRequestError, match="given twice"):
        init_cluster(f"{uri}-2", [f"{URLS[0]}?store=again", f"{URLS[0]}?store=east"])


def test_a_store_that_is_busy_slows_no_other(uri: str, east: S3Store) -> None:
    east.script("get_object", BUSY)
    storage(f"{URLS[2]}?store=east").read_cookie()
    pressures = environment.the_one(Pressures)
    assert pressures.of(BUCKET, "east").interval > 0
    assert pressures.of(BUCKET).interval == 0


def test_a_store_that_this_machine_does_not_know_makes_its_bookies_unavailable(
    uri: str, forgotten: Callable[[], None]
) -> None:
    with BookKeeper(uri) as keeper, keeper.create_ledger(settings=SILENT) as ledger:
        ledger.append(b"one")
    with Cluster(uri) as cluster:
        address = cluster.address(cluster.bookie("bookie-3").value)
    forgotten()
    with pytest.raises(BookieUnavailableError, match=r"store east is not known.*BKSPARK_STORES"):
        open_bookie(address).open_root().__enter__()
    with BookKeeper(uri) as keeper:
        assert [entry.value for entry in keeper.open_ledger(ledger.ledger_id).read()] == [b"one"]
        with keeper.create_ledger(settings=SILENT) as smaller:
            smaller.append(b"two")
    with Cluster(uri) as cluster:
        with pytest.raises(InvalidRequestError, match="store east is not known on this machine"):
            cluster.add_bookie("", f"{URLS[2]}/inside")
        found = [one.subject for one in health.risk_findings(cluster, cluster.probe())]
        assert found == []


def test_commands_for_a_bookie_use_its_store(
    uri: str, east: S3Store, forgotten: Callable[[], None]
) -> None:
    moved = bookies.move(uri, "bookie-3", URLS[2], store="again")
    assert moved.plan["steps"] == [
        f"move bookie-3 from {URLS[2]}?store=east to {URLS[2]}?store=again"
    ]
    with Cluster(uri) as cluster:
        assert cluster.bookie("bookie-3").value.store == "again"
        with pytest.raises(InvalidRequestError, match="is not lost: it answers"):
            declare_lost(cluster, "bookie-3")
    with pytest.raises(InvalidRequestError, match=r"is not bookie bookie-3"):
        bookies.move(uri, "bookie-3", URLS[2])
    east.objects.clear()
    assert bookies.reinit(uri, "bookie-3").exit_status == 0
    assert folders(east) == {"b3"}
    bookies.move(uri, "bookie-3", URLS[2], store="east")
    forgotten()
    for store in ("again", "east"):
        with pytest.raises(InvalidRequestError, match=f"store {store} is not known"):
            bookies.move(uri, "bookie-3", f"{URLS[2]}/x", store=store)
    with pytest.raises(InvalidRequestError, match="store east is not known"):
        bookies.reinit(uri, "bookie-3")


def test_a_record_is_made_again_from_a_cookie_in_its_store(uri: str, tmp_path: Path) -> None:
    for path in (tmp_path / "meta/bookies/bookie-3").iterdir():
        path.write_bytes(b"damaged")
    with Cluster(uri) as cluster:
        with pytest.raises(InvalidRequestError, match="no cookie to read"):
            set_aside(cluster, "bookies/bookie-3", url=URLS[2])
        set_aside(cluster, "bookies/bookie-3", url=f"{URLS[2]}?store=east")
        found = cluster.bookie("bookie-3").value
    assert (found.url, found.store) == (URLS[2], "east")


def test_metadata_may_be_in_a_named_store(
    east: S3Store, uri: str, forgotten: Callable[[], None]
) -> None:
    meta = f"s3://{BUCKET}/meta?store=east"
    init_cluster(meta, [f"s3://{BUCKET}/x1?store=again", f"s3://{BUCKET}/x2"])
    assert folders(east) == {"b3", "meta", "x1"}
    with Cluster(meta) as cluster:
        assert cluster.store.uri == meta
        assert set(cluster.bookies()) == {"bookie-1", "bookie-2"}
    copy = pickle.loads(pickle.dumps(open_store(meta)))
    forgotten()
    with pytest.raises(InvalidRequestError, match="store east is not known"):
        copy.get("cluster")
    with pytest.raises(InvalidRequestError, match="store east is not known"):
        Cluster(meta)


@pytest.mark.parametrize("store", ["nowhere", "East", "a b", "", "x" * 64, "-a", "é", None, 5])
def test_a_store_that_cannot_be_makes_nothing(
    s3: S3Store, uri: str, tmp_path: Path, store: object
) -> None:
    before = set(s3.objects)
    if store != "":
        with Cluster(uri) as cluster, pytest.raises(InvalidRequestError) as caught:
            cluster.add_bookie("", f"s3://{BUCKET}/new", store=store)  # type: ignore[arg-type]
        assert caught.value.hint
        with pytest.raises(InvalidRequestError):
            init_cluster(f"{uri}2", [f"s3://{BUCKET}/n"], store=store)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequestError):
            bookies.move(uri, "bookie-1", URLS[0], store=store)  # type: ignore[arg-type]
    with Cluster(uri) as cluster, pytest.raises(InvalidRequestError):
        cluster.add_bookie("", f"s3://{BUCKET}/new?store={store}")
    assert set(s3.objects) == before
    assert not (tmp_path / "meta2").exists()


def test_a_directory_is_in_no_store(uri: str, tmp_path: Path) -> None:
    with (
        Cluster(uri) as cluster,
        pytest.raises(InvalidRequestError, match="not in an object store"),
    ):
        cluster.add_bookie("", (tmp_path / "b").as_uri(), store="east")
    with Cluster(uri) as cluster, pytest.raises(InvalidRequestError, match="names another store"):
        cluster.add_bookie("", f"s3://{BUCKET}/new?store=west", store="east")


def test_the_shell_names_stores(
    uri: str, capsys: pytest.CaptureFixture[str], forgotten: Callable[[], None]
) -> None:
    of = ["--metadata", uri]
    new = f"s3://{BUCKET}/b4"
    assert main(["bookie", "add", new, "--store", "east", *of]) == 0
    capsys.readouterr()
    assert main(["bookies", "--json", *of]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["store"] for row in rows] == [None, None, "east", "east"]
    assert main(["bookie", "move", "bookie-4", new, "--store", "again", *of]) == 0
    told = {f.subject: f.message for f in doctor.examine(uri)}
    assert told["store east"] == "of bookie-3: http://other:9000"
    assert told["store again"] == "of bookie-4: http://OTHER:9000"
    forgotten()
    findings = {f.subject: f for f in doctor.examine(uri)}
    assert "of bookie-3: store east is not known" in findings["store east"].message
    assert "BKSPARK_STORES" in findings["store east"].fix


def test_a_bookie_address_has_no_store_by_default() -> None:
    assert BookieAddress("b", "1" * 32, "c" * 32, URLS[0]).place == URLS[0]
