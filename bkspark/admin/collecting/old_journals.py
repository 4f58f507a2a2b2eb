"""Find journals in which no entry counts any more, in ledgers truncated at the beginning.

``protocol.ledger.truncating`` (rule 4) defines such journals: their terms are older than all terms
still owning an entry. A ledger never regains its beginning, so a journal once found stays unneeded
for ever. A reader with older metadata finds no entry there and reads the metadata anew.

A journal stays if its bookie cannot forget it for good (``BookieRoot.forget_journal``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bkspark.admin.collecting.collection_plan import Unwanted
from bkspark.bookie.contract import BookieAddress, Usage
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError
from bkspark.format import layout
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.truncating import oldest_owner
from bkspark.protocol.recovery.steps import Silence


@dataclass(frozen=True, slots=True)
class FindOldJournals:
    """Find a bookie's journals of terms before ``terms``, by ledger id; picklable."""

    address: BookieAddress
    terms: Mapping[int, int]

    def run(self, beat: Heartbeat = no_heartbeat) -> Mapping[int, dict[str, int]] | Silence:
        """Return names and sizes by ledger id, for ledgers with such journals.

        Runs on: driver thread | executor.
        """
        found: dict[int, dict[str, int]] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger_id, term in self.terms.items():
                    folder = layout.journal_folder(ledger_id)
                    old = (one for one in root.list(folder) if 0 < layout.journal_term(one) < term)
                    names = [f"{folder}/{one}" for one in old if layout.is_journal(one)]
                    if names:
                        found[ledger_id] = {name: root.size(name) or 0 for name in names}
                    beat()
        except BookieUnavailableError as error:
            return Silence(str(error))
        return found


def old_journals(
    run: Runner,
    listed: Mapping[BookieAddress, frozenset[int]],
    ledgers: Sequence[LedgerMetadata],
) -> Iterator[Unwanted]:
    """Yield the old journals of ``ledgers`` on the bookies ``listed`` with files of them."""
    terms = {ledger.ledger_id: oldest_owner(ledger) for ledger in ledgers}
    terms = {ledger_id: term for ledger_id, term in terms.items() if term}
    looks = [
        FindOldJournals(address, {i: term for i, term in terms.items() if i in ids})
        for address, ids in listed.items()
        if not ids.isdisjoint(terms)
    ]
    for look, found in zip(looks, run(looks), strict=True):
        for ledger_id, sizes in found.items() if isinstance(found, Mapping) else ():
            usage = Usage(len(sizes), sum(sizes.values()))
            names = tuple(sorted(sizes))
            yield Unwanted(ledger_id, look.address.member, usage, names, is_journals=True)
