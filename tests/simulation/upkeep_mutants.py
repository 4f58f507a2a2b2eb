"""Single rules of freeing what nobody wants, broken in the real code."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from bkspark.admin.collecting import unwanted
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep import repairing

from .mutants import Change, nothing


def unchanged(ledger: LedgerMetadata, _members: object) -> LedgerMetadata:
    return ledger


def only_these(ledger: LedgerMetadata, members: Collection[Member]) -> LedgerMetadata:
    return replace(ledger, left=frozenset(members))


def whoever_has_any(ledger: LedgerMetadata, holders: Collection[Member], _free: object) -> Any:
    return set(holders) if ledger.state is LedgerState.CLOSED else set()


def of_any_state(ledger: LedgerMetadata, holders: Collection[Member], _free: object) -> Any:
    return set(holders) - set(Locations(ledger).members)


def nobody(*_: object) -> set[str]:
    return set()


def also_of_open_ones(self: Any, ledgers: Any, listed: Any) -> Any:
    """Bookies are asked about ledgers that are not closed as well."""
    cluster = self._cluster
    return REAL_FOUND(
        self, [one.value for one in map(cluster.ledger, cluster.ledger_ids())], listed
    )


def remembering(self: Any, cluster: Any, *args: Any) -> None:
    REAL_INIT(self, cluster, *args)
    self._cluster = cluster


REAL_FOUND, REAL_INIT = unwanted.LeftoverFinder.found, unwanted.LeftoverFinder.__init__

UNCHECKED: Change = (LedgerMetadata, "_check_fragments", nothing)

UPKEEP_MUTANTS: dict[str, tuple[Change, ...]] = {
    "copies go before the record says who has left": ((unwanted, "left_by", unchanged),),
    "copies go that a fragment names": (
        (unwanted, "left_by", unchanged),
        (unwanted, "leavers", whoever_has_any),
        (unwanted, "leavers", whoever_has_any),
    ),
    "copies of ledgers that are not closed go": (
        (unwanted, "left_by", unchanged),
        (unwanted, "leavers", of_any_state),
        (unwanted, "leavers", of_any_state),
        (unwanted.LeftoverFinder, "__init__", remembering),
        (unwanted.LeftoverFinder, "found", also_of_open_ones),
    ),
    "who has left is given a place": ((repairing, "barred", nobody), UNCHECKED),
    "who has left is forgotten": ((unwanted, "left_by", only_these),),
}
