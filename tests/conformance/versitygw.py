"""A second S3 server for tests: versitygw, which keeps each object as a file.

    with versitygw(folder) as server:
        init_cluster(server.url("metadata"), [server.url("b1"), server.url("b2")])

Go builds it from the module proxy when a test first wants it, which takes some minutes; the program
is kept in the user's cache folder.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import boto3

from tests.kit.s3 import HOST, S3Server, environment

VERSION = "v1.8.0"
_MODULE = "github.com/versity/versitygw/cmd/versitygw"
_BUILD_SECONDS = 1200
_START_SECONDS = 60


def missing() -> str:
    """Why the server cannot be built here; empty if it can."""
    return "" if _go() or _program().exists() else "there is no go to build versitygw with"


@contextmanager
def versitygw(folder: Path) -> Iterator[S3Server]:
    """Start a server that keeps its objects in ``folder``, with one empty bucket."""
    objects, log = folder / "objects", folder / "log"
    objects.mkdir()
    with socket.create_server((HOST, 0)) as unused:
        port = unused.getsockname()[1]
    with environment(port), log.open("wb") as output:
        keys = {
            "ROOT_ACCESS_KEY": os.environ["AWS_ACCESS_KEY_ID"],
            "ROOT_SECRET_KEY": os.environ["AWS_SECRET_ACCESS_KEY"],
        }
        command = [_built(), "--port", f"{HOST}:{port}", "--quiet", "--keep-alive"]
        with subprocess.Popen(
            [*command, "posix", objects], stdout=output, stderr=output, env={**os.environ, **keys}
        ) as process:
            try:
                _wait_for(process, port, log)
                server = S3Server(port, f"bucket-{uuid4().hex[:12]}")
                boto3.client("s3", endpoint_url=server.endpoint).create_bucket(Bucket=server.bucket)
                yield server
            finally:
                process.kill()


def _go() -> str:
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin") or ""


def _program() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "bkspark-tests" / f"versitygw-{VERSION}"


def _built() -> str:
    """The program; the first that asks for it builds it."""
    program = _program()
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        own = program.parent / f"{program.name}-{os.getpid()}"
        try:
            subprocess.run(
                [_go(), "install", f"{_MODULE}@{VERSION}"],
                env={**os.environ, "GOBIN": str(own), "GOFLAGS": "-mod=mod"},
                check=True,
                timeout=_BUILD_SECONDS,
            )
            (own / "versitygw").replace(program)
        finally:
            shutil.rmtree(own, ignore_errors=True)
    return str(program)


def _wait_for(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"versitygw did not start: {log.read_text()[-500:]}")
