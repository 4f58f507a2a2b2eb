"""Tries a store before the first use.

The rule: **a store that ignores a condition is refused.** Some stores with S3's protocol accept
``If-None-Match: *`` and overwrite all the same; two writers would then both believe to have won.
"""

from bkspark import environment
from bkspark.errors import InvalidRequestError
from bkspark.storage.objects import Objects
from bkspark.storage.upload import Upload


def require_conditional_creates(objects: Objects) -> None:
    """Create an object twice, by both kinds of request, and remove the object.

    Raises:
        InvalidRequestError: a second create was not refused, or the first was not visible at once.
        S3Doubt: the store gives no certain answer, or does not know the condition.
    """
    # Seldom left behind, and then hidden: names that begin with a dot belong to this layer.
    name = f".probe-{environment.token()}"
    is_absent = objects.read(name) is None
    try:
        first = objects.create(name, b"first")
        second = objects.create(name, b"second")
        upload = Upload(objects, name)
        upload.send(b"third")
        third = upload.finish()
        upload.discard()
        found = objects.read(name)
    finally:
        objects.delete(name)
    is_kept = found is not None and found.data == b"first" and found.is_by(first)
    if not is_absent or first is None or second is not None or third is not None or not is_kept:
        raise InvalidRequestError(
            f"the store at {objects.place.url} overwrites objects, and must create them only once",
            hint="the store must support If-None-Match on PutObject and on CompleteMultipartUpload",
        )
