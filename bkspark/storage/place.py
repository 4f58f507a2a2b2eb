"""Addresses in an object store: ``s3://bucket/prefix``, and no other form.

The rule: an address names a place. Credentials, the endpoint and every other setting come from the
usual AWS environment and from fsspec's configuration. So no setting appears in an address, in a
pickle or in the metadata store. Messages show the endpoint's host and port, and no other setting.

Stores with S3's protocol are the only kind so far. A kind is admitted only if its client creates an
object atomically if absent: for most protocols fsspec does a look-up and then a write, so two
writers can both win.
"""

import re
from dataclasses import dataclass

from bkspark.errors import InvalidRequestError
from bkspark.storage.shown import shown_url

# Neither "." nor "..", and no hidden part: such names belong to the store, see ``objects``.
_PART = r"[A-Za-z0-9_][A-Za-z0-9._=+-]*"
_URL = re.compile(rf"s3://([a-z0-9][a-z0-9.-]{{1,61}}[a-z0-9])((?:/{_PART})*)/?")
# S3's limit is 1024 bytes; the longest name below a place takes some 150.
_PREFIX_LENGTH_MAX = 512


@dataclass(frozen=True, slots=True)
class S3Place:
    """A prefix in a bucket.

    Attributes:
        prefix: without slashes at its ends; "" is the whole bucket.
    """

    bucket: str
    prefix: str

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def key(self, name: str) -> str:
        """The key of the object called ``name`` here."""
        return f"{self.prefix}/{name}" if self.prefix else name


def parse(url: str) -> S3Place:
    """The place named by ``url``.

    Raises:
        InvalidRequestError: no such address, or more than bucket and prefix.
    """
    found = _URL.fullmatch(url)
    if found is None or len(found[2]) > _PREFIX_LENGTH_MAX:
        raise InvalidRequestError(
            f"{shown_url(url)!r} does not name a place in an S3 bucket",
            hint="write s3://bucket/prefix; the endpoint comes from AWS_ENDPOINT_URL, "
            "credentials from the AWS environment",
        )
    return S3Place(found[1], found[2].strip("/"))
