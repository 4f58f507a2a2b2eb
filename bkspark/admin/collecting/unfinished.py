"""Entry logs that were begun and never finished: of tasks and repairs that were killed in mid-file.

Of closed ledgers, on their members; what others have of one goes as a whole. Nobody looks such a
file up, so it may be removed at any time ("leftovers"); but a repair that is at work on it would
have to begin again. So one that is not as it was when the plan was made is left for the next time.
That is manners.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bkspark.admin.collecting.plan import Unwanted
from bkspark.bookie.contract import BookieAddress, Usage
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError
from bkspark.format import layout
from bkspark.protocol.recovery.steps import Silence


@dataclass(frozen=True, slots=True)
class FindUnfinished:
    """How much was begun on one bookie of some ledgers; picklable."""

    address: BookieAddress
    ledger_ids: tuple[int, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> Mapping[int, Usage] | Silence:
        """By ledger id, of those of which there is something.

        Runs on: driver thread | executor.
        """
        found: dict[int, Usage] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger_id in self.ledger_ids:
                    usage = root.unfinished(layout.entries_folder(ledger_id))
                    if usage.files:
                        found[ledger_id] = usage
                    beat()
        except BookieUnavailableError as error:
            return Silence(str(error))
        return found


@dataclass(frozen=True, slots=True)
class FreeUnfinished:
    """Remove what was begun and is as it was; picklable."""

    address: BookieAddress
    unwanted: tuple[Unwanted, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> Mapping[int, Usage | str]:
        """By ledger id: what is removed, or why something may be left.

        Runs on: driver thread | executor.
        """
        done: dict[int, Usage | str] = {}
        for one in self.unwanted:
            folder = layout.entries_folder(one.ledger_id)
            try:
                with open_bookie(self.address).open_root() as root:
                    is_same = root.unfinished(folder) == one.usage
                    if is_same and root.sweep(folder) == one.usage.files:
                        done[one.ledger_id] = one.usage
            except BookieUnavailableError as error:
                done[one.ledger_id] = str(error)
            beat()
        return done
