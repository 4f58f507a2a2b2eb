"""Fan-out: each bookie is asked one thing at a time, and whoever has it answers in time."""

import threading
import time

import pytest

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster import fan_out
from bkspark.cluster.bookie_client import BookieClient, NoAnswerError
from bkspark.cluster.fan_out import FanOut, Timeouts, ask_all
from bkspark.cluster.hanging import HangMemory
from bkspark.errors import BookieUnavailableError, CorruptDataError
from bkspark.ledger.handles.settings import ReaderSettings
from bkspark.progress import Progress
from bkspark.protocol.ledger.metadata import Member

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


class Reader:
    """Asks one by one, or all at once."""

    def __init__(self, settings=None, heartbeat=lambda _member: 0):
        self.settings = settings or ReaderSettings()
        self.fan_out = FanOut(lambda member: BookieClient(find(member)), heartbeat=heartbeat)
        self.faults = self.fan_out.faults

    def one_by_one(self, members, ask, accept):
        return self._ask(members, ask, accept, self.settings.one_by_one)

    def all_at_once(self, members, ask, accept, timeout=None):
        return self._ask(members, ask, accept, self.settings.all_at_once.at_most(timeout))

    def _ask(self, members, ask, accept, timeouts):
        heard = []

        def is_usable(member, value):
            heard.append(accept(member, value))
            return heard[-1]

        self.fan_out.ask(members, ask, timeouts, is_usable=is_usable, enough=1)
        return any(heard)


def reader(**settings):
    return Reader(ReaderSettings(**settings))


def test_the_first_in_order_is_asked_and_no_other():
    bookies, heard = Bookies(), Heard(1)
    assert reader().one_by_one([B, A, C], bookies.ask, heard.accept)
    assert (bookies.asked, heard.names) == ([B], ["b"])


def test_a_bookie_is_asked_one_thing_at_a_time():
    bookies, asker = Bookies(A), reader(speculative_read_ms=10)
    assert asker.one_by_one([A, B], bookies.ask, Heard(1).accept)
    assert asker.one_by_one([A, B], bookies.ask, Heard(1).accept)
    assert bookies.asked == [A, B, B]
    threading.Timer(0.1, bookies.let_go).start()
    heard = Heard(2)
    assert asker.one_by_one([A, B], bookies.ask, heard.accept)
    assert heard.names == ["b", "a"]
    assert bookies.asked == [A, B, B, B, A]
    assert bookies.at_once == 1


def test_all_wait_for_one_that_is_busy_if_it_is_needed():
    bookies, asker = Bookies(A), reader(speculative_read_ms=10)
    assert asker.one_by_one([A, B], bookies.ask, Heard(1).accept)
    heard = Heard(2)
    asker.all_at_once([A, B, C], bookies.ask, heard.accept)
    assert sorted(heard.names) == ["b", "c"]
    threading.Timer(0.1, bookies.let_go).start()
    heard = Heard(3)
    asker.all_at_once([A, B, C], bookies.ask, heard.accept)
    assert heard.names[-1] == "a"
    assert bookies.at_once == 1


def test_a_bookie_that_hangs_is_given_up_and_named():
    bookies, asker = Bookies(A, B), reader(read_timeout_seconds=0.1)
    assert not asker.one_by_one([A, B], bookies.ask, Heard(1).accept)
    assert set(asker.faults) == {A, B}
    assert "gave no answer within 0.1 s" in asker.faults[A]
    bookies.let_go()
    assert asker.one_by_one([A], bookies.ask, Heard(1).accept)
    assert set(asker.faults) == {B}


def test_one_that_gets_on_is_waited_for():
    """A long walk is no hanging."""
    steps = [0]

    def walk(member):
        for _ in range(20):
            time.sleep(0.05)
            steps[0] += 1
        return member.bookie_id

    settings = ReaderSettings(read_timeout_seconds=0.4)
    asker = Reader(settings, lambda _member: steps[0])
    heard = Heard(1)
    assert asker.one_by_one([A], walk, heard.accept)
    assert asker.faults == {}


def test_a_shorter_time_may_be_given():
    bookies, asker = Bookies(A), reader()
    watch = Stopwatch()
    asker.all_at_once([A], bookies.ask, Heard(1).accept, timeout=0.1)
    assert watch.seconds < 5
    assert not environment.the_one(HangMemory).hangs(find(A))
    bookies.let_go()


