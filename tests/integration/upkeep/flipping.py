"""Damaging bytes of copies, and what a scrub says of them."""

from typing import Any

from bkspark import verbs
from bkspark.admin.maintenance import Report
from bkspark.admin.noted_damage import NotedDamage
from bkspark.admin.scrubbing.look import ReadAll, Scrubbed
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.format import journal, layout
from bkspark.format.upkeep_records import Mark
from tests.integration.rig import Rig

SECRET = Password(literal="secret")
SECRETS = {"digest_type": "MAC", "password": "secret"}


def scrubbed(rig: Rig, **options: Any) -> Report:
    return verbs.scrub(rig.uri, **options)


def flip(rig: Rig, bookie_id: str, name: str, at: int) -> None:
    data = bytearray(rig.file_bytes(bookie_id, name))
    data[at] ^= 1
    rig.replace_file(bookie_id, name, bytes(data))


def journal_of(rig: Rig, bookie_id: str, ledger_id: int) -> str:
    folder = layout.journal_folder(ledger_id)
    [name] = [name for name in rig.names(bookie_id) if name.startswith(folder)]
    return name


def frames_of(rig: Rig, bookie_id: str, name: str) -> list[int]:
    """Where frames begin in a journal, its header among them, and where the last one ends."""
    data, begins = rig.file_bytes(bookie_id, name), [0]
    while begins[-1] < len(data):
        length = journal.frame_length(data, begins[-1], position=begins[-1])
        assert length is not None
        begins.append(begins[-1] + length)
    return begins


def marks(rig: Rig) -> dict[tuple[str, int], Mark]:
    with Cluster(rig.uri) as cluster:
        found = NotedDamage(cluster).marks(cluster.addresses())
    return {(member.bookie_id, ledger_id): mark for (member, ledger_id), mark in found.items()}


def places(report: Report) -> list[tuple[str, str]]:
    """(bookie, file) of all that is damaged, as often as it is."""
    return [(row["bookie_id"], row["file"]) for row in report.details["damage"]]


def read(rig: Rig, ledger_id: int, bookie_id: str, **options: Any) -> Scrubbed:
    """What one bookie says of one ledger, without any detour."""
    with Cluster(rig.uri) as cluster:
        address = cluster.address(cluster.bookie(bookie_id).value)
        ledger = cluster.ledger(ledger_id).value
    found = ReadAll(address, (ledger,), options.pop("password", Password()), **options).run()
    assert isinstance(found, Scrubbed)
    return found
