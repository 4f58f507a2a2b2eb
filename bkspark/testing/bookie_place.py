"""Fixtures of the conformance tests of bookies: a place, and a bookie in the place.

A backend supplies an empty ``BookiePlace`` with a back door around the contract, through which the
tests do what no bookie does: swap a file, cut it, lose all files.
"""

from typing import Protocol

import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie, BookieAddress
from bkspark.format import cookie as cookie_format
from bkspark.format import layout
from bkspark.format.cookie import Cookie
from bkspark.testing.bookie_rivals import Parallel

CLUSTER, OTHER_CLUSTER = "c" * 32, "d" * 32
INCARNATION, OTHER_INCARNATION = "1" * 32, "2" * 32
LEDGER = 0x1234
TOKEN = "b" * 32
MARKER = layout.term_marker(LEDGER, 1)
ENTRIES = layout.entry_log(LEDGER, "a" * 32, 0)
JOURNAL = layout.journal(LEDGER, 1, TOKEN)


class BookiePlace(Protocol):
    """The future place of a bookie, with a back door."""

    @property
    def url(self) -> str: ...

    def get(self, name: str) -> bytes | None:
        """The bytes under ``name``."""
        ...

    def set(self, name: str, data: bytes) -> None:
        """Replace ``name`` by a new file with ``data``."""
        ...

    def truncate(self, name: str, size: int) -> None:
        """Cut the file now under ``name``, without a replacement."""
        ...

    def names(self) -> list[str]:
        """The names of all files, temporary files too."""
        ...

    def wipe(self) -> None:
        """Remove all files, but leave the place."""
        ...

    def move_away(self) -> None:
        """Move all files away from ``url``; open files stay open."""
        ...


def address_of(place: BookiePlace, **changes: str) -> BookieAddress:
    """The address of the bookie with ``a_cookie`` in ``place``."""
    values = {"bookie_id": "b1", "incarnation": INCARNATION, "cluster_id": CLUSTER} | changes
    return BookieAddress(**values, url=place.url)


def a_cookie(cluster: str = CLUSTER, bookie: str = "b1", incarnation: str = INCARNATION) -> bytes:
    return cookie_format.encode(Cookie(cluster, bookie, incarnation))


class BookieFixtures:
    """A place of the backend, and the bookie in the place."""

    PARALLEL: Parallel = "processes"

    @pytest.fixture
    def place(self) -> BookiePlace:
        raise NotImplementedError("a backend overrides this fixture")

    @pytest.fixture
    def bookie(self, place: BookiePlace) -> Bookie:
        uri.storage(place.url).format(a_cookie())
        return uri.open_bookie(address_of(place))
