"""The faulty bookie fails as it is told, and then as a real one."""

import pytest

from bkspark.bookie import memory, uri
from bkspark.bookie.contract import Bookie, BookieAddress
from bkspark.errors import BookieUnavailableError
from bkspark.testing.bookie_place import ENTRIES, JOURNAL, MARKER, a_cookie
from tests.kit.faulty import Fault, Faults, FaultyBookie, Moment

URL = "memory://faulty"


@pytest.fixture
def inner() -> Bookie:
    memory.place_disk(URL, None)
    uri.storage(URL).format(a_cookie())
    return uri.open_bookie(BookieAddress("b1", "1" * 32, "c" * 32, URL))


def read(bookie: Bookie, name: str) -> bytes | None:
    with bookie.open_root() as root:
        return root.read(name)


@pytest.mark.parametrize(
    ("moment", "left"), [(Moment.BEFORE, None), (Moment.HALF, None), (Moment.AFTER, b"x")]
)
def test_put_new(inner: Bookie, moment: Moment, left: bytes | None) -> None:
    faults = Faults.at({1: Fault(moment)})
    with FaultyBookie(inner, faults).open_root() as root:
        with pytest.raises(BookieUnavailableError):
            root.put_new(MARKER, b"x")
        assert read(inner, MARKER) == left
        assert root.put_new(MARKER, b"x") == (left is None)
    assert faults.trace == [("open_root", "b1"), ("put_new", MARKER), ("put_new", MARKER)]


@pytest.mark.parametrize(
    ("moment", "left"), [(Moment.BEFORE, b"1"), (Moment.HALF, b"1ab"), (Moment.AFTER, b"1abcd")]
)
def test_append(inner: Bookie, moment: Moment, left: bytes) -> None:
    with FaultyBookie(inner, Faults.at({3: Fault(moment)})).open_root() as root:
        journal = root.open_journal(JOURNAL)
        journal.append([b"1"])
        for _ in range(2):
            with pytest.raises(BookieUnavailableError):
                journal.append([b"ab", b"cd"])
        assert journal.end == 1
        assert root.has_journal(journal)
    assert read(inner, JOURNAL) == left


@pytest.mark.parametrize(("moment", "left"), [(Moment.BEFORE, None), (Moment.AFTER, b"x")])
def test_finish(inner: Bookie, moment: Moment, left: bytes | None) -> None:
    faults = Faults.always(["finish"], Fault(moment))
    with FaultyBookie(inner, faults).open_root() as root:
        file = root.create(ENTRIES)
        file.write(b"x")
        for _ in range(2):
            with pytest.raises(BookieUnavailableError):
                file.finish()
        file.discard()
    assert read(inner, ENTRIES) == left


def test_another_error_and_one_set_of_faults_for_many(inner: Bookie) -> None:
    faults = Faults.at({1: Fault(error=KeyboardInterrupt)})
    first, second = FaultyBookie(inner, faults), FaultyBookie(inner, faults)
    with first.open_root(), pytest.raises(KeyboardInterrupt), second.open_root():
        pass
    assert faults.count == 2


def test_decide_may_act(inner: Bookie) -> None:
    disk = memory.find_disk(URL)
    assert disk is not None
    faults = Faults()
    with FaultyBookie(inner, faults).open_root() as root:
        assert root.read(MARKER) is None
        faults.decide = lambda _number, _operation, _name: disk.wipe()
        with pytest.raises(BookieUnavailableError):
            root.read(MARKER)
