"""Ledgers of which something is taken away, and what an audit says of them."""

from typing import Any

from bkspark import verbs
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.format import layout
from tests.integration.rig import Rig, partitions_of
from tests.integration.waiting import wait_for_all_copies

PARTITIONS = partitions_of(11, 5)
ENTRIES = 12
CHECKED = "NUM_LEDGERS_CHECKED"


def audited(rig: Rig, **options: Any) -> Report:
    return verbs.audit(rig.uri, **options)


def written(rig: Rig, sizes: tuple[int, int, int] = (3, 3, 2), **options: Any) -> int:
    """A closed ledger of bytes, one entry to a record; its id."""
    ensemble, write, ack = sizes
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(
            ensemble_size=ensemble, write_quorum_size=write, ack_quorum_size=ack, **options
        )
        for number in range(ENTRIES):
            handle.append(b"%d" % number)
        wait_for_all_copies(handle)
        handle.close()
    return handle.ledger_id


def members(rig: Rig, ledger_id: int) -> list[str]:
    return [member.bookie_id for member in rig.ledger(ledger_id).last_fragment.ensemble]


def take(rig: Rig, bookie_id: str, word: str, ledger_id: int | None = None) -> list[str]:
    """Remove the files of a bookie whose names have ``word``; those that were removed."""
    folder = "" if ledger_id is None else layout.ledger_folder(ledger_id)
    found = [n for n in rig.names(bookie_id) if word in n and n.startswith(folder)]
    for name in found:
        rig.replace_file(bookie_id, name, None)
    assert found
    return found


def copies(report: Report) -> list[tuple[Any, ...]]:
    """(bookie, first, last, class, whether that is unknown) of all that is missing."""
    keys = ("bookie_id", "first_entry_id", "last_entry_id", "copies", "is_unknown")
    return sorted(tuple(row[key] for key in keys) for row in report.details["copies"])
