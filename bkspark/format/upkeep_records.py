"""The small records of maintenance and of cursors, one section each, and their bytes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import layout, strict_json
from bkspark.format.strict_json import Fields, integers
from bkspark.protocol.log.cursor import CursorRecord
from bkspark.protocol.upkeep.idleness import Sighting
from bkspark.protocol.upkeep.settling import EXCEPTIONS_MAX, Settled

# --- reports -------------------------------------------------------------------------------------
# When a maintenance verb last ran on the whole cluster, and its findings: for people. No decision
# rests on the record.


REPORT_KIND = "report"


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """The last run of a verb.

    Attributes:
        began_ms, ended_ms: for people.
        left: how much is left to do.
        counters: as in the verb's report.
    """

    verb: str
    began_ms: int
    ended_ms: int
    left: int
    counters: Mapping[str, int]


def encode_report(report: ReportRecord, nonce: str) -> bytes:
    value: dict[str, Any] = {
        "nonce": nonce,
        "verb": report.verb,
        "began_ms": report.began_ms,
        "ended_ms": report.ended_ms,
        "left": report.left,
        "counters": dict(report.counters),
    }
    return strict_json.encode(REPORT_KIND, layout.report_key(report.verb), value)


def decode_report(verb: str, data: bytes) -> ReportRecord:
    """Decode the report; raise ``CorruptDataError`` if damaged, of another verb, or malformed."""
    fields = strict_json.decode(REPORT_KIND, layout.report_key(verb), data)
    if fields.take("verb", str) != verb:
        raise CorruptDataError(f"{fields.what} names another verb")
    return ReportRecord(
        verb=verb,
        began_ms=fields.take("began_ms", int),
        ended_ms=fields.take("ended_ms", int),
        left=fields.take("left", int),
        counters=fields.mapping("counters", int),
    )


# --- lease record --------------------------------------------------------------------------------
# Records which process runs a maintenance verb. The record is advisory: no safety depends on it.
#
# The record is never removed: a run that has ended says so in its record.


LEASE_KIND = "lease"
TEXT_MAX = 256
PID_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Process:
    """A process of some host.

    Attributes:
        host: its name, for people.
        machine: equal for two processes only if their ids belong to the same running system; empty
            if unknown.
        pid: > 0.
        started: differs from an earlier process with the same id; empty if unknown.
    """

    host: str
    machine: str
    pid: int
    started: str


@dataclass(frozen=True, slots=True)
class Lease:
    """A run of a verb.

    Attributes:
        token: of this run alone.
        began_ms: for people.
        renewals: how often it was renewed; each renewal is a sign of life.
        is_held: whether the run continues, as last stated by its holder.
    """

    verb: str
    token: str
    holder: Process
    began_ms: int
    renewals: int = 0
    is_held: bool = True


def encode_lease(lease: Lease, nonce: str) -> bytes:
    holder = lease.holder
    value: dict[str, Any] = {
        "nonce": nonce,
        "verb": lease.verb,
        "token": lease.token,
        "host": holder.host[:TEXT_MAX],
        "machine": holder.machine[:TEXT_MAX],
        "pid": holder.pid,
        "started": holder.started[:TEXT_MAX],
        "began_ms": lease.began_ms,
        "renewals": lease.renewals,
        "is_held": lease.is_held,
    }
    return strict_json.encode(LEASE_KIND, layout.lease_key(lease.verb), value)


def decode_lease(verb: str, data: bytes) -> Lease:
    """Decode the lease; raise ``CorruptDataError`` if damaged, of another verb, or malformed."""
    fields = strict_json.decode(LEASE_KIND, layout.lease_key(verb), data)
    texts = {name: fields.take(name, str) for name in ("host", "machine", "started")}
    pid = fields.take("pid", int)
    if fields.take("verb", str) != verb:
        raise CorruptDataError(f"{fields.what} names another verb")
    if not 0 < pid <= PID_MAX or any(len(text) > TEXT_MAX for text in texts.values()):
        raise CorruptDataError(f"{fields.what} names no process")
    try:
        token = layout.token(fields.take("token", str))
    except ValueError as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error
    return Lease(
        verb=verb,
        token=token,
        holder=Process(texts["host"], texts["machine"], pid, texts["started"]),
        began_ms=fields.take("began_ms", int),
        renewals=fields.take("renewals", int),
        is_held=fields.take("is_held", bool),
    )


# --- gone record ---------------------------------------------------------------------------------
# Ids of fully removed ledgers: one record for each page of ids, as ranges.
#
# Nearly all ledgers are deleted in the end, so ranges join, and a page becomes one line.


GONE_KIND = "gone"

GoneIds = frozenset[int]


def encode_gone(page: int, ids: GoneIds, nonce: str) -> bytes:
    ranges = [list(one) for one in _ranges(sorted(ids))]
    value: dict[str, Any] = {"nonce": nonce, "ranges": ranges}
    return strict_json.encode(GONE_KIND, layout.gone_key(page), value)


def decode_gone(page: int, data: bytes) -> GoneIds:
    """Decode the ids; raise ``CorruptDataError`` if damaged, of another page, or malformed."""
    fields = strict_json.decode(GONE_KIND, layout.gone_key(page), data)
    begin = page * layout.GONE_PAGE_LENGTH
    ids: set[int] = set()
    last = begin - 1
    for found in fields.take("ranges", list):
        is_range = isinstance(found, list) and [type(number) for number in found] == [int, int]
        if not is_range or not last < found[0] <= found[1] < begin + layout.GONE_PAGE_LENGTH:
            raise CorruptDataError(f"{fields.what} has something else than ranges of its own ids")
        ids.update(range(found[0], found[1] + 1))
        last = found[1]
    return frozenset(ids)


def _ranges(ids: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last id of each range without a gap."""
    breaks = [i for i, (a, b) in enumerate(pairwise(ids), start=1) if b != a + 1]
    for begin, end in pairwise([0, *breaks, len(ids)] if ids else []):
        yield ids[begin], ids[end - 1]


