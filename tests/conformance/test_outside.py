"""Another package adds a kind of bookie and of metadata store, found by the scheme of its URLs."""

import importlib
import pkgutil
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bkspark
import bkspark.testing
from bkspark.bookie import uri
from bkspark.cli import main
from bkspark.cluster.cluster import init_cluster
from bkspark.errors import InvalidRequestError
from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store, open_store
from bkspark.testing.bookie_conformance import BookieTests
from bkspark.testing.metadata_conformance import MetadataStoreTests

from .test_posix_bookie import PosixPlace

PACKAGE = Path(__file__).with_name("outside")


class Site:
    """A folder of installed packages."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def install(self, name: str, entry_points: str) -> None:
        """Install a package that has only entry points."""
        info = self._folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)

    def install_shelf(self) -> None:
        shutil.copy(PACKAGE / "shelf.py", self._folder)
        self.install("shelf", (PACKAGE / "entry_points.txt").read_text())


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(uri, "_BOOKIES", dict(uri._BOOKIES))
    monkeypatch.setattr(uri, "_STORAGES", dict(uri._STORAGES))
    importlib.invalidate_caches()
    yield Site(folder)
    sys.modules.pop("shelf", None)


class ShelfPlace(PosixPlace):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.url = self.url.replace("file", "shelf", 1)


@pytest.mark.thorough
class TestShelfBookie(BookieTests):
    @pytest.fixture
    def place(self, site: Site, tmp_path: Path) -> PosixPlace:
        site.install_shelf()
        return ShelfPlace(tmp_path)


@pytest.mark.thorough
class TestShelfStore(MetadataStoreTests):
    @pytest.fixture
    def store(self, site: Site, tmp_path: Path) -> MetadataStore:
        site.install_shelf()
        return format_store(shelf(tmp_path / "metadata"))


def shelf(path: Path) -> str:
    return path.as_uri().replace("file", "shelf", 1)


@pytest.mark.parametrize(
    "name", [one.name for one in pkgutil.iter_modules(bkspark.testing.__path__)]
)
def test_a_failed_assertion_of_a_suite_shows_its_values(name: str) -> None:
    assert "@pytest_ar" in vars(importlib.import_module(f"bkspark.testing.{name}"))


def test_a_cluster_is_made_written_read_and_looked_after_there(
    site: Site, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    site.install_shelf()
    metadata = shelf(tmp_path / "metadata")
    init_cluster(metadata, [shelf(tmp_path / f"bookie-{n}") for n in range(3)])
    with bkspark.BookKeeper(metadata) as keeper:
        with keeper.create_log("wal").writer() as writer:
            writer.append(b"a row")
        assert [entry.value for entry in keeper.open_log("wal").read()] == [b"a row"]
    assert main(["audit", "--metadata", metadata]) == 0
    assert main(["bookies", "--metadata", metadata]) == 0
    assert shelf(tmp_path / "bookie-0") in capfd.readouterr().out


def refusal_of_a_bookie(url: str) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        uri.storage(url)
    return str(refused.value)


def refusal_of_a_store(url: str) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        open_store(url)
    return str(refused.value)


@pytest.mark.parametrize("refusal", [refusal_of_a_bookie, refusal_of_a_store])
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("other = shelf:BOOKIE", "shelf://"),
        ("x = not_there:KIND", "the package that adds x:// cannot be loaded: No module named"),
        ("x = shelf:NOT_THERE", "or install broken again"),
        ("x = shelf:directory", "shelf:directory, which adds x://, is not a "),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_line_that_names_the_package(
    refusal: Callable[[str], str], entry: str, said: str, site: Site
) -> None:
    site.install_shelf()
    site.install("broken", f"[bkspark.bookies]\n{entry}\n[bkspark.metadata_stores]\n{entry}\n")
    assert said in refusal("x://place")


@pytest.mark.parametrize("refusal", [refusal_of_a_bookie, refusal_of_a_store])
def test_two_packages_with_one_scheme_are_refused(
    refusal: Callable[[str], str], site: Site
) -> None:
    site.install_shelf()
    entry = "shelf = another:KIND"
    site.install("another", f"[bkspark.bookies]\n{entry}\n[bkspark.metadata_stores]\n{entry}\n")
    assert "another, shelf" in refusal("shelf:///x")


def test_no_package_replaces_a_scheme_of_this_one(site: Site, tmp_path: Path) -> None:
    entry = "file = not_there:KIND"
    site.install("thief", f"[bkspark.bookies]\n{entry}\n[bkspark.metadata_stores]\n{entry}\n")
    format_store((tmp_path / "metadata").as_uri())
    assert uri.storage((tmp_path / "bookie").as_uri()).read_cookie() is None
