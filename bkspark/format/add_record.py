"""Converts an ``AddRecord`` to the JSON values of its header, and back, also in sequence."""

import re
from functools import lru_cache
from typing import Any

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import commit_times, layout, strict_json, transactions
from bkspark.format.digest import canonical_json
from bkspark.format.strict_json import Fields
from bkspark.protocol.bounds import NUMBER_MAX, are_stored_numbers, is_stored_number
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import (
    AddRecord,
    AttemptLogs,
    EntryLog,
    InlinePart,
    Made,
    Rows,
    stripe_row_count,
    stripes_of_range,
)

# --- add record ----------------------------------------------------------------------------------
# Converts an ``AddRecord`` to the JSON values of its header, and back.


ENTRY_LOG_BYTES_MAX = 2**50
MESSAGE_BYTES_MAX = 2**31 - 1
"""No entry log or message is longer; longer claims are refused before memory is reserved."""


def to_json(record: AddRecord) -> dict[str, Any]:
    """Return the header of ``record`` as JSON values."""
    quorum = record.quorum
    return {
        "ledger": record.ledger_id,
        "term": record.term,
        "token": record.token,
        "first": record.first_entry_id,
        "last": record.last_entry_id,
        "lac": record.last_add_confirmed,
        "length": record.length_bytes,
        "quorum": [quorum.ensemble_size, quorum.write_quorum_size, quorum.ack_quorum_size],
        "fragment": record.made.fragment_first_entry_id,
        commit_times.NAME: commit_times.encode(record.times),
        commit_times.STEPS: commit_times.encode_steps(record.made.steps),
        transactions.NAME: transactions.encode(record.transactions),
        "attempts": [
            {
                "first": attempt.first_entry_id,
                "rows": attempt.row_count,
                "logs": [
                    [log.attempt_id, log.stripe, log.length_bytes, log.index_offset, log.digest]
                    for log in attempt.entry_logs
                ],
            }
            for attempt in record.attempts
        ],
        "parts": [[part.stripe, part.length_bytes, part.digest] for part in record.parts],
        "stored": list(record.stored),
    }


def from_json(fields: Fields, ledger_id: int) -> AddRecord:
    """Decode the record of a header whose digest was checked.

    Raises:
        CorruptDataError: no record of this ledger can have such a header.
    """
    try:
        quorum = _quorum(*fields.take("quorum", list))
        record = AddRecord(
            ledger_id=fields.take("ledger", int),
            term=fields.take("term", int),
            token=layout.token(fields.take("token", str)),
            first_entry_id=fields.take("first", int),
            last_entry_id=fields.take("last", int),
            last_add_confirmed=fields.take("lac", int),
            length_bytes=fields.take("length", int),
            quorum=quorum,
            made=_made(fields),
            transactions=transactions.decode(fields),
            rows=_rows(fields, quorum),
            stored=_stored(fields, quorum),
        )
    except (TypeError, ValueError) as error:
        raise CorruptDataError(f"{fields.what}: malformed record") from error
    if record.ledger_id != ledger_id or not is_coherent(record):
        raise CorruptDataError(f"{fields.what}: the record contradicts itself or its place")
    return record


@lru_cache(maxsize=1024, typed=True)
def _quorum(*sizes: object) -> Quorum:
    """Cached: each record has a quorum, and few differ."""
    if set(map(type, sizes)) != {int}:
        raise ValueError("malformed quorum")
    return Quorum(*sizes)  # type: ignore[arg-type]


def _made(fields: Fields) -> Made:
    times, steps = commit_times.decode(fields), commit_times.decode_steps(fields)
    return Made(fields.take("fragment", int), times, steps)


def _rows(fields: Fields, quorum: Quorum) -> Rows:
    attempts = tuple(_attempt(item, quorum) for item in fields.objects("attempts"))
    parts = tuple(part(*item) for item in fields.take("parts", list))
    if attempts and parts:
        raise ValueError("rows in entry logs and in the record")
    return attempts or parts


