"""One operation inside another one, at each point at which that can make a difference.

What came of it must be what comes of the two one after the other, step by step, where either may
have given up with an error that it may report: a step that returned was done, a step that was
refused was not, and only one whose outcome is unknown may be either.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

from bkspark.errors import BookKeeperError, OutcomeUnknownError

from .operations import Operation
from .scene import Seen, require_sound, scene, see, tidy_up
from .world import Call, Contents, Footprint, Outcome, World


@dataclass(frozen=True)
class Ending:
    """How two operations may end: how many steps of each are done, and what is seen then.

    Attributes:
        is_behind: whether the outer one began when the inner one had ended.
        refused: whether a step of each was refused, though nobody else was at work.
    """

    done: tuple[int, int]
    seen: Seen
    told: tuple[list[tuple[str, int]], list[tuple[str, int]]]
    is_behind: bool
    refused: tuple[bool, bool]


@dataclass
class Result:
    """What came of ``inner`` inside ``outer``.

    Attributes:
        has_begun: whether ``outer`` had read the record that it is about.
    """

    outer: Outcome
    inner: Outcome
    point: str
    has_begun: bool = False


@cache
def prepared(set_ups: tuple[Callable[[World], Iterator[object]], ...]) -> Contents | None:
    """The scene, and what was done to it before; None if that cannot be done together."""
    world, contents = scene()
    if not set_ups:
        return contents
    world.restore(contents)
    for number, set_up in enumerate(set_ups):
        outcome = world.run(f"set-up-{number}", set_up(world))
        if isinstance(outcome.error, BookKeeperError):
            return None
        assert outcome.error is None, outcome.error
    return world.contents()


_traces: dict[object, tuple[list[Call], Footprint]] = {}


class Pair:
    """Two operations of different clients; the first is interrupted by the other, at some point."""

    def __init__(self, outer: Operation, inner: Operation) -> None:
        self.outer = outer
        self.inner = inner
        set_ups = dict.fromkeys(one.set_up for one in (outer, inner) if one.set_up is not None)
        self._set_ups = tuple(set_ups)
        self.world = scene()[0]
        self._contents = prepared(self._set_ups)
        self._counts: tuple[int, int] | None = None
        self._known: dict[tuple[int, bool, int | None], Ending] = {}

    @property
    def inner_changes_generation(self) -> bool:
        """Of the log that the outer one is about."""
        self._restore()
        before = self._generation_of(see(self.world))
        return self._generation_of(self._known_ending(0, False, None).seen) != before

    def _generation_of(self, seen: Seen) -> object:
        log = seen.get(self.outer.key.replace("logs/", "log "))
        return log and log["generation"]

    def points(self, count: int) -> list[int]:
        """Numbers of the calls of ``outer`` before which ``inner`` makes a difference.

        At most ``count`` of them; those of changes go first, and then it is those far apart.
        """
        if self._contents is None:
            return []
        calls, foot = self.traced(self.outer)[0], self.traced(self.inner)[1]
        found = [number for number, call in enumerate(calls) if foot.meets(call)]
        changes = _spread([number for number in found if calls[number].is_change], count)
        others = [number for number in found if number not in changes]
        return sorted((*changes, *_spread(others, count - len(changes))))

    def traced(self, operation: Operation) -> tuple[list[Call], Footprint]:
        """The calls of an operation where nobody else is at work, and what it reads and changes."""
        key = (operation.name, self._set_ups)
        if key not in _traces:
            calls, foot = list[Call](), Footprint()

            def tell(call: Call) -> None:
                calls.append(call)
                foot.note(call)

            self._restore()
            self.world.run("alone", operation.steps(self.world), tell)
            _traces[key] = calls, foot
        return _traces[key]

    def interrupted(self, point: int) -> Result:
        """``inner`` before one call of ``outer``."""
        before = self.traced(self.outer)[0][:point]
        reads = [call for call in before if (call.name, call.key) == ("get", self.outer.key)]
        has_begun = len(reads) >= self.outer.begins
        self._restore()
        count, found, where = 0, Outcome(), ""

        def tell(call: Call) -> None:
            nonlocal count, found, where
            count += 1
            if count == point + 1:
                where = f"{call.name} {call.key}"
                found = self.world.inside("inner", self.inner.steps(self.world))

        outcome = self.world.run("outer", self.outer.steps(self.world), tell)
        return Result(outcome, found, f"before call {point}, {where}", has_begun)

    def endings(self) -> Iterator[Ending]:
        """Of all ways to carry out their steps one after the other, the likely ones first."""
        for way in self._ways():
            yield self._known_ending(*way)

    def _known_ending(self, *way: Any) -> Ending:
        if way not in self._known:
            self._known[way] = self._ending(*way)
        return self._known[way]

    def _ways(self) -> Iterator[tuple[int, bool, int | None]]:
        """After which step of the one the other comes; whether the one goes on; and the other's
        steps."""
        if self._counts is None:
            self._counts = self._alone(self.outer), self._alone(self.inner)
        outer, inner = self._counts
        yield from ((k, True, None) for k in (0, *range(outer, 0, -1)))
        yield from ((k, False, None) for k in range(outer))
        yield from ((k, True, j) for k in range(outer + 1) for j in range(inner))
        yield from ((k, False, j) for k in range(outer) for j in range(inner))

    def _alone(self, operation: Operation) -> int:
        self._restore()
        outcome = self.world.run("alone", operation.steps(self.world))
        return outcome.done + (outcome.error is not None)

    def _ending(self, after: int, goes_on: bool, inner_max: int | None) -> Ending:
        self._restore()
        inner = Outcome()

        def steps() -> Iterator[object]:
            nonlocal inner
            own = self.outer.steps(self.world)
            yield from islice(own, after)
            inner = self.world.inside("inner", islice(self.inner.steps(self.world), inner_max))
            if goes_on:
                yield from own
            else:
                getattr(own, "close", lambda: None)()

        outer = self.world.run("outer", steps())
        seen = see(self.world)
        is_behind = after == 0 and goes_on
        told, refused = (outer.told, inner.told), (outer.error is not None, inner.error is not None)
        return Ending((outer.done, inner.done), seen, told, is_behind, refused)

    def _restore(self) -> None:
        assert self._contents is not None
        self.world.restore(self._contents)


def _spread(points: list[int], count: int) -> list[int]:
    if len(points) <= count:
        return points
    if count <= 1:
        return points[len(points) - count :]
    return sorted({points[i * (len(points) - 1) // (count - 1)] for i in range(count)})


def require_true(pair: Pair, result: Result, *, tidies: bool) -> None:
    """What the operations have reported is so, and nothing else has happened."""
    require_sound(pair.world)
    kept, seen = pair.world.contents(), see(pair.world)
    outcomes = (result.outer, result.inner)
    tried = list[Ending]()
    is_twice = pair.outer is pair.inner and pair.outer.is_idempotent
    for ending in pair.endings():
        tried.append(ending)
        if _is_of_another(pair, result, ending):
            continue
        if any(_is_like(one, outcomes, seen) for one in _with_runs(pair, ending, outcomes, seen)):
            break
        if is_twice and ending.seen == seen:
            break
    else:
        alike = [e.seen for e in tried if e.done == (result.outer.done, result.inner.done)]
        raise AssertionError(
            f"{_told(pair, result)}; not as one after the other: "
            + " | ".join(str(difference(one, seen)) for one in alike or [tried[0].seen])
        )
    for outcome, operation in zip(outcomes, (pair.outer, pair.inner)):
        is_fit = outcome.error is None or isinstance(outcome.error, operation.may)
        assert is_fit, f"no fitting error: {_told(pair, result)}"
        for told in outcome.told:
            assert _lasts(told, seen), f"{told} was told: {_told(pair, result)}"
    pair.world.restore(kept)
    if tidies:
        tidy_up(pair.world)
        after = see(pair.world)
        lost = {k: v for k, v in difference(seen, after).items() if not k.startswith("bookie ")}
        assert not lost, f"what was seen is lost: {lost}: {_told(pair, result)}"


def _told(pair: Pair, result: Result) -> str:
    outer = f"{pair.outer.name}: {result.outer.shown}"
    return f"{outer}; {result.point}: {pair.inner.name}: {result.inner.shown}"


def _lasts(told: tuple[str, int], seen: Seen) -> bool:
    """Whether a log that was seen sealed ends there still, if it has the same contents."""
    log = seen.get(told[0])
    if log is None or not log["sealed"]:
        return True
    return told[1] == len(log["rows"]) + int(log["first"])


def _is_of_another(pair: Pair, result: Result, ending: Ending) -> bool:
    """Whether it is as if the outer one had begun later, with what the log is now.

    That is right of what is about whatever there is, not of what means the contents that it saw.
    """
    is_meant = bool(pair.outer.begins) and result.has_begun and result.outer.error is None
    return is_meant and ending.is_behind and pair.inner_changes_generation


def _with_runs(
    pair: Pair, ending: Ending, outcomes: tuple[Outcome, Outcome], seen: Seen
) -> Iterator[Ending]:
    """``ending``, and the same with the runs of batches that are refused, there or here."""
    yield ending
    both = zip(ending.refused, outcomes, (pair.outer, pair.inner))
    for refused, outcome, operation in both:
        is_collected = outcome.error is not None and pair.inner.name.startswith("collect")
        if not (refused or is_collected) or operation.registers is None:
            continue
        name, query, run = operation.registers
        log = ending.seen.get(f"log {name}") or _new_log(seen.get(f"log {name}"))
        if log is not None:
            registered = log | {"streams": log["streams"] | {query: run}}
            yield replace(ending, seen=ending.seen | {f"log {name}": registered})


def _new_log(log: dict[str, Any] | None) -> dict[str, Any] | None:
    """A log that the registering of a run has made; it has no rows and no other run."""
    is_new = log is not None and not log["rows"] and len(log["streams"]) == 1
    return log if is_new else None


def _is_like(ending: Ending, outcomes: tuple[Outcome, Outcome], seen: Seen) -> bool:
    for done, outcome in zip(ending.done, outcomes):
        is_unknown = isinstance(outcome.error, OutcomeUnknownError)
        if done != outcome.done and not (is_unknown and done == outcome.done + 1):
            return False
    told = outcomes[0].told, outcomes[1].told
    return ending.seen == seen and (
        ending.done != (outcomes[0].done, outcomes[1].done) or ending.told == told
    )


def difference(one: Seen, other: Seen) -> dict[str, object]:
    keys = one.keys() | other.keys()
    return {k: (one.get(k), other.get(k)) for k in sorted(keys) if one.get(k) != other.get(k)}
