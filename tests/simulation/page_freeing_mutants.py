"""Rules of freeing pages, broken in the real code.

Each of the two rules alone keeps a page that is needed; so both are broken.
"""

from typing import Any

from bkspark.admin.collecting import garbage
from bkspark.admin.collecting.garbage import SpentPages
from bkspark.errors import CorruptDataError

from .mutants import Change


def all_unnamed(self: SpentPages, log_name: str) -> set[str]:
    seen = self._cluster.logs.get(log_name)
    names = set(self._cluster.logs.pages(log_name).names())
    return names - {page.name for page in seen.value.every_page()} if seen else set()


def all_there(self: SpentPages, log_name: str) -> set[str]:
    return set(self._cluster.logs.pages(log_name).names())


def named_by_nothing(_record: Any) -> set[str]:
    return set()


def without_a_change(self: SpentPages, log_name: str, names: Any) -> int:
    seen, pages = self._cluster.logs.get(log_name), self._cluster.logs.pages(log_name)
    try:
        spent = set(names) - {page.name for page in seen.value.every_page()} if seen else set()
    except CorruptDataError:
        return 0
    for name in sorted(spent):
        pages.remove(name)
    return len(spent)


PAGE_FREEING_MUTANTS: dict[str, tuple[Change, ...]] = {
    "pages of ledgers that stay go, and nobody who names them loses": (
        (SpentPages, "_spent", all_unnamed),
        (SpentPages, "_free", without_a_change),
    ),
    "pages of ledgers that stay go, whatever names them": (
        (SpentPages, "_spent", all_there),
        (garbage, "_named", named_by_nothing),
    ),
}
