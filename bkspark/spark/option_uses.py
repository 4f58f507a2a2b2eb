"""Which options belong to which read or write of a log.

An option without effect hides a mistake: a limit that is not applied, or a batch read that was
meant as a stream. So a misplaced option is an error, with two exceptions:

* Storage options of a log (quorum sizes, digest, unbounded, strict, compression, blocks) and
  ``mergeSchema`` may be given anywhere: one set of options serves to write a log and to read it.
* A temporary view in SQL has one set of options for ``SELECT`` and ``INSERT``. So an option of a
  batch read is allowed in a batch write, and the reverse, except options that select the data
  (``ledgerId`` and ``view``).

The defaults of a session apply to all its reads and writes; misplaced defaults are ignored.
"""

from collections.abc import Collection, Iterator, Mapping
from enum import Enum

from bkspark.protocol.log.batch_order import ON_REPEATED_BATCH


class Use(Enum):
    """The use of a log by a DataFrame; the value names the use in messages."""

    BATCH_READ = "a batch read"
    VIEW = "a batch read of a view"
    STREAM_READ = "a stream read"
    BATCH_WRITE = "a batch write"
    STREAM_WRITE = "a stream write"


_READS = (Use.BATCH_READ, Use.STREAM_READ)
_SHARE_OPTIONS = frozenset({Use.BATCH_READ, Use.BATCH_WRITE})
_ADDRESSES = ("ledgerId", "view")

_USES: Mapping[str, tuple[Use, ...]] = {
    "ledgerId": (Use.BATCH_READ,),
    "view": (Use.VIEW,),
    "includeMetadata": _READS,
    "startingOffsets": _READS,
    "endingOffsets": (Use.BATCH_READ,),
    "failOnDataLoss": _READS,
    "maxBytesPerPartition": _READS,
    "maxEntriesPerTrigger": (Use.STREAM_READ,),
    "maxBytesPerTrigger": (Use.STREAM_READ,),
    "txnAppId": (Use.BATCH_WRITE,),
    "txnVersion": (Use.BATCH_WRITE,),
    "truncate": (Use.BATCH_WRITE,),
    ON_REPEATED_BATCH: (Use.STREAM_WRITE,),
    "checkpointLocation": (Use.STREAM_WRITE,),
    "queryName": (Use.STREAM_WRITE,),
}
"""Uses in which an option has an effect; options not listed here may be given anywhere."""


def uses_of(name: str) -> str:
    """Return where the option ``name`` has an effect, for the page of options."""
    return (
        ", ".join(one.value.removeprefix("a ") for one in _USES.get(name, ())) or "reads and writes"
    )


def belonging(options: Mapping[str, str], use: Use) -> dict[str, str]:
    """Return the ``options`` (by name in lower case) that belong to ``use``."""
    strange = {name.lower() for name in _strange(options, use)}
    return {name: value for name, value in options.items() if name not in strange}


def misplaced(names: Collection[str], use: Use) -> Iterator[str]:
    """Yield one line for each group of ``names`` (in lower case) that is misplaced in ``use``."""
    groups: dict[tuple[Use, ...], list[str]] = {}
    for name in _strange(names, use):
        groups.setdefault(_USES[name], []).append(name)
    for uses, found in groups.items():
        belong, it = ("belongs", "it") if len(found) == 1 else ("belong", "them")
        there = " or ".join(one.value for one in uses)
        yield f"{' and '.join(found)} {belong} to {there}: leave {it} out of {use.value}"


def _strange(names: Collection[str], use: Use) -> list[str]:
    """Return the ``names`` that do not belong to ``use``, as users spell them."""
    return [name for name in _USES if name.lower() in names and not _may_be_given(name, use)]


def _may_be_given(name: str, use: Use) -> bool:
    uses = _USES[name]
    is_shared = use in _SHARE_OPTIONS and not _SHARE_OPTIONS.isdisjoint(uses)
    return use in uses or (is_shared and name not in _ADDRESSES)
