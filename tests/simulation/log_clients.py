"""The clients of a log: would-be leaders, readers, those who make it shorter or end it.

Rule: as in ``clients``. A leader does what a careful user does: it opens the log, adds, rolls and
truncates; when it was fenced it asks what became of its entries, adds those again that are not in
the log, and no other (RB-35).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from random import Random

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError, LedgerClosedError, NoSuchEntryError, NoSuchLedgerError
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log.cursors import Cursor
from bkspark.log.log_handle import LogHandle
from bkspark.log.log_writer import LogWriter
from tests.kit.faulty import Crash
from tests.simulation.clients import Clients
from tests.simulation.log_oracle import LogOracle
from tests.simulation.log_told import Reading, value_of
from tests.simulation.scheduler import Scheduler, Task, Violation

LOG = "log"
DELAYS = (0, 0, 20, 40, 80, 150, 300)
FOLLOW_SECONDS = 0.2
_NEWS_SECONDS = 0.1
_ASKS = 4
_REST_SECONDS = 0.02
_ACTIONS = ("add", "add", "add", "wait", "wait", "roll", "roll", "truncate", "read", "die")


@dataclass(frozen=True)
class LeaderPlan:
    """What one leader does each time it has opened the log.

    Attributes:
        count: values to add, all in all.
        terms: how often it opens the log at most.
        roll_entries: when a ledger is full; None for never.
        explicit_lac_ms: when readers are told of the last entries; 0 for never.
        closes: whether the log's last ledger is closed at the end.
    """

    count: int
    terms: int
    actions: tuple[str, ...]
    roll_entries: int | None = None
    closes: bool = True
    explicit_lac_ms: int = 0

    @classmethod
    def drawn(cls, random: Random, *, truncates: bool, rolls: bool) -> "LeaderPlan":
        if rolls:
            return cls(5, 2, ("add", "wait") * 5, roll_entries=1, explicit_lac_ms=1)
        names = [one for one in _ACTIONS if truncates or one != "truncate"]
        return cls(
            count=random.choice((1, 2, 3, 4, 6)),
            terms=random.choice((1, 2, 3)),
            actions=("add", *(random.choice(names) for _ in range(random.randint(1, 7)))),
            roll_entries=random.choice((None, 1, 1, 2)),
            closes=random.random() < 0.6,
            explicit_lac_ms=random.choice((0, 1, 20)),
        )


class LogClients(Clients):
    """Starts clients of the log ``LOG``.

    Attributes:
        deaths: of leaders, by their own plan.
        uri: of the cluster.
    """

    def __init__(self, scheduler: Scheduler, oracle: LogOracle, random: Random, uri: str) -> None:
        super().__init__(scheduler, oracle, random, uri)
        self.log_oracle = oracle
        self.deaths = 0
        self.uri = uri

    def note(self, what: str) -> None:
        self._scheduler.note(what)

    def rest(self, seconds: float = _REST_SECONDS) -> None:
        self._scheduler.sleep(seconds)

    def lead(
        self,
        name: str,
        plan: LeaderPlan,
        *,
        must_succeed: Callable[[], str],
        delays: Sequence[int] = DELAYS,
    ) -> Task:
        """Open the log and write to it, again and again.

        Args:
            must_succeed: asked at the end: the rule by which everything must be in the log now.
        """

        def work() -> None:
            with Cluster(self._uri) as cluster:
                left = Leader(name, self, cluster, plan).lead()
            rule = must_succeed() if left else ""
            if rule:
                raise Violation(f"{name} alone cannot add {left} ({rule})")

        return self.start(name, work, delays)

    def look(
        self,
        name: str,
        *,
        looks: int = 3,
        waits_for_news: bool = False,
        must_succeed: bool = False,
    ) -> Task:
        """Read the log a few times.

        Args:
            waits_for_news: look as soon as something was acknowledged.
        """

        def work() -> None:
            with Cluster(self._uri) as cluster:
                log = LogHandle(cluster, LOG, Password())
                for _ in range(looks):
                    try:
                        self.read_log(name, log)
                    except BookKeeperError as error:
                        if must_succeed:
                            raise Violation(f"{name} cannot read: {error} (I2)") from error
                        self._scheduler.note(f"cannot read: {error.args[0]}")
                    if waits_for_news:
                        self._wait_for_news()
                    else:
                        self._scheduler.sleep(_REST_SECONDS)

        return self.start_reader(name, work)

    def start_reader(self, name: str, work: Callable[[], None]) -> Task:
        self.log_oracle.readers.add(name)
        return self.start(name, work, DELAYS)

    def _wait_for_news(self) -> None:
        acks = self.log_oracle.acks
        self._scheduler.pause(lambda: self.log_oracle.acks > acks, _NEWS_SECONDS)

    def follow(self, name: str) -> Task:
        """Read the log from its first offset on, and what is added meanwhile."""

        def work() -> None:
            with Cluster(self._uri) as cluster:
                reading = Reading.beginning(self.log_oracle.history.record)
                expected: int | None = None
                log = LogHandle(cluster, LOG, Password())
                for entry in log.follow(timeout=FOLLOW_SECONDS):
                    begin = entry.offset if expected is None else expected
                    row = (entry.offset, entry.value)
                    expected = self.log_oracle.has_read_log(name, begin, [row], reading)

        return self.start_reader(name, work)

    def truncate(self, name: str) -> Task:
        """Make the log shorter, whatever others do with it."""

        def work() -> None:
            with Cluster(self._uri) as cluster:
                for _ in range(2):
                    log = LogHandle(cluster, LOG, Password())
                    self.truncate_log(name, log, self.log_oracle.meaning_one(name))
                    self._scheduler.sleep(_REST_SECONDS)

        return self.start(name, work, DELAYS)

    def seal(self, name: str) -> Task:
        def work() -> None:
            with Cluster(self._uri) as cluster:
                with self.log_oracle.meaning_one(name):
                    LogHandle(cluster, LOG, Password()).seal()
                self._scheduler.note("has sealed the log")

        return self.start(name, work, DELAYS)

    def retain(self, name: str, looks: int = 3) -> Task:
        """Have the log keep as little as its cursors allow."""

        def work() -> None:
            with Cluster(self._uri) as cluster:
                log = LogHandle(cluster, LOG, Password())
                log.keep(max_bytes=0)
                for _ in range(looks):
                    log.retain()
                    self._scheduler.sleep(_REST_SECONDS)

        return self.start(name, work, DELAYS)

    def consume(self, name: str, cursor_name: str, *, may_miss: bool, holds: bool) -> Task:
        """Read from where a cursor is, then move it; what it has not read must stay.

        Args:
            holds: whether the cursor is opened once, and not each time.
        """

        def work() -> None:
            with Cluster(self._uri) as cluster:
                log = LogHandle(cluster, LOG, Password())
                cursor = log.cursor(cursor_name)
                for _ in range(3):
                    self._consume(name, log, cursor, may_miss=may_miss)
                    cursor = cursor if holds else log.cursor(cursor_name)
                    self._scheduler.sleep(_REST_SECONDS)

        return self.start_reader(name, work)

    def _consume(self, name: str, log: LogHandle, cursor: Cursor, *, may_miss: bool) -> None:
        generation, start = cursor._seen.value.generation, cursor.offset
        reading = Reading.beginning(self.log_oracle.history.record)
        try:
            rows = [(entry.offset, entry.value) for entry in log.read(start)]
        except NoSuchEntryError as error:
            is_held = not may_miss and log.record.generation == generation
            if is_held and log.first_offset > start:
                raise Violation(f"{name} has not read {start}, it is gone: {error} (I8)") from error
            raise
        self.log_oracle.has_read_log(name, start, rows, reading)
        cursor.advance(start + len(rows))
        if reading.generations and generation not in reading.generations:
            raise Violation(f"{name}, of generation {generation}, has read {reading} (I10)")

    def read_log(self, name: str, log: LogHandle) -> int:
        """Read all of the log; returns the offset behind it."""
        before, shown = self.log_oracle.history.record, self.log_oracle.contents.shown
        reading = Reading.beginning(before)
        begin, end = before.first_offset, -1
        for entry in log.read():
            begin = entry.offset if end < 0 else begin
            row = (entry.offset, entry.value)
            end = self.log_oracle.has_read_log(name, max(begin, end), [row], reading)
        end = max(begin, end)
        self._scheduler.note(f"has read {end - begin} entries up to offset {end}")
        after = self.log_oracle.history.record
        is_same = after.generation == before.generation
        if is_same and end < before.end_offset and after.first_offset <= end:
            raise Violation(f"{name} reads up to {end}, {before.end_offset} was settled (RB-44)")
        if is_same and end < shown and after.first_offset <= end:
            raise Violation(f"{name} reads up to {end}, {shown} was shown before (I7)")
        return end

    def truncate_log(
        self, name: str, log: LogHandle, meanwhile: AbstractContextManager[object]
    ) -> None:
        record = log.record
        end = max(record.first_offset, record.end_offset)  # it may begin in its open tail
        before = self._random.randint(record.first_offset, end)
        self.log_oracle.may_begin = max(self.log_oracle.may_begin, before)
        with meanwhile:
            log.truncate(before)
        self._scheduler.note(f"has truncated the log before {before}")
        after = self.log_oracle.history.record
        is_same = after.generation == record.generation and not after.is_tombstone
        if is_same and after.first_offset < before:
            raise Violation(f"{name} truncated the log before {before} in vain: {after} (I8)")


@dataclass
class Leader:
    """One process that wants to be the log's writer."""

    name: str
    clients: LogClients
    cluster: Cluster
    plan: LeaderPlan
    sent: "list[tuple[bytes, Future[int]]]" = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = LogHandle(self.cluster, LOG, Password())
        self.oracle = self.clients.log_oracle
        self.generation = 0
        self.scheduler = self.clients._scheduler

    def lead(self) -> list[bytes]:
        """Returns the values that are surely not in the log."""
        left = [value_of(self.name, number) for number in range(self.plan.count)]
        for _ in range(self.plan.terms):
            try:
                writer = self.log.writer(
                    roll_entries=self.plan.roll_entries,
                    settings=WriterSettings(explicit_lac_ms=self.plan.explicit_lac_ms),
                )
            except LedgerClosedError:
                raise
            except BookKeeperError as error:
                self.scheduler.note(f"cannot open: {error.args[0]}")
                self.scheduler.sleep(_REST_SECONDS)
                continue
            self.scheduler.note(f"has opened the log at offset {writer.end_offset}")
            term = writer._segment.handle.metadata.term
            place = (writer.ledger_id, writer.end_offset, term)
            self.generation = self.oracle.opened(self.name, *place)
            left = self._write(writer, left)
            if not left:
                break
        return left

    def _write(self, writer: LogWriter, values: list[bytes]) -> list[bytes]:
        """One term as the log's writer; returns what has to be added again."""
        self.sent = []
        left = list(values)
        try:
            for action in self.plan.actions:
                getattr(self, f"_{action}")(writer, left)
            while left:
                self._add(writer, left)
            self._wait(writer, left)
            if self.plan.closes:
                writer.close()
        except BookKeeperError as error:
            self.scheduler.note(f"stops: {type(error).__name__}: {error.args[0]}")
        writer.release()
        return self._resolved(writer) + left

    def _add(self, writer: LogWriter, left: list[bytes]) -> None:
        for value in left[: self.clients._random.choice((1, 1, 2, 3))]:
            future = writer.append_async(value)
            left.pop(0)
            self.sent.append((value, future))
            term = writer._segment.handle.metadata.term
            future.add_done_callback(self._on_ack(value, term))
        self.scheduler.pause()

    def _on_ack(self, value: bytes, term: int) -> "Callable[[Future[int]], None]":
        def told(future: "Future[int]") -> None:
            if future.exception() is None:
                self.scheduler.note(f"{value!r} is acknowledged at offset {future.result()}")
                self.oracle.added(self.name, self.generation, future.result(), value, term)

        return told

    def _wait(self, _writer: LogWriter, _left: list[bytes]) -> None:
        if self.sent:
            future = self.sent[-1][1]
            self.scheduler.pause(future.done)
            future.result()

    def _roll(self, writer: LogWriter, _left: list[bytes]) -> None:
        writer.roll()

    def _truncate(self, _writer: LogWriter, _left: list[bytes]) -> None:
        self.clients.truncate_log(self.name, self.log, nullcontext())

    def _read(self, _writer: LogWriter, _left: list[bytes]) -> None:
        self.clients.read_log(self.name, self.log)

    def _die(self, _writer: LogWriter, _left: list[bytes]) -> None:
        task = self.scheduler.current
        assert task is not None
        if self.clients._random.random() < 0.3:
            self.scheduler.note("dies")
            self.clients.deaths += 1
            task.process.is_dead = True
            raise Crash

    def _resolved(self, writer: LogWriter) -> list[bytes]:
        """Those of the values sent that are not in the log (RB-35)."""
        self.scheduler.pause(lambda: all(future.done() for _, future in self.sent))
        lost = [value for value, future in self.sent if future.exception() is not None]
        undecided = writer.undecided
        for _ in range(_ASKS if undecided else 0):
            assert undecided is not None
            try:
                found = self.log.resolve_outcome(undecided)
            except NoSuchLedgerError:
                self.scheduler.note(f"the log was deleted, and with it {undecided}")
                return []  # whatever became of them, they are not to come again
            except BookKeeperError as error:
                self.scheduler.note(f"cannot tell: {error.args[0]}")
                self.scheduler.sleep(_REST_SECONDS)
                continue
            self.scheduler.note(f"{len(found)} of {undecided.entry_count} undecided are there")
            rows = zip(found, lost, strict=False)
            self.oracle.has_read_log(self.name, found.start, rows, Reading.of(self.generation))
            return lost[len(found) :]
        if undecided:
            undecided_error = f"nobody can tell about {undecided} of {self.name}"
            raise BookKeeperError(undecided_error)
        return lost
