"""Creates a ledger: its id, its first ensemble, its metadata record."""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster import ensembles
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.ensembles import Placed
from bkspark.cluster.log_messages import tell
from bkspark.cluster.records import Versioned
from bkspark.errors import InvalidRequestError
from bkspark.format.digest import Digester
from bkspark.metadata import freshness
from bkspark.protocol import bounds
from bkspark.protocol.apart import NOTHING, Distinct
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import (
    FIRST_TERM,
    DigestSpec,
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    MadeSmaller,
)
from bkspark.protocol.ledger.quorum import Quorum

# --- shortages -----------------------------------------------------------------------------------
# Warns that ledgers are made on fewer bookies than wanted, once per shortage.


logger = logging.getLogger(__name__)


class Shortages:
    """The clusters and wanted sizes of which this process has warned."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._warned: set[tuple[str, Quorum]] = set()

    def note_ledger(self, cluster_id: str, wanted: Quorum, *, is_smaller: bool) -> bool:
        """Record a new ledger; return whether it is the first smaller ledger since a full one.

        Only ledgers of one cluster and of the sizes ``wanted`` are compared.
        """
        key = (cluster_id, wanted)
        with self._guard:
            was_warned = key in self._warned
            if is_smaller:
                self._warned.add(key)
            else:
                self._warned.discard(key)
            return is_smaller and not was_warned


def note_made(cluster_id: str, ledger: LedgerMetadata) -> None:
    """Log that ``ledger`` is smaller than wanted: the first time as a warning, later as
    information.
    """
    made, wanted = ledger.quorum, sizes.wanted(ledger)
    is_smaller = made != wanted
    is_first = environment.the_one(Shortages).note_ledger(cluster_id, wanted, is_smaller=is_smaller)
    if not is_smaller:
        return
    copies = f"each entry gets {made.write_quorum_size} copies"
    if sizes.is_short(ledger):
        copies += f" and not {wanted.write_quorum_size}; `bkspark repair` makes the others once "
        copies += "there are bookies for them"
    tell(
        logger,
        "ledger %d is made on %d bookies, because only so many of the %d wanted can be used: %s "
        "(the setting strict refuses such writes)",
        *(ledger.ledger_id, made.ensemble_size, wanted.ensemble_size, copies),
        level=logging.WARNING if is_first else logging.INFO,
        ledger_id=ledger.ledger_id,
    )


# --- creating ------------------------------------------------------------------------------------


LOG_KEY = "log"
"""Custom metadata key: the log for which the ledger was made."""

OPERATION_KEY = "operation"
"""Custom metadata key: the operation that made the ledger. It decides how rows are stored."""

APPEND, OVERWRITE, WRITER, STREAM = "append", "overwrite", "writer", "stream"
COMPACT = "compact"
"""Operations: the two of a DataFrame, a log's writer, a streaming query, a compaction."""

REPLACES_KEY = "replaces"
"""Custom metadata key of a compaction's ledger: the ledgers to replace in the log."""


def of_log(log_name: str, operation: str) -> dict[str, str]:
    """Return the custom metadata of a ledger made for a log."""
    return {LOG_KEY: log_name, OPERATION_KEY: operation}


def stores_inline(ledger: LedgerMetadata) -> bool:
    """Return whether the records of a log's ledger hold its rows; otherwise they name entry logs.

    No ledger has both kinds: readers, audits and scrubs treat the whole ledger alike.
    """
    return ledger.settings.custom_metadata.get(OPERATION_KEY) == WRITER


def log_of(ledger: LedgerMetadata) -> str | None:
    """Return the name of the log for which ``ledger`` was made."""
    return ledger.settings.custom_metadata.get(LOG_KEY)


def replacing(ledger_ids: Iterable[int]) -> dict[str, str]:
    """Return the custom metadata of a ledger that is to replace ``ledger_ids`` in its log."""
    spans: list[list[int]] = []
    for ledger_id in sorted(ledger_ids):
        if spans and spans[-1][1] + 1 == ledger_id:
            spans[-1][1] = ledger_id
        else:
            spans.append([ledger_id, ledger_id])
    return {REPLACES_KEY: ",".join(f"{first}-{last}" for first, last in spans)}


def replaced_by(ledger: LedgerMetadata) -> Iterator[int]:
    """Yield the ids of the ledgers that ``ledger`` was made to replace; none without a note."""
    for span in ledger.settings.custom_metadata.get(REPLACES_KEY, "").split(","):
        first, _, last = span.partition("-")
        if first.isdecimal() and last.isdecimal():
            yield from range(int(first), int(last) + 1)