# --- open ledgers --------------------------------------------------------------------------------
# Records sightings of open ledgers, and since when each is unchanged (advisory).
#
# There is one record for all ledgers; ledgers without room there are not remembered.


SIGHTINGS_KIND = "open"

SIGHTINGS_MAX = 2000
"""Keeps the record below 768 kB."""

Sightings = Mapping[int, Sighting]
"""By ledger id."""


def encode_sightings(seen: Sightings, nonce: str) -> bytes:
    value: dict[str, Any] = {
        "nonce": nonce,
        "ledgers": [
            {
                "ledger": one.ledger_id,
                "writer": one.writer,
                "since_ms": one.since_ms,
                "sizes": dict(one.sizes),
            }
            for _, one in sorted(seen.items())
        ],
    }
    return strict_json.encode(SIGHTINGS_KIND, layout.OPEN_LEDGERS_KEY, value)


def decode_sightings(key: str, data: bytes) -> Sightings:
    """Decode the sightings; raise ``CorruptDataError`` if damaged or malformed."""
    fields = strict_json.decode(SIGHTINGS_KIND, key, data)
    found = [_sighting(item) for item in fields.objects("ledgers")]
    if len(found) > SIGHTINGS_MAX:
        raise CorruptDataError(f"{fields.what} has more ledgers than there is room for")
    return {one.ledger_id: one for one in found}


def _sighting(fields: Fields) -> Sighting:
    return Sighting(
        fields.take("ledger", int),
        fields.take("writer", str),
        fields.take("since_ms", int),
        fields.mapping("sizes", int),
    )


# --- settled ledgers -----------------------------------------------------------------------------
# Ledgers that a maintenance verb need not look at again (``protocol.upkeep.settling``).


SETTLED_KIND = "settled"


def encode_settled(verb: str, settled: Settled, nonce: str) -> bytes:
    value: dict[str, Any] = {
        "nonce": nonce,
        "below": settled.below,
        "exceptions": [
            [ledger_id, since_ms, settled.doubted.get(ledger_id, 0)]
            for ledger_id, since_ms in sorted(settled.exceptions.items())
        ],
        "members": settled.members,
        "doubts": settled.doubts,
        "forgotten": settled.forgotten,
    }
    return strict_json.encode(SETTLED_KIND, layout.settled_key(verb), value)


def decode_settled(verb: str, data: bytes) -> Settled:
    """Decode the note; raise ``CorruptDataError`` if damaged, of another verb, or malformed."""
    fields = strict_json.decode(SETTLED_KIND, layout.settled_key(verb), data)
    below, found = fields.take("below", int), fields.take("exceptions", list)
    rows = [_integers(fields, item, 3) for item in found]
    exceptions = {ledger_id: since_ms for ledger_id, since_ms, _ in rows}
    doubted = {ledger_id: number for ledger_id, _, number in rows if number}
    is_known = len(exceptions) == len(found) <= EXCEPTIONS_MAX and below <= layout.LEDGER_ID_MAX + 1
    ends = {i: layout.LEDGER_ID_MAX + 1 if i in doubted else below for i in exceptions}
    if not is_known or any(not 0 <= ledger_id < end for ledger_id, end in ends.items()):
        raise CorruptDataError(f"{fields.what} has other exceptions than ledgers of its own")
    members, doubts = fields.take("members", str), fields.take("doubts", int)
    return Settled(below, exceptions, members, doubts, doubted, fields.take("forgotten", int))


# --- damage record -------------------------------------------------------------------------------
# Records copies on a bookie that a scrub found damaged, until they are replaced.
#
# A mark names an incarnation of a bookie, and files. No file is ever overwritten: a new copy has
# another journal name, or lies on another bookie, and no mark applies to it. So an outdated mark
# does no harm.


DAMAGE_KIND = "damaged"

