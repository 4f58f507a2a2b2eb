"""A directory that is a bookie, and what may happen to it in the middle of a post-check."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from bkspark.bookie import posix, uri
from bkspark.bookie import posix as posix_witness
from bkspark.bookie.contract import Bookie, BookieAddress
from bkspark.bookie.posix import PosixJournal, own_journal
from bkspark.format import layout
from bkspark.storage import posix_calls
from bkspark.testing.bookie_place import JOURNAL, LEDGER, MARKER, a_cookie
from tests.kit.faulty import FaultyOs

FENCE = layout.term_marker(LEDGER, 2)
TERMS = layout.terms_folder(LEDGER)
FOLDER = layout.ledger_folder(LEDGER)


class Scene:
    """A bookie on which a writer of term 1 has written its record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        uri.storage(path.as_uri()).format(a_cookie())
        self.address = BookieAddress("b1", "1" * 32, "c" * 32, path.as_uri())
        self.bookie: Bookie = uri.open_bookie(self.address)
        with self.bookie.open_root() as root:
            root.put_new(MARKER, b"")
            self.journal: PosixJournal = own_journal(root.open_journal(JOURNAL))
        self.journal.append([b"record"])

    def meet(self) -> None:
        """A check that says yes: the next ones know the directory."""
        assert self.is_surely_kept()
        assert self.journal.pinned is not None

    def fence(self) -> None:
        with self.bookie.open_root() as root:
            root.put_new(FENCE, b"")

    def ask(self) -> bool:
        return self.bookie.post_check(self.journal, fence=FENCE, permission=MARKER)

    def is_surely_kept(self) -> bool:
        """The short way alone."""
        return posix.surely_passes(self.address, self.journal, fence=FENCE, permission=MARKER)

    def swap_with(self, other: str) -> None:
        """Another directory stands under the bookie's path."""
        self.path.rename(self.path.with_name("away"))
        self.path.with_name(other).rename(self.path)


@contextmanager
def installed(system: FaultyOs) -> Iterator[FaultyOs]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (posix, posix_calls, posix_witness):
            patch.setattr(module, "os", system)
        yield system


@contextmanager
def whenever(happens: Mapping[str, Callable[[], object]]) -> Iterator[None]:
    """Something happens just before each look-up or opening of certain names."""
    system = FaultyOs()

    def fault(_now: int, _effect: object, _arguments: object) -> None:
        call, subject = system.trace[-1]
        if call in ("stat", "open"):
            happens.get(os.path.basename(subject), lambda: None)()

    system._fault = fault
    with installed(system):
        yield


@contextmanager
def just_before(
    name: str, happens: Callable[[], object], *, is_behind: bool = False
) -> Iterator[None]:
    """Something ``happens`` just before ``name`` is first looked up or opened, or just behind."""
    system, left = FaultyOs(), [happens]

    def fault(_now: int, _effect: object, _arguments: object) -> None:
        if is_behind and len(system.trace) < 2:
            return
        call, subject = system.trace[-2 if is_behind else -1]
        is_there = os.path.basename(subject) == os.path.basename(name)
        if call in ("stat", "open") and is_there and left:
            left.pop()()

    system._fault = fault
    with installed(system):
        yield


def put_behind_a_link(path: Path, *, to: Path) -> None:
    path.rename(to)
    path.symlink_to(to)