def test_what_is_no_matter_of_the_bookie_is_raised():
    def ask(member):
        if member == A:
            raise BookieUnavailableError("away")
        raise ZeroDivisionError

    asker = reader()
    with pytest.raises(ZeroDivisionError):
        asker.one_by_one([A, B], ask, Heard(1).accept)
    assert asker.faults == {A: "away"}


# --- all at once, an answer of each --------------------------------------------------------------


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


def bad():
    raise CorruptDataError("bad")


def test_who_are_asked_together_have_their_time_together(gate):
    """Many that hang cost no more than one, and who has answered is told apart from them."""
    lines = [BookieClient(find(Member(str(number), "1" * 32))) for number in range(9)]
    watch = Stopwatch()
    ends = ask_all(dict.fromkeys(lines[:8], lambda: gate.wait(60)), Timeouts(0.5))
    assert watch.seconds < 4 * 0.5
    for line in lines[:8]:
        assert isinstance(ends[line], NoAnswerError)
        assert "gave no answer within 0.5 s" in str(ends[line])
    ends = ask_all(dict.fromkeys(lines, lambda: True), Timeouts(10))
    assert "still does not answer" in str(ends[lines[0]])
    assert ends[lines[8]] is True


def test_an_error_is_raised_when_all_have_ended(gate):
    """So that nobody of those who were asked is at work behind the asker's back."""
    begun, ended = threading.Event(), threading.Event()

    def slow():
        begun.set()
        gate.wait(60)
        ended.set()

    def fail():
        begun.wait(60)
        threading.Timer(0.05, gate.set).start()
        bad()

    with pytest.raises(CorruptDataError):
        ask_all({BookieClient(find(A)): fail, BookieClient(find(B)): slow}, Timeouts(60), enough=2)
    assert ended.is_set()


def test_of_several_errors_that_of_the_first_is_raised(gate):
    def late():
        gate.wait(60)
        raise ZeroDivisionError

    def early():
        threading.Timer(0.05, gate.set).start()
        bad()

    with pytest.raises(ZeroDivisionError):
        ask_all({BookieClient(find(A)): late, BookieClient(find(B)): early}, Timeouts(10))


def test_who_is_silent_is_remembered_whatever_another_one_raises(gate):
    questions = {BookieClient(find(A)): bad, BookieClient(find(B)): lambda: gate.wait(60)}
    with pytest.raises(CorruptDataError):
        ask_all(questions, Timeouts(0.05))
    assert environment.the_one(HangMemory).hangs(find(B))


def test_those_that_are_needed_have_more_time(gate):
    lines = {BookieClient(find(member)): lambda: gate.wait(60) for member in (A, B)}
    lines[BookieClient(find(C))] = lambda: True
    threading.Timer(0.4, gate.set).start()
    assert all(end is True for end in ask_all(lines, Timeouts(0.2, 100), needed=3).values())


def test_nobody_who_is_not_needed_has_more_time(gate):
    lines = {BookieClient(find(A)): lambda: gate.wait(5), BookieClient(find(B)): lambda: True}
    first, second = ask_all(lines, Timeouts(0.05, 10**6), needed=1).values()
    assert (str(first), second) == ("bookie a gave no answer within 0.05 s", True)


def test_when_there_are_enough_the_others_have_little_time(gate):
    lines = {BookieClient(find(A)): lambda: gate.wait(60), BookieClient(find(B)): lambda: True}
    first, second = ask_all(lines, Timeouts(60, grace_seconds=0.05), enough=1).values()
    assert (isinstance(first, NoAnswerError), second) == (True, True)
    assert not environment.the_one(HangMemory).hangs(find(A))  # it has had little time


def test_answers_that_are_not_usable_are_not_enough(gate):
    def is_usable(value):
        if not value:  # by now B has answered
            threading.Timer(0.3, gate.set).start()
        return value

    lines = {BookieClient(find(A)): lambda: gate.wait(60), BookieClient(find(B)): lambda: False}
    ends = ask_all(lines, Timeouts(60, grace_seconds=0.0), is_usable=is_usable, enough=1)
    assert list(ends.values()) == [True, False]


def test_whoever_asks_is_told_who_is_late(gate):
    fan_out, late = FanOut(lambda member: BookieClient(find(member))), []

    def ask(member):
        return member == B or gate.wait(60)

    def on_late(members):
        late.append(members)
        if len(late) == 3:
            gate.set()

    ends = fan_out.ask([A, B], ask, Timeouts(0.05, 10**6), needed=2, on_late=on_late)
    assert ends == {A: True, B: True}
    assert late[:3] == [[A]] * 3


