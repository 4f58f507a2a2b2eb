"""Labels of a bookie: short texts by name, such as its rack, zone and host.

An operator gives them. No decision rests on them; the failure domain is a field of its own.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import Any

from bkspark.protocol import bounds

_NAME = re.compile(rf"[a-z][a-z0-9_.-]{{0,{bounds.LABEL_NAME_LENGTH_MAX - 1}}}")
_UNSHOWABLE = ("Cc", "Cs", "Zl", "Zp")
"""Categories of control characters, half characters, and separators of lines."""

Labels = Mapping[str, str]


def require_labels(given: Mapping[Any, Any]) -> Labels:
    """Return ``given`` in the order of the names.

    Raises:
        ValueError: a bookie cannot have these labels; says why.
    """
    if len(given) > bounds.LABELS_MAX:
        raise ValueError(f"{len(given)} labels are more than {bounds.LABELS_MAX}")
    for name, value in given.items():
        require_label_name(name)
        if not isinstance(value, str) or not _is_value(value):
            raise ValueError(
                f"the value of label {name} is not a text of at most "
                f"{bounds.LABEL_VALUE_LENGTH_MAX} characters without control characters"
            )
    return dict(sorted(given.items()))


def require_label_name(name: object) -> None:
    """Return if ``name`` may be a label's.

    Raises:
        ValueError: it may not.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.80} is not the name of a label")


def labels_after(before: Labels, given: Labels, removed: Collection[str]) -> Labels:
    """Return the labels after a change; raises like ``require_labels``."""
    kept = {name: value for name, value in before.items() if name not in removed}
    return require_labels(kept | dict(given))


def _is_value(value: str) -> bool:
    return len(value) <= bounds.LABEL_VALUE_LENGTH_MAX and not any(
        unicodedata.category(letter) in _UNSHOWABLE for letter in value
    )
