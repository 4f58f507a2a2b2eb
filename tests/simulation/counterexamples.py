"""The shortest ways in which a wrong protocol loses data, as scripts for the real code.

They were found by exhausting models of the protocol with one rule broken each; the names say which.
An entry is written down with all that the broken rule lets happen; with the rule in place the same
script must do no harm. The fence and the metadata check cover each other, so that most of them take
two broken rules.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bkspark.bookie import memory
from bkspark.bookie.uri import open_bookie
from bkspark.errors import LedgerFencedError
from bkspark.format import layout
from bkspark.ledger.handles import lane
from bkspark.ledger.recovery import fencing
from bkspark.ledger.recovery.recoverer import Recoverer
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.recovery import verdicts as recovery
from bkspark.protocol.recovery.steps import TakenOver

from .mutants import LOSSES, MUTANTS, NO_COOKIES, NO_METADATA_CHECK, Change, only_read
from .scripted import Do, Happens, Line, Settle, Silent

W, R = "writer", "recovery-1"
TAKE_OVER, CLOSE = Do(R, None, "put"), Do(R, None, "put")


COMMON = Quorum(3, 3, 2)


@dataclass(frozen=True)
class Counterexample:
    """A script, and the rules without which it does harm."""

    lines: Sequence[Line]
    broken: tuple[Change, ...]
    quorum: Quorum = COMMON
    setting: Mapping[str, Any] = field(default_factory=dict)


def writes(where: int) -> Do:
    return Do(W, where, "append")


def checks(where: int) -> Do:
    """To the end of the post-check: the look at the own marker."""
    return Do(W, where, "size", "/terms/00000001-")


def fences(where: int) -> Do:
    return Do(R, where, "put_new", "/terms/00000002")


def lists(where: int) -> Do:
    """And looks how long the writer's journal is."""
    return Do(R, where, "size", "/journal/00000001-")


def looks(where: int) -> tuple[Do, ...]:
    """To the end of what the journal holds by then, a header at least."""
    return lists(where), Do(R, where, "read", "/journal/")


def absent_outside(
    _write_set: object, holders: Mapping[int, object], answers: Mapping[int, object], quorum: Quorum
) -> bool:
    """Absence counted over the ensemble, not over the write set."""
    lacking = len([index for index in answers if index not in holders])
    return lacking >= quorum.write_quorum_size - quorum.ack_quorum_size + 1


def absent_once(
    write_set: Sequence[int],
    holders: Mapping[int, object],
    answers: Mapping[int, object],
    _quorum: object,
) -> bool:
    return any(index in answers and index not in holders for index in write_set)


def look_from_a_cache(self: memory.MemoryRoot, name: str) -> int | None:
    """A fence that was absent once stays absent."""
    is_fence = "/terms/" in name and "-" not in name
    file = self._find(name)
    return None if file is None or is_fence else len(file.data)


def check_for_a_fence_only(
    address: Any, _journal: object, *, ledger_id: int, term: int, token: str
) -> None:
    with open_bookie(address).open_root() as root:
        if root.size(layout.term_marker(ledger_id, term + 1)) is not None:
            raise LedgerFencedError("fenced")


def take_over_as_read_before(self: Recoverer) -> Any:
    before = self._cluster.ledger(self._ledger_id).value
    taken = REAL_TAKE_OVER(self)
    assert isinstance(taken, TakenOver)
    self._known |= self._cluster.addresses_of(Locations(before).members)
    metadata = replace(taken.metadata, fragments=before.fragments)
    return replace(taken, metadata=metadata, known=tuple(self._known))


REAL_TAKE_OVER = Recoverer.take_over

CHANGE: tuple[Line, ...] = (Do(W, 3, "put_new"), Do(W, None, "put"))
"""The only spare takes the place of a bookie."""

FENCED_BEHIND: tuple[Line, ...] = (TAKE_OVER, fences(1), *looks(1))
EMPTY_ENDS: tuple[Line, ...] = (fences(2), lists(2), Silent(R, 0), CLOSE)

