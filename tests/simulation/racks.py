"""Racks of bookies, and what a ledger that insists on racks may do.

How many racks a write set has is counted here once more, not with the functions of the client.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from bkspark.format.layout import COOKIE
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from tests.simulation.known import Place
from tests.simulation.scheduler import Violation

RACK = "rack"
WANTED = {RACK: 2}
"""What the ledgers insist on."""

NOWHERE = ""
"""The rack of a bookie without the label."""

_RACKS = "abc"


def draw_racks(seed: int, quorum: Quorum, bookie_ids: Sequence[str]) -> dict[str, str]:
    """Give each bookie a rack, so that the first bookies can be an ensemble.

    Where two of three members have a copy, each must be in a rack of its own. Elsewhere two racks
    are enough. A spare bookie is in any rack, or in none.
    """
    own = Random(f"racks {seed}")
    needed = 3 if (quorum.ensemble_size, quorum.write_quorum_size) == (3, 2) else 2
    racks = [_RACKS[index % needed] for index in range(quorum.ensemble_size)]
    spares = len(bookie_ids) - len(racks)
    return dict(zip(bookie_ids, [*racks, *own.choices([*_RACKS, NOWHERE], k=spares)], strict=True))


@dataclass(frozen=True)
class _Change:
    """A change of the members of a fragment.

    Attributes:
        least: how many racks each write set is to have.
    """

    quorum: Quorum
    old: tuple[Member, ...]
    new: tuple[Member, ...]
    least: int


@dataclass
class RackWatch:
    """What may become of ensembles of ledgers that insist on racks.

    Attributes:
        racks: by bookie id; empty if no ledger insists.
        is_calm: whether each bookie with a disk of its own answers by now.
        changes: places of such ledgers that were given to other bookies.
        losses: changes of a recovery that left a write set fewer racks than it had.
        earlier: ensembles that fragments had before: (ledger id, members).
    """

    racks: Mapping[str, str] = field(default_factory=dict)
    is_calm: bool = False
    changes: int = 0
    losses: int = 0
    earlier: set[tuple[int, tuple[Member, ...]]] = field(default_factory=set)

    def made(self, ledger: LedgerMetadata) -> None:
        """A new ledger has as many racks in each write set as it insists on."""
        least = ledger.settings.min_distinct.get(RACK, 0)
        for fragment in ledger.fragments:
            if min(self._counts(ledger.quorum, fragment.ensemble), default=0) < least:
                raise Violation(f"{ledger} is made in too few racks of {self.racks} (apart, 2)")

    def changed(
        self, before: LedgerMetadata, after: LedgerMetadata, places: Mapping[str, Place]
    ) -> None:
        """No change leaves a write set fewer racks, unless a recovery has no other bookie.

        A repair may take its own change back: it is not sure that the new bookie still answers.

        Args:
            places: the disks of all bookies.
        """
        least = after.settings.min_distinct.get(RACK, 0)
        if not least or before.quorum != after.quorum:
            return  # A widening adds members to each write set.
        for old, new in _pairs(before, after):
            change = _Change(after.quorum, old, new, least)
            self.changes += old != new
            self.earlier.add((before.ledger_id, old))
            is_back = (after.ledger_id, new) in self.earlier
            if is_back or self._is_kept(change, places):
                continue
            if LedgerState.IN_RECOVERY not in (before.state, after.state):
                raise Violation(f"{old} become {new}, racks are {self.racks} (apart, 3)")
            self.losses += 1
            better = self._better(change, places) if self.is_calm else None
            if better is not None:
                raise Violation(f"{old} become {new}, {better} would keep racks (apart, 5)")

    def _is_kept(self, change: _Change, places: Mapping[str, Place]) -> bool:
        """Whether each write set has as many racks as before, or as wanted.

        A client counts no rack of a bookie that it knows to have been set up again. So the change
        may be right with or without the racks of those.
        """
        again = {
            member.bookie_id
            for member in (*change.old, *change.new)
            if places[member.bookie_id].incarnation != member.incarnation
        }
        return any(
            all(
                now >= min(was, change.least)
                for was, now in zip(
                    self._counts(change.quorum, change.old, without),
                    self._counts(change.quorum, change.new, without),
                    strict=True,
                )
            )
            for without in ((), again)
        )

    def _better(self, change: _Change, places: Mapping[str, Place]) -> str | None:
        """A bookie that keeps the racks at the only place that a recovery has changed."""
        changed = [
            index for index, pair in enumerate(zip(change.old, change.new)) if len({*pair}) > 1
        ]
        if len(changed) != 1:
            return None
        used = {member.bookie_id for member in (*change.old, *change.new)}
        for bookie_id in self.racks.keys() - used:
            place = places[bookie_id]
            members = list(change.new)
            members[changed[0]] = Member(bookie_id, place.incarnation)
            other = replace(change, new=tuple(members))
            if COOKIE in place.disk.files and self._is_kept(other, places):
                return bookie_id
        return None

    def _counts(
        self, quorum: Quorum, ensemble: Iterable[Member], without: Collection[str] = ()
    ) -> list[int]:
        """How many racks each write set has."""
        racks = [
            NOWHERE if member.bookie_id in without else self.racks.get(member.bookie_id, NOWHERE)
            for member in ensemble
        ]
        size, width = quorum.ensemble_size, quorum.write_quorum_size
        rings = ([racks[(first + step) % size] for step in range(width)] for first in range(size))
        return [len({*ring} - {NOWHERE}) for ring in rings]


def _pairs(
    before: LedgerMetadata, after: LedgerMetadata
) -> Iterator[tuple[tuple[Member, ...], tuple[Member, ...]]]:
    """The members of each fragment, and what they were before."""
    for fragment in after.fragments:
        yield _at(before.fragments, fragment.first_entry_id).ensemble, fragment.ensemble


def _at(fragments: Sequence[Fragment], entry_id: int) -> Fragment:
    """The fragment that has the entry; the first one if it begins after it."""
    fitting = [one for one in fragments if one.first_entry_id <= entry_id]
    return fitting[-1] if fitting else fragments[0]
