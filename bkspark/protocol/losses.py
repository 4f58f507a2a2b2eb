"""Which confirmed entries are gone, or may be, because bookies are.

Rule 1. An entry is acknowledged on Qa members of its write set. Where fewer of them are gone, some
other member has it.

Rule 2. Where Qa or more are gone, it may have been on those only; where all Qw are, it was. Nobody
may find that out from a read that fails one day.

Rule 3. Which entries of a fragment lie on which write set only their records tell (a DataFrame's
rows are cut into stripes at the task's own offset), and the records may be gone as well. So a loss
names the fragment's entries and the members, not each entry.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from bkspark.protocol.ledger import Fragment, LedgerMetadata, Member


@dataclass(frozen=True, slots=True)
class Loss:
    """Those entries of ``[first, last]`` that lie on one write set of their fragment.

    Attributes:
        members: the write set, in write order.
        gone: its members that are gone, at least Qa of them.
    """

    first_entry_id: int
    last_entry_id: int
    members: tuple[Member, ...]
    gone: tuple[Member, ...]

    @property
    def is_certain(self) -> bool:
        """Whether no member is left that could have them."""
        return self.gone == self.members


def losses(ledger: LedgerMetadata, gone: Collection[Member], last_entry_id: int) -> list[Loss]:
    """What is, or may be, lost of the entries up to ``last_entry_id`` without the members ``gone``.

    Args:
        last_entry_id: the last confirmed entry, -1 if there is none.
    """
    ends = [fragment.first_entry_id - 1 for fragment in ledger.fragments[1:]]
    found: list[Loss] = []
    for fragment, end in zip(ledger.fragments, [*ends, last_entry_id], strict=True):
        found += _of_fragment(ledger, fragment, gone, end)
    return found


def _of_fragment(
    ledger: LedgerMetadata, fragment: Fragment, gone: Collection[Member], last_entry_id: int
) -> Iterator[Loss]:
    first = fragment.first_entry_id
    for write_set in ledger.quorum.write_sets() if first <= last_entry_id else ():
        members = tuple(fragment.ensemble[index] for index in write_set)
        missing = tuple(member for member in members if member in gone)
        if len(missing) >= ledger.quorum.ack_quorum_size:
            yield Loss(first, last_entry_id, members, missing)