def test_who_is_interrupted_leaves_no_question_behind_that_nobody_knows_of(gate):
    def interrupt(_value):
        raise KeyboardInterrupt

    lines = {BookieClient(find(A)): lambda: gate.wait(60), BookieClient(find(B)): lambda: True}
    with pytest.raises(KeyboardInterrupt):
        ask_all(lines, Timeouts(60), is_usable=interrupt, enough=2)
    assert len(environment.the_one(HangMemory)._owed[find(A)]) == 1


class Signs:
    """Stands in for ``Patience``: each question gets on so often."""

    left = 0

    def __init__(self, _progress: Progress) -> None:
        self.looks_at_half_time = False

    def gets_on(self) -> bool:
        Signs.left -= 1
        return Signs.left >= 0


def test_a_bookie_that_gets_on_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    bookies = Bookies(A)
    Signs.left = 5
    monkeypatch.setattr(fan_out, "Patience", Signs)

    def gets_on(signs: Signs) -> bool:
        Signs.left -= 1
        if not Signs.left:
            bookies.let_go()
        return True

    monkeypatch.setattr(Signs, "gets_on", gets_on)
    asking = FanOut(lambda member: BookieClient(find(member)))
    assert asking.ask([A], bookies.ask, Timeouts(0.02)) == {A: "a"}


def test_whoever_has_less_time_than_a_bookie_waits_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bookies = Bookies(A)
    monkeypatch.setattr(fan_out, "Patience", Signs)
    Signs.left = 10**6
    asking = FanOut(lambda member: BookieClient(find(member)))
    answers = asking.ask([A], bookies.ask, Timeouts(60).at_most(0.05))
    assert isinstance(answers[A], BookieUnavailableError)
    bookies.let_go()


def test_a_member_whose_disk_is_known_late_has_its_time_once_more():
    """The first question of a process to a bookie finds out on which disk the bookie is."""
    progress = Progress()
    waited = fan_out._Waited(since=0.0, until=10.0, heartbeat=0)
    waited.patience = fan_out.Patience(progress)
    progress.device = 7
    assert waited.gets_on(0)
    waited.begin_anew(10.0, Timeouts(10.0))
    assert (waited.looks_at, waited.until) == (15.0, 20.0)
    waited.look()
    assert not waited.gets_on(0)


# --- bookies in files, in a row ------------------------------------------------------------------


def threads_asked(members, gate=None, *, only_reads=True):
    """The threads that asked ``members``, by member; with a gate they wait for each other."""
    idents = {}

    def ask(member):
        idents[member] = threading.get_ident()
        return gate is None or gate.wait(60) >= 0

    asked = FanOut(lambda member: BookieClient(find(member)), only_reads=only_reads)
    assert all(answer is True for answer in asked.ask(members, ask, Timeouts(60)).values())
    return idents


def test_bookies_in_files_are_asked_by_one_thread(monkeypatch):
    monkeypatch.setattr(environment, "SPREAD_SECONDS", 60)
    assert len(set(threads_asked([A, B, C]).values())) == 1


def test_bookies_in_buckets_are_asked_beside_each_other(monkeypatch):
    monkeypatch.setattr(environment, "SPREAD_SECONDS", 60)
    monkeypatch.setattr(fan_out, "is_billed", lambda url: url == find(A).url)
    assert len(set(threads_asked([A, B, C], threading.Barrier(3)).values())) == 3


def test_bookies_that_store_are_asked_beside_each_other(monkeypatch):
    monkeypatch.setattr(environment, "SPREAD_SECONDS", 60)
    gate = threading.Barrier(3)
    assert len(set(threads_asked([A, B, C], gate, only_reads=False).values())) == 3


def test_bookies_that_take_long_are_asked_beside_each_other():
    assert len(set(threads_asked([A, B, C], threading.Barrier(3)).values())) == 3


def test_bookies_not_asked_yet_are_asked_although_their_answers_are_not_awaited(gate, monkeypatch):
    """Else the process would remember that they owe an answer."""
    monkeypatch.setattr(environment, "SPREAD_SECONDS", 60)
    clients = {member: BookieClient(find(member)) for member in (A, B, C)}
    begun = threading.Event()

    def ask(member):
        if member == A:
            return True
        begun.set()
        return member == C or gate.wait(60)

    def is_usable(_member, _value):
        return begun.wait(60)

    asked = FanOut(clients.__getitem__, only_reads=True)
    asked.ask([A, B, C], ask, Timeouts(60, grace_seconds=0.0), is_usable=is_usable, enough=1)
    assert clients[C].has_answered_within(60)
    assert not clients[B].has_answered_within(0)
