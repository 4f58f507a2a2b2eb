"""Pages on which there is room for little, so that short logs have many: of this process only."""

from collections.abc import Iterator
from contextlib import contextmanager

from bkspark import environment
from bkspark.cluster.log_records import PageMemory


def forget_pages() -> None:
    """As in a new process, which makes pages as long as this one does."""
    memory = environment.the_one(PageMemory)
    memory.__init__(memory.page_length)  # type: ignore[misc]


@contextmanager
def pages_of(length: int) -> Iterator[None]:
    """Make pages of ``length`` for a while."""
    memory = environment.the_one(PageMemory)
    before, memory.page_length = memory.page_length, length
    try:
        yield
    finally:
        memory.page_length = before