@dataclass(frozen=True, slots=True)
class CreatedLedger:
    """A new ledger, the addresses of its members, and the spare bookies, preferred first.

    Attributes:
        begun: the members' journals, for a writer in this process; empty if another process writes.
    """

    seen: Versioned[LedgerMetadata]
    ensemble: tuple[BookieAddress, ...]
    spares: tuple[BookieAddress, ...]
    begun: Begun


def create_ledger(
    cluster: Cluster,
    *,
    quorum: Quorum,
    digest: DigestSpec,
    schema: bytes,
    custom_metadata: Mapping[str, str],
    digester: Digester | None = None,
    guarantees_write_quorum: bool = False,
    goes_on: bool = False,
    is_strict: bool = False,
    min_distinct: Distinct = NOTHING,
    new_id: int | None = None,
) -> CreatedLedger:
    """Create an OPEN ledger for one writer, known by its token.

    With fewer usable bookies than wanted, the ledger is made smaller ("quorum", rule 4), unless
    ``guarantees_write_quorum`` or ``is_strict`` forbids it.

    Args:
        digester: of the ledger; None if another process will write with the token.
        goes_on: whether later writers may continue the ledger in later terms.
        is_strict: whether to refuse a smaller ledger.
        min_distinct: labels whose values must differ in each write set.
        new_id: an id that was taken for the ledger; None to take one.

    Raises:
        InvalidRequestError: its rows could not be read back, or the settings are too long.
        NotEnoughBookiesError: too few usable bookies, or their labels do not differ as wanted.
    """
    _require_storable(schema, custom_metadata)
    strict = is_strict or guarantees_write_quorum
    wanted: dict[str, Any] = {"is_strict": strict, "distinct": min_distinct}
    while True:
        with freshness.from_begin():
            ledger_id, new_id = cluster.new_ledger_id() if new_id is None else new_id, None
            placed = ensembles.choose(cluster, ledger_id, quorum, digester, **wanted)
            fragment = _first_fragment(placed, has_headers=digester is not None, goes_on=goes_on)
            given = (schema, digest, dict(custom_metadata), environment.now_ms())
            kept = (guarantees_write_quorum, _smaller(placed.quorum, quorum), is_strict)
            settings = LedgerSettings(*given, *kept, {**min_distinct})
            made = _made(ledger_id, placed, fragment, settings)
            seen = cluster.ledgers.create(str(ledger_id), made)
            is_going = any(map(cluster.is_going, fragment.ensemble))  # as new as the record
        if not is_going:
            note_made(cluster.cluster_id, seen.value)
            return CreatedLedger(seen, placed.ensemble, placed.spares, placed.begun)
        placed.begun.close()
        # A member is now being removed. No other process knows this ledger: choose again.
        cluster.ledgers.replace(str(ledger_id), seen.value.deleting(), seen)


def _require_storable(schema: bytes, custom_metadata: Mapping[str, str]) -> None:
    """Refuse settings that could not be read back, or leave no room for later changes."""
    from bkspark.format import arrow_schema  # a deletion imports this module without Arrow

    require_room(schema, custom_metadata)
    arrow_schema.require_storable(arrow_schema.decode(schema))


def require_room(schema: bytes, custom_metadata: Mapping[str, str] = MappingProxyType({})) -> None:
    """Refuse settings so long that the record has no room for later changes.

    Raises:
        InvalidRequestError: the settings have too many bytes.
    """
    texts = (text for pair in custom_metadata.items() for text in pair)
    size = len(schema) * 4 // 3 + sum(map(bounds.json_bytes, texts))
    if size > bounds.SETTINGS_BYTES_MAX:
        raise InvalidRequestError(
            f"the schema and the custom metadata have {size:,} bytes as stored, and a record "
            f"has room for {bounds.SETTINGS_BYTES_MAX:,}",
            hint="use shorter column names and values, or store them elsewhere",
        )


def _made(
    ledger_id: int, placed: Placed, fragment: Fragment, settings: LedgerSettings
) -> LedgerMetadata:
    """Return the first version of a ledger's record."""
    return LedgerMetadata(
        ledger_id=ledger_id,
        quorum=placed.quorum,
        state=LedgerState.OPEN,
        term=FIRST_TERM,
        token=placed.token,
        fragments=(fragment,),
        settings=settings,
    )


def _smaller(made: Quorum, wanted: Quorum) -> MadeSmaller | None:
    return None if made == wanted else MadeSmaller(made, wanted)


def _first_fragment(placed: Placed, *, has_headers: bool, goes_on: bool) -> Fragment:
    members, token = tuple(address.member for address in placed.ensemble), placed.token
    owner = FIRST_TERM if goes_on else 0
    return Fragment(0, FIRST_TERM, members, token, has_headers=has_headers, owner=owner)
