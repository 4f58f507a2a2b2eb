"""The clients of a process, one to each store and account, made at first use.

A forked process makes its own: two processes must not share a connection.
"""

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_all: "weakref.WeakSet[Clients[Any]]" = weakref.WeakSet()
# Clients of the parent process: their end would close what the parent uses.
_inherited: list[Any] = []


class Clients(Generic[T]):
    """Clients by store and account.

    Args:
        make: makes the client of a store and an account.
        known: clients that are there already, by store.
    """

    def __init__(self, make: Callable[[str, str], T], known: Mapping[str, T] | None = None) -> None:
        self._make = make
        self.begin()
        self._made.update({(store, ""): client for store, client in (known or {}).items()})
        _all.add(self)

    def begin(self) -> None:
        """Have no clients, as after a fork."""
        self._made: dict[tuple[str, str], T] = {}
        self._making: dict[tuple[str, str], threading.Lock] = {}

    def of(self, store: str, account: str = "") -> T:
        """The client; a search for the credentials of another one is not waited for."""
        name = (store, account)
        if name not in self._made:
            with self._making.setdefault(name, threading.Lock()):
                if name not in self._made:
                    self._made[name] = self._make(store, account)
        return self._made[name]

    def known(self, store: str) -> T | None:
        """The client without an account, None if it was not made."""
        return self._made.get((store, ""))

    def have(self, store: str) -> bool:
        """Whether a client of the store was made."""
        return any(name == store for name, _ in list(self._made))

    def forked(self) -> None:
        _inherited.append(self._made)
        self.begin()


def have(store: str) -> bool:
    """Whether this process has a client of any kind for the store."""
    return any(clients.have(store) for clients in list(_all))


def forget() -> None:
    """Make all clients anew next time, for a process whose environment has changed."""
    for clients in list(_all):
        clients.begin()


def _after_fork() -> None:
    for clients in list(_all):
        clients.forked()


os.register_at_fork(after_in_child=_after_fork)
