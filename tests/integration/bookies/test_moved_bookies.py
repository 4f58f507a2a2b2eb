"""The same bookie at another URL: what must be true of the two places, and what others notice."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.admin import bookies
from bkspark.admin.maintenance import Report
from bkspark.bookie import memory, posix
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError
from bkspark.format import cluster as cluster_format
from bkspark.format.cluster import Cookie
from tests.integration.rig import Rig, flat, partitions_of
from tests.integration.waiting import wait_until
from tests.kit.faulty import Fault

ROWS = partitions_of(40, 30)


def another_place(rig: Rig) -> str:
    if rig.kind == "memory":
        return f"{rig.urls['bookie-1']}-moved"
    return (rig.folder / "moved").as_uri()


def bring(rig: Rig, url: str, bookie_id: str = "bookie-1") -> None:
    """Take the bookie's storage from its place to ``url``."""
    if rig.kind == "memory":
        memory.place_disk(url, rig.lose(bookie_id))
    else:
        rig.lose(bookie_id).rename(posix.path_of(url))


def copy(rig: Rig, url: str, bookie_id: str = "bookie-1") -> None:
    """Have the bookie's storage twice."""
    if rig.kind == "memory":
        disk = memory.find_disk(rig.urls[bookie_id])
        assert disk is not None
        twin = memory.MemoryDisk()
        twin.files = dict(disk.files)
        memory.place_disk(url, twin)
    else:
        shutil.copytree(posix.path_of(rig.urls[bookie_id]), posix.path_of(url))


def move(rig: Rig, bookie_id: str, url: str, *, dry_run: bool = False) -> Report:
    is_risky = rig.kind == "memory"  # beside metadata in files
    return bookies.move(rig.uri, bookie_id, url, accepts_risk=is_risky, dry_run=dry_run)


def registered(rig: Rig, bookie_id: str = "bookie-1") -> str:
    with Cluster(rig.uri) as cluster:
        return cluster.bookie(bookie_id).value.url


def test_3_1_all_is_read_from_the_new_place(rig: Rig) -> None:
    rig.write(ROWS, (5, 3, 2))
    url = another_place(rig)
    bring(rig, url)
    report = move(rig, "bookie-1", url)
    assert (len(report.plan["steps"]), report.done) == (1, {"steps": 1})
    assert registered(rig) == url
    rig.urls["bookie-1"] = url
    assert rig.rows() == flat(ROWS)
    assert all(len(holders) == 3 for holders in rig.good_copies(0).values())
    rig.write(ROWS, (5, 3, 2))
    assert move(rig, "bookie-1", url).plan["steps"] == []


def test_what_else_its_record_says_stays(rig: Rig) -> None:
    bookies.readonly(rig.uri, "bookie-1")
    bookies.marks(rig.uri, "bookie-1", high=0.5, low=0.4)
    url = another_place(rig)
    bring(rig, url)
    move(rig, "bookie-1", url)
    with Cluster(rig.uri) as cluster:
        record = cluster.bookie("bookie-1").value
    assert record.is_read_only
    assert record.marks.high_permille == 500


def test_of_two_copies_neither_is_taken(rig: Rig) -> None:
    """Writers who have the old URL would be acknowledged what nobody finds at the new one."""
    url, before = another_place(rig), registered(rig)
    copy(rig, url)
    names = rig.names("bookie-1")
    with pytest.raises(InvalidRequestError, match="as well, in other storage"):
        move(rig, "bookie-1", url)
    assert registered(rig) == before
    assert rig.names("bookie-1") == names
    rig.wipe("bookie-1")
    move(rig, "bookie-1", url)
    assert registered(rig) == url


def test_one_storage_by_two_names_is_moved(rig: Rig) -> None:
    url, name = another_place(rig), "bookie-1"
    if rig.kind == "memory":
        memory.place_disk(url, memory.find_disk(rig.urls[name]))
    else:
        bring(rig, url)
        Path(posix.path_of(rig.urls[name])).symlink_to(posix.path_of(url))
    names = rig.names(name)
    move(rig, name, url)
    assert registered(rig) == url
    assert rig.names(name) == names


@pytest.mark.parametrize("other", ["nothing", "empty", "another bookie", "another incarnation"])
def test_a_place_that_is_not_this_very_bookie_is_not_taken(rig: Rig, other: str) -> None:
    url, before = another_place(rig), registered(rig)
    if other == "another bookie":
        bring(rig, url, "bookie-2")
    elif other != "nothing":
        bring(rig, url)
        rig.urls["bookie-1"], before_url = url, rig.urls["bookie-1"]
        rig.wipe("bookie-1")
        rig.urls["bookie-1"] = before_url
    if other == "another incarnation":
        with Cluster(rig.uri) as cluster:
            anew = Cookie(cluster.cluster_id, "bookie-1", "f" * 32)
        bookies.reinitialising.storage(url).format(cluster_format.encode_cookie(anew))
    with pytest.raises(InvalidRequestError, match="is not bookie bookie-1"):
        move(rig, "bookie-1", url)
    assert registered(rig) == before


