"""Sets of entries as ranges: required entries, present entries, and the difference.

A range is (first, last), both inclusive. If the write set is smaller than the ensemble, a member
holds only some entries of a range; the range then means the member's own entries.
"""

from collections.abc import Iterable, Iterator

from bkspark.protocol.ledger.quorum import Quorum

Range = tuple[int, int]


def difference(wanted: Range, held: Iterable[Range]) -> list[Range]:
    """Return the parts of ``wanted`` in none of ``held``, ascending."""
    missing: list[Range] = []
    first, last = wanted
    for begin, end in sorted(held):
        if begin > last:
            break
        if begin > first:
            missing.append((first, begin - 1))
        first = max(first, end + 1)
    if first <= last:
        missing.append((first, last))
    return missing


def own_part(entries: Range, index: int, quorum: Quorum) -> Range | None:
    """Return ``entries`` cut to the first and last entry of ensemble index ``index``, if any."""
    first, last = entries
    size = quorum.ensemble_size
    front = next(
        (e for e in range(first, min(last, first + size) + 1) if _is_on(e, index, quorum)), None
    )
    if front is None:
        return None
    back = next(e for e in range(last, front - 1, -1) if _is_on(e, index, quorum))
    return front, back


def has_entry_of(entries: Range, stripe: int, quorum: Quorum) -> bool:
    """Return whether any of ``entries`` belongs to the stripe."""
    first, last = entries
    return (stripe - first) % quorum.stripe_count <= last - first


def cut(ranges: Iterable[Range]) -> Iterator[Range]:
    """Yield the ranges cut at every begin and end, each piece once, ascending."""
    known = set(ranges)
    begins = sorted({b for begin, end in known for b in (begin, end + 1)})
    for begin, following in zip(begins, begins[1:]):
        if any(first <= begin <= last for first, last in known):
            yield begin, following - 1


def is_within(piece: Range, ranges: Iterable[Range]) -> bool:
    """Return whether a single range of ``ranges`` holds all of ``piece``."""
    return any(first <= piece[0] and piece[1] <= last for first, last in ranges)


def _is_on(entry_id: int, index: int, quorum: Quorum) -> bool:
    return (index - entry_id) % quorum.ensemble_size < quorum.write_quorum_size
