"""Scripts of a machine: events in, instructions out, as text that a person can check.

A line that begins with ``>`` is an event; the lines behind it are what the machine does then, in
this order. ``#`` begins a remark. The first line of a scene of a writer names the sizes and the
members; ``recovery_scene`` says how that of a recovery reads:

    ledger 3/3/2 of a b c [with delay] [behind entry N]

``submit 4 in entry logs`` is a record that names entry logs, ``gathered c cedes`` that another
bookie has more of them than c, ``copied c 0 and not from a`` that a has no good copy.

To have the instructions of a script written anew: python -m tests.protocol.script FILE ...
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    LedgerFencedError,
    OutcomeUnknownError,
)
from bkspark.protocol.ledger.metadata import (
    FIRST_TERM,
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.writer.adding import CheckTicket, PendingAdd
from bkspark.protocol.writer.steps import (
    Acknowledge,
    Append,
    Asked,
    Checked,
    CheckMetadata,
    Confirm,
    Copied,
    Copy,
    EndWriter,
    Enlist,
    Enlisted,
    Event,
    Failed,
    Forget,
    Gathered,
    Idle,
    Instruction,
    Join,
    Muster,
    Mustered,
    NotRolled,
    Release,
    Roll,
    RolledOver,
    Stop,
    Stored,
    Submitted,
    Swap,
    Swapped,
    TimedOut,
    WarnOfGaps,
)
from bkspark.protocol.writer.writing import LedgerWriter
from tests.protocol.recovery_scene import RecoveryScene

TOKEN = "c" * 32


def member(name: str) -> Member:
    return Member(name, "1" * 32)


def ledger_of(
    quorum: Quorum,
    names: list[str],
    *,
    guarantees_write_quorum: bool = False,
    goes_on: bool = False,
) -> LedgerMetadata:
    ensemble = tuple(member(name) for name in names)
    owner = FIRST_TERM if goes_on else 0
    fragments = (Fragment(0, FIRST_TERM, ensemble, TOKEN, owner=owner),)
    return LedgerMetadata(
        *(7, quorum, LedgerState.OPEN, FIRST_TERM, TOKEN, fragments),
        settings=LedgerSettings(guarantees_write_quorum=guarantees_write_quorum),
    )


class Scene:
    """One writer, and what the text calls things."""

    def __init__(self, line: str) -> None:
        words = line.split()
        quorum = Quorum(*map(int, words[1].split("/")))
        end = 3 + quorum.ensemble_size
        behind = int(words[-1]) if "behind" in words else -1
        is_full = "guaranteed" in words
        self.ledger = ledger_of(
            quorum, words[3:end], guarantees_write_quorum=is_full, goes_on="goes" in words
        )
        self.writer = LedgerWriter(
            self.ledger, is_change_delayed="delay" in words, last_add_confirmed=behind
        )
        self._index_of = {name: index for index, name in enumerate(words[3:end])}
        self._checks: list[CheckTicket] = []
        self._last_of: dict[int, int] = {}
        self._swap: Swap | None = None

    def receive(self, line: str) -> list[str]:
        """What the writer does when the event of ``line`` happens."""
        return [self._shown(step) for step in self.writer.receive(self._event(line.split()))]

    def _event(self, words: list[str]) -> Event:
        match words:
            case ["submit", count, *rest]:
                return Submitted(int(count), 10 * int(count), names_entry_logs=bool(rest))
            case ["gathered", *rest]:
                return Gathered(tuple(self._index_of[name] for name in rest if name != "cedes"))
            case ["copied", name, first, *bad]:
                none_good = tuple((one, "it is damaged") for one in bad[3:])
                return Copied(self._index_of[name], name, int(first), none_good)
            case ["stored", name, first]:
                ids = int(first), self._last_of.get(int(first), int(first))
                return Stored(self._index_of[name], name, *ids)
            case ["failed", name]:
                return Failed(self._index_of[name], name, BookieUnavailableError("it hangs"))
            case ["fenced", name]:
                return Failed(self._index_of[name], name, LedgerFencedError("fenced"))
            case ["enlisted", "nobody", *passed]:
                return Enlisted(None, tuple((name, "it hangs") for name in passed))
            case ["enlisted", name]:
                return Enlisted(member(name))
            case ["roll"]:
                return Roll()
            case ["mustered", "nobody", *passed]:
                return Mustered((), tuple((name, "it hangs") for name in passed), "too few")
            case ["mustered", *names]:
                return Mustered(tuple(map(member, names)))
            case ["swapped"]:
                assert self._swap is not None
                self.ledger = self._swap.applied_to(self.ledger)
                return Swapped(self.ledger)
            case ["checked", number]:
                return Checked(self._checks[int(number)])
            case ["changed", number, "by", "a", "job"]:
                noted = LedgerSettings(custom_metadata={"job": "1"})
                self.ledger = replace(self.ledger, settings=noted)
                return Checked(self._checks[int(number)], self.ledger)
            case ["changed", number, "by", "a", "recovery"]:
                return Checked(self._checks[int(number)], self.ledger.in_recovery("d" * 32))
            case ["changed", number, "to", *names]:
                changed = self.ledger.with_ensemble(
                    *(0, tuple(map(member, names))), term=FIRST_TERM, token=TOKEN
                )
                return Checked(self._checks[int(number)], changed)
            case ["asked"]:
                return Asked()
            case ["idle"]:
                return Idle()
            case ["late", first]:
                return TimedOut(int(first), 60)
            case ["stop"]:
                return Stop()
            case ["stop", *_]:
                return Stop(OutcomeUnknownError("no answer"))
        raise ValueError(f"no event: {words}")

    def _shown(self, step: Instruction) -> str:
        match step:
            case Append():
                says = f"after {step.add.last_add_confirmed}"
                self._last_of[step.add.first_entry_id] = step.add.last_entry_id
                return f"append {_ids(step.add)} {says} on {self._names(step.indexes)}"
            case Copy():
                return f"copy what {_ids(step.add)} names to {step.member.bookie_id}"
            case Confirm():
                lac = self.writer.pending.last_add_confirmed
                return f"confirm {lac} on {self._names(step.indexes)}"
            case CheckMetadata():
                if step.ticket not in self._checks:
                    self._checks.append(step.ticket)
                return f"check {self._checks.index(step.ticket)}"
            case Acknowledge():
                return f"acknowledge {' '.join(_ids(add) for add in step.adds)}"
            case Forget():
                return f"forget {' '.join(_ids(add) for add in step.adds)}"
            case Release():
                return f"release {step.member.bookie_id}"
            case Enlist():
                beside = " ".join(one.bookie_id for one in step.staying)
                return f"enlist beside {beside}, not {' '.join(sorted(step.exclude))}"
            case Swap():
                self._swap = step
                names = " ".join(one.bookie_id for one in step.ensemble)
                is_confirmed = step.last_add_confirmed >= step.first_entry_id
                to = f", confirmed to {step.last_add_confirmed}" if is_confirmed else ""
                return f"swap from {step.first_entry_id} on to {names}{to}"
            case Join():
                self._index_of[step.member.bookie_id] = step.ensemble_index
                return f"join {step.member.bookie_id} for {step.replaced[0]}"
            case Muster():
                names = " ".join(one.bookie_id for one in step.ensemble)
                not_these = f", not {' '.join(sorted(step.exclude))}" if step.exclude else ""
                gone = f", without {self._names(tuple(step.failed))}" if step.failed else ""
                return f"muster beside {names}{gone}{not_these}"
            case RolledOver():
                members = enumerate(self.writer.ensemble)
                self._index_of |= {one.bookie_id: index for index, one in members}
                begin = self.writer.metadata.last_fragment.first_entry_id
                return f"roll over at {begin}: {self._names(step.changed)} came in"
            case NotRolled():
                return f"no roll: {step.reason}"
            case WarnOfGaps():
                end = "on" if step.last_entry_id is None else f"to {step.last_entry_id}"
                return f"warn from {step.first_entry_id} {end}: none on {step.bookie_id}"
            case EndWriter():
                return f"end{_of(step.error)}"

    def _names(self, indexes: tuple[int, ...]) -> str:
        ensemble = self.writer.metadata.last_fragment.ensemble
        return " ".join(ensemble[index].bookie_id for index in indexes) or "nobody"


def _ids(add: PendingAdd) -> str:
    one = add.first_entry_id == add.last_entry_id
    return f"{add.first_entry_id}" if one else f"{add.first_entry_id}-{add.last_entry_id}"


def _of(error: BookKeeperError | None) -> str:
    return "" if error is None else f" by {type(error).__name__}"


SCENES: dict[str, type[Scene] | type[RecoveryScene]] = {
    "ledger": Scene,
    "recovery": RecoveryScene,
}


def played(text: str) -> Iterator[str]:
    """The lines of a script, with what the machine really does."""
    scene: Scene | RecoveryScene | None = None
    for line in text.splitlines():
        kind = line.partition(" ")[0]
        if kind in SCENES:
            scene = SCENES[kind](line)
        if kind in SCENES or line.startswith(("#", ">")) or not line:
            yield line
        if line.startswith(">"):
            assert scene is not None, "a script begins with a ledger"
            yield from scene.receive(line[1:])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        file = Path(name)
        file.write_text("\n".join(played(file.read_text())) + "\n")
