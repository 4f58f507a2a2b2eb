"""What is remembered of states that were looked at: a number each, by a fingerprint of 64 bits.

Hundreds of millions of states do not fit into memory as they are, so only a digest of each is kept,
as in TLC: a state is taken for one that was seen if its digest is the same. Two different states
have the same digest by chance only, so ``n`` of them hide one from the search with a probability
below ``n * n / 2 ** 65``: 3e-6 for ten million, 3e-4 for a hundred million. ``odds`` says it; where
that matters, a ``dict`` can stand in for the table, and keeps all of every state.
"""

from array import array
from hashlib import blake2b

_SMALLEST = 1 << 10
_FULL = 2 / 3
"""Open addressing gets slow above."""


class Fingerprints:
    """A table from keys to numbers below 2 ** 32, with 12 bytes for each of its places."""

    def __init__(self) -> None:
        self._count = 0
        self._make(_SMALLEST)

    def get(self, key: bytes) -> int | None:
        print_ = _fingerprint(key)
        prints, mask = self._prints, self._mask
        at = print_ & mask
        while found := prints[at]:
            if found == print_:
                return self._numbers[at]
            at = at + 1 & mask
        return None

    def __setitem__(self, key: bytes, number: int) -> None:
        self._put(_fingerprint(key), number)
        if self._count > _FULL * len(self._prints):
            self._grow()

    def __len__(self) -> int:
        return self._count

    def _put(self, print_: int, number: int) -> None:
        prints, mask = self._prints, self._mask
        at = print_ & mask
        while (found := prints[at]) and found != print_:
            at = at + 1 & mask
        if not found:
            prints[at] = print_
            self._count += 1
        self._numbers[at] = number

    def _make(self, places: int) -> None:
        self._prints, self._numbers = array("Q", [0]) * places, array("I", [0]) * places
        self._mask = places - 1

    def _grow(self) -> None:
        prints, numbers = self._prints, self._numbers
        self._count = 0
        self._make(2 * len(prints))
        for print_, number in zip(prints, numbers):
            if print_:
                self._put(print_, number)


def odds(count: int) -> float:
    """How probable it is, at most, that two of so many fingerprints are the same by chance."""
    return count * count / 2**65


def _fingerprint(key: bytes) -> int:
    """A digest of 64 bits; never 0, which marks a free place."""
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "little") or 1