def test_a_place_that_became_another_bookies_is_no_more_the_old_one(rig: Rig) -> None:
    url = another_place(rig)
    bring(rig, url)
    with Cluster(rig.uri) as cluster:
        other = Cookie(cluster.cluster_id, "bookie-9", "f" * 32)
    bookies.reinitialising.storage(rig.urls["bookie-1"]).format(cluster_format.encode_cookie(other))
    move(rig, "bookie-1", url)
    assert registered(rig) == url


def test_a_damaged_cookie_at_the_old_place_says_nothing(rig: Rig) -> None:
    url = another_place(rig)
    copy(rig, url)
    rig.replace_file("bookie-1", "COOKIE", b"?")
    with pytest.raises(InvalidRequestError, match="it is not known whether"):
        move(rig, "bookie-1", url)


def test_an_old_place_that_does_not_answer_may_be_anything(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="file")
    url = another_place(rig)
    copy(rig, url)
    old = Path(posix.path_of(rig.urls["bookie-1"]))
    old.rename(old.with_suffix(".away"))
    old.write_text("no directory")
    with pytest.raises(InvalidRequestError, match="it is not known whether"):
        move(rig, "bookie-1", url)
    old.unlink()
    move(rig, "bookie-1", url)


@pytest.mark.parametrize("silent", ["old", "new", "both"])
def test_one_storage_is_known_by_whichever_name_can_be_written_to(rig: Rig, silent: str) -> None:
    """A copy that is mounted read-only is a copy all the same, and then nobody can tell."""
    url = another_place(rig)
    copy(rig, url)
    tries: list[str] = []

    def fails(_number: int, operation: object) -> Fault | None:
        if operation.call != "put_new":
            return None
        tries.append("")
        return (
            Fault() if silent == "both" or len(tries) == ["new", "old"].index(silent) + 1 else None
        )

    rig.faults.decide = fails
    why = "it is not known whether" if silent == "both" else "in other storage"
    with rig.faults.installed(), pytest.raises(InvalidRequestError, match=why):
        move(rig, "bookie-1", url)


def test_nothing_is_moved_into_another_place_of_the_cluster(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="file")
    inside = f"{rig.urls['bookie-2']}/inside"
    bring(rig, inside)
    with pytest.raises(InvalidRequestError, match="lies inside"):
        move(rig, "bookie-1", inside)


def test_a_dry_run_looks_and_moves_nothing(rig: Rig) -> None:
    url, before = another_place(rig), registered(rig)
    bring(rig, url)
    report = move(rig, "bookie-1", url, dry_run=True)
    assert (len(report.plan["steps"]), report.done) == (1, {})
    assert registered(rig) == before


def test_of_two_who_move_it_at_once_one_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each had found the old place gone, and a copy at the place of his own."""
    first, second = another_place(rig), f"{another_place(rig)}2"
    copy(rig, second)
    bring(rig, first)
    check = bookies.moving._require_one_place

    def overtaken(*places: object) -> None:
        check(*places)
        monkeypatch.setattr(bookies.moving, "_require_one_place", check)
        move(rig, "bookie-1", first)

    monkeypatch.setattr(bookies.moving, "_require_one_place", overtaken)
    with pytest.raises(InvalidRequestError, match="another command moved or initialised"):
        move(rig, "bookie-1", second)
    assert registered(rig) == first
    with pytest.raises(InvalidRequestError, match="in other storage"):
        move(rig, "bookie-1", second)


def test_who_writes_to_it_puts_another_in_its_place_and_who_reads_reads_on(
    rig: Rig, keeper: BookKeeper
) -> None:
    """His next record is on it, by a file that moved with it, and counts nowhere."""
    ledger = keeper.create_ledger()
    ledger.append(b"before")
    reader = keeper.open_ledger(ledger.ledger_id, recovery=False)
    wait_until(lambda: reader.read_last_add_confirmed() == 0)
    moved = ledger.metadata.last_fragment.ensemble[0].bookie_id
    url = another_place(rig)
    bring(rig, url, moved)
    move(rig, moved, url)
    ledger.append(b"behind")
    wait_until(lambda: moved not in {m.bookie_id for m in ledger.metadata.last_fragment.ensemble})
    assert [entry.value for entry in reader.read()] == [b"before"]
    ledger.append(b"last")
    ledger.close()
    found = keeper.open_ledger(ledger.ledger_id)
    assert [entry.value for entry in found.read()] == [b"before", b"behind", b"last"]
