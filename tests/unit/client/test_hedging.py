"""Asking bookies: one question at a time each, an answer in time from whoever has it."""

import threading
import time

import pytest

from bkspark.bookie.contract import BookieAddress
from bkspark.client import trouble
from bkspark.client.handles.hedging import Asker, ReaderSettings
from bkspark.errors import BookieUnavailableError
from bkspark.protocol.ledger import Member

from ...stopwatch import Stopwatch  # noqa: TID252

A, B, C = (Member(name, "1" * 32) for name in "abc")


def find(member):
    return BookieAddress(member.bookie_id, member.incarnation, "c" * 32, "memory://none")


class Bookies:
    """Answers with a bookie's name; some wait until they are let go."""

    def __init__(self, *held):
        self.held = set(held)
        self.asked = []
        self.at_once = 0
        self._go = threading.Event()
        self._lock = threading.Lock()
        self._busy = {}

    def let_go(self):
        self._go.set()

    def ask(self, member):
        with self._lock:
            self.asked.append(member)
            self._busy[member] = self._busy.get(member, 0) + 1
            self.at_once = max(self.at_once, self._busy[member])
        if member in self.held:
            self._go.wait(120)
        with self._lock:
            self._busy[member] -= 1
        return member.bookie_id


class Heard:
    """Keeps the answers; ``enough`` of them are enough."""

    def __init__(self, enough):
        self.names = []
        self._enough = enough

    def accept(self, _member, name):
        self.names.append(name)
        return len(self.names) >= self._enough


def asker(**settings):
    return Asker(find, ReaderSettings(**settings))


def test_the_first_in_order_is_asked_and_no_other():
    bookies, heard = Bookies(), Heard(1)
    assert asker().until_enough([B, A, C], bookies.ask, heard.accept)
    assert (bookies.asked, heard.names) == ([B], ["b"])


def test_a_bookie_is_asked_one_thing_at_a_time():
    bookies, asking = Bookies(A), asker(speculative_read_ms=10)
    assert asking.until_enough([A, B], bookies.ask, Heard(1).accept)
    assert asking.until_enough([A, B], bookies.ask, Heard(1).accept)
    assert bookies.asked == [A, B, B]
    threading.Timer(0.1, bookies.let_go).start()
    heard = Heard(2)
    assert asking.until_enough([A, B], bookies.ask, heard.accept)
    assert heard.names == ["b", "a"]
    assert bookies.asked == [A, B, B, B, A]
    assert bookies.at_once == 1


def test_everybody_waits_for_one_that_is_busy_if_it_is_needed():
    bookies, asking = Bookies(A), asker(speculative_read_ms=10)
    assert asking.until_enough([A, B], bookies.ask, Heard(1).accept)
    heard = Heard(2)
    asking.everybody([A, B, C], bookies.ask, heard.accept)
    assert sorted(heard.names) == ["b", "c"]
    threading.Timer(0.1, bookies.let_go).start()
    heard = Heard(3)
    asking.everybody([A, B, C], bookies.ask, heard.accept)
    assert heard.names[-1] == "a"
    assert bookies.at_once == 1


def test_a_bookie_that_hangs_is_given_up_and_named():
    bookies, asking = Bookies(A, B), asker(read_timeout_seconds=0.1)
    assert not asking.until_enough([A, B], bookies.ask, Heard(1).accept)
    assert set(asking.faults) == {A, B}
    assert "gave no answer within 0.1 s" in asking.faults[A]
    bookies.let_go()
    assert asking.until_enough([A], bookies.ask, Heard(1).accept)
    assert set(asking.faults) == {B}


def test_one_that_gets_on_is_waited_for():
    """A long walk is no hanging."""
    steps = [0]

    def walk(member):
        for _ in range(20):
            time.sleep(0.05)
            steps[0] += 1
        return member.bookie_id

    settings = ReaderSettings(read_timeout_seconds=0.4)
    asking = Asker(find, settings, progress=lambda _member: steps[0])
    heard = Heard(1)
    assert asking.until_enough([A], walk, heard.accept)
    assert asking.faults == {}


def test_a_shorter_time_may_be_given():
    bookies, asking = Bookies(A), asker()
    watch = Stopwatch()
    asking.everybody([A], bookies.ask, Heard(1).accept, timeout=0.1)
    assert watch.seconds < 5
    assert not trouble.THIS_PROCESS.hangs(find(A))
    bookies.let_go()


def test_what_is_no_matter_of_the_bookie_is_raised():
    def ask(member):
        if member == A:
            raise BookieUnavailableError("away")
        raise ZeroDivisionError

    asking = asker()
    with pytest.raises(ZeroDivisionError):
        asking.until_enough([A, B], ask, Heard(1).accept)
    assert asking.faults == {A: "away"}
