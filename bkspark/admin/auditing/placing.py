"""Whether ensembles are spread over failure domains as placement wants it."""

from collections.abc import Mapping

from bkspark.protocol.ledger.metadata import LedgerMetadata, Member


def misplaced(ledger: LedgerMetadata, domains: Mapping[Member, str]) -> str:
    """Why the placement of ``ledger`` is not kept, in one line; empty if it is.

    A domain gets its second member only when each has its first (placement, rule 1). Nothing is
    said of ensembles with members whose domain is not known any more.

    Args:
        domains: of the bookies that are registered.
    """
    available = len(set(domains.values()))
    for fragment in ledger.fragments:
        if all(member in domains for member in fragment.ensemble):
            used = len({domains[member] for member in fragment.ensemble})
            possible = min(len(fragment.ensemble), available)
            if used < possible:
                return (
                    f"fragment {fragment.first_entry_id} lies on {used} failure domains, and "
                    f"could on {possible}"
                )
    return ""
