"""What must hold in every state of a scope, whatever led there.

The oracle watches each schedule that is run. States that are only known to be reached, from steps
that were seen in other schedules, are shown to it as pictures: what is on the disks, the metadata,
and what was acknowledged. What a step does to one place, or to one client alone (J1, J4, I5, I6,
R16), was seen by the oracle when the step was learnt, and is the same wherever it is made.
"""

from bkspark.bookie.memory import MemoryDisk, MemoryFile
from bkspark.format import cookie, layout, ledger_metadata
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.testing.faulty_cluster import METADATA
from tests.simulation.disks import URI
from tests.simulation.exhaustive.knowledge import Numbers
from tests.simulation.exhaustive.programs import Files, Programs
from tests.simulation.known import Ledger
from tests.simulation.oracle import Oracle


class Pictures:
    """Checks each picture once."""

    def __init__(self, programs: Programs, ledger_id: int) -> None:
        self._programs = programs
        self._ledger_id = ledger_id
        self._folder = f"{layout.journal_folder(ledger_id)}/"
        self._numbers = Numbers()
        self._journals: dict[int, int] = {}
        self._seen: set[tuple[tuple[int, ...], int]] = set()

    def require(self, contents: tuple[int, ...], acked: int) -> None:
        """Check what is at the places, with entries up to ``acked`` acknowledged.

        Raises:
            Violation: a promise is broken.
        """
        picture = (tuple(self._shown(content) for content in contents), acked)
        if picture not in self._seen:
            self._seen.add(picture)
            places = zip(self._programs.places, contents)
            _require({place: self._programs.contents[content] for place, content in places}, acked)

    def _shown(self, content: int) -> int:
        """A number for what the oracle looks at: records and metadata, no markers."""
        number = self._journals.get(content)
        if number is None:
            files = self._programs.contents[content]
            shown = tuple(file for file in files if file[2] or self._is_written(file))
            number = self._journals[content] = self._numbers[shown]
        return number

    def _is_written(self, file: tuple[str, bytes, int]) -> bool:
        return file[0].startswith(self._folder) and bool(file[1])


def _require(places: dict[str, Files], acked: int) -> None:
    ((key, encoded, _),) = places[METADATA]
    ledger_id = int(key.rpartition("/")[2], 16)
    ledger = Ledger(ledger_metadata.decode(ledger_id, encoded), acked=acked)
    oracle = Oracle(URI, checks_reasons=False)
    oracle.ledgers[ledger_id] = ledger
    for place, files in places.items():
        if place != METADATA:
            disk = MemoryDisk()
            disk.files.update({name: MemoryFile(data) for name, data, _ in files})
            made = cookie.decode(bytes(disk.files[layout.COOKIE].data))
            oracle.place(place, made.incarnation, disk)
            for name in disk.files:
                oracle._look_at(0, "-", place, name)
    oracle._require_copies(ledger, 0, acked, "acked", "I2")
    if ledger.metadata.state is LedgerState.CLOSED:
        oracle._require_end("-", ledger, was_open=False)
