"""A file system that lies to one of two processes is found out; a trial leaves nothing behind."""

from pathlib import Path

import pytest

from bkspark.storage import file_systems, litmus_rival
from bkspark.storage.file_systems import failure

RIVAL = """
import importlib.util, os, sys, time
spec = importlib.util.spec_from_file_location("rival", {path!r})
rival = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rival)
seen = {{}}
read, create, look = rival.Rival.read, rival.Rival.create, rival.Rival.look

class Faulty(rival.Rival):
{fault}

rival.Rival = Faulty
rival.main(sys.argv[1])
"""

FAULTS = {
    "two processes both created the same file": """
    def create(self, name, text):
        with open(self._path(name), "w") as file:
            file.write(text)
        return True
""",
    "of two processes that created the same file, neither succeeded": """
    def create_all(self, names, text):
        return []
""",
    "a file does not belong to its creator": """
    def read(self, name):
        return read(self, name) and "somebody's"
""",
    "a file created by another process is not visible at once": """
    def read(self, name):
        if name not in seen or seen[name] is not None:
            seen[name] = read(self, name)
        return seen[name]
""",
    "an existing file is created again": """
    def create(self, name, text):
        return create(self, name, text) or name.startswith("look")
""",
    "a file removed by another process is still visible": """
    def read(self, name):
        seen[name] = read(self, name) or seen.get(name)
        return seen[name]
    def remove(self, name):
        super().remove(name)
        seen.clear()
""",
    "a file renamed by another process is not visible at once": """
    def read(self, name):
        return "text" if name == "old" else read(self, name)
""",
    "data appended and synced by another process is not visible at once": """
    def read(self, name):
        if name in ("one", "other"):
            return seen.setdefault(name, read(self, name))
        return read(self, name)
""",
    "a name does not show the file that was renamed to it": """
    def look(self, name):
        device, inode, size = look(self, name)
        return [device, inode + 1, size]
""",
    "cannot create_all: Operation not permitted": """
    def create(self, name, text):
        raise PermissionError(1, "Operation not permitted")
""",
    "it gave no answer within 0.5 s": """
    def create_all(self, names, text):
        time.sleep(60)
""",
    "the testing process has ended": """
    def rename(self, old, new):
        os._exit(1)
""",
}


def test_a_local_disk_passes_and_keeps_nothing(tmp_path: Path) -> None:
    assert failure(str(tmp_path)) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("why", FAULTS)
def test_each_lie_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    script = tmp_path / "rival.py"
    script.write_text(RIVAL.format(path=litmus_rival.__file__, fault=FAULTS[why]))
    monkeypatch.setattr(file_systems, "RIVAL", str(script))
    if "no answer" in why:
        monkeypatch.setattr(file_systems, "ANSWER_SECONDS", 0.5)
    folder = tmp_path / "folder"
    folder.mkdir()
    assert failure(str(folder)) == why
    assert all(path.name.startswith(".tmp-") for path in folder.iterdir())


@pytest.mark.parametrize("folder", ["none", "file"])
def test_where_no_folder_can_be_made_it_is_said(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert failure(str(tmp_path / folder)).startswith("cannot make: N")
