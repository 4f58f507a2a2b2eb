"""The bound of each number given by a user or stored in a record.

Options, commands, Python arguments and codecs take their bounds from here. So every accepted number
can be stored, and every stored number can be read.
"""

import json
from collections.abc import Collection
from math import isfinite

NUMBER_MIN, NUMBER_MAX = -(2**63), 2**63 - 1
"""The range of a number in a record: 64 bits."""

SECONDS_MAX = 100 * 366 * 86_400.0
"""A longer time means for ever. Waits of every platform, and times in milliseconds, accept this
value.
"""

TRANSACTION_VERSION_MAX = NUMBER_MAX
APPLICATION_ID_BYTES_MAX = 1_024
"""Bytes of a ``txnAppId`` as JSON writes it; each record of a log may repeat the name."""

OFFSET_MAX = NUMBER_MAX
LIMIT_MAX = NUMBER_MAX
"""Bound of a limit of entries or bytes. A higher number means no limit."""

TRIGGER_MAX = 2**62
TASK_BYTES_MAX = 2**40
TASKS_MAX = 100_000
BLOCK_BYTES_MAX = 2**30
QUORUM_SIZE_MAX = 2**16

LOG_RECORD_BYTES_MAX = 768 * 2**10
"""Bytes of a log's record before a write begins, for every store: ZooKeeper takes some 1,000 kB,
and other writers may change the record meanwhile.
"""

SETTINGS_BYTES_MAX = 512 * 2**10
"""Bytes of the schema and the custom metadata of a new ledger: its record grows with its fragments.
"""

TABLE_URL_LENGTH_MAX = 4_096
"""Characters of the URL of a tier's table, and of the table's id."""

LABELS_MAX = 32
LABEL_NAME_LENGTH_MAX = 63
LABEL_VALUE_LENGTH_MAX = 255
"""Labels of a bookie: how many, and the characters of a name and of a value."""

STORE_NAME_LENGTH_MAX = 63
"""Characters of the name of an object store, which the records of its bookies give."""

_DIGITS_MAX = 19


def is_stored_number(value: object) -> bool:
    """Whether ``value`` is a whole number within the bounds of a record; False for a bool."""
    return type(value) is int and NUMBER_MIN <= value <= NUMBER_MAX


def are_stored_numbers(values: Collection[int]) -> bool:
    """Whether all ``values`` (at least one) are stored numbers."""
    is_whole = set(map(type, values)) == {int}
    return is_whole and min(values) >= NUMBER_MIN and max(values) <= NUMBER_MAX


def whole(text: str) -> int:
    """Return the number spelled by ``text`` in digits, with or without a minus sign.

    Raises:
        ValueError: ``text`` is no such number (for example has a blank), or has too many digits.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > _DIGITS_MAX:
        raise ValueError(f"not a whole number: {text[:40]!r}")
    return int(text)


def json_bytes(text: object) -> int:
    """Return the size of ``text`` as JSON writes it; 0 if not a text, or with half a character."""
    if not isinstance(text, str):
        return 0
    try:
        text.encode()
    except UnicodeEncodeError:
        return 0
    return len(json.dumps(text)) - 2


def limit(number: int) -> int | None:
    """Return ``number``, or None (no limit) if too large to be a limit."""
    return None if number > LIMIT_MAX else number


def time_limit(seconds: float) -> float | None:
    """Return ``seconds``, or None (no limit) above ``SECONDS_MAX``."""
    return None if seconds > SECONDS_MAX else seconds


def is_time(seconds: float) -> bool:
    """Whether ``seconds`` is a finite number >= 0."""
    return isfinite(seconds) and seconds >= 0


# --- defaults ------------------------------------------------------------------------------------
# Defaults of commands. The command line shows them without loading what uses them.


ABANDONED_AFTER_SECONDS = 7 * 86_400.0
"""A longer write may count as abandoned, and then fails at commit."""

OPEN_GRACE_SECONDS = 3600.0
"""Seconds before the unchanged OPEN ledger of a possibly living writer is recovered."""

TARGET_BYTES = 64 * 2**20
"""Payload of a ledger that is large enough not to be merged."""

THRESHOLD = 0.1
"""Distance from the mean that a rebalance leaves, as a fraction of the mean."""

SEGMENT_BYTES = 8 * 2**30
"""Payload that an offload copies by one commit: an interrupted commit is made again."""

OFFLOAD_GRACE_SECONDS = 86_400.0
"""From an offload to the first look after it, and from that to the look before the deletion."""
