"""Find and remove unfinished entry logs, left by tasks and repairs killed while writing.

Only members of closed ledgers are searched; a non-member's files are removed as a whole elsewhere.
No client looks up unfinished files, so they may be removed at any time ("leftovers"). But a repair
writing the file would have to begin again. So a file changed since the plan is left for the next
run, only to avoid duplicate work.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bkspark.admin.collecting.collection_plan import Unwanted
from bkspark.bookie.contract import BookieAddress, Usage
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError
from bkspark.format import layout
from bkspark.protocol.recovery.steps import Silence


@dataclass(frozen=True, slots=True)
class FindUnfinished:
    """Measure the unfinished files of some ledgers on one bookie; picklable."""

    address: BookieAddress
    ledger_ids: tuple[int, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> Mapping[int, Usage] | Silence:
        """Return usage by ledger id, for ledgers with unfinished files.

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
    """Remove unfinished files unchanged since the plan; picklable."""

    address: BookieAddress
    unwanted: tuple[Unwanted, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> Mapping[int, Usage | str]:
        """Return the removed files, or why files may remain, by ledger id.

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
