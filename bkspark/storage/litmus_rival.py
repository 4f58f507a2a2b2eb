"""One of the two processes that try a file system, directed by ``litmus``.

The module imports nothing of bkspark, so that it starts fast. Every line of its input is a JSON
list, a verb and its arguments; every line of its output is [answer, ""], or [null, error]. Each
file is looked up by its whole path anew, as bookies do.
"""

import json
import os
import shutil
import sys
from contextlib import suppress


class Rival:
    """The verbs; all names are in ``folder``."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._open: dict[str, int] = {}

    def make(self) -> None:
        """Make the folder; called in one of the two processes."""
        os.mkdir(self._folder, 0o700)

    def clear(self) -> None:
        """Remove the folder with its contents."""
        shutil.rmtree(self._folder)

    def create(self, name: str, text: str) -> bool:
        """Make a durable file unless it exists; return whether this call made it."""
        temporary = self._path(f"{name}.{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(descriptor, text.encode())
            os.fsync(descriptor)
            os.link(temporary, self._path(name))
        except FileExistsError:
            return False
        finally:
            os.close(descriptor)
            os.unlink(temporary)
        self._sync()
        return True

    def create_all(self, names: list[str], text: str) -> list[str]:
        """The ``names`` that this process made."""
        return [name for name in names if self.create(name, text)]

    def read(self, name: str) -> str | None:
        """A file's text; None if there is no file."""
        with suppress(FileNotFoundError), open(self._path(name), encoding="ascii") as file:
            return file.read()
        return None

    def append(self, name: str, text: str) -> list[int]:
        """Append durably to a file that stays open; return the file's identity and length."""
        if name not in self._open:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._open[name] = os.open(self._path(name), flags, 0o600)
            self._sync()
        os.write(self._open[name], text.encode())
        os.fdatasync(self._open[name])
        found = os.fstat(self._open[name])
        return [found.st_dev, found.st_ino, found.st_size]

    def look(self, name: str) -> list[int]:
        """The identity and length of the file shown by ``name``."""
        found = os.stat(self._path(name))
        return [found.st_dev, found.st_ino, found.st_size]

    def rename(self, old: str, new: str) -> None:
        os.rename(self._path(old), self._path(new))
        self._sync()

    def remove(self, name: str) -> None:
        os.unlink(self._path(name))
        self._sync()

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def _sync(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def main(folder: str) -> None:
    """Run the verbs of the input until its end."""
    rival = Rival(folder)
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        try:
            answer = [getattr(rival, verb)(*arguments), ""]
        except OSError as error:
            answer = [None, f"{verb}: {error.strerror}"]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
