"""Who holds an entry, and how many answers are enough.

Rule 1. Entry ``e`` belongs on the Qw members that follow index ``e mod E``, wrapping
(BookKeeper's protocol, "Write quorums"). With Qw = E there is one such set,
otherwise there are E of them.

Rule 2. An entry is acknowledged on any Qa members *of its own write set*: acks from elsewhere in
the ensemble count for nothing ("Ack quorums"; any Qa of E loses entries, H7).

Rule 3. A set of silent members is harmless while no write set has Qa members among them, which is
the same as (Qw - Qa) + 1 answers from every write set ("Recovery"; RB-37).

Rule 4. Where fewer bookies than E can be used, a ledger may be made with fewer, down to Qa. Qa
stays as it is wanted, so an acknowledged entry survives as many losses as in a ledger of full size.
Qw stays too where there are so many bookies; else E and Qw are the number of bookies.
"""

from collections.abc import Collection
from dataclasses import dataclass

from bkspark.errors import InvalidRequestError

ENSEMBLE_SIZE_MAX = 256
"""Far above any sensible ensemble; bounds what a hostile metadata record can ask for."""


@dataclass(frozen=True, slots=True)
class Quorum:
    """Ensemble size E >= write quorum Qw >= ack quorum Qa >= 1.

    Raises:
        InvalidRequestError: the three sizes are not in that order.
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
        """Ensemble indexes that hold ``entry_id``, in write order."""
        size = self.ensemble_size
        return tuple((entry_id + k) % size for k in range(self.write_quorum_size))

    @property
    def stripe_count(self) -> int:
        """Number of distinct write sets: 1 if every member holds every entry, else E."""
        return 1 if self.write_quorum_size == self.ensemble_size else self.ensemble_size

    def write_sets(self) -> tuple[tuple[int, ...], ...]:
        """Every distinct write set; the one at position ``s`` starts at index ``s``."""
        return tuple(self.write_set(stripe) for stripe in range(self.stripe_count))

    @property
    def losses_max(self) -> int:
        """Members of a write set that may be lost for ever without losing an acknowledged entry."""
        return self.ack_quorum_size - 1

    def on_fewer(self, bookie_count: int) -> "Quorum":
        """The sizes of a ledger that is made on ``bookie_count`` bookies at most (rule 4).

        Raises:
            InvalidRequestError: that are fewer than Qa.
        """
        size = min(bookie_count, self.ensemble_size)
        return Quorum(size, min(size, self.write_quorum_size), self.ack_quorum_size)

    def is_ack_quorum(self, write_set: Collection[int], acked: Collection[int]) -> bool:
        """Whether Qa members of ``write_set`` are in ``acked`` (ensemble indexes)."""
        return sum(index in acked for index in write_set) >= self.ack_quorum_size

    def is_ack_quorum_of_all(self, acked: Collection[int]) -> bool:
        """Whether *every* write set has Qa members in ``acked``.

        The rule for a record that names entry logs: its rows may lie on any window, so every
        window must be able to prove that the record exists (H7, the rotation sub-trap).
        """
        return all(self.is_ack_quorum(write_set, acked) for write_set in self.write_sets())

    @property
    def full(self) -> "Quorum":
        """The same where nothing less than all of a write set is enough."""
        return Quorum(self.ensemble_size, self.write_quorum_size, self.write_quorum_size)

    def is_absent(self, write_set: Collection[int], absences: Collection[int]) -> bool:
        """Whether (Qw - Qa) + 1 members of ``write_set`` proved that they lack the entry."""
        proofs = sum(index in absences for index in write_set)
        return proofs >= self.write_quorum_size - self.ack_quorum_size + 1


DEFAULT_QUORUM = Quorum(3, 3, 2)
"""What is taken where a user names no sizes."""
