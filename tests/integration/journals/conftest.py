"""One journal, written by hand, and the bookie that it is on."""

from collections.abc import Iterator

import pytest

from bkspark.bookie.contract import BookieRoot
from bkspark.bookie.uri import open_bookie
from tests.integration.hand_writer import HandWriter
from tests.integration.rig import Rig


@pytest.fixture
def writer(memory_rig: Rig) -> HandWriter:
    """1/1/1 with twelve entries, of which the last three are unconfirmed."""
    writer = HandWriter(memory_rig, (1, 1, 1))
    for number in range(12):
        writer.add(0, acknowledges=number < 9)
    return writer


@pytest.fixture
def root(writer: HandWriter) -> Iterator[BookieRoot]:
    with open_bookie(writer._address(0)).open_root() as root:
        yield root
