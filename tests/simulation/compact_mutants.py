"""Single rules of compaction, broken in the real code."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from bkspark.log import compaction
from bkspark.log.compaction import _Rewriting
from bkspark.protocol.log.record import LogRecord

from .mutants import Change, nothing


def deleted_at_once(*given: Any) -> LogRecord:
    """What was replaced is gone for those who are about to read it."""
    after = REAL_COMPACTED(*given)
    new = set(after.dropped.ids) - set(given[0].dropped.ids)
    dropped = after.dropped
    noted = (*dropped.to_delete, *sorted(new))
    return replace(after, dropped=replace(dropped, to_delete=noted))


def not_let_go_of(*given: Any) -> LogRecord:
    """What was replaced is forgotten, and nobody collects it."""
    return replace(REAL_COMPACTED(*given), dropped=given[0].dropped)


def in_other_order(real: Callable[..., Iterator[pa.RecordBatch]]) -> Callable[..., Any]:
    def read(self: Any, *given: Any) -> Iterator[pa.RecordBatch]:
        for batch in real(self, *given):
            yield batch.take(list(range(batch.num_rows))[::-1])

    return read


REAL_COMPACTED = compaction.compacted  # type: ignore[attr-defined]

COMPACT_MUTANTS: dict[str, tuple[Change, ...]] = {
    "a compaction deletes what it replaces": ((compaction, "compacted", deleted_at_once),),
    "a compaction forgets what it replaces": ((compaction, "compacted", not_let_go_of),),
    "a compaction writes rows in another order": (
        (_Rewriting, "_read", in_other_order(_Rewriting._read)),
    ),
    "who loses a compaction leaves its ledger": ((compaction, "drop_unlisted", nothing),),
}