EXAMPLES: dict[str, Counterexample] = {
    "M1 fence checked before the write": Counterexample(
        [
            *(writes(0), checks(0), checks(1)),
            *FENCED_BEHIND,
            *(writes(1), Settle(W)),
            *EMPTY_ENDS,
        ],
        LOSSES["post-check before the append, metadata check skipped"],
    ),
    "M2 no fence check": Counterexample(
        [
            *(writes(0), checks(0)),
            *FENCED_BEHIND,
            *(writes(1), checks(1), Settle(W)),
            *EMPTY_ENDS,
        ],
        LOSSES["post-check and metadata check skipped"],
    ),
    "M3 recovery lists, then fences": Counterexample(
        [
            *(writes(0), checks(0), TAKE_OVER, *looks(1)),
            *(writes(1), checks(1), Settle(W)),
            *(lists(2), fences(1), fences(2), Silent(R, 0), CLOSE),
        ],
        LOSSES["fence after read, metadata check skipped"],
    ),
    "M4 absence from a bookie that was not fenced": Counterexample(
        [
            *(writes(0), checks(0), TAKE_OVER, fences(1), *looks(1), *looks(2)),
            *(writes(2), checks(2), Settle(W)),
            *(Silent(R, 0), CLOSE),
        ],
        (*MUTANTS["recovery reads without a fence"], *NO_METADATA_CHECK),
    ),
    "M5 absence after Qw - Qa answers": Counterexample(
        [
            *(writes(0), checks(0), writes(1), checks(1), Settle(W)),
            *(TAKE_OVER, fences(2), lists(2), Silent(R, 0), Silent(R, 1), CLOSE),
        ],
        MUTANTS["absence from Qw - Qa answers"],
    ),
    "M5b absence after any one answer": Counterexample(
        [
            *(writes(0), checks(0), writes(1), checks(1), writes(2), checks(2), Settle(W)),
            *(TAKE_OVER, fences(3), lists(3)),
            *(Silent(R, 0), Silent(R, 1), Silent(R, 2), Silent(R, 4), CLOSE),
        ],
        ((recovery, "_is_absent", absent_once),),
        Quorum(5, 5, 3),
    ),
    "M6 ack at Qa - 1": Counterexample(
        [writes(0), checks(0), Settle(W), Silent(W, 1), Silent(W, 2), Do(W, None, "put")],
        MUTANTS["ack at Qa - 1"],
        setting={"closes": True, "recoverers": 0},
    ),
    "M7 a stale look at the fence": Counterexample(
        [
            *(writes(0), checks(0)),
            *FENCED_BEHIND,
            *(writes(1), checks(1), Settle(W)),
            *EMPTY_ENDS,
        ],
        ((memory.MemoryRoot, "size", look_from_a_cache), *NO_METADATA_CHECK),
    ),
    "M9 absence counted over E": Counterexample(
        [
            *(writes(0), checks(0), writes(1), checks(1), Settle(W)),
            *(TAKE_OVER, fences(2), lists(2), Silent(R, 0), Silent(R, 1), CLOSE),
        ],
        ((recovery, "_is_absent", absent_outside),),
        Quorum(4, 2, 2),
    ),
    "M11 late ack of a replaced bookie": Counterexample(
        [
            *(writes(0), checks(0), Silent(W, 0), writes(0), *CHANGE),
            *(writes(1), checks(1), Settle(W)),
        ],
        MUTANTS["acks of a replaced bookie kept"],
        setting={"entries": 2, "spares": 1, "recoverers": 0},
    ),
    "M12 a spare counted before the CAS": Counterexample(
        [
            *(Silent(W, 0), Do(W, 0, "open_root"), writes(3), checks(3)),
            *(writes(1), checks(1), Settle(W)),
        ],
        MUTANTS["replacement counted without CAS"],
        setting={"spares": 1, "recoverers": 0},
    ),
    "M13 recovery keeps the ensemble read before its CAS": Counterexample(
        [
            *(writes(0), Do(R, None, "get"), Do(R, None, "get"), Silent(W, 0)),
            *(checks(0), *CHANGE, TAKE_OVER, Do(R, None, "get"), TAKE_OVER),
            *(Silent(W, 1), Silent(W, 2), Silent(W, 3)),
            *(fences(0), lists(0), fences(1), lists(1), Silent(R, 2), CLOSE),
        ],
        ((Recoverer, "take_over", take_over_as_read_before),),
        setting={"spares": 1},
    ),
    "M17 no write-back before the close": Counterexample(
        [
            *(writes(0), TAKE_OVER, Silent(W, 1), Silent(W, 2)),
            *(fences(0), lists(0), fences(1), lists(1), CLOSE),
        ],
        MUTANTS["close without write-back"],
    ),
    "M18 a torn record is an absence": Counterexample(
        [
            *(writes(0), checks(0), writes(1), checks(1), Settle(W), Happens("cut", 0)),
            *(TAKE_OVER, fences(0), lists(0), fences(2), lists(2), Silent(R, 1), CLOSE),
        ],
        MUTANTS["torn record is absent"],
    ),
    "M19 a bookie loses its fence": Counterexample(
        [
            *(writes(0), checks(0)),
            *FENCED_BEHIND,
            writes(1),
            *(fences(2), lists(2), Silent(R, 0), CLOSE),
            *(Happens("forget_fences", 1), checks(1), Settle(W)),
        ],
        NO_METADATA_CHECK,
    ),
    "M20 a bookie loses everything, its cookie is not looked at": Counterexample(
        [
            *(writes(0), checks(0), writes(1), checks(1), Settle(W)),
            *(TAKE_OVER, fences(2), lists(2), Happens("lose", 0), fences(0), lists(0)),
            *(Silent(R, 1), CLOSE),
        ],
        NO_COOKIES,
    ),
    "M21 the same, the writer alone does not look": Counterexample(
        [
            *(writes(0), checks(0)),
            *FENCED_BEHIND,
            writes(1),
            *(fences(2), lists(2), Silent(R, 0), CLOSE),
            *(Happens("lose", 1), Do(W, 1, "size", "/terms/00000002"), Settle(W)),
        ],
        (
            (lane, "post_check", check_for_a_fence_only),
            *NO_COOKIES,
            *NO_METADATA_CHECK,
        ),
    ),
    "M22 no fences, and a metadata check that shows what was": Counterexample(
        [
            *(writes(0), checks(0), TAKE_OVER, *looks(1)),
            *(writes(1), checks(1), Settle(W)),
            *(lists(2), Silent(R, 0), CLOSE),
        ],
        ((fencing.FenceAndRead, "run", only_read), *NO_METADATA_CHECK),
    ),
}
"""Not here: M8 and M8b, a record acked on any Qa of E, which inline entries cannot be (see the
table of rules); M9b, M10 and M15, which are safe; M14, which the random schedules find; M16, whose
ack after one's own close takes three broken rules."""
