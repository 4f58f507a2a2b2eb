"""One rule for metadata stores and bookies: a local file system, or one that passes a trial."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.cli import main
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import InvalidRequestError
from bkspark.storage import file_systems
from bkspark.storage.file_systems import mount_of, why_unsafe

LOCAL = ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs"]
CACHING = ["nfs", "nfs4", "cifs", "smb3", "fuse.s3fs", "fuse", "fuseblk", "virtiofs", "afs"]
OTHERS = ["ceph", "lustre", "gpfs", "beegfs", "9p", "vboxsf", "ocfs2", "somefs"]

Mounts = Callable[..., Path]


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mounts:
    """``mounts(kind, options)``: a folder on such a file system, mounted over an older one."""

    def mounted(kind: str, options: str = "rw") -> Path:
        folder = tmp_path / "m nt"
        folder.mkdir(exist_ok=True)
        point = str(folder).replace(" ", "\\040")
        table = tmp_path / "mountinfo"
        table.write_text(
            "21 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
            f"22 21 8:2 / {point} rw - minix /dev/sdb1 rw\n"
            f"23 21 0:40 / {point} rw,relatime shared:2 master:3 - {kind} somewhere {options}\n"
            f"24 21 0:41 / {point}-and-more rw - proc proc rw\n"
        )
        monkeypatch.setattr(file_systems, "MOUNTS", str(table))
        return folder

    return mounted


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were tried; what is first in it is what the next trial finds wrong."""
    tried: list[str] = []

    def failure(folder: str) -> str:
        tried.append(folder)
        return tried[0] if tried[0] == "it lies" else ""

    monkeypatch.setattr(file_systems, "failure", failure)
    return tried


@pytest.mark.parametrize("kind", LOCAL)
def test_local_file_systems_are_taken_without_a_trial(
    mounts: Mounts, trials: list[str], kind: str
) -> None:
    assert why_unsafe(str(mounts(kind) / "bk")) == ""
    assert trials == []


@pytest.mark.parametrize("kind", CACHING)
def test_caches_of_other_hosts_do_not_show_in_a_trial(
    mounts: Mounts, trials: list[str], kind: str
) -> None:
    assert f"of type {kind}, which may hide" in why_unsafe(str(mounts(kind) / "bk"))
    assert trials == []


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, "rw") for kind in OTHERS),
        ("nfs4", "rw,vers=4.2,lookupcache=none"),
        ("9p", "rw,cache=none"),
    ],
)
def test_all_others_are_tried(mounts: Mounts, trials: list[str], kind: str, options: str) -> None:
    folder = mounts(kind, options)
    assert why_unsafe(str(folder / "bk")) == ""
    assert trials == [str(folder)]
    trials[:] = ["it lies"]
    assert why_unsafe(str(folder)).endswith(f"of type {kind} that failed a test: it lies")


@pytest.mark.parametrize("cache", ["loose", "mmap", "fscache", "5"])
def test_a_loose_cache_cannot_be_tried(mounts: Mounts, trials: list[str], cache: str) -> None:
    assert "which may hide" in why_unsafe(str(mounts("9p", f"rw,cache={cache}")))
    assert trials == []


def test_where_mounts_cannot_be_read_it_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: list[str]
) -> None:
    monkeypatch.setattr(file_systems, "MOUNTS", str(tmp_path / "none"))
    assert mount_of(str(tmp_path)) is None
    assert why_unsafe(str(tmp_path / "bk")) == ""
    assert trials == [str(tmp_path)]


@pytest.mark.parametrize("is_meta", [True, False])
def test_metadata_and_bookies_are_admitted_by_the_same_rule(
    tmp_path: Path, mounts: Mounts, is_meta: bool
) -> None:
    strange, plain = (mounts("nfs") / "x").as_uri(), (tmp_path / "plain").as_uri()
    uri, bookie = (strange, plain) if is_meta else (plain, strange)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidRequestError, match="of type nfs") as caught:
        init_cluster(uri, [bookie])
    assert "--accept-storage-risk" in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def run(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(list(words))
    return status, capfd.readouterr().out


def findings(out: str) -> dict[str, str]:
    """Subjects of warnings about storage, each with its message."""
    return {
        found["subject"]: found["message"]
        for found in json.loads(out)["findings"]
        if "could be lost" in found["message"]
    }


def test_what_was_accepted_is_shown_for_good(
    tmp_path: Path, mounts: Mounts, capfd: pytest.CaptureFixture[str]
) -> None:
    strange = mounts("nfs")
    uri, on = (strange / "m").as_uri(), ("--metadata", (strange / "m").as_uri())
    bookies = [f"--bookie={(folder / 'b').as_uri()}" for folder in (strange, tmp_path)]
    assert run(capfd, "init", uri, *bookies)[0] == 2
    assert run(capfd, "init", uri, *bookies, "--accept-storage-risk")[0] == 0
    added = (strange / "b3").as_uri()
    assert run(capfd, "bookie", "add", added, *on)[0] == 2
    assert run(capfd, "bookie", "add", added, "--accept-storage-risk", *on)[0] == 0
    mounts("ext4")
    for command in ("status", "doctor"):
        found = findings(run(capfd, command, "--json", *on)[1])
        assert sorted(found) == ["bookie-1", "bookie-3", "metadata"]
        assert all("of type nfs" in message for message in found.values())
    with Cluster(uri) as cluster:
        assert cluster.bookies()["bookie-2"].storage_risk == ""


def test_doctor_tries_what_is_there(
    tmp_path: Path, mounts: Mounts, trials: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    uri = (tmp_path / "meta").as_uri()
    init_cluster(uri, [(mounts("somefs") / "b").as_uri()])
    trials[:] = ["it lies"]
    status, out = run(capfd, "doctor", "--json", "--metadata", uri)
    assert status == 1
    found = {found["subject"]: found for found in json.loads(out)["findings"]}
    assert found["bookie-1"]["message"].endswith("failed a test: it lies")
    assert found["storage"]["message"] == "1 place of a safe kind"
    assert run(capfd, "status", "--json", "--metadata", uri)[0] == 0
    assert trials == ["it lies", str(tmp_path / "m nt/b")]


def test_memory_is_no_place_for_what_others_are_led_to(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="ends with this process"):
        init_cluster((tmp_path / "meta").as_uri(), ["memory://led-nowhere"])
    assert list(tmp_path.iterdir()) == []
