"""A metadata record that cannot be read is named, and can be set aside; its bytes and rows stay."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bkspark import BookKeeper
from bkspark.admin.absent_bookies import declare_lost
from bkspark.admin.damaged_records import find_damaged, look_at, require_unnamed, set_aside
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import (
    CorruptDataError,
    InvalidRequestError,
    MetadataVersionError,
    OutcomeUnknownError,
)
from bkspark.format import cluster as cluster_format
from bkspark.format import layout
from bkspark.format.recovery import StuckRecovery
from bkspark.metadata.uri import open_store
from tests.small_pages import forget_pages, pages_of

Run = Callable[..., tuple[int, str, str]]

LEDGER = "ledgers/0000000000000001"
SET_ASIDE = [
    LEDGER,
    "logs/one",
    "cursors/two/reader",
    "lost/bookie-6",
    "recoveries/0000000000000001",
    "counters/ledger",
]


@pytest.fixture
def used(small_cluster: Any, numbers: Callable[[int, int], pa.Table]) -> Any:
    """Two logs of two ledgers each, a cursor, a lost bookie and a recovery that is stuck."""
    for name in ("one", "two", "one", "two"):
        small_cluster.append(name, [numbers(0, 30)])
    with BookKeeper(small_cluster.uri) as keeper:
        keeper.open_log("two").cursor("reader")
    small_cluster.bookie("bookie-6").rename(small_cluster.folder / "away")
    with Cluster(small_cluster.uri) as cluster:
        declare_lost(cluster, "bookie-6")
        cluster.upkeep.recoveries.create("1", StuckRecovery(1, 1, None, (), "why", "what", 1))
    return small_cluster


def damage(used: Any, key: str, data: bytes = b"\xff" * 100) -> None:
    versions = [path for path in (used.folder / "metadata" / key).iterdir() if path.is_file()]
    max(versions).write_bytes(data)


def files_of(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_damaged_in_a_whole_cluster(run: Run, used: Any) -> None:
    status, out, _ = run("metadata", "damaged", "--json")
    assert (status, json.loads(out)) == (0, [])


@pytest.mark.parametrize("key", SET_ASIDE)
def test_a_record_is_named_and_set_aside_and_its_bytes_stay(run: Run, used: Any, key: str) -> None:
    rows = {f for number in range(1, 6) for f in files_of(used.bookie(f"bookie-{number}"))}
    damage(used, key)
    status, out, _ = run("metadata", "damaged", "--json")
    [row] = json.loads(out)
    assert status == 1
    assert row["key"] == key
    assert row["rests"]
    assert f"set-aside {key}" in row["way_out"]
    assert run("metadata", "set-aside", key)[0] == 2  # nobody is here to be asked
    status, out, _ = run("metadata", "set-aside", key, "--yes", "--json")
    assert status == 0
    kept = json.loads(out)["kept"]
    with Cluster(used.uri) as cluster:
        assert cluster.store.get(kept).value == b"\xff" * 100
        assert list(find_damaged(cluster)) == []
    findings = json.loads(run("status", "--json")[1])["findings"]
    assert [found for found in findings if found["subject"] == "metadata"] == []
    status, out, _ = run("collect", "--abandoned-after", "0", "--json")
    assert json.loads(out)["done"]["ledgers"] == 0
    for verb in (("repair", "--open-grace", "0"), ("audit",), ("recover", "--all")):
        assert key not in "".join(run(*verb)[1:])
    assert rows <= {f for n in range(1, 6) for f in files_of(used.bookie(f"bookie-{n}"))}


def test_ledgers_of_a_log_that_was_set_aside_are_never_garbage(run: Run, used: Any) -> None:
    damage(used, "logs/one")
    assert run("metadata", "set-aside", "logs/one", "--yes")[0] == 0
    out = run("collect", "--abandoned-after", "0", "--json")[1]
    assert {left["subject"] for left in json.loads(out)["left"]} == {"ledger 0", "ledger 2"}
    with BookKeeper(used.uri) as keeper:
        assert keeper.list_logs() == ["two"]
        log = keeper.create_log("one")  # the name is free again
        with log.writer() as writer:
            writer.append(b"x")
        keeper.delete_log("one")
    run("collect", "--abandoned-after", "0")
    for ledger_id in ("0", "2"):
        assert run("ledger", "read", ledger_id)[1].count("\n") == 30


def test_no_number_of_a_ledger_is_given_again_after_the_counter_was_set_aside(
    run: Run, used: Any
) -> None:
    damage(used, "counters/ledger")
    assert run("metadata", "set-aside", "counters/ledger", "--yes")[0] == 0
    with BookKeeper(used.uri) as keeper, keeper.create_ledger() as ledger:
        assert ledger.ledger_id > 2**32


def test_the_record_of_a_bookie_is_made_anew_from_its_cookie(run: Run, used: Any) -> None:
    with Cluster(used.uri) as cluster:
        before = cluster.bookie("bookie-2").value
    damage(used, "bookies/bookie-2")
    for url in ("", used.bookie("bookie-3").as_uri(), (used.folder / "none").as_uri()):
        words = ("--url", url) if url else ()
        assert run("metadata", "set-aside", "bookies/bookie-2", "--yes", *words)[0] in (1, 2)
    place = f" {used.bookie('bookie-2')}/"
    with Cluster(used.uri) as cluster:
        set_aside(cluster, "bookies/bookie-2", url=place)
        after = cluster.bookie("bookie-2").value
    assert (after.incarnation, after.url) == (before.incarnation, before.url)
    assert after.is_read_only
    assert run("bookie", "readonly", "bookie-2", "--off")[0] == 0


def test_what_can_be_read_is_not_set_aside(used: Any) -> None:
    with Cluster(used.uri) as cluster:
        for key in ("logs/one", LEDGER, "bookies/bookie-1"):
            before = cluster.store.get(key)
            with pytest.raises(InvalidRequestError, match="can be read"):
                set_aside(cluster, key)
            assert cluster.store.get(key) == before
        with pytest.raises(InvalidRequestError, match="there is no metadata record"):
            set_aside(cluster, "logs/none")


def test_what_a_log_ends_in_is_said_before_it_is_set_aside(run: Run, used: Any) -> None:
    with BookKeeper(used.uri) as keeper, keeper.create_log("open").writer() as writer:
        number = writer.ledger_id
        writer.append(b"a")
        damage(used, f"ledgers/{number:016d}")
        damage(used, "logs/one")
        with Cluster(used.uri) as cluster:
            found = {one.key: one.rests for one in find_damaged(cluster)}
        with pytest.raises(CorruptDataError):
            writer.close()
    assert "all of log open" in found.pop(f"ledgers/{number:016d}")
    assert list(found) == ["logs/one"]


def test_a_store_that_stumbles_makes_no_record_unreadable(
    used: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(used.uri) as cluster:
        real, asked = cluster.store.get, list[str]()
        before = real("logs/one")

        def get(key: str) -> object:
            asked.append(key)
            if len(asked) == 2:
                raise OutcomeUnknownError("no answer")
            return real(key)

        monkeypatch.setattr(cluster.store, "get", get)
        with pytest.raises(InvalidRequestError, match="can be read"):
            set_aside(cluster, "logs/one")
        assert real("logs/one") == before


@pytest.mark.parametrize("key", ["cluster", "aside", "aside/logs/one", "logs", "x" * 500])
def test_what_is_no_key_of_a_record_is_not_set_aside(used: Any, key: str) -> None:
    wanted = pytest.raises(InvalidRequestError, match="is not the key of a metadata record")
    with Cluster(used.uri) as cluster, wanted:
        set_aside(cluster, key)


def test_the_bytes_of_a_record_that_was_set_aside_stay(used: Any) -> None:
    with Cluster(used.uri) as cluster:
        damage(used, "logs/one")
        kept = set_aside(cluster, "logs/one")
        with pytest.raises(InvalidRequestError, match="is not the key of a metadata record"):
            set_aside(cluster, kept)
        assert cluster.store.get(kept).value == b"\xff" * 100


def test_notes_are_written_over_and_not_set_aside(run: Run, used: Any) -> None:
    run("audit")
    damage(used, "reports/audit")
    [row] = json.loads(run("metadata", "damaged", "--json")[1])
    assert row["rests"].startswith("nothing")
    assert run("metadata", "set-aside", "reports/audit", "--yes")[0] == 2
    run("audit")
    assert run("metadata", "damaged")[0] == 0


def test_a_record_that_was_changed_meanwhile_stays(
    used: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client stores it between the look and the change."""
    with Cluster(used.uri) as cluster:
        good = cluster.store.get("logs/one").value
        damage(used, "logs/one")
        real = cluster.store.put

        def put(key: str, value: bytes, expected: int | None) -> int:
            if key == "logs/one":
                real(key, good, expected)
            return real(key, value, expected)

        monkeypatch.setattr(cluster.store, "put", put)
        with pytest.raises(MetadataVersionError, match="another client changed"):
            set_aside(cluster, "logs/one")
        assert cluster.store.get("logs/one").value == good