LEDGERS_MAX = 256
RANGES_MAX = 8
FILES_MAX = 8
NAME_LENGTH_MAX = 200
"""These bounds keep a record below 768 kB."""

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """Damaged copies of a ledger on one bookie.

    Attributes:
        journals: names of damaged journals.
        entries: ranges of entries whose records in the journals are not good.
        entry_logs: names.
        reason: of the first damage, in one line.
    """

    ledger_id: int
    incarnation: str
    journals: tuple[str, ...] = ()
    entries: tuple[Range, ...] = ()
    entry_logs: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DamagedCopies:
    """All marks of one bookie, by ledger id."""

    bookie_id: str
    marks: Mapping[int, Mark] = field(default_factory=dict)


def bounded(ranges: list[Range]) -> tuple[Range, ...]:
    """Return ``ranges``; if there are too many, the last are merged, and more is copied."""
    if len(ranges) <= RANGES_MAX:
        return tuple(ranges)
    rest = ranges[RANGES_MAX - 1 :]
    return (*ranges[: RANGES_MAX - 1], (rest[0][0], max(last for _, last in rest)))


def encode_damage(copies: DamagedCopies, nonce: str) -> bytes:
    value: dict[str, Any] = {
        "nonce": nonce,
        "id": copies.bookie_id,
        "marks": [_mark_to_json(mark) for _, mark in sorted(copies.marks.items())],
    }
    return strict_json.encode(DAMAGE_KIND, layout.damaged_key(copies.bookie_id), value)


def _mark_to_json(mark: Mark) -> dict[str, Any]:
    return {
        "ledger": mark.ledger_id,
        "incarnation": mark.incarnation,
        "journals": list(mark.journals),
        "entries": [list(entries) for entries in mark.entries],
        "entry_logs": list(mark.entry_logs),
        "reason": mark.reason,
    }


def decode_damage(bookie_id: str, data: bytes) -> DamagedCopies:
    """Decode the marks; raise ``CorruptDataError`` if damaged, of another bookie, or malformed."""
    fields = strict_json.decode(DAMAGE_KIND, layout.damaged_key(bookie_id), data)
    if fields.take("id", str) != bookie_id:
        raise CorruptDataError(f"{fields.what} names another bookie")
    marks = [_mark(item) for item in fields.objects("marks")]
    return DamagedCopies(bookie_id, {mark.ledger_id: mark for mark in marks})


def _mark(fields: Fields) -> Mark:
    try:
        return Mark(
            fields.take("ledger", int),
            layout.token(fields.take("incarnation", str)),
            _names(fields, "journals"),
            tuple(_range(fields, item) for item in fields.take("entries", list)),
            _names(fields, "entry_logs"),
            fields.take("reason", str),
        )
    except InvalidRequestError as error:
        raise CorruptDataError(f"{fields.what}: {error.args[0]}") from error


def _range(fields: Fields, item: object) -> Range:
    first, last = _pair(fields, item)
    if first > last:
        raise CorruptDataError(f"{fields.what}: a range of entries is malformed")
    return first, last


def _pair(fields: Fields, item: object) -> tuple[int, int]:
    one, other = _integers(fields, item, 2)
    return one, other


def _integers(fields: Fields, item: object, count: int) -> list[int]:
    try:
        found = [*integers(item if isinstance(item, list) else [])]
    except ValueError as error:
        raise CorruptDataError(f"{fields.what}: a list of numbers is malformed") from error
    if len(found) != count:
        raise CorruptDataError(f"{fields.what}: a list of numbers is malformed")
    return found


def _names(fields: Fields, name: str) -> tuple[str, ...]:
    found = fields.take(name, list)
    if not all(isinstance(item, str) and len(item) <= NAME_LENGTH_MAX for item in found):
        raise CorruptDataError(f"{fields.what}: field {name!r} is malformed")
    return tuple(found)


# --- cursor record -------------------------------------------------------------------------------
# Encodes ``CursorRecord`` as bytes of a metadata record.


CURSOR_KIND = "cursor"


def encode_cursor(record: CursorRecord, nonce: str) -> bytes:
    """Return the record's bytes, to be stored under ``layout.cursor_key``."""
    value = {
        "nonce": nonce,
        "log": record.log_name,
        "name": record.name,
        "generation": record.generation,
        "offset": record.offset,
        "deleted": record.is_deleted,
    }
    return strict_json.encode(CURSOR_KIND, layout.cursor_key(record.log_name, record.name), value)


def decode_cursor(log_name: str, name: str, data: bytes) -> CursorRecord:
    """Decode the cursor in ``data``.

    Raises:
        CorruptDataError: damaged, of another cursor, or impossible for a cursor.
    """
    fields = strict_json.decode(CURSOR_KIND, layout.cursor_key(log_name, name), data)
    try:
        record = CursorRecord(
            fields.take("log", str),
            fields.take("name", str),
            fields.take("generation", int),
            fields.take("offset", int),
            fields.take("deleted", bool),
        )
    except ValueError as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error
    if (record.log_name, record.name) != (log_name, name):
        raise CorruptDataError(f"{fields.what} names another cursor")
    return record
