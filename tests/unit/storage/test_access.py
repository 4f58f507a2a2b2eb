"""What files of a user, or of a group, are made like, and which of them are believed."""

import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import BookieUnavailableError, InvalidRequestError, NothingSentError
from bkspark.format.cluster import GROUP_MAX
from bkspark.metadata.files import FileMetadataStore
from bkspark.metadata.versioned_store import MARKER
from bkspark.storage import access, posix_calls
from bkspark.storage.access import PRIVATE, Access, NotPrivateError
from tests.unit.starving import starved

GROUP = os.getegid()
ANOTHER = GROUP + 7
SOMEBODY = 12345
KEY = "ledgers/1"


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


def status(mode: int, *, user: int | None = None, group: int = GROUP) -> os.stat_result:
    user = os.geteuid() if user is None else user
    return os.stat_result((mode, 1, 1, 1, user, group, 0, 0, 0, 0))


def init(place: Path, group: int | None = GROUP) -> str:
    place.mkdir()
    uri = (place / "meta").as_uri()
    init_cluster(uri, [(place / f"b{n}").as_uri() for n in (1, 2, 3)], group=group)
    return uri


def use(uri: str) -> None:
    with BookKeeper(uri) as keeper:
        for unbounded in (False, True):
            log = keeper.create_log(f"log-{unbounded}", unbounded=unbounded)
            for _ in range(2):
                with log.writer() as writer:
                    writer.append(b"x")
            assert [entry.value for entry in log.read(0)] == [b"x", b"x"]
        keeper.delete_log("log-True")


def modes(place: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"folders": set(), "files": set()}
    for path in place.rglob("*"):
        mode = oct(stat.S_IMODE(path.stat().st_mode))
        found["folders" if path.is_dir() else "files"].add(mode)
    return found


def test_what_a_group_shares_has_its_modes_whatever_the_umask(place: Path, umask: int) -> None:
    use(init(place))
    assert modes(place) == {"folders": {"0o2770"}, "files": {"0o660"}}, oct(umask)
    assert {path.stat().st_gid for path in place.rglob("*")} == {GROUP}


def test_without_a_group_all_is_private_whatever_the_umask(place: Path, umask: int) -> None:
    use(init(place, None))
    assert modes(place) == {"folders": {"0o700"}, "files": {"0o600"}}, oct(umask)


def test_what_is_new_is_open_to_readers_where_the_place_is(place: Path) -> None:
    uri = init(place)
    for path in [*place.iterdir(), *place.rglob("*")]:
        path.chmod(path.stat().st_mode | (0o005 if path.is_dir() else 0o004))
    use(uri)
    assert modes(place) == {"folders": {"0o2775"}, "files": {"0o664"}}


