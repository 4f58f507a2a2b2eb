"""A stand-in for the module ``os``: records calls to storage, and makes a call fail.

A test replaces the name ``os`` in the modules under test. ``fail_at`` makes a call raise an error;
``crash_at`` acts as if the process had died at the call: no clean-up reaches the disk. An fsync is
recorded, not done: tests check its place in the order of calls.
"""

import os
from collections.abc import Callable
from typing import Any

from bkspark.testing.faulty import Moment

CALLS = frozenset(
    {"open", "mkdir", "write", "writev", "fsync", "fdatasync", "link", "unlink"}
    | {"pread", "stat", "fstat", "fstatvfs", "scandir", "dup"}
)


_SYNCS = frozenset({"fsync", "fdatasync"})


class Crash(BaseException):
    """The death of the process; not an ``Exception``, so that no handler catches it."""


class FaultyOs:
    """``os`` with counted calls.

    Attributes:
        trace: (call, subject) of each call of ``CALLS``; the subject is the call's name argument,
            or the name under which its descriptor was opened.
    """

    def __init__(self) -> None:
        self.trace: list[tuple[str, str]] = []
        self._names: dict[int, str] = {}
        self._open: set[int] = set()
        self._fault: Callable[[int, Callable[[], object], list[Any]], None] = _no_fault
        self._is_dead = False

    def fail_at(self, number: int, error: int) -> None:
        """Make call ``number`` (from 0) raise ``OSError(error)`` without effect."""

        def fault(now: int, _effect: Callable[[], object], _arguments: list[Any]) -> None:
            if now == number:
                raise OSError(error, os.strerror(error))

        self._fault = fault

    def crash_at(self, number: int, moment: Moment) -> None:
        """Die at call ``number``: before it, after it, or with half of a write done."""

        def fault(now: int, effect: Callable[[], object], arguments: list[Any]) -> None:
            if now != number:
                return
            self._is_dead = True
            if moment is Moment.AFTER:
                effect()
            elif moment is Moment.HALF:
                _write_half(self.trace[-1][0], arguments)
            raise Crash

        self._fault = fault

    def close_all(self) -> None:
        """Close the descriptors that a dead process left open."""
        while self._open:
            os.close(self._open.pop())

    def close(self, descriptor: int) -> None:
        self._open.discard(descriptor)
        os.close(descriptor)

    def __getattr__(self, call: str) -> Any:
        real = _no_sync if call in _SYNCS else getattr(os, call)
        if call not in CALLS:
            return real

        def recorded(*arguments: Any, **options: Any) -> Any:
            return self._call(call, real, list(arguments), options)

        return recorded

    def _call(self, call: str, real: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
        if self._is_dead:
            raise Crash
        first = arguments[0]
        name = self._names.get(first, "?") if isinstance(first, int) else str(first)
        self.trace.append((call, name))
        self._fault(len(self.trace) - 1, lambda: real(*arguments, **options), arguments)
        result = real(*arguments, **options)
        if call in ("open", "dup"):
            self._open.add(result)
            self._names[result] = name
        return result


def _no_sync(_descriptor: int) -> None:
    return None


def _no_fault(_number: int, _effect: Callable[[], object], _arguments: list[Any]) -> None:
    return None


def _write_half(call: str, arguments: list[Any]) -> None:
    if call == "write":
        data = bytes(arguments[1])
    elif call == "writev":
        data = b"".join(arguments[1])
    else:
        return
    os.write(arguments[0], data[: len(data) // 2])
