"""The credentials of a ZooKeeper metadata store, given only by reference.

``BKSPARK_ZOOKEEPER_AUTH_FILE`` names a file, ``BKSPARK_ZOOKEEPER_AUTH`` is the variable itself;
either holds ``user:password`` for ZooKeeper's digest scheme. The process that connects reads them.
Where a variable would be shown, as Spark shows ``spark.executorEnv.*``, use the file.
"""

import os
from pathlib import Path

from bkspark.errors import InvalidRequestError

VARIABLE = "BKSPARK_ZOOKEEPER_AUTH"
FILE_VARIABLE = "BKSPARK_ZOOKEEPER_AUTH_FILE"
HINT = f"set {VARIABLE}, or {FILE_VARIABLE}, to the user:password that made the store"


def credentials() -> str | None:
    """``user:password``, None if neither variable is set.

    Raises:
        InvalidRequestError: both are set, or the credentials are not of this form.
    """
    literal, file = os.environ.get(VARIABLE, ""), os.environ.get(FILE_VARIABLE, "")
    if literal and file:
        raise InvalidRequestError(f"set only one of {VARIABLE} and {FILE_VARIABLE}")
    if not literal and not file:
        return None
    found = _read(file) if file else literal
    user, colon, password = found.partition(":")
    if not user or not colon or not password or not found.isprintable():
        # The value itself is not shown: it may be the password alone.
        raise InvalidRequestError(
            f"the value of {(FILE_VARIABLE if file else VARIABLE)} does not look like user:password"
        )
    return found


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        raise InvalidRequestError(
            f"{FILE_VARIABLE}={file} cannot be read: {type(error).__name__}"
        ) from None
