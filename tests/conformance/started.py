"""Servers of other clouds for tests: started, waited for, and killed at the end."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bkspark.storage import connection

HOST = "127.0.0.1"
_START_SECONDS = 60
_BUILD_SECONDS = 1200
_FOLDER = "bkspark-tests"


@contextmanager
def started(command: Callable[[int], Sequence[str]], log: Path) -> Iterator[int]:
    """Run a server for the block; returns its port.

    Args:
        command: starts the server at a port.
    """
    with socket.create_server((HOST, 0)) as unused:
        port = int(unused.getsockname()[1])
    with (
        log.open("wb") as output,
        subprocess.Popen(command(port), stdout=output, stderr=output) as process,
    ):
        try:
            _wait_for(process, port, log)
            yield port
        finally:
            process.kill()


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change the environment, and make all clients anew before and after."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    connection.forget()
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        connection.forget()


def installed(name: str, command: Callable[[Path], Sequence[str]]) -> Path:
    """A folder of the user's cache in which ``command`` has installed something, once."""
    folder = cached(name)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        own = folder.parent / f"{name}-{os.getpid()}"
        own.mkdir()
        try:
            environ = {**os.environ, "GOBIN": str(own), "GOFLAGS": "-mod=mod"}
            subprocess.run(
                command(own), check=True, timeout=_BUILD_SECONDS, env=environ, capture_output=True
            )
            own.replace(folder)
        finally:
            shutil.rmtree(own, ignore_errors=True)
    return folder


def built_by_go(name: str, module: str) -> Path:
    """A folder with the program that Go builds of ``module``, once; see ``missing_go``."""
    return installed(name, lambda _: [_go(), "install", module])


def missing_go(name: str) -> str:
    """Why a program cannot be built here; empty if it can, or was."""
    return "" if _go() or cached(name).exists() else f"there is no go to build {name} with"


def _go() -> str:
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin") or ""


def cached(name: str) -> Path:
    """The folder ``name`` in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / _FOLDER / name


def _wait_for(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the server did not start: {log.read_text()[-500:]}")
