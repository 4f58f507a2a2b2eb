"""R19 on S3: what makes a permission, or a journal, is sent once, as counted on the wire.

A second request would make it while the first is still on its way; lost since, it would come back
by the first, and a bookie that lost what it had would look as if it never had more.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bkspark.bookie.contract import Bookie, BookieRoot
from bkspark.bookie.object_store import records_folder
from bkspark.cluster.enlisting import Joining, enlist
from bkspark.errors import BookieUnavailableError
from bkspark.testing.bookie_place import JOURNAL, MARKER
from tests.kit.s3 import S3Proxy

MAKERS: dict[str, tuple[str, Callable[[BookieRoot], object]]] = {
    "permission": (MARKER, lambda root: root.put_new(MARKER, b"", once=True)),
    "journal": (JOURNAL, lambda root: root.open_journal(JOURNAL)),
}
TROUBLE: dict[str, dict[str, Any]] = {
    "reset": {"status": 0},
    "reset-and-late": {"status": 0, "is_late": True},
    "busy": {"status": 503, "code": "SlowDown"},
    "error": {"status": 500},
    "conflict": {"status": 409, "code": "ConditionalRequestConflict"},
}


@pytest.fixture(params=MAKERS)
def maker(request: pytest.FixtureRequest) -> tuple[str, Callable[[BookieRoot], object]]:
    return MAKERS[request.param]


@pytest.mark.parametrize("trouble", TROUBLE)
def test_one_request_and_no_other(
    root: BookieRoot, proxy: S3Proxy, maker: Any, trouble: str
) -> None:
    """The next one would succeed. The connection was used before, as it always is."""
    name, make = maker
    proxy.fail("PUT", times=1, **TROUBLE[trouble])
    with pytest.raises(BookieUnavailableError):
        make(root)
    assert requests(proxy, name) == [0]


def test_an_answer_that_got_lost_is_looked_for(
    root: BookieRoot, proxy: S3Proxy, maker: Any
) -> None:
    """There it is, and the only request that was made is over."""
    name, make = maker
    proxy.fail("PUT", times=1, reaches_store=True)
    assert make(root)
    assert requests(proxy, name) == [200]


def test_what_is_late_makes_anew_only_what_nobody_counts_on(
    s3_bookie: Bookie, root: BookieRoot, proxy: S3Proxy, back_door: Any
) -> None:
    """The bookie is not enlisted, so what it loses is missed by nobody."""
    with late(proxy):
        enlisted = enlist({0: s3_bookie.address}, Joining(MARKER)).bookie_ids
    was_there = root.size(MARKER) is not None
    back_door.remove(s3_bookie.address.url, MARKER)
    assert proxy.deliver() == [200]
    assert root.size(MARKER) == 0
    assert (enlisted, was_there) == (frozenset(), False)


def test_the_first_record_of_a_journal_is_sent_once(root: BookieRoot, proxy: S3Proxy) -> None:
    """It shows that the journal was begun; what comes behind it is sent again where that helps."""
    journal = root.open_journal(JOURNAL)
    proxy.fail("PUT", times=1, status=503, code="SlowDown")
    with pytest.raises(BookieUnavailableError):
        journal.append([b"header"])
    assert requests(proxy, f"{records_folder(JOURNAL)}/") == [0]
    other = root.open_journal(f"{JOURNAL}2")
    other.append([b"header"])
    proxy.fail("PUT", times=1, status=503, code="SlowDown")
    other.append([b"record"])
    assert requests(proxy, f"{records_folder(JOURNAL)}2/{1:016x}") == [0, 200]


@contextmanager
def late(proxy: S3Proxy) -> Iterator[None]:
    """The next request that makes something is reset, and on its way still."""
    proxy.fail("PUT", times=1, is_late=True)
    yield
    assert not any(fault.times for fault in proxy.faults)


def requests(proxy: S3Proxy, name: str) -> list[int]:
    """What the store did with each request that makes ``name``."""
    return [status for method, path, status in proxy.seen if method == "PUT" and name in path]