def _attempt(fields: Fields, quorum: Quorum) -> AttemptLogs:
    row_count = fields.take("rows", int)
    logs = []
    for attempt_id, stripe, length, index_offset, digest in fields.take("logs", list):
        if not (type(stripe) is type(length) is type(index_offset) is int):
            raise ValueError("malformed entry log")
        if not isinstance(digest, str) or not digest.isascii():
            raise ValueError("malformed digest")
        is_possible = 0 < index_offset < length <= ENTRY_LOG_BYTES_MAX
        if not 0 <= stripe < quorum.stripe_count or not is_possible:
            raise ValueError("entry log out of range")
        rows = stripe_row_count(row_count, stripe, quorum.stripe_count)
        logs.append(EntryLog(layout.token(attempt_id), stripe, rows, length, index_offset, digest))
    return AttemptLogs(fields.take("first", int), row_count, tuple(logs))


def part(stripe: object, length: object, digest: object) -> InlinePart:
    """Build one of a record's parts.

    Raises:
        ValueError: the values are no part.
    """
    if type(stripe) is not int or type(length) is not int or not isinstance(digest, str):
        raise ValueError("malformed part")
    if not 1 <= length <= MESSAGE_BYTES_MAX or not digest.isascii():
        raise ValueError("malformed part")
    return InlinePart(stripe, length, digest)


def _stored(fields: Fields, quorum: Quorum) -> tuple[int, ...]:
    stored = fields.take("stored", list)
    if len(stored) != quorum.ensemble_size or set(map(type, stored)) != {int}:
        raise ValueError("malformed list of what was stored")
    return tuple(stored)


def require_readable(record: AddRecord, header: bytes) -> None:
    """Refuse to store a record that no reader could decode from ``header``.

    A record of entry logs is decoded, once a commit. Decoding would take a tenth of a small append,
    so other records are only compared with the bounds; a test shows that both checks agree.

    Raises:
        InvalidRequestError: a number is out of its bounds, or the record contradicts itself.
    """
    if record.attempts:
        is_readable = _decodes(record, header)
    else:
        is_readable = _is_within_bounds(record) and is_coherent(record)
    if not is_readable:
        raise InvalidRequestError(
            f"the record of entries {record.first_entry_id} to {record.last_entry_id} of ledger "
            f"{record.ledger_id} was not written: no reader could read it",
            hint="give values within their bounds",
        )


def _decodes(record: AddRecord, header: bytes) -> bool:
    fields = strict_json.loads(header, "a record")
    try:
        return from_json(fields, record.ledger_id) == record
    except CorruptDataError:
        return False


def _is_within_bounds(record: AddRecord) -> bool:
    """Return whether a reader accepts each value of a record without entry logs.

    Lower bounds that ``is_coherent`` implies are not compared again.
    """
    first, last, confirmed = record.first_entry_id, record.last_entry_id, record.last_add_confirmed
    if not (type(first) is type(last) is type(confirmed) is int):
        return False
    if first > NUMBER_MAX or last > NUMBER_MAX or not is_stored_number(record.length_bytes):
        return False
    fragment_first_entry_id = record.made.fragment_first_entry_id
    if not _are_constants_readable(record.ledger_id, record.term, fragment_first_entry_id):
        return False
    if not commit_times.are_readable(record.times):
        return False
    if record.transactions and not are_stored_numbers(record.transactions.values()):
        return False
    if len(record.stored) != record.quorum.ensemble_size:
        return False
    for one in record.parts:
        if not 0 < one.length_bytes <= MESSAGE_BYTES_MAX or not one.digest.isascii():
            return False
    return True


@lru_cache(maxsize=1024, typed=True)
def _are_constants_readable(*numbers: int) -> bool:
    """Cached: these numbers change only with a writer or a fragment."""
    return are_stored_numbers(numbers)


def is_coherent(record: AddRecord) -> bool:
    """Return whether the parts, or the attempts in order, cover exactly the record's entries."""
    first, last = record.first_entry_id, record.last_entry_id
    if not -1 <= min(record.stored) <= max(record.stored) < first:
        return False
    if record.made.steps and not _are_steps_coherent(record):
        return False
    if record.is_confirmation:
        says_its_lac = first - 1 == last == record.last_add_confirmed >= -1
        return says_its_lac and not record.rows
    if not -1 <= record.last_add_confirmed < first <= last:
        return False
    if record.parts:
        all_stripes = stripes_of_range(first, last, record.quorum.stripe_count)
        return [part.stripe for part in record.parts] == all_stripes
    expected = record.first_entry_id
    for attempt in record.attempts:
        stripes = min(attempt.row_count, record.quorum.stripe_count)
        named = [log.stripe for log in attempt.entry_logs]
        is_next = attempt.row_count >= 1 and attempt.first_entry_id == expected
        if not is_next or named != list(range(stripes)):
            return False
        expected += attempt.row_count
    return expected == record.last_entry_id + 1


