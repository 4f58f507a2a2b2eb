"""Check the spread of ensembles over failure domains."""

from collections.abc import Mapping

from bkspark.protocol.ledger.metadata import LedgerMetadata, Member


def misplaced(ledger: LedgerMetadata, domains: Mapping[Member, str]) -> str:
    """Return how ``ledger`` violates placement, in one line; empty if placed well.

    A domain gets a second member only after each domain has its first (placement, rule 1).
    Ensembles including members of unknown domain are not judged.

    Args:
        domains: failure domains of the registered bookies.
    """
    available = len(set(domains.values()))
    for fragment in ledger.fragments:
        if all(member in domains for member in fragment.ensemble):
            used = len({domains[member] for member in fragment.ensemble})
            possible = min(len(fragment.ensemble), available)
            if used < possible:
                return (
                    f"fragment {fragment.first_entry_id} lies on {used} failure domains, and "
                    f"{possible} are possible"
                )
    return ""
