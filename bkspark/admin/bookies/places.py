"""What lies where a bookie is, or is to be; every question has its time."""

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
    """The answer of what is at ``address``, also if it hung lately.

    Raises:
        BookieUnavailableError: there is none in time. And whatever the question raises.
    """
    return BookieClient(address, is_patient=True).ask(question, bookie_client.ANSWER_SECONDS)


def cookie_at(address: BookieAddress) -> bytes | None:
    """The cookie there, whosever it is; None if there surely is none.

    Raises:
        BookieUnavailableError: it cannot be told.
    """
    return ask(address, storage(address.url).read_cookie)


def own_cookie(address: BookieAddress) -> bytes:
    """The cookie there, which is the one that ``address`` names.

    Raises:
        BookieUnavailableError: it is another one, or none, or it cannot be told.
    """

    def read() -> bytes:
        with open_bookie(address).open_root() as root:
            return root.read(COOKIE) or b""

    return ask(address, read)


def are_one(one: BookieAddress, other: BookieAddress) -> bool:
    """Whether two places that show one cookie are the same storage, by two names.

    What is made at either shows at the other then. Nothing is left there.

    Raises:
        BookieUnavailableError: it cannot be told.
    """
    try:
        return _shows(one, other)
    except BookieUnavailableError:
        return _shows(other, one)


def _shows(there: BookieAddress, made: BookieAddress) -> bool:
    """Whether what is made at one place is ``there``."""
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