def _are_steps_coherent(record: AddRecord) -> bool:
    """Return whether the steps cover the entries of entry logs, at times that do not go back."""
    steps = record.made.steps
    entries, times = [step.first_entry_id for step in steps], [step.ms for step in steps]
    is_within = entries[0] == record.first_entry_id and entries[-1] <= record.last_entry_id
    is_rising = all(one < other for one, other in zip(entries, entries[1:]))
    is_timed = times == sorted(times) and times[-1] == record.times.last_ms
    return bool(record.attempts) and is_within and is_rising and is_timed


# --- headers -------------------------------------------------------------------------------------
# Decodes headers of records in sequence, faster if they differ only in numbers.
#
# Rule. Records of one writer differ in ids, lengths and digests, and in nothing else. After some
# headers were decoded from JSON, the last becomes a pattern with these values open. A matching
# header is decoded by the values in the open places. Every check of the JSON decoder is made here
# as well. A header that does not match, or is impossible, goes to the JSON decoder. So the result
# is the same, only faster.


PATIENCE = 64
"""Headers decoded from JSON before a pattern is made; each further pattern needs twice as many.
Making a pattern takes as long as about fifty headers: too long for a reader of only a journal's
end.
"""

_NUMBER, _DIGEST = "NUMBER", "DIGEST"
_OPEN = {
    b'"NUMBER"': b"(-1|0|[1-9][0-9]{0,17})",  # numbers of 64 bits
    b'"DIGEST"': b'"([0-9a-f]{8,64})"',
}


class Headers:
    """Decodes the headers of one ledger's records.

    Args:
        ledger_id: records of other ledgers are refused.
    """

    def __init__(self, ledger_id: int) -> None:
        self.ledger_id = ledger_id
        self._model: AddRecord | None = None
        self._pattern: re.Pattern[bytes] | None = None
        self._long_ways = 0
        self._patience = PATIENCE

    def decode(self, header: bytes) -> AddRecord:
        """Decode the record of a header whose digest was checked.

        Raises:
            CorruptDataError: no record of this ledger can have such a header.
        """
        return self._like_the_model(header) or self._from_json(header)

    def _from_json(self, header: bytes) -> AddRecord:
        fields = strict_json.loads(header, f"journal of ledger {self.ledger_id}")
        record = from_json(fields, self.ledger_id)
        self._long_ways += 1
        is_model = not record.attempts and not record.transactions
        if self._long_ways >= self._patience and is_model:
            self._long_ways, self._patience = 0, 2 * self._patience
            self._model, self._pattern = record, _pattern_of(record)
        return record

    def _like_the_model(self, header: bytes) -> AddRecord | None:
        model = self._model
        found = self._pattern.fullmatch(header) if self._pattern else None
        if found is None or model is None:
            return None
        first, lac, last, length, *others, began, made = found.groups()
        end = 3 * len(model.parts)
        try:
            parts = [
                part(int(stripe), int(size), digest.decode())
                for stripe, size, digest in zip(others[:end:3], others[1:end:3], others[2:end:3])
            ]
            times = commit_times.in_order(int(began), int(made))
            record = AddRecord(
                model.ledger_id,
                model.term,
                model.token,
                int(first),
                int(last),
                int(lac),
                int(length),
                model.quorum,
                tuple(map(int, others[end:])),
                Made(model.made.fragment_first_entry_id, times),
                {},
                tuple(parts),
            )
        except ValueError:
            return None
        return record if is_coherent(record) else None


def _pattern_of(model: AddRecord) -> re.Pattern[bytes]:
    """Return the pattern of similar headers; its groups are in the order of their JSON."""
    open_fields = {
        **dict.fromkeys(("first", "lac", "last", "length"), _NUMBER),
        "parts": [[_NUMBER, _NUMBER, _DIGEST]] * len(model.parts),
        "stored": [_NUMBER] * len(model.stored),
        commit_times.NAME: [_NUMBER] * 2,
    }
    fields = to_json(model) | open_fields
    pattern = re.escape(canonical_json(fields))
    for sentinel, what in _OPEN.items():
        pattern = pattern.replace(sentinel, what)
    return re.compile(pattern)
