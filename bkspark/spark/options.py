"""Options of ``format("bookkeeper")``: parse strings into one checked value.

The parser sets all defaults; ``option_table`` spells them for the page of options. Names are
case-insensitive (Spark passes them in lower case). An unknown option is an error that names the
most similar option. All problems are reported together.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Protocol, TypeVar, overload

import pyarrow as pa

from bkspark import quantities
from bkspark.cluster import arguments
from bkspark.cluster.arguments import METADATA_URI_VARIABLE
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError
from bkspark.format.entry_log import BLOCK_ROWS_MAX, COMPRESSIONS
from bkspark.log.batch.target import BlockSettings, WriteChecks, WriteRequest
from bkspark.protocol import bounds
from bkspark.protocol.apart import Distinct
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM, Quorum
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log.batch import COMPARE, ON_REPEATED_BATCH, SKIP
from bkspark.protocol.log.transactions import require_of_application
from bkspark.spark.option_table import OPTIONS, SPARKS_NAMES, Use, belonging, misplaced

# --- elsewhere -----------------------------------------------------------------------------------
# Options of other sources, each with its counterpart here.
#
# Users bring the options of Kafka, Delta, Iceberg and file sources. The most similar name here
# seldom has the same meaning, so the error names the right option.


_LOG = "give the log's name to load(NAME), save(NAME) or start(NAME), one log at a time"
_CLUSTER = "there are no brokers: metadataServiceUri names the cluster"
_RANGE = (
    "startingOffsets and endingOffsets limit the read; view=history shows the offset and the "
    "time at which each write began"
)
_SPLIT = "maxBytesPerPartition limits the bytes that one task reads"
_ENTRIES = "maxEntriesPerTrigger limits a micro-batch"
_BYTES = "maxBytesPerTrigger limits a micro-batch"
_GROWS = "a log only grows: read it as a stream, and leave this out"
_REPLACE = 'mode("overwrite") with truncate=true replaces the whole log; a part cannot be replaced'
_FILES = "a log keeps its columns as they were written: leave this out"
_OTHERS = "this setting of other sources has no meaning here: leave it out"
_VALUES = "a log is not partitioned by value: leave it out"
_METHOD = "use the method of Spark's reader or writer, not an option"

_POINTERS: Mapping[str, tuple[str, ...]] = {
    _LOG: ("subscribe", "subscribePattern", "assign", "topic", "topics", "table", "dbtable", "log"),
    _CLUSTER: ("bootstrap.servers", "brokers", "serviceUrl", "uri", "url"),
    _RANGE: (
        "as-of-timestamp",
        "snapshot-id",
        "start-snapshot-id",
        "end-snapshot-id",
        "stream-from-timestamp",
        "startingVersion",
        "endingVersion",
    ),
    _SPLIT: ("numPartitions", "maxRecordsPerPartition", "split-size"),
    _ENTRIES: (
        "minOffsetsPerTrigger",
        "maxFilesPerTrigger",
        "maxRowsPerTrigger",
        "maxRecordsPerTrigger",
        "maxRecordsPerBatch",
        "maxRowsPerBatch",
        "streaming-max-rows-per-micro-batch",
        "rowsPerSecond",
    ),
    _BYTES: ("maxBytesPerBatch",),
    _GROWS: (
        "readChangeFeed",
        "readChangeData",
        "ignoreChanges",
        "ignoreDeletes",
        "skipChangeCommits",
    ),
    _REPLACE: ("replaceWhere", "partitionOverwriteMode", "overwriteSchema", "overwrite-mode"),
    _FILES: (
        "header",
        "inferSchema",
        "sep",
        "delimiter",
        "multiLine",
        "recursiveFileLookup",
        "pathGlobFilter",
        "basePath",
    ),
    _VALUES: ("partitionBy", "bucketBy", "sortBy", "clusterBy"),
    f'{_METHOD}: .mode("append")': ("mode", "saveMode"),
    f'{_METHOD}: .outputMode("append")': ("outputMode",),
    f"{_METHOD}: .trigger(…)": (
        "trigger",
        "availableNow",
        "once",
        "processingTime",
        "continuous",
    ),
    f"{_METHOD}: .schema(…)": ("schema",),
    "compression sets the codec": ("codec", "compressionCodec", "compression-codec"),
    "ackQuorumSize sets how many bookies must store a row before it is acknowledged": (
        "acks",
        "kafka.acks",
    ),
    "writeQuorumSize sets how many bookies store a row": ("replicationFactor", "replication"),
}
_NAMED = {name.lower(): said for said, names in _POINTERS.items() for name in names}
_BEGINNINGS = {"kafka.": _CLUSTER, "pulsar.": _CLUSTER, "delta.": _OTHERS, "parquet.": _OTHERS}

_ALIKE = 0.6
"""Similarity from which a name counts as a misspelling of another: a typo or two, an extra word."""


def unknown(key: str, names: Collection[str]) -> str:
    """Return one line about the option ``key`` (in lower case), which is not among ``names``."""
    begun = (said for begin, said in _BEGINNINGS.items() if key.startswith(begin))
    said = _NAMED.get(key) or next(begun, "")
    if said:
        return f"unknown option {key!r}: {said}"
    import difflib  # only for a mistake

    known = {name.lower(): name for name in names}
    near = difflib.get_close_matches(key, known, n=1, cutoff=_ALIKE)
    if near:
        return f"unknown option {key!r}, did you mean {known[near[0]]!r}?"
    return f"unknown option {key!r}; the options are {', '.join(names)}"


# --- tables --------------------------------------------------------------------------------------
# Refuse tables of a catalog: Spark creates such tables and then cannot read them.
#
# A query on a table does not pass the options of the table's creation to the source, so neither the
# log nor the cluster is known. Spark does not tell the source that a write fills a new table
# either. But the rows of a new table are written by an execution nested in another execution, that
# of the statement which creates the table. A query's ``foreachBatch`` writes in nested executions
# too, for a table or not, and is therefore allowed.


NO_TABLES = (
    "tables are not supported: use save(NAME) in place of saveAsTable, and CREATE TEMPORARY VIEW v "
    "USING bookkeeper OPTIONS (path 'NAME') in place of CREATE TABLE"
)

EXECUTION_ID = "spark.sql.execution.id"
ROOT_EXECUTION_ID = "spark.sql.execution.root.id"
BATCH_ID = "streaming.sql.batchId"
"""Local properties of tasks."""


class JobContext(Protocol):
    """The part of ``TaskContext`` that describes the job."""

    def getLocalProperty(self, key: str) -> str | None: ...


def require_no_new_table(task: JobContext | None) -> None:
    """Check before the first write that the write of this ``task`` does not fill a new table.

    Raises:
        InvalidRequestError: the write fills a new table; no row is written, and Spark drops the
            table.
    """
    if task is None or task.getLocalProperty(BATCH_ID) is not None:
        return
    root = task.getLocalProperty(ROOT_EXECUTION_ID)
    if root is not None and task.getLocalProperty(EXECUTION_ID) not in (None, root):
        raise InvalidRequestError(NO_TABLES)


# --- options -------------------------------------------------------------------------------------


T = TypeVar("T")

BLOCK_ROWS_DEFAULT = 65_536
BLOCK_BYTES_DEFAULT = 2 * 2**20
"""Above the 1.4 MB of a usual Spark batch of 10,000 rows, which then becomes a block uncopied."""


_SPARKS_OWN = frozenset({"paths", "owner", "provider", "serialization.format"})
_SPARKS_OWN_PREFIX = "option."
_CATALOGS_OWN = frozenset({"location", "external"})
"""Given only by Spark, and only for a table."""

_QUOTED_OR_PLAIN = r"\s*(?:`(?:[^`]|``)+`|[^`,\s](?:[^`,]*[^`,\s])?)\s*"
_NAME = re.compile(_QUOTED_OR_PLAIN)
_NAMES = re.compile(f"{_QUOTED_OR_PLAIN}(?:,{_QUOTED_OR_PLAIN})*")

_TIMES = ("Timestamp", "OffsetsByTimestamp")
"""Ends of the options that give a time: our form, and Kafka's."""

