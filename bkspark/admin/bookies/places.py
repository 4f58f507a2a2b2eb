"""Examine the place of a bookie; every question has a time limit."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie, storage
from bkspark.cluster import bookie_client
from bkspark.cluster.bookie_client import BookieClient
from bkspark.errors import BookieUnavailableError
from bkspark.format.layout import COOKIE

T = TypeVar("T")


def ask(address: BookieAddress, question: Callable[[], T]) -> T:
    """Ask the storage at ``address``, even if it hung recently.

    Raises:
        BookieUnavailableError: no answer in time. Errors of the question are raised too.
    """
    return BookieClient(address, is_patient=True).ask(question, bookie_client.ANSWER_SECONDS)


def cookie_at(address: BookieAddress) -> bytes | None:
    """Return any cookie at the place; None if there surely is no cookie.

    Raises:
        BookieUnavailableError: no definite answer.
    """
    return ask(address, storage(address.place).read_cookie)


def own_cookie(address: BookieAddress) -> bytes:
    """Return the cookie at the place, checked against ``address``.

    Raises:
        BookieUnavailableError: another cookie, no cookie, or no definite answer.
    """

    def read() -> bytes:
        with open_bookie(address).open_root() as root:
            return root.read(COOKIE) or b""

    return ask(address, read)


def are_one(one: BookieAddress, other: BookieAddress) -> bool:
    """Return whether two places showing the same cookie are the same storage.

    A file created at one place shows at the other in this case. The file is removed again.

    Raises:
        BookieUnavailableError: no definite answer.
    """
    try:
        return _shows(one, other)
    except BookieUnavailableError:
        return _shows(other, one)


def _shows(there: BookieAddress, made: BookieAddress) -> bool:
    """Return whether a file created at ``made`` shows at ``there``."""
    name = f"probe-{environment.token()}"

    def look() -> bool:
        with open_bookie(made).open_root() as root:
            root.put_new(name, b"")
            try:
                with open_bookie(there).open_root() as other:
                    return other.size(name) is not None
            finally:
                with suppress(BookieUnavailableError):
                    root.delete(name)

    return ask(made, look)
