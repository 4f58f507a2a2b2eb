"""Which bookies hold an entry, and how many answers are enough.

Rule 1. Entry ``e`` belongs on the Qw members that follow index ``e mod E``, wrapping (BookKeeper's
protocol, "Write quorums"). With Qw = E there is a single write set, otherwise there are E.

Rule 2. An entry is acknowledged on any Qa members *of its own write set*; acks from elsewhere in
the ensemble do not count ("Ack quorums"; counting any Qa of E loses entries, H7).

Rule 3. A set of silent members is harmless while no write set has Qa members among them.
Equivalently, (Qw - Qa) + 1 members of every write set have answered ("Recovery"; RB-37).

Rule 4. If fewer than E bookies can be used, a ledger may be made on fewer, down to Qa. Qa stays as
wanted, so an acknowledged entry survives as many losses as in a ledger of full size. Qw stays too
if there are at least Qw bookies; otherwise E and Qw are the number of bookies.
"""

from collections.abc import Collection
from dataclasses import dataclass

from bkspark.errors import InvalidRequestError

ENSEMBLE_SIZE_MAX = 256
"""Far above any sensible ensemble; bounds the size requested by a hostile metadata record."""


@dataclass(frozen=True, slots=True)
class Quorum:
    """Ensemble size E >= write quorum Qw >= ack quorum Qa >= 1.

    Raises:
        InvalidRequestError: the three sizes are not in this order.
    """

    ensemble_size: int
    write_quorum_size: int
    ack_quorum_size: int

    def __post_init__(self) -> None:
        sizes = (self.ensemble_size, self.write_quorum_size, self.ack_quorum_size)
        if not ENSEMBLE_SIZE_MAX >= sizes[0] >= sizes[1] >= sizes[2] >= 1:
            raise InvalidRequestError(
                "quorum sizes must satisfy ensembleSize >= writeQuorumSize >= ackQuorumSize >= 1, "
                f"got {sizes[0]}, {sizes[1]}, {sizes[2]}",
                hint="for example 3, 3, 2",
            )

    def write_set(self, entry_id: int) -> tuple[int, ...]:
        """Return the ensemble indexes that hold ``entry_id``, in write order."""
        size = self.ensemble_size
        return tuple((entry_id + k) % size for k in range(self.write_quorum_size))

    @property
    def stripe_count(self) -> int:
        """Number of distinct write sets: 1 if every member holds every entry, else E."""
        return 1 if self.write_quorum_size == self.ensemble_size else self.ensemble_size

    def write_sets(self) -> tuple[tuple[int, ...], ...]:
        """Return every distinct write set; the one at position ``s`` starts at index ``s``."""
        return tuple(self.write_set(stripe) for stripe in range(self.stripe_count))

    @property
    def losses_max(self) -> int:
        """Members of a write set that may be lost for ever without losing an acknowledged entry."""
        return self.ack_quorum_size - 1

    def on_fewer(self, bookie_count: int) -> "Quorum":
        """Return the sizes of a ledger made on at most ``bookie_count`` bookies (rule 4).

        Raises:
            InvalidRequestError: ``bookie_count`` is less than Qa.
        """
        size = min(bookie_count, self.ensemble_size)
        return Quorum(size, min(size, self.write_quorum_size), self.ack_quorum_size)

    def is_ack_quorum(self, write_set: Collection[int], acked: Collection[int]) -> bool:
        """Whether Qa members of ``write_set`` are in ``acked`` (ensemble indexes)."""
        return sum(index in acked for index in write_set) >= self.ack_quorum_size

    def is_ack_quorum_of_all(self, acked: Collection[int]) -> bool:
        """Whether *every* write set has Qa members in ``acked``.

        This is the rule for a record that names entry logs: its rows may lie on any window, so
        every window must be able to prove that the record exists (H7, the rotation sub-trap).
        """
        return all(self.is_ack_quorum(write_set, acked) for write_set in self.write_sets())

    @property
    def full(self) -> "Quorum":
        """The same sizes with Qa = Qw: only all members of a write set are enough."""
        return Quorum(self.ensemble_size, self.write_quorum_size, self.write_quorum_size)

    def is_absent(self, write_set: Collection[int], absences: Collection[int]) -> bool:
        """Whether (Qw - Qa) + 1 members of ``write_set`` proved that they lack the entry."""
        proofs = sum(index in absences for index in write_set)
        return proofs >= self.write_quorum_size - self.ack_quorum_size + 1


DEFAULT_QUORUM = Quorum(3, 3, 2)
"""The sizes used when a user names none."""