def test_a_folder_with_a_group_bit_makes_no_group_cluster(place: Path) -> None:
    """It takes the word of an operator: many sites give all their folders a group."""
    place.mkdir()
    (place / "meta").mkdir(mode=0o700)
    (place / "meta").chmod(0o2770)
    init_cluster((place / "meta").as_uri(), [])
    with Cluster((place / "meta").as_uri()) as cluster:
        assert cluster.group is None
        cluster.add_bookie("", (place / "b1").as_uri())
    assert modes(place / "meta" / "bookies")["files"] == {"0o600"}
    assert stat.S_IMODE((place / "meta" / "bookies").stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("folder", ["meta", "b1"])
def test_a_folder_that_is_there_becomes_the_group_s_and_closed(place: Path, folder: str) -> None:
    place.mkdir()
    (place / folder).mkdir()
    (place / folder).chmod(0o755)
    init_cluster((place / "meta").as_uri(), [(place / "b1").as_uri()], group=GROUP)
    assert stat.S_IMODE((place / folder).stat().st_mode) == 0o2770


TRUSTED = {
    "own": status(0o700),
    "root's": status(0o755, user=0),
    "own, writable by its group": status(0o770),
}
OF_GROUP = {
    "another member's": status(0o2770, user=SOMEBODY),
    "open to readers": status(0o2775, user=SOMEBODY),
    "own, of another group, not writable by it": status(0o750, group=ANOTHER),
}
REFUSED = {
    "writable by all users": status(0o2772, user=SOMEBODY),
    "own and writable by all users": status(0o777),
    "a third user's, of another group": status(0o700, user=SOMEBODY, group=ANOTHER),
    "own, writable by another group": status(0o770, group=ANOTHER),
}


@pytest.mark.parametrize("name", [*TRUSTED, *OF_GROUP, *REFUSED])
def test_a_group_is_trusted_and_nothing_wider(name: str) -> None:
    found = {**TRUSTED, **OF_GROUP, **REFUSED}[name]
    if name in REFUSED:
        with pytest.raises(NotPrivateError):
            Access(GROUP).require_trusted(found, "x")
    else:
        Access(GROUP).require_trusted(found, "x")


@pytest.mark.parametrize("name", [*TRUSTED, *OF_GROUP])
def test_without_a_group_a_third_user_is_not_trusted(name: str) -> None:
    found = {**TRUSTED, **OF_GROUP}[name]
    if found.st_uid == SOMEBODY:
        with pytest.raises(NotPrivateError, match="belongs to user"):
            PRIVATE.require_trusted(found, "x")
    else:
        PRIVATE.require_trusted(found, "x")


def test_only_members_and_the_owner_of_the_place_change_it() -> None:
    Access(GROUP).require_may_change(status(0o2770, user=SOMEBODY))
    Access(ANOTHER).require_may_change(status(0o2770))
    PRIVATE.require_may_change(status(0o700, user=SOMEBODY))
    with pytest.raises(NotPrivateError, match="only members of group") as raised:
        Access(ANOTHER).require_may_change(status(0o2775, user=SOMEBODY))
    assert raised.value.hint == f"run as a member of group {access.group_name(ANOTHER)}"


def test_a_group_that_cannot_be_is_refused(tmp_path: Path) -> None:
    for given in ("no-such-group", "-1", -1, GROUP_MAX + 1, True, "", "1e3"):
        with pytest.raises(InvalidRequestError, match="does not exist on this host"):
            init_cluster((tmp_path / "m").as_uri(), [], group=given)
    assert access.group_id(access.group_name(GROUP)) == access.group_id(str(GROUP)) == GROUP
    assert list(tmp_path.iterdir()) == []


def test_a_user_that_is_no_member_makes_no_cluster_for_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    with pytest.raises(InvalidRequestError, match="is not a member of group"):
        init_cluster((tmp_path / "m").as_uri(), [], group=ANOTHER)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_waited_for_until_its_maker_has_set_its_mode() -> None:
    seen = iter([status(0o2700, user=SOMEBODY), status(0o2770, user=SOMEBODY)])
    assert Access(GROUP).settled(lambda: next(seen)).st_mode == 0o2770
    one = iter([status(0o700, user=SOMEBODY)])
    assert PRIVATE.settled(lambda: next(one)).st_mode == 0o700


def test_a_folder_whose_maker_died_before_it_set_the_mode_gets_it(place: Path) -> None:
    uri = init(place)
    for folder in ("meta/ledgers", "b1/ledgers", "b2/ledgers", "b3/ledgers"):
        (place / folder).mkdir()
        (place / folder).chmod(0o700)
    use(uri)
    assert modes(place)["folders"] == {"0o2770"}


@pytest.mark.parametrize("name", ["", MARKER, "ledgers", KEY, f"{KEY}/{1:016x}"])
@pytest.mark.parametrize("mode", [0o2772, 0o2760])
def test_what_another_group_or_everybody_can_change_is_not_believed(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str, mode: int
) -> None:
    place.mkdir()
    store = FileMetadataStore((place / "meta").as_uri())
    store.format(GROUP)
    store.put(KEY, b"v1", None)
    seen = store.get(KEY)
    assert seen is not None
    path = place / "meta" / name
    path.chmod(mode | (0o050 if path.is_dir() else 0))
    if mode == 0o2760:
        shown = os.stat(path)
        other = os.stat_result([*shown[:5], ANOTHER, *shown[6:]])
        monkeypatch.setattr(os, "stat", _instead(os.stat, shown, other))
        monkeypatch.setattr(os, "fstat", _instead(os.fstat, shown, other))
    calls: list[Callable[[FileMetadataStore], object]] = [
        lambda found: found.get(KEY),
        lambda found: found.is_current(KEY, seen),
    ]
    for call in calls:
        with pytest.raises(NothingSentError, match="is writable by "):
            call(FileMetadataStore(store.uri))


def _instead(
    call: Callable[..., os.stat_result], shown: os.stat_result, other: os.stat_result
) -> Callable[..., os.stat_result]:
    def look(*words: object, **more: object) -> os.stat_result:
        found = call(*words, **more)
        return other if os.path.samestat(found, shown) else found

    return look


def test_the_group_of_a_marker_counts_only_where_the_folder_is_of_it(place: Path) -> None:
    """Else the maker of a store would say in its marker who is to be believed."""
    place.mkdir()
    store = FileMetadataStore((place / "meta").as_uri())
    store.format(GROUP)
    marker = place / "meta" / MARKER
    marker.write_bytes(marker.read_bytes().replace(b"group %d" % GROUP, b"group %d" % ANOTHER))
    with pytest.raises(NothingSentError, match=f"`?{re.escape(access.group_name(ANOTHER))}; chgrp"):
        FileMetadataStore(store.uri).get(KEY)


def test_a_folder_that_lost_its_group_bit_is_refused_and_named(place: Path) -> None:
    """Else its owner would make private files in it."""
    uri = init(place)
    (place / "meta").chmod(0o770)
    with pytest.raises(InvalidRequestError, match=re.escape("`chmod g+rwxs ")):
        BookKeeper(uri)
    (place / "meta").chmod(0o2770)
    use(uri)


def test_an_init_for_another_group_does_not_finish_one(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = init(place)
    more = [(place / f"b{n}").as_uri() for n in (1, 2, 3, 4)]
    with pytest.raises(InvalidRequestError, match="begun with another `--group`, or without"):
        init_cluster(uri, more)
    assert not (place / "b4").exists()
    init_cluster(uri, more, group=GROUP)
    store = FileMetadataStore((place / "other").as_uri())
    store.format(GROUP)
    with pytest.raises(InvalidRequestError, match="`--group "):
        FileMetadataStore(store.uri).format()


def test_a_journal_gets_its_name_after_its_mode(tmp_path: Path) -> None:
    folder = posix_calls.open_root(str(tmp_path))
    seen: list[str] = []

    class Watched(Access):
        def settle_file(self, descriptor: int) -> None:
            seen.extend(os.listdir(tmp_path))
            super().settle_file(descriptor)

    with posix_calls.closing(folder):
        os.close(posix_calls.new_growing(folder, "journal", Watched(GROUP)))
        with pytest.raises(FileExistsError):
            posix_calls.new_growing(folder, "journal", Access(GROUP))
    assert [posix_calls.is_temp(name) for name in seen] == [True]
    assert os.listdir(tmp_path) == ["journal"]


def test_a_mode_that_is_not_kept_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without modes, or a user that may not set the group's bit."""
    monkeypatch.setattr(os, "fchmod", lambda _descriptor, _mode: None)
    folder = posix_calls.open_root(str(tmp_path))
    before = os.umask(0o077)
    try:
        with posix_calls.closing(folder), pytest.raises(NotPrivateError, match="could not be set"):
            posix_calls.put_new(folder, "file", b"x", Access(GROUP))
    finally:
        os.umask(before)
    assert os.listdir(tmp_path) == []


def test_a_process_without_descriptors_is_told_so_everywhere(place: Path) -> None:
    """Each call is refused, and nothing is said to be in doubt."""
    place.mkdir()
    uri = init_private(place)
    with BookKeeper(uri) as keeper:
        log = keeper.create_log("log")
        with log.writer() as writer:
            writer.append(b"x")
        calls: list[Callable[[], object]] = [
            lambda: keeper.create_log("other"),
            lambda: list(log.read(0)),
            log.writer,
            keeper.create_ledger,
            keeper.list_bookies,
            lambda: BookKeeper(uri),
        ]
        for call in calls:
            with starved(), pytest.raises(NothingSentError) as raised:
                call()
            assert "Too many open files; nothing was sent; raise the limit" in str(raised.value)
        assert [entry.value for entry in log.read(0)] == [b"x"]
        assert keeper.list_logs() == ["log"]


def test_a_bookie_says_what_this_process_lacks(place: Path) -> None:
    place.mkdir()
    uri = init_private(place)
    with Cluster(uri) as cluster:
        record = cluster.bookie("bookie-1").value
        bookie = open_bookie(cluster.address(record))
        with starved(), pytest.raises(BookieUnavailableError) as raised, bookie.open_root():
            pass
    assert str(raised.value).endswith(
        "Too many open files (raise the limit of open files (ulimit -n))"
    )


def init_private(place: Path) -> str:
    uri = (place / "meta").as_uri()
    init_cluster(uri, [(place / f"b{n}").as_uri() for n in (1, 2, 3)])
    return uri
