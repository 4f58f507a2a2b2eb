"""Every state of a small world whose log is offloaded to a table, freed, truncated and overwritten.

Each client does step by step what ``admin.offloading`` does, and the product decides: each step is
one access to the record or to the table. The table is one more store, in which something goes wrong
once. The invariants are in ``Promises``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from bkspark.admin.offloading.checking import may_be_changed
from bkspark.admin.offloading.copier import FENCE_VERSION
from bkspark.admin.offloading.freeing import FreeingDue, TierStep, next_step
from bkspark.errors import BookKeeperError, MetadataVersionError, TableChangedError
from bkspark.log.reading.tier_rows import require_verified_rows
from bkspark.protocol.log import offloading
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import Intent, TableVersion, Tier, TierSegment, TierTable
from tests.simulation.scheduler import Violation
from tests.simulation.states.tier_world import (
    EPOCH,
    KIND_OF,
    OTHER,
    OTHER_ID,
    TABLE_ID,
    URL,
    Client,
    Logs,
    Row,
    Scope,
    Table,
    Version,
    World,
    abstract_view,
    closed_ledger,
    log_of,
    rows_of,
    tier_of,
    version_of,
)

Step = tuple[str, World]
Move = tuple[str, int, Table, Client]
"""In words; then the record, the table and the client."""

NOW = FreeingDue(2**62, 2**62)
PAGE = "00000000-" + "d" * 32
TRIES_MAX = 2
ENDED = Client("ended")
LATE_PHASES = ("finishes", "verifies again", "frees")


class Promises:
    """What has to be so in each world, and of each step.

    (T1) A read gives each offset once with its value, or an error; without a fault, no error.
    (T2) Rows are recorded as copied, freed or released only if the newest table has them then, and
    a ledger is to be deleted only if the newest table has each of its rows, or they are hidden.
    (T3) The verified version of the table has all rows of the segments.
    (T4) Without a fault no look at the table finds it wrong.
    """

    def __init__(self, logs: Logs, scope: Scope) -> None:
        self._logs = logs
        self._scope = scope
        self._read: dict[tuple[int, Table], bool] = {}

    def require(self, world: World) -> None:
        for number in {world.log, world.planned} - {-1}:
            if world.fault == "silent":
                continue
            is_read = self._is_read(self._logs[number], number, world.table)
            if not is_read and not world.fault and number == world.log:
                raise Violation("a read fails (T1)")
        if self._scope.requires_verified:
            self._require_verified(world)

    def _is_read(self, log: LogRecord, number: int, table: Table) -> bool:
        key = (number, table)
        if key not in self._read:
            self._read[key] = self._read_all(log, table)
        return self._read[key]

    def _read_all(self, log: LogRecord, table: Table) -> bool:
        """Whether a read gives all rows; False for an error."""
        if log.tier is None or log.first_offset >= log.tier.freed:
            return True
        tier, newest = log.tier, table[-1]
        view = abstract_view(table)
        if not self._scope.rules.compares_id:
            view.snapshot.table_id = tier.table_id
        if not self._scope.rules.compares_commit:
            view.snapshot.commit = ""
        try:
            require_verified_rows(log.name, tier, view.table, view.snapshot)
        except TableChangedError:
            return False
        found = [newest.values_at(offset) for offset in range(log.first_offset, tier.freed)]
        # each task reads offsets of its own
        if any(len(values) == 1 and values != [log.generation] for values in found):
            raise Violation("a read gives another value (T1)")
        return all(len(values) == 1 for values in found)

    def _require_verified(self, world: World) -> None:
        log = self._logs[world.log]
        if log.tier is None or world.fault in ("silent", "untold"):
            return
        version = world.table[log.tier.verified_version]
        for segment in log.tier.segments:
            for offset in range(max(segment.begin, log.first_offset), segment.end):
                found = version.values_at(offset)
                is_doubled = world.fault == "doubled" and OTHER in found
                if log.generation not in found or (OTHER in found and not is_doubled):
                    raise Violation(f"the verified version lacks offset {offset} (T3)")

    def require_step(self, before: World, after: World, client: int) -> None:
        """``client`` changed the record."""
        old, new = self._logs[before.log], self._logs[after.log]
        if old.generation != new.generation or client in before.late:
            return
        for ledger_id, offsets in self._ledgers_deleted(old, new):
            self._require_there(after.table[-1], new, offsets, f"in ledger {ledger_id}, deleted")
        if new.tier is None:
            return
        was = old.tier
        for what, border in (("copied", "copied"), ("freed", "freed"), ("released", "released")):
            begin = new.tier.begin if was is None else getattr(was, border)
            offsets = range(begin, getattr(new.tier, border))
            self._require_there(after.table[-1], new, offsets, what)

    def _ledgers_deleted(self, old: LogRecord, new: LogRecord) -> Iterator[tuple[int, range]]:
        """The ledgers that are to be deleted now, and their offsets."""
        begin = 0
        for ledger_id, entry_count in enumerate(self._scope.ledgers):
            offsets = range(begin, begin := begin + entry_count)
            if ledger_id in set(new.dropped.to_delete) - set(old.dropped.to_delete):
                yield ledger_id, offsets

    def _require_there(self, newest: Version, log: LogRecord, offsets: range, what: str) -> None:
        """A version has these rows, but for those that a truncation has hidden."""
        for offset in range(max(offsets.start, log.first_offset), offsets.stop):
            if newest.table_id != TABLE_ID or newest.values_at(offset) != [log.generation]:
                raise Violation(f"offset {offset} is {what} and not in the table (T2)")


@dataclass
class TierSteps:
    """Steps of clients, and what goes wrong in the table.

    Attributes:
        happened: all that clients did, in words.
        refused: errors with which clients ended.
    """

    scope: Scope
    logs: Logs = field(default_factory=Logs)
    happened: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    _tables: dict[Table, int] = field(default_factory=dict)
    _known: dict[object, list[Move]] = field(default_factory=dict)
    _hit: dict[int, list[tuple[str, Table]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.promises = Promises(self.logs, self.scope)
        self._rules = self.scope.rules
        self._kinds: dict[str, Callable[[World, int, Client], Iterator[Step]]] = {
            "offload": self._offload,
            "offload a ledger": self._offload,
            "collect": self._collect,
            "truncate": self._truncate,
            "overwrite": self._overwrite,
            "stop": self._stop,
        }

    def first(self) -> World:
        log = log_of(self.scope.ledgers)
        table: Table = (Version(()),)
        if self.scope.is_copied:
            log, table = self._copied(log)
        clients = tuple(Client() for _ in self.scope.clients)
        return World(self.logs.number(log), table, clients)

    def _copied(self, log: LogRecord) -> tuple[LogRecord, Table]:
        table: Table = (Version(()),)
        while (end := offloading.eligible_end(log, most_bytes=1)) > offloading.next_begin(log):
            begin = offloading.next_begin(log)
            intent = Intent(begin, end, f"a{end}", len(table) - 1)
            log = offloading.attached(log, URL, TABLE_ID, EPOCH, intent)
            log = offloading.with_intent(log, EPOCH, intent)
            table = _appended(table, EPOCH, end, rows_of(log, begin, end))
            segment = offloading.segment_of(log, begin, end, PAGE, 0)
            found = TierTable(URL, TABLE_ID, version_of(table))
            log = offloading.finished(log, EPOCH, intent.attempt, segment, found)
        return log, table

    # --- steps -----------------------------------------------------------------------------------

    def after(self, world: World) -> Iterator[Step]:
        table = self._tables.setdefault(world.table, len(self._tables))
        for number, client in enumerate(world.clients):
            if client.phase == "ended":
                continue
            is_late = number in world.late
            for what, log, changed, then in self._moves(world, number, table):
                clients = (*world.clients[:number], then, *world.clients[number + 1 :])
                late = world.late
                if is_late and then.phase not in LATE_PHASES:
                    late -= {number}
                after = World(log, changed, clients, world.fault, late, world.planned)
                yield what, after
        if not world.fault:
            late = frozenset(n for n, one in enumerate(world.clients) if one.phase in LATE_PHASES)
            for name, hit in self._hits(world.table, table):
                after = world._replace(late=late, fault=KIND_OF[name], table=hit)
                yield f"the table: {name}", after
        if self.scope.has_reader and world.planned != world.log:
            yield "a reader plans", world._replace(planned=world.log)

    def _moves(self, world: World, number: int, table: int) -> list[Move]:
        """What a client may do: it sees the record and the table, and no other client."""
        client, is_late = world.clients[number], number in world.late
        key = (number, client, world.log, table, world.fault, is_late)
        if key not in self._known:
            kind, found = self.scope.clients[number], list[Move]()
            for what, after in self._kinds[kind](world, number, client):
                self.happened.add(f"{kind}: {what}")
                if after.log != world.log:
                    self.promises.require_step(world, after, number)
                told = f"{number}, {kind}: {what}"
                found.append((told, after.log, after.table, after.clients[number]))
            self._known[key] = found
        return self._known[key]

    def _hits(self, table: Table, number: int) -> list[tuple[str, Table]]:
        if number not in self._hit:
            every = ((name, hit) for name in self.scope.faults for hit in _hit(name, table))
            self._hit[number] = list(every)
        return self._hit[number]

    def _ends(self, world: World, number: int, error: BookKeeperError | None = None) -> World:
        if error is not None:
            self.refused.add(type(error).__name__)
        return with_client(world, number, ENDED)

    def _fails_look(self, world: World, number: int, log: LogRecord) -> Step:
        """A look found the table wrong."""
        now, epoch = self.logs[world.log], tier_of(log).epoch
        is_ended = world.table[-1].end_of(epoch) == FENCE_VERSION
        if not world.fault and not is_ended and now.generation == log.generation:
            raise Violation("a look at the table fails (T4)")
        self.refused.add("TableChangedError")
        return "finds the table wrong", self._ends(world, number)

    def _change(
        self,
        world: World,
        number: int,
        change: Callable[[LogRecord], LogRecord],
        then: Client,
    ) -> World:
        """Change the record by compare-and-set, and go on."""
        try:
            log = self.logs.number(change(self.logs[world.log]))
        except BookKeeperError as error:
            return self._ends(world, number, error)
        after = world._replace(log=log)
        return with_client(after, number, then)

    # --- offload ---------------------------------------------------------------------------------

    def _offload(self, world: World, number: int, client: Client) -> Iterator[Step]:
        step = getattr(self, f"_offload_{client.phase.replace(' ', '_')}")
        yield step(world, number, client)

    def _due_end(self, number: int, log: LogRecord) -> int:
        most = 1 if self.scope.clients[number] == "offload a ledger" else 0
        return offloading.eligible_end(log, most_bytes=most)

    def _offload_begins(self, world: World, number: int, client: Client) -> Step:
        log = self.logs[world.log]
        is_due = self._due_end(number, log) > offloading.next_begin(log)
        if log.generation != self.logs[0].generation:
            return "the table is of former contents", self._ends(world, number)
        if log.tier is not None and log.tier.intent is not None and self._rules.has_intent:
            return "finds an intent", self._with(world, number, "copies", log=world.log)
        if not is_due and log.tier is None:
            return "nothing is due", self._ends(world, number)
        phase = ("finds" if log.tier is None else "intends") if is_due else "looks again"
        return "reads the record", self._with(world, number, phase, log=world.log)

    def _offload_finds(self, world: World, number: int, client: Client) -> Step:
        """The table is there; an epoch that is fenced there is followed by a new one."""
        newest = world.table[-1]
        if newest.rows or newest.table_id != TABLE_ID:
            return "the table is not empty", self._ends(world, number)
        seen = client._replace(phase="intends", epoch=newest.epoch)
        if newest.end_of(newest.epoch) < FENCE_VERSION:
            return "finds the table", with_client(world, number, seen)
        epoch = f"{number}{newest.epoch[1:]}"
        claimed = (*world.table, newest._replace(epoch=epoch, removes=False))
        world = world._replace(table=claimed)
        return "claims the table", with_client(world, number, seen._replace(epoch=epoch))

    def _offload_intends(self, world: World, number: int, client: Client) -> Step:
        log = self.logs[client.log]
        begin, end = offloading.next_begin(log), self._due_end(number, log)
        attempt = f"{begin}-{end}-{number}"

        def change(record: LogRecord) -> LogRecord:
            record = record.still_of(log.generation)
            intent = Intent(begin, end, attempt, 0)
            if log.tier is None:
                return offloading.attached(record, URL, TABLE_ID, client.epoch, intent)
            if not self._rules.has_intent and record.tier is not None:
                record = record.with_tier(replace(record.tier, intent=None))
            return offloading.with_intent(record, log.tier.epoch, intent)

        after = self._change(world, number, change, Client("copies"))
        if after.clients[number] == ENDED:
            return "cannot store an intent", after
        now = tier_of(self.logs[after.log])
        phase = "looks again" if now.intent is None else "copies"
        return "stores an intent", with_client(after, number, Client(phase, after.log))

    def _offload_copies(self, world: World, number: int, client: Client) -> Step:
        log = self.logs[client.log]
        tier, newest = tier_of(log), world.table[-1]
        intent = tier.intent
        assert intent is not None
        if self._is_another(tier, newest):
            return self._fails_look(world, number, log)
        begin = max(intent.begin, log.first_offset)
        if newest.end_of(tier.epoch) >= intent.end or begin >= intent.end:
            return "its rows were appended", self._with(world, number, "reads anew")
        return "wants to append", self._with(world, number, "reads the rows")

    def _offload_reads_the_rows(self, world: World, number: int, client: Client) -> Step:
        """A job reads the log by its name."""
        log, intent = self.logs[client.log], tier_of(self.logs[client.log]).intent
        assert intent is not None
        begin, now = max(intent.begin, log.first_offset), self.logs[world.log]
        if begin < now.first_offset or intent.end > now.end_offset:
            return "its rows were truncated", self._ends(world, number)
        rows = rows_of(now, begin, intent.end)
        return "reads the rows", self._with(world, number, "appends", rows=rows)

    def _offload_appends(self, world: World, number: int, client: Client) -> Step:
        tier = tier_of(self.logs[client.log])
        intent = tier.intent
        assert intent is not None
        seen = -1 if self._rules.verifies_newest else len(world.table)
        after = self._with(world, number, "reads anew", rows=(), seen=seen)
        if world.table[-1].end_of(tier.epoch) >= intent.end:
            return "its append is there", after
        table = _appended(world.table, tier.epoch, intent.end, client.rows)
        return "appends", after._replace(table=table)

    def _offload_reads_anew(self, world: World, number: int, client: Client) -> Step:
        """Read the record again, before the verification."""
        log, epoch = self.logs[world.log], tier_of(self.logs[client.log]).epoch
        intent = tier_of(self.logs[client.log]).intent
        assert intent is not None
        try:
            offloading.tier_of(log.still_of(self.logs[client.log].generation), epoch)
        except MetadataVersionError as error:
            return "ended by another one", self._ends(world, number, error)
        phase = "hides" if intent.end <= log.first_offset else "verifies"
        anew = client._replace(phase=phase, first=log.first_offset)
        return "reads the record anew", with_client(world, number, anew)

    def _offload_hides(self, world: World, number: int, client: Client) -> Step:
        log, intent = self.logs[client.log], tier_of(self.logs[client.log]).intent
        assert intent is not None
        segment = offloading.segment_of(log, intent.end - 1, intent.end, PAGE, 0)
        version = tier_of(log).table.verified
        change = partial(self._finished, client, intent=intent, segment=segment, version=version)
        return "all is truncated", self._change(world, number, change, client.again)

    def _offload_verifies(self, world: World, number: int, client: Client) -> Step:
        log = self.logs[client.log]
        tier = tier_of(log)
        intent = tier.intent
        assert intent is not None
        version, table = len(world.table) - 1, world.table
        if not self._rules.verifies_newest and 0 <= client.seen < len(table):
            version, table = client.seen, table[: client.seen + 1]
        begin = max(intent.begin, client.first)
        is_there = self._has(table[-1], log, begin, intent.end)
        if not self._rules.verifies:
            is_there = table[-1].end_of(tier.epoch) >= intent.end
        if not is_there or not self._is_unchanged(table, log, client.first):
            return self._fails_look(world, number, log)
        commit = version_of(table).commit
        return "verifies", self._with(world, number, "finishes", seen=version, commit=commit)

    def _offload_finishes(self, world: World, number: int, client: Client) -> Step:
        log, intent = self.logs[client.log], tier_of(self.logs[client.log]).intent
        assert intent is not None
        begin = max(intent.begin, client.first)
        segment = offloading.segment_of(log, begin, intent.end, PAGE, 0)
        change = partial(
            self._finished,
            client,
            intent=intent,
            segment=segment,
            version=TableVersion(client.seen, client.commit),
        )
        return "stores the segment", self._change(world, number, change, client.again)

    def _finished(
        self,
        client: Client,
        record: LogRecord,
        *,
        intent: Intent,
        segment: TierSegment,
        version: TableVersion,
    ) -> LogRecord:
        log = self.logs[client.log]
        record = record.still_of(log.generation)
        epoch, table = tier_of(log).epoch, TierTable(URL, TABLE_ID, version)
        return offloading.finished(record, epoch, intent.attempt, segment, table)

    def _offload_looks_again(self, world: World, number: int, client: Client) -> Step:
        log = self.logs[client.log]
        tier, version = tier_of(log), version_of(world.table)
        if self._is_another(tier, world.table[-1]):
            return self._fails_look(world, number, log)
        if version == tier.table.verified:
            return "has nothing to look at", self._ends(world, number)
        if not self._is_unchanged(world.table, log, log.first_offset):
            return self._fails_look(world, number, log)
        return "looks again", self._seen(world, number, "verifies again", version)

    def _offload_verifies_again(self, world: World, number: int, client: Client) -> Step:
        log, now = self.logs[client.log], self.logs[world.log]
        is_same = now.generation == log.generation
        if self._rules.wants_the_tier and is_same and now.tier != log.tier:
            tries = client.tries + 1
            if now.tier is None or tries > TRIES_MAX:
                return "finds the record changed too often", self._ends(world, number)
            again = Client("looks again", world.log, tries=tries)
            return "finds the record changed", with_client(world, number, again)

        def change(record: LogRecord) -> LogRecord:
            record = record.still_of(log.generation)
            seen = TableVersion(client.seen, client.commit)
            return offloading.verified_again(record, tier_of(log).epoch, seen)

        return "stores its look", self._change(world, number, change, ENDED)

    # --- looks -----------------------------------------------------------------------------------

    def _is_another(self, tier: Tier, newest: Version) -> bool:
        return self._rules.compares_id and newest.table_id != tier.table_id

    def _has(self, newest: Version, log: LogRecord, begin: int, end: int) -> bool:
        """Whether a version has these rows, as the log wrote them."""
        if self._is_another(tier_of(log), newest):
            return False
        found = [newest.values_at(offset) for offset in range(begin, end)]
        if not self._rules.compares_values:
            return sum(map(len, found)) == max(0, end - begin)
        return all(values == [log.generation] for values in found)

    def _is_unchanged(self, table: Table, log: LogRecord, first_offset: int) -> bool:
        if not may_be_changed(abstract_view(table), tier_of(log).table.verified):
            return True
        return self._has_segments(table[-1], log, first_offset)

    def _has_segments(
        self, newest: Version, log: LogRecord, first_offset: int, step: TierStep | None = None
    ) -> bool:
        """Whether a version has the rows of all segments, or of those of ``step``."""
        return all(
            self._has(newest, log, max(segment.begin, first_offset), segment.end)
            for segment in tier_of(log).segments
            if step is None or (segment.begin < step.end and step.begin < segment.end)
        )

    # --- collect ---------------------------------------------------------------------------------

    def _collect(self, world: World, number: int, client: Client) -> Iterator[Step]:
        if client.phase == "begins":
            step = next_step(self.logs[world.log], NOW)
            if step is not None:
                begun = client._replace(phase="looks", log=world.log)
                yield "reads the record", with_client(world, number, begun)
        elif client.phase == "looks":
            yield self._collect_looks(world, number, client)
        else:
            yield self._collect_frees(world, number, client)

    def _collect_looks(self, world: World, number: int, client: Client) -> Step:
        log = self.logs[client.log]
        step, tier = next_step(log, NOW), tier_of(log)
        assert step is not None
        looked = self._seen(world, number, "frees", version_of(world.table))
        rules = self._rules
        if not (rules.looks_before_releasing if step.is_release else rules.looks_before_freeing):
            return "does not look", looked
        is_all = may_be_changed(abstract_view(world.table), tier.table.verified)
        of_step, newest = None if is_all else step, world.table[-1]
        has_all = self._has_segments(newest, log, log.first_offset, of_step)
        if self._is_another(tier, newest) or not has_all:
            return self._fails_look(world, number, log)
        return "looks", looked

    def _collect_frees(self, world: World, number: int, client: Client) -> Step:
        log = self.logs[client.log]
        step, tier = next_step(log, NOW), tier_of(log)
        seen = TableVersion(client.seen, client.commit)
        assert step is not None

        def change(record: LogRecord) -> LogRecord:
            record = record.still_of(log.generation)
            if record.tier != tier and self._rules.wants_the_tier:
                raise MetadataVersionError("changed meanwhile")
            if step.is_release:
                return offloading.released(record, tier.epoch, step.end, seen)
            return offloading.freed(record, tier.epoch, step.end, seen, 0)

        what = "releases" if step.is_release else "frees"
        try:
            after = self.logs.number(change(self.logs[world.log]))
        except MetadataVersionError:
            tries = client.tries + 1
            again = ENDED if tries > TRIES_MAX else Client(tries=tries)
            return "finds the record changed", with_client(world, number, again)
        begun = client._replace(phase="begins", log=-1, seen=-1)
        return what, with_client(world._replace(log=after), number, begun)

    # --- others ----------------------------------------------------------------------------------

    def _truncate(self, world: World, number: int, _: Client) -> Iterator[Step]:
        for offset in self.scope.truncations:
            change = partial(LogRecord.truncated, before_offset=offset)
            yield f"up to {offset}", self._change(world, number, change, ENDED)

    def _overwrite(self, world: World, number: int, _: Client) -> Iterator[Step]:
        made = closed_ledger(9, sum(self.scope.ledgers))

        def change(record: LogRecord) -> LogRecord:
            return record.with_ledger(made, schema=b"", transaction=None, overwrite=True)

        yield "writes anew", self._change(world, number, change, ENDED)

    def _stop(self, world: World, number: int, client: Client) -> Iterator[Step]:
        log = self.logs[world.log if client.log == -1 else client.log]
        if log.tier is None:
            return
        epoch = log.tier.epoch
        if client.phase == "begins":
            begun = client._replace(phase="fences", log=world.log)
            yield "reads the record", with_client(world, number, begun)
        elif client.phase == "fences":
            table = _appended(world.table, epoch, FENCE_VERSION, ())
            fenced = with_client(world, number, client._replace(phase="forgets"))
            yield "fences", fenced._replace(table=table)
        else:

            def change(record: LogRecord) -> LogRecord:
                record = record.still_of(log.generation)
                return offloading.forgotten(offloading.taken_back(record, epoch), epoch)

            yield "forgets the table", self._change(world, number, change, ENDED)

    def _seen(self, world: World, number: int, phase: str, version: TableVersion) -> World:
        return self._with(world, number, phase, seen=version.number, commit=version.commit)

    def _with(self, world: World, number: int, phase: str, **changes: object) -> World:
        client = world.clients[number]._replace(phase=phase, **changes)  # type: ignore[arg-type]
        return with_client(world, number, client)


def with_client(world: World, number: int, client: Client) -> World:
    clients = (*world.clients[:number], client, *world.clients[number + 1 :])
    return world._replace(clients=clients)


# --- tables -------------------------------------------------------------------------------------


def _appended(table: Table, epoch: str, end: int, rows: tuple[Row, ...]) -> Table:
    """With one more commit, which adds rows."""
    newest = table[-1]
    ends = newest.ends | {(epoch, end)}
    added = tuple(sorted((*newest.rows, *rows)))
    return (*table, newest._replace(rows=added, ends=ends, removes=False))


def _hit(fault: str, table: Table) -> Iterator[Table]:
    """All ways in which this can happen to a table."""
    *before, newest = table
    rows = newest.rows
    if fault == "lost" and before:
        yield (*before, before[-1]._replace(removes=False))
    elif fault == "overwritten" and before:
        for place, (offset, _) in enumerate(before[-1].rows):
            rest = (*before[-1].rows[:place], *before[-1].rows[place + 1 :])
            changed = tuple(sorted((*rest, (offset, OTHER))))
            yield (*before, before[-1]._replace(rows=changed, removes=True))
    elif fault == "restored":
        for version in before:
            yield (*table, newest._replace(rows=version.rows, removes=True))
    elif fault == "older":
        yield from (table[:length] for length in range(1, len(table)))
    elif fault == "replaced":
        others = tuple((offset, OTHER) for offset, _ in rows)
        for found in {rows, others}:
            yield (*before, newest._replace(rows=found, table_id=OTHER_ID))
    for place, (offset, value) in enumerate(rows):
        rest = (*rows[:place], *rows[place + 1 :])
        changed = tuple(sorted((*rest, (offset, OTHER))))
        if fault == "deleted":
            yield (*table, newest._replace(rows=rest, removes=True))
        elif fault == "doubled":
            yield (*table, newest._replace(rows=tuple(sorted((*rows, (offset, value))))))
        elif fault in ("updated", "lied"):
            yield (*table, newest._replace(rows=changed, removes=fault == "updated"))
