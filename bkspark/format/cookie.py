"""The cookie: the file that identifies a directory as a certain bookie.

Every use of a bookie begins with its cookie. A wiped directory that is initialised again gets
another incarnation, and so is another bookie, whose absences prove nothing (RB-09, RB-10, H18). The
same path on another machine, or an empty mount point, is no bookie either (H40).
"""

from dataclasses import dataclass

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import layout, strict_json
from bkspark.format.cluster import take_group

KIND = "cookie"


@dataclass(frozen=True, slots=True)
class Cookie:
    """Identity of a bookie.

    Attributes:
        cluster_id, incarnation: random, 32 hex digits.
        created_ms: for people only.
        group: of the cluster, as in its record; None for a single user.
    """

    cluster_id: str
    bookie_id: str
    incarnation: str
    created_ms: int = 0
    group: int | None = None


def encode(cookie: Cookie) -> bytes:
    """Return the bytes of the file ``layout.COOKIE``."""
    value = {
        "cluster": cookie.cluster_id,
        "bookie": cookie.bookie_id,
        "incarnation": cookie.incarnation,
        "created_ms": cookie.created_ms,
        "group": cookie.group,
    }
    return strict_json.encode(KIND, layout.COOKIE, value)


def decode(data: bytes) -> Cookie:
    """Decode the cookie in ``data``.

    Raises:
        CorruptDataError: damaged.
    """
    fields = strict_json.decode(KIND, layout.COOKIE, data)
    try:
        return Cookie(
            layout.token(fields.take("cluster", str)),
            layout.bookie_id(fields.take("bookie", str)),
            layout.token(fields.take("incarnation", str)),
            fields.take("created_ms", int),
            take_group(fields),
        )
    except InvalidRequestError as error:
        raise CorruptDataError(f"{fields.what} is malformed") from error
