"""One S3 server for each file of tests that needs one."""

from collections.abc import Iterator

import pytest

from bkspark.testing.s3 import S3Server, s3_server


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server
