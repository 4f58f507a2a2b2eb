"""Describe an unreadable page of a log, and find out whether the log names the page."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import UNREAD
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.protocol.log.ledger_list import LogPage, PageSource, pages_of
from bkspark.protocol.log.record import LogRecord

_BRING_BACK = "bring it back from a copy of the metadata store"


@dataclass(frozen=True, slots=True)
class PageDescription:
    """What depends on an unreadable page, and what to do.

    Attributes:
        is_unnamed: whether the log surely does not name the page.
    """

    rests: str
    way_out: str
    is_unnamed: bool = False


def describe_page(cluster: Cluster, log_name: str, name: str) -> PageDescription:
    """Describe the unreadable page ``name`` of a log by the log's record and its other pages."""
    unsure = PageDescription(
        "the older ledgers of the log",
        f"{_BRING_BACK}; once the other records of log {log_name} can be read, `bkspark metadata "
        "damaged` says more",
    )
    with suppress(BookKeeperError):  # the log's record is unreadable, and listed itself
        log = cluster.log(log_name).value
        page, is_sure = _found(pages_of(log.older), log.source, name)
        if page is not None:
            return PageDescription(
                f"offsets {page.first_offset} to {page.end_offset - 1} of log {log_name}",
                f"{_BRING_BACK}, or give up all rows of log {log_name} up to the end of the page: "
                f"`bkspark log truncate {log_name} --before {page.end_offset}`",
            )
        page, is_dropped_sure = _found(log.dropped.all_pages, log.source, name)
        if page is not None:
            return PageDescription(
                f"which dropped ledgers of log {log_name} are freed", _BRING_BACK
            )
        if is_sure and is_dropped_sure:
            return _unnamed(log_name, name)
    with suppress(BookKeeperError):
        if cluster.logs.get(log_name) is None:
            return _unnamed(log_name, name)
    return unsure


def require_unnamed(cluster: Cluster, log_name: str, name: str) -> None:
    """Make sure that no record of the log names the page, now or later.

    The unchanged record is stored by compare-and-set: a client that made the page before then loses
    its own change.

    Raises:
        InvalidRequestError: the log may name the page.
        MetadataVersionError: another client has changed the log meanwhile.
    """
    seen = cluster.logs.get(log_name)
    if seen is None:
        return
    if not _is_unnamed(seen.value, name):
        raise InvalidRequestError(
            f"log {log_name} may name page {name}",
            hint="`bkspark metadata damaged` says what to do",
        )
    cluster.logs.replace(log_name, seen.value, seen)


def _is_unnamed(log: LogRecord, name: str) -> bool:
    pages = (*pages_of(log.older), *log.dropped.all_pages)
    return _found(pages, log.source, name) == (None, True)


def _unnamed(log_name: str, name: str) -> PageDescription:
    key = f"pages/{log_name}/{name}"
    return PageDescription(
        f"nothing: log {log_name} does not name the page",
        f"`bkspark metadata set-aside {key}`",
        is_unnamed=True,
    )


def _found(pages: Iterable[LogPage], source: PageSource, name: str) -> tuple[LogPage | None, bool]:
    """Return the reference to the page, if any of ``pages`` is or has it; and whether all others
    could be read.
    """
    is_sure = True
    for page in pages:
        if page.name == name:
            return page, True
        if page.may_have_pages:
            try:
                found, is_below_sure = _found(source.contents(page).pages, source, name)
            except UNREAD:
                found, is_below_sure = None, False
            if found is not None:
                return found, True
            is_sure = is_sure and is_below_sure
    return None, is_sure
