"""The damage done by the demo: destroy one bookie, change a byte of another."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.format import layout
from bkspark.log.reading.ledger_files import OpenBookies, find_records, placed_logs
from bkspark.protocol.ledger.metadata import LedgerMetadata


@dataclass(frozen=True, slots=True)
class DemoDamage:
    """The damage done by the demo.

    Attributes:
        file: name of the corrupt file on its bookie.
        stripe: the stripe of the rows in the file.
    """

    destroyed: str
    corrupted: str
    file: str
    stripe: int


def do_damage(cluster: Cluster, ledger: LedgerMetadata) -> DemoDamage:
    """Destroy a bookie, and corrupt a file on its neighbour.

    The rows in the file then have only one good copy out of three.
    """
    with OpenBookies(cluster) as bookies:
        placed = next(iter(placed_logs(ledger, find_records(bookies, ledger, Password()))))
    corrupted, destroyed, _ = placed.window
    urls = {record.bookie_id: record.url for record in cluster.bookies().values()}
    shutil.rmtree(folder_of(urls[destroyed.bookie_id]))
    log = placed.entry_log
    name = layout.entry_log(ledger.ledger_id, log.attempt_id, log.stripe)
    _flip_a_bit(folder_of(urls[corrupted.bookie_id]) / name, log.index_offset // 2)
    return DemoDamage(destroyed.bookie_id, corrupted.bookie_id, name, log.stripe)


def folder_of(url: str) -> Path:
    """Return the directory of a ``file://`` URL."""
    return Path(unquote(urlsplit(url).path))


def bytes_in(folder: Path) -> int:
    """Return the bytes of all files below ``folder``; 0 if the folder is missing."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _flip_a_bit(path: Path, position: int) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        [byte] = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1]))
