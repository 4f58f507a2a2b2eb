"""What long journals cost, honest ones and ones that only claim to be: memory is bounded.

Each is measured in a process of its own, whose address space ends before it would hold such a one.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.format import journal
from tests.thorough import always

MIB = 2**20
SPARSE_BYTES = 10 * 2**30
ADDRESS_SPACE_BYTES = 6 * 2**30

MEASURED = """
import resource, sys
from bkspark.cli import main
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
status = main(sys.argv[2:])
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(f"STATUS {status} GREW {grown // 1024}", file=sys.stderr)
"""


@pytest.fixture
def uri(tmp_path: Path) -> str:
    bookies = [tmp_path / f"disk-{number}" for number in (1, 2, 3)]
    for path in bookies:
        path.mkdir(mode=0o700)
    init_cluster(f"file://{tmp_path}/meta", [f"file://{path}" for path in bookies])
    return f"file://{tmp_path}/meta"


def measured(uri: str, *arguments: str) -> tuple[int, int, str]:
    """Exit status of a command, by how many MiB its process grew, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(ADDRESS_SPACE_BYTES), *arguments],
        env={**os.environ, "BKSPARK_METADATA_URI": uri},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert "MemoryError" not in done.stderr + done.stdout
    words = done.stderr.split()
    return int(words[-3]), int(words[-1]), done.stdout + done.stderr


def test_an_honest_ledger_of_inline_rows_does_not_cost_its_size(uri: str) -> None:
    with BookKeeper(uri) as keeper, keeper.create_ledger() as handle:
        for _ in range(36):
            handle.append_many([bytes(64 * 1024)] * 64)
    status, grown, shown = measured(uri, "audit")
    assert status == 0, shown
    assert grown < 60


def filled(data: bytes) -> bytes:
    """It ends in zeros, as what was allocated and never written does."""
    return data


def begins_a_record(data: bytes) -> bytes:
    """It claims that a record of all that begins, by a prefix that was made for it."""

    head = bytearray(data[: journal.PREFIX_BYTES])
    head[12:20] = (SPARSE_BYTES - 2 * MIB).to_bytes(8, "little")
    head[-4:] = journal._checksum(bytes(head[:-4]), len(data))
    return data + bytes(head)


@pytest.mark.thorough
@pytest.mark.parametrize("closes", always([True], [True, False]))
@pytest.mark.parametrize("damage", always([filled], [filled, begins_a_record]))
@pytest.mark.timeout(900)
def test_a_journal_that_claims_to_be_long_is_doubted_and_the_others_decide(
    damage: Callable[[bytes], bytes], closes: bool, uri: str, tmp_path: Path
) -> None:
    with BookKeeper(uri) as keeper:
        log = keeper.create_log("wal")
        handle = keeper.create_ledger()
        with log.writer() as writer:
            for number in range(5):
                handle.append(b"%d" % number)
                writer.append(b"%d" % number)
        if closes:
            handle.close()
    for path in (tmp_path / "disk-1").rglob("journal/*"):
        path.write_bytes(damage(path.read_bytes()))
        os.truncate(path, SPARSE_BYTES)
    ledger_id = str(handle.ledger_id)
    for command in (
        ("audit",),
        ("log", "read", "wal"),
        ("ledger", "recover", ledger_id),
        ("ledger", "read", ledger_id),
        ("log", "read", "wal", "--start", "3"),
    ):
        status, grown, shown = measured(uri, *command)
        assert status == (0 if command != ("audit",) else status), shown
        assert grown < 300, command
        if "read" in command:
            assert '"4"' in shown or "NA==" in shown or "4" in shown, shown
