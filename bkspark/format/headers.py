"""Decodes headers of records in sequence, faster if they differ only in numbers.

Rule. Records of one writer differ in ids, lengths and digests, and in nothing else. After some
headers were decoded from JSON, the last becomes a pattern with these values open. A matching header
is decoded by the values in the open places. Every check of the JSON decoder is made here as well. A
header that does not match, or is impossible, goes to the JSON decoder. So the result is the same,
only faster.
"""

import re

from bkspark.format import add_record, commit_times, strict_json
from bkspark.format.digest import canonical_json
from bkspark.protocol.ledger.record import AddRecord, Made

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
        record = add_record.from_json(fields, self.ledger_id)
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
                add_record.part(int(stripe), int(size), digest.decode())
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
        return record if add_record.is_coherent(record) else None


def _pattern_of(model: AddRecord) -> re.Pattern[bytes]:
    """Return the pattern of similar headers; its groups are in the order of their JSON."""
    open_fields = {
        **dict.fromkeys(("first", "lac", "last", "length"), _NUMBER),
        "parts": [[_NUMBER, _NUMBER, _DIGEST]] * len(model.parts),
        "stored": [_NUMBER] * len(model.stored),
        commit_times.NAME: [_NUMBER] * 2,
    }
    fields = add_record.to_json(model) | open_fields
    pattern = re.escape(canonical_json(fields))
    for sentinel, what in _OPEN.items():
        pattern = pattern.replace(sentinel, what)
    return re.compile(pattern)