_STRATEGY = "startingOffsetsByTimestampStrategy"

_AS_OF = ("versionAsOf", "timestampAsOf")

VIEW_NAMES = (
    *("logs", "ledgers", "fragments", "bookies", "history", "underreplicated", "recoveries"),
    "tier",
)


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The range of a read by times and versions of commits; offsets say what these leave open.

    Attributes:
        starting_ms, ending_ms: when the first entry to read and the first one not to read were
            committed, in milliseconds since 1970; None if offsets say it.
        requires_start: whether it is an error that nothing was committed since ``starting_ms``.
        requires_end: whether it is an error that nothing from before ``ending_ms`` is left.
        version: the version of the log that the read ends with; None for any.
    """

    starting_ms: int | None = None
    ending_ms: int | None = None
    requires_start: bool = False
    requires_end: bool = False
    version: int | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The range and the limits of a read.

    Attributes:
        includes_metadata: whether rows tell their place in the log and their time.
        columns: the names of the columns to read, in this order; None for all.
        starting_offset, ending_offset: a log offset, or None for earliest and latest.
        trigger_entries, trigger_bytes: most entries and bytes in a micro-batch; None for no limit.
        task_bytes: approximate bytes per reading task; None to decide by size and cores.
        least_tasks: approximate number of reading tasks that is wanted at least.
    """

    includes_metadata: bool
    columns: tuple[str, ...] | None
    starting_offset: int | None
    ending_offset: int | None
    commits: CommitRange
    fails_on_loss: bool
    trigger_entries: int | None
    trigger_bytes: int | None
    task_bytes: int | None
    least_tasks: int


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a write stores its rows, and its other settings.

    Attributes:
        quorum: None if none of the three sizes was given.
        is_unbounded, is_strict, min_distinct: None if not given.
        compares_repeats: whether a repeated micro-batch must have the same rows.
    """

    quorum: Quorum | None
    digest_type: str | None
    blocks: BlockSettings
    transaction: Transaction | None
    merges_schema: bool
    truncates: bool
    is_unbounded: bool | None
    compares_repeats: bool
    is_strict: bool | None
    min_distinct: Distinct | None


@dataclass(frozen=True, slots=True)
class Options:
    """The checked options of one read or write.

    Attributes:
        log_name: empty for a ledger.
        ledger_id: None for a log.
        view: empty for the entries themselves.
    """

    metadata_uri: str
    log_name: str
    ledger_id: int | None
    password: Password
    view: str
    read: ReadOptions
    write: WriteOptions

    def write_request(self, schema: pa.Schema, *, is_overwrite: bool = False) -> WriteRequest:
        """Return the request to write rows with ``schema``."""
        return WriteRequest(
            metadata_uri=self.metadata_uri,
            log_name=self.log_name,
            schema=schema,
            quorum=self.write.quorum,
            digest_type=self.write.digest_type,
            password=self.password,
            blocks=self.write.blocks,
            transaction=self.write.transaction,
            is_overwrite=is_overwrite,
            merges_schema=self.write.merges_schema,
            is_unbounded=self.write.is_unbounded,
            checks=WriteChecks(
                self.write.compares_repeats, self.write.is_strict, self.write.min_distinct
            ),
        )


def parse(
    given: Mapping[str, str],
    defaults: Mapping[str, str] | None = None,
    use: Use | None = None,
) -> Options:
    """Check the options: ``given`` first, then ``defaults``, then the environment.

    Args:
        use: the read or write of the options; None if Spark does not say yet.

    Raises:
        InvalidRequestError: names every problem in one line.
    """
    own, usual = _lowered(given), _lowered(defaults or {})
    if use is Use.BATCH_READ and "view" in {**usual, **own}:
        use = Use.VIEW
    if use is None:
        return _Parser({**usual, **own}).parse()
    return _Parser({**belonging(usual, use), **own}, misplaced(own, use)).parse()


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): str(value) for key, value in options.items()}


class _Parser:
    """Converts options one by one, and collects the problems."""

    def __init__(self, options: Mapping[str, str], problems: Iterable[str] = ()) -> None:
        self._options = options
        self._problems = list(problems)

    def parse(self) -> Options:
        self._refuse_unknown()
        log_name, ledger_id = self._target()
        options = Options(
            metadata_uri=self._metadata_uri(),
            log_name=log_name,
            ledger_id=ledger_id,
            write=self._write(),
            password=self._password(),
            read=self._read(),
            view=self._choice("view", VIEW_NAMES, "") or "",
        )
        if self._problems:
            raise InvalidRequestError("; ".join(self._problems))
        return options

    def _write(self) -> WriteOptions:
        return WriteOptions(
            quorum=self._quorum(),
            digest_type=self._choice("digestType", ("CRC32C", "MAC"), None),
            blocks=BlockSettings(
                self._number("rowsPerBlock", BLOCK_ROWS_DEFAULT, BLOCK_ROWS_MAX),
                self._size("targetBlockBytes", BLOCK_BYTES_DEFAULT, bounds.BLOCK_BYTES_MAX),
                self._choice("compression", COMPRESSIONS, "none") or "none",
            ),
            transaction=self._transaction(),
            merges_schema=self._flag("mergeSchema", False),
            truncates=self._flag("truncate", False),
            is_unbounded=self._flag("unbounded", None),
            compares_repeats=self._choice(ON_REPEATED_BATCH, (COMPARE, SKIP), COMPARE) != SKIP,
            is_strict=self._flag("strict", None),
            min_distinct=self._distinct(),
        )

    def _read(self) -> ReadOptions:
        return ReadOptions(
            includes_metadata=self._flag("includeMetadata", False),
            columns=self._columns(),
            starting_offset=self._offset("startingOffsets", "earliest"),
            ending_offset=self._offset("endingOffsets", "latest"),
            commits=self._commits(),
            fails_on_loss=self._flag("failOnDataLoss", True),
            trigger_entries=self._trigger_entries(),
            trigger_bytes=self._size("maxBytesPerTrigger", 0, bounds.TRIGGER_MAX) or None,
            task_bytes=self._size("maxBytesPerPartition", 0, bounds.TASK_BYTES_MAX) or None,
            least_tasks=self._number("minPartitions", 1, bounds.TASKS_MAX),
        )

    def _commits(self) -> CommitRange:
        begins, ends = self._time("starting"), self._time("ending")
        if begins is not None and ends is not None and begins > ends:
            self._problems.append("startingTimestamp is after endingTimestamp")
        version, as_of = (self._as_of(name) for name in _AS_OF)
        return CommitRange(
            starting_ms=begins,
            ending_ms=ends if as_of is None else as_of,
            requires_start=self._requires_start(),
            requires_end=as_of is not None,
            version=version,
        )

    def _as_of(self, name: str) -> int | None:
        """Return the version, or the first millisecond after the time, that ends a read."""
        text = self._get(name)
        if text is None:
            return None
        ends = ("endingOffsets", *(f"ending{kind}" for kind in _TIMES))
        others = [other for other in (*ends, *_AS_OF) if other != name and self._get(other)]
        if self._get("ledgerId") is not None:
            others.append("ledgerId, which is no log")
        if others:
            self._problems.append(f"give {name} or {others[0]}, not both")
        if name == "versionAsOf":
            return self._take(name, _id, "a version of the log, a number >= 0")
        try:
            return arguments.time_in_text(name, text, is_after=True)
        except InvalidRequestError as error:
            self._problems.append(str(error))
            return None

    def _trigger_entries(self) -> int | None:
        names = ("maxEntriesPerTrigger", "maxOffsetsPerTrigger")
        found = {name: self._number(name, 0, bounds.TRIGGER_MAX) for name in names}
        self._require_one_value({name: value for name, value in found.items() if value})
        return max(found.values()) or None

    def _requires_start(self) -> bool:
        name, times = _STRATEGY, [f"starting{kind}" for kind in _TIMES]
        strategy = self._choice(name, ("error", "latest"), None)
        if strategy is not None and not any(map(self._get, times)):
            self._problems.append(f"{name} needs {' or '.join(times)}")
        return strategy == "error" or (strategy is None and self._get(times[1]) is not None)

    def _require_one_value(self, found: Mapping[str, object]) -> None:
        """Note a problem if two names of one option have different values."""
        if len(set(found.values())) > 1:
            self._problems.append(f"{' and '.join(found)} mean the same: give one of them")

    def _refuse_unknown(self) -> None:
        names = (*OPTIONS, *SPARKS_NAMES)
        known = {name.lower() for name in names}
        for key in self._options:
            if (
                key in known
                or key in _SPARKS_OWN | _CATALOGS_OWN
                or key.startswith(_SPARKS_OWN_PREFIX)
            ):
                continue
            self._problems.append(unknown(key, names))

    def _target(self) -> tuple[str, int | None]:
        name, ledger = self._get("path") or "", self._get("ledgerId")
        if self._get("paths"):
            self._problems.append("only one log can be read or written at a time")
        if name and ledger is not None:
            self._problems.append("give a log's name or ledgerId, not both")
        if not _CATALOGS_OWN.isdisjoint(self._options):
            self._problems.append(NO_TABLES)
            return name, None
        if ledger is None:
            if not name and not self._get("paths") and "view" not in self._options:
                self._problems.append(
                    f"no log is named: use load(NAME), save(NAME) or ledgerId ({NO_TABLES})"
                )
            return name, None
        return name, self._take("ledgerId", _id, "a number >= 0")

    def _metadata_uri(self) -> str:
        uri = self._get("metadataServiceUri") or os.environ.get(METADATA_URI_VARIABLE, "")
        if not uri:
            self._problems.append(
                f"no cluster is named: set the option metadataServiceUri or {METADATA_URI_VARIABLE}"
            )
        return uri

    def _quorum(self) -> Quorum | None:
        names = ("ensembleSize", "writeQuorumSize", "ackQuorumSize")
        if not any(self._get(name) for name in names):
            return None
        before = len(self._problems)
        defaults = astuple(DEFAULT_QUORUM)
        most = bounds.QUORUM_SIZE_MAX
        sizes = [self._number(name, default, most) for name, default in zip(names, defaults)]
        if len(self._problems) == before:
            try:
                return Quorum(*sizes)
            except InvalidRequestError as error:
                self._problems.append(str(error))
        return None

    def _password(self) -> Password:
        try:
            return Password(
                file=self._get("passwordFile") or "",
                env=self._get("passwordEnv") or "",
                literal=self._get("password") or "",
            )
        except InvalidRequestError as error:
            self._problems.append(str(error))
            return Password()

    def _transaction(self) -> Transaction | None:
        app_id, version = self._get("txnAppId"), self._get("txnVersion")
        if app_id is None and version is None:
            return None
        if not app_id or version is None:
            self._problems.append("give txnAppId and txnVersion together")
            return None
        most = bounds.TRANSACTION_VERSION_MAX
        number = self._take(
            "txnVersion",
            lambda text: _within(bounds.whole(text), 0, most),
            f"a whole number from 0 to {most}",
        )
        if number is None:
            return None
        try:
            transaction = Transaction(app_id, number)
            require_of_application(transaction)
        except InvalidRequestError as error:
            self._problems.append(str(error))
            return None
        return transaction

    def _offset(self, name: str, word: str) -> int | None:
        text = self._get(name)
        if text is None or text.lower() == word:
            return None
        if text.lstrip().startswith("{"):
            offset = self._in_json(name, text, least=-1 if word == "latest" else -2)
            words = {-2: "earliest", -1: "latest"}
            return None if words.get(offset or 0) == word else offset
        if word == "latest":
            wanted = "latest or an offset >= 0"
        elif text.lower() == "latest":
            return -1
        else:
            wanted = "earliest, latest or an offset >= 0"
        return self._take(name, _id, wanted)

    def _time(self, which: str) -> int | None:
        """Return the ``starting`` or ``ending`` time, in milliseconds."""
        names = [f"{which}{kind}" for kind in _TIMES]
        found: dict[str, int | None] = {}
        for name in names:
            text = self._get(name)
            if text is None:
                continue
            offsets = f"{which}Offsets"
            for other, said in ((offsets, offsets), ("ledgerId", "ledgerId, which is no log")):
                if self._get(other) is not None:
                    self._problems.append(f"give {name} or {said}, not both")
            try:
                is_json = name != names[0]
                found[name] = (self._time_in_json if is_json else arguments.time_in_text)(
                    name, text
                )
            except InvalidRequestError as error:
                self._problems.append(str(error))
        self._require_one_value(found)
        return next(iter(found.values()), None)

    def _time_in_json(self, name: str, text: str) -> int | None:
        return self._in_json(name, text, least=0)

    def _in_json(self, name: str, text: str, least: int) -> int | None:
        try:
            return _number_in_json(text, self._get("path") or "", least)
        except ValueError as error:
            self._problems.append(f"{name} {error}")
            return None

    def _columns(self) -> tuple[str, ...] | None:
        if self._get("columns") is None:
            return None
        wanted = "names with commas between them, in backquotes if they hold a comma"
        return self._take("columns", _names, wanted)

    def _size(self, name: str, default: int, most: int) -> int:
        text = self._get(name)
        if text is None:
            return default
        try:
            count = quantities.size(name, text)
        except InvalidRequestError as error:
            self._problems.append(str(error))
            return default
        if not 1 <= count <= most:
            self._problems.append(f"{name} must be from 1 to {most} bytes, not {text!r}")
        return count

    def _number(self, name: str, default: int, most: int) -> int:
        if self._get(name) is None:
            return default
        value = self._take(
            name, lambda text: _within(bounds.whole(text), 1, most), f"a number from 1 to {most}"
        )
        return default if value is None else value

    @overload
    def _flag(self, name: str, default: bool) -> bool: ...

    @overload
    def _flag(self, name: str, default: None) -> bool | None: ...

    def _flag(self, name: str, default: bool | None) -> bool | None:
        text = self._get(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            self._problems.append(f"{name} must be true or false, not {text!r}")
        return text.lower() == "true"

    def _distinct(self) -> Distinct | None:
        text = self._get("minDistinct")
        try:
            return None if text is None else arguments.distinct(text)
        except InvalidRequestError as error:
            self._problems.append(str(error.args[0]))
            return None

    def _choice(self, name: str, choices: tuple[str, ...], default: str | None) -> str | None:
        text = self._get(name)
        if text is None:
            return default
        for choice in choices:
            if choice.lower() == text.lower():
                return choice
        self._problems.append(f"{name} must be one of {', '.join(choices)}, not {text!r}")
        return default

    def _take(self, name: str, convert: Callable[[str], T], wanted: str) -> T | None:
        text = self._get(name) or ""
        try:
            return convert(text)
        except ValueError:
            self._problems.append(f"{name} must be {wanted}, not {text!r}")
            return None

    def _get(self, name: str) -> str | None:
        return self._options.get(name.lower())


def _number_in_json(text: str, log_name: str, least: int) -> int:
    """Return the number of a log in JSON, as Kafka's options have it for topics and partitions.

    Args:
        least: -1 and -2 stand for Kafka's latest and earliest offset.

    Raises:
        ValueError: what is wrong, to follow the option's name.
    """

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        if len(found) != 1:
            raise ValueError
        return dict(found)

    wanted = f'must be JSON like {{{json.dumps(log_name)}:{{"0":42}}}}, not {text!r}'
    try:
        [(name, parts)] = json.loads(text, object_pairs_hook=pairs).items()
        [(part, number)] = parts.items()
    except (ValueError, AttributeError, RecursionError):
        raise ValueError(wanted) from None
    if name != log_name:
        read = f"log {log_name!r}" if log_name else "a ledger"
        raise ValueError(f"names log {name!r}, and the read is of {read}")
    if part != "0":
        raise ValueError(f"names partition {part!r}, and a log has only partition '0'")
    if type(number) is not int or not least <= number <= bounds.NUMBER_MAX:
        raise ValueError(f"{wanted}; the number is {least} or more")
    return number


def _id(text: str) -> int:
    return _within(bounds.whole(text), 0, bounds.NUMBER_MAX)


def _names(text: str) -> tuple[str, ...]:
    """Return the names in a list such as ``id, `a,b`, text``; a doubled backquote is one of a
    name.
    """
    if _NAMES.fullmatch(text) is None:
        raise ValueError
    names = [name.strip() for name in _NAME.findall(text)]
    return tuple(name[1:-1].replace("``", "`") if name.startswith("`") else name for name in names)


def _within(value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise ValueError
    return value