def test_nothing_changes_where_the_bytes_cannot_be_kept(
    used: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(used.uri) as cluster:
        damage(used, LEDGER)
        real = cluster.store.put

        def put(key: str, value: bytes, expected: int | None) -> int:
            if key.startswith("aside/"):
                raise OutcomeUnknownError("no answer")
            return real(key, value, expected)

        monkeypatch.setattr(cluster.store, "put", put)
        with pytest.raises(OutcomeUnknownError):
            set_aside(cluster, LEDGER)
        assert cluster.store.get(LEDGER).value == b"\xff" * 100


def test_a_bookie_that_an_unreadable_record_may_name_stays(run: Run, used: Any) -> None:
    damage(used, LEDGER)
    status, _, err = run("bookie", "remove", "bookie-5", "--yes")
    assert status == 1
    assert "left: metadata: it may name bookie-5" in err
    with Cluster(used.uri) as cluster:
        assert not cluster.bookie("bookie-5").value.is_going


def test_readers_and_writers_go_on_without_a_bookie_whose_record_is_unreadable(
    used: Any, numbers: Callable[[int, int], pa.Table], run: Run
) -> None:
    damage(used, "bookies/bookie-2")
    used.append("two", [numbers(60, 90)])
    assert run("log", "read", "two")[1].count("\n") == 90
    with BookKeeper(used.uri) as keeper:
        log = keeper.create_log("three")
        with log.writer() as writer:
            writer.append(b"x")
        assert [entry.value for entry in log.read()] == [b"x"]
        last = max(keeper.list_ledgers())
    with Cluster(used.uri) as cluster:
        [fragment] = cluster.ledger(last).value.fragments
        assert "bookie-2" not in {member.bookie_id for member in fragment.ensemble}
        with pytest.raises(CorruptDataError):
            cluster.addresses()  # for whom a bookie that is missing is gone


def test_clients_go_on_without_a_bookie_that_may_be_lost(used: Any, run: Run) -> None:
    with Cluster(used.uri) as cluster, BookKeeper(used.uri) as keeper:
        left = keeper.create_ledger()
        left.append(b"x")
        left.release()
        cluster.store.put("lost/bookie-2", b"\xff" * 100, None)
        assert keeper.recover_ledger(left.ledger_id).last_entry_id == 0
        with keeper.create_log("three").writer() as writer:
            writer.append(b"x")
        [fragment] = cluster.ledger(writer.ledger_id).value.fragments
        assert "bookie-2" not in {member.bookie_id for member in fragment.ensemble}
    for words in ("recover --all", "collect", "rebalance", "repair", "scrub", "audit"):
        status, _, err = run(*words.split())
        assert status in (0, 1), (words, err)
    assert run("metadata", "set-aside", "lost/bookie-2", "--yes")[0] == 0
    assert run("metadata", "damaged")[0] == 0


@pytest.mark.parametrize("kind", ["bookies", "lost"])
def test_one_unreadable_bookie_stops_no_verb_about_another_bookie(
    used: Any, run: Run, kind: str
) -> None:
    with Cluster(used.uri) as cluster:
        stored = cluster.store.get(f"{kind}/bookie-2")
        cluster.store.put(f"{kind}/bookie-2", b"\xff" * 100, stored and stored.version)
    used.bookie("bookie-5").rename(used.folder / "moved")
    place = (used.folder / "moved").as_uri()
    assert run("bookie", "move", "bookie-5", place)[0] == 0
    (used.folder / "moved").rename(used.folder / "gone")
    for words in ("lost bookie-5 --yes", "lost bookie-6 --yes", "remove bookie-6 --force --yes"):
        status, _, err = run("bookie", *words.split())
        assert status == 0, (words, err)


def test_an_unreadable_page_is_named_with_its_offsets_and_the_log_goes_on_after_it(
    run: Run, small_cluster: Any, numbers: Callable[[int, int], pa.Table]
) -> None:
    with pages_of(2):
        for number in range(5):
            small_cluster.append("a", [numbers(number, number + 1)])
    forget_pages()
    with Cluster(small_cluster.uri) as cluster:
        page = cluster.log("a").value.older[0]
        key = layout.log_page_key("a", page.name)
    damage(small_cluster, key)
    [row] = json.loads(run("metadata", "damaged", "--json")[1])
    assert (row["key"], row["rests"]) == (key, f"offsets 0 to {page.end_offset - 1} of log a")
    assert f"truncate a --before {page.end_offset}`" in row["way_out"]
    status, _, err = run("metadata", "set-aside", key, "--yes")
    assert (status, f"--before {page.end_offset}`" in err) == (2, True)
    run("log", "truncate", "a", "--before", str(page.end_offset), "--yes")
    assert run("log", "read", "a")[1].count("\n") == 5 - page.end_offset


def test_an_unreadable_record_of_the_cluster_says_what_to_do(run: Run, small_cluster: Any) -> None:
    damage(small_cluster, "cluster")
    status, _, err = run("metadata", "damaged")
    assert status == 1
    assert "bring this record back from a copy of the metadata store" in err


def test_the_record_of_the_cluster_is_made_anew_from_a_bookie(
    run: Run, small_cluster: Any, tmp_path: Path
) -> None:
    key = layout.CLUSTER_KEY
    store = open_store(small_cluster.uri)
    with Cluster(small_cluster.uri) as cluster:
        before = cluster_format.decode_cluster(store.get(key).value)
        urls = [record.url for record in cluster.bookies().values()]
    assert run("metadata", "set-aside", key, "--yes", "--url", urls[0])[0] == 2  # it is readable
    init_cluster((tmp_path / "m").as_uri(), [(tmp_path / "b").as_uri()])
    damage(small_cluster, key)
    for url in ("", (tmp_path / "b").as_uri(), (tmp_path / "none").as_uri()):
        assert run("metadata", "set-aside", key, "--yes", "--url", url)[0] == 2
    assert run("metadata", "set-aside", key, "--url", urls[1])[0] == 2  # it cannot ask
    assert store.get(key).value == b"\xff" * 100
    assert run("metadata", "set-aside", key, "--yes", "--url", urls[1])[0] == 0
    after = cluster_format.decode_cluster(store.get(key).value)
    assert replace(after, created_ms=0) == replace(before, created_ms=0)
    assert run("metadata", "damaged")[0] == 0
    [kept] = store.list(f"{layout.ASIDE_PREFIX}/{key}")
    assert store.get(f"{layout.ASIDE_PREFIX}/{key}/{kept}").value == b"\xff" * 100


def test_one_record_is_described_as_among_all(used: Any) -> None:
    for key in SET_ASIDE:
        damage(used, key)
    with Cluster(used.uri) as cluster:
        found = {one.key: one for one in find_damaged(cluster)}
        assert set(SET_ASIDE) <= set(found)
        assert {key: look_at(cluster, key) for key in found} == found
        assert look_at(cluster, "bookies/bookie-1") is None
        assert look_at(cluster, "cluster") is None


def test_a_stray_key_hides_no_damaged_record(used: Any) -> None:
    damage(used, "logs/one")
    with Cluster(used.uri) as cluster:
        cluster.store.put("ledgers/stray", b"what another program left here", None)
        found = {one.key: one.reason for one in find_damaged(cluster)}
    assert "is not a ledger's key" in found["ledgers/stray"]
    assert "logs/one" in found


@pytest.mark.parametrize("key", [LEDGER, "counters/ledger", "bookies/bookie-2"])
def test_the_way_out_works_as_it_is_printed(run: Run, used: Any, key: str) -> None:
    damage(used, key)
    [row] = json.loads(run("metadata", "damaged", "--json")[1])
    [words] = re.findall(r"`bkspark ([^`]*)`", row["way_out"])
    given = [used.bookie("bookie-2").as_uri() if w == "URL" else w for w in words.split()]
    status, out, err = run(*given, "--dry-run")
    assert (status, f"would set {key} aside; on it rests: {row['rests']}" in out + err) == (0, True)
    assert run("metadata", "damaged")[0] == 1  # nothing was changed
    assert run(*given, "--yes")[0] == 0
    assert run("metadata", "damaged")[0] == 0
    assert run(*given, "--dry-run")[0] == 2  # the record can be read, or is gone


def test_an_error_about_an_unreadable_record_says_what_to_do(used: Any) -> None:
    damage(used, "counters/ledger")
    with BookKeeper(used.uri) as keeper, pytest.raises(CorruptDataError) as found:
        keeper.create_ledger()
    assert "`bkspark metadata damaged`" in found.value.hint


@pytest.fixture
def paged(small_cluster: Any, numbers: Callable[[int, int], pa.Table]) -> Any:
    """A log of nineteen ledgers, most of them on pages of pages."""
    with pages_of(2):
        for number in range(19):
            small_cluster.append("a", [numbers(number, number + 1)])
    forget_pages()
    return small_cluster


def test_an_unreadable_page_that_the_log_does_not_name_is_set_aside(run: Run, paged: Any) -> None:
    key = layout.log_page_key("a", f"00000001-{'a' * 32}")
    with Cluster(paged.uri) as cluster:
        cluster.store.put(key, b"left by an interrupted change", None)
    assert run("collect")[0] == 1
    [row] = json.loads(run("metadata", "damaged", "--json")[1])
    assert (row["key"], row["way_out"]) == (key, f"`bkspark metadata set-aside {key}`")
    assert run("metadata", "set-aside", key, "--yes")[0] == 0
    with Cluster(paged.uri) as cluster:
        assert cluster.store.get(key) is None
    assert (run("metadata", "damaged")[0], run("collect")[0]) == (0, 0)
    assert run("log", "read", "a")[1].count("\n") == 19


@pytest.mark.thorough
def test_an_unreadable_page_below_another_is_named_with_its_offsets(run: Run, paged: Any) -> None:
    with Cluster(paged.uri) as cluster:
        log = cluster.log("a").value
        top = {page.name for page in log.older}
        page = next(one for one in log.every_page() if one.name not in top)
    key = layout.log_page_key("a", page.name)
    damage(paged, key)
    [row] = json.loads(run("metadata", "damaged", "--json")[1])
    assert row["rests"] == f"offsets {page.first_offset} to {page.end_offset - 1} of log a"
    with Cluster(paged.uri) as cluster, pytest.raises(InvalidRequestError, match="may name"):
        require_unnamed(cluster, "a", page.name)


@pytest.mark.thorough
def test_a_page_stays_while_it_is_not_known_whether_the_log_names_it(run: Run, paged: Any) -> None:
    key = layout.log_page_key("a", f"00000001-{'a' * 32}")
    with Cluster(paged.uri) as cluster:
        cluster.store.put(key, b"left by an interrupted change", None)
        above = next(one for one in cluster.log("a").value.older if one.may_have_pages)
    damage(paged, layout.log_page_key("a", above.name))
    assert run("metadata", "set-aside", key, "--yes")[0] == 2
    damage(paged, "logs/a")
    rows = {row["key"]: row for row in json.loads(run("metadata", "damaged", "--json")[1])}
    assert "once the other records of log a can be read" in rows[key]["way_out"]


@pytest.mark.thorough
def test_a_client_that_made_a_page_before_loses_its_change(paged: Any) -> None:
    with Cluster(paged.uri) as cluster:
        seen = cluster.logs.get("a")
        require_unnamed(cluster, "a", f"00000001-{'a' * 32}")
        with pytest.raises(MetadataVersionError):
            cluster.logs.replace("a", seen.value, seen)
