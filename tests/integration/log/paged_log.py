"""What tests of logs with pages have in common."""

from bkspark import environment
from bkspark.cluster.log_records import PageMemory


def forget_pages() -> None:
    """As in a new process."""
    environment.the_one(PageMemory).__init__()  # type: ignore[misc]
