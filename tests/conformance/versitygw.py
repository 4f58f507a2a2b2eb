"""A second S3 server for tests: versitygw, which keeps each object as a file.

    with versitygw(folder) as server:
        init_cluster(server.url("metadata"), [server.url("b1"), server.url("b2")])

Go builds it from the module proxy when a test first wants it, which takes some minutes; the program
is kept in the user's cache folder.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import boto3

from tests.kit.s3 import ACCESS_KEY, HOST, SECRET_KEY, S3Server, environment

from .started import built_by_go, missing_go, started

VERSION = "v1.8.0"
_MODULE = "github.com/versity/versitygw/cmd/versitygw"
_NAME = f"versitygw-server-{VERSION}"


def missing() -> str:
    """Why the server cannot be built here; empty if it can."""
    return missing_go(_NAME)


@contextmanager
def versitygw(folder: Path) -> Iterator[S3Server]:
    """Start a server that keeps its objects in ``folder``, with one empty bucket."""
    objects = folder / "objects"
    objects.mkdir()
    program = built_by_go(_NAME, f"{_MODULE}@{VERSION}") / "versitygw"
    keys = (f"ROOT_ACCESS_KEY={ACCESS_KEY}", f"ROOT_SECRET_KEY={SECRET_KEY}")

    def command(port: int) -> list[str]:
        options = ("--port", f"{HOST}:{port}", "--quiet", "--keep-alive")
        return ["env", *keys, str(program), *options, "posix", str(objects)]

    with started(command, folder / "log") as port, environment(port):
        server = S3Server(port, f"bucket-{uuid4().hex[:12]}")
        boto3.client("s3", endpoint_url=server.endpoint).create_bucket(Bucket=server.bucket)
        yield server
