"""Replays the log of a table to the state at one version.

Rule 1. An unknown reader feature is refused by its name. So an unknown layout is an error, and
never wrong rows.
Rule 2. A file is live if the last action of its path and deletion vector adds it.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from bkspark.errors import CorruptDataError, UnsupportedTableError
from bkspark.format.arrow_schema import OFFSET_COLUMN
from bkspark.storage.address import shown_url
from bkspark.storage.folders import Folder
from bkspark.table.asking import FileGoneError, asking_for, path_below
from bkspark.table.deletion_vectors import DeletionVector
from bkspark.table.delta_types import TableColumn, parse_schema, unmapped
from bkspark.table.snapshot import Snapshot, TableFile, statistics_of

# --- log files -----------------------------------------------------------------------------------
# The files of a table's log: which there are, and which of them make a version.
#
# Rule 1. ``_last_checkpoint`` only says where a listing may begin. It may be old, wrong or absent.
# Rule 2. A version is a complete checkpoint and each commit after it, or each commit from 0 on.


LOG = "_delta_log"
SIDECARS = f"{LOG}/_sidecars"
_HINT = f"{LOG}/_last_checkpoint"
_HINT_BYTES = 2**16
_DIGEST_BYTES = 16
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<of>\d{10})|\.(?P<uuid>[0-9a-f-]{36}))?\.(?P<kind>parquet|json)"
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: one file, or all parts."""

    version: int
    names: tuple[str, ...]


@dataclass(slots=True)
class LogFiles:
    """The files of a listing.

    Attributes:
        sizes: of each file, by name.
        commits: the versions that have a commit.
        checkpoints: the complete ones, newest first.
    """

    sizes: dict[str, int]
    commits: set[int] = field(default_factory=set)
    checkpoints: list[Checkpoint] = field(default_factory=list)

    @property
    def newest(self) -> int:
        """The newest version; -1 if there is none."""
        return max((*self.commits, *(found.version for found in self.checkpoints)), default=-1)

    def checkpoints_for(self, version: int) -> Iterator[Checkpoint | None]:
        """Where the replay of ``version`` may begin, best first; None is the first commit.

        A beginning that lacks a commit after it is left out.
        """
        for found in self.checkpoints:
            if found.version <= version and self._has_commits(found.version + 1, version):
                yield found
        if self._has_commits(0, version):
            yield None

    def first_missing(self, version: int) -> int:
        """The newest commit that the replay of ``version`` would need and that is absent."""
        return next((n for n in range(version, -1, -1) if n not in self.commits), 0)

    def _has_commits(self, first: int, last: int) -> bool:
        return all(number in self.commits for number in range(first, last + 1))


def commit_name(version: int) -> str:
    return f"{version:020d}.json"


def list_log(folder: Folder, version: int | None, *, uses_hint: bool) -> LogFiles:
    """List the files that the replay of ``version``, or of the newest one, needs.

    Args:
        uses_hint: list only from the last checkpoint on, if there is a complete one.
    """
    hint = _hinted(folder) if uses_hint else 0
    if hint > 0 and (version is None or version >= hint):
        found = _parsed(folder.sizes(LOG, after=f"{hint - 1:020d}.~"))
        if any(checkpoint.version <= (version or found.newest) for checkpoint in found.checkpoints):
            return found
    return _parsed(folder.sizes(LOG))


def _hinted(folder: Folder) -> int:
    """The version in ``_last_checkpoint``; 0 if there is none that can be read."""
    try:
        found = json.loads(folder.read(_HINT, 0, _HINT_BYTES))
    except (FileNotFoundError, ValueError):
        return 0
    version = found.get("version") if isinstance(found, dict) else None
    return version if isinstance(version, int) and 0 < version < 10**20 else 0


def _parsed(sizes: dict[str, int]) -> LogFiles:
    found = LogFiles(sizes)
    parts: dict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    for name in sizes:
        if commit := _COMMIT.fullmatch(name):
            found.commits.add(int(commit[1]))
        elif match := _CHECKPOINT.fullmatch(name):
            version = int(match[1])
            if match["part"]:
                parts[version, int(match["of"])][int(match["part"])] = name
            elif match["uuid"] or match["kind"] == "parquet":
                found.checkpoints.append(Checkpoint(version, (name,)))
    for (version, count), names in parts.items():
        if sorted(names) == list(range(1, count + 1)):
            ordered = tuple(names[number] for number in sorted(names))
            found.checkpoints.append(Checkpoint(version, ordered))
    found.checkpoints.sort(key=lambda checkpoint: checkpoint.version, reverse=True)
    return found


# --- checkpoints ---------------------------------------------------------------------------------
# Reads a checkpoint: the live files and the settings of a table at one version.
#
# A checkpoint is one Parquet file, several parts, or a Parquet or JSON file that names further
# files (sidecars). Only the columns that a reader uses are read.


_SMALL = ("protocol", "metaData", "txn", "sidecar")
_ADD = ("path", "size", "partitionValues", "stats", "deletionVector")
_BOUNDS = ("minValues", "maxValues", "nullCount")
_BATCH_ROWS = 8192

Action = Mapping[str, Any]


def read_checkpoint(
    folder: Folder,
    checkpoint: Checkpoint,
    sizes: Mapping[str, int],
    offset_column: Callable[[], str],
) -> Iterator[tuple[str, list[Action]]]:
    """The actions of a checkpoint, some at a time, with the name of their file.

    The actions of data files come last.

    Args:
        sizes: of the files in the log.
        offset_column: returns the physical name of the column of offsets, for its statistics.
            Called after all other actions.
    """
    sidecars: list[Mapping[str, Any]] = []
    with ExitStack() as opened:
        files = []
        for name in checkpoint.names:
            path = f"{LOG}/{name}"
            if name.endswith(".json"):
                found = _json(folder, path)
            else:
                file = opened.enter_context(_opened(folder, path, sizes[name]))
                files.append((path, file))
                found = _small_actions(folder.url, path, file)
            yield path, found
            sidecars += [action["sidecar"] for action in found if action.get("sidecar")]
        for path, file in files:
            for adds in _adds(folder.url, path, file, offset_column()):
                yield path, adds
    for path, size in dict.fromkeys(_sidecar(folder.url, checkpoint, one) for one in sidecars):
        with _opened(folder, path, size) as file:
            for adds in _adds(folder.url, path, file, offset_column()):
                yield path, adds


def parse_lines(data: bytes) -> list[Action]:
    """The actions in the lines of a commit, or of a checkpoint in JSON.

    Raises:
        ValueError: a line is cut short or malformed, or there is none.
    """
    actions = [json.loads(line) for line in data.decode().split("\n") if line.strip()]
    if not actions:
        raise ValueError("it is empty")
    if not all(isinstance(action, dict) for action in actions):
        raise ValueError("a line is no action")
    return actions


def _json(folder: Folder, path: str) -> list[Action]:
    with asking_for(folder.url, path):
        return parse_lines(folder.read(path))


def _sidecar(url: str, checkpoint: Checkpoint, sidecar: Mapping[str, Any]) -> tuple[str, int]:
    with asking_for(url, f"{LOG}/{checkpoint.names[0]}"):
        name, size = sidecar["path"], sidecar["sizeInBytes"]
        if not isinstance(name, str) or not isinstance(size, int) or "/" in name:
            raise ValueError(f"sidecar {str(name)[:100]!r} is malformed")
        return f"{SIDECARS}/{name}", size


@contextmanager
def _opened(folder: Folder, path: str, size: int) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with ExitStack() as opened:
        with asking_for(folder.url, path):
            source = opened.enter_context(folder.open(path, size))
            file = pq.ParquetFile(source)
        yield file


def _small_actions(url: str, path: str, file: Any) -> list[Action]:
    found: list[Action] = []
    with asking_for(url, path):
        for name in _SMALL:
            if name in file.schema_arrow.names:
                column = file.read([name], use_threads=False).column(name)
                found += [{name: value} for value in _values(column)]
    return found


def _values(column: Any) -> list[Any]:
    """The values of a column that are not null."""
    return list(column.filter(column.is_valid()).to_pylist(maps_as_pydicts="strict"))


def _adds(url: str, path: str, file: Any, offset_column: str) -> Iterator[list[Action]]:
    with asking_for(url, path):
        if "add" not in file.schema_arrow.names:
            return
        names = _columns_of_adds(file, offset_column)
        batches = file.iter_batches(_BATCH_ROWS, columns=names, use_threads=False)
    while True:
        with asking_for(url, path):
            batch = next(batches, None)
            if batch is None:
                return
            values = _values(batch.column("add"))
        yield [{"add": _with_statistics(value)} for value in values]


def _columns_of_adds(file: Any, offset_column: str) -> list[str]:
    wanted = [f"add.{name}" for name in _ADD]
    wanted += [f"add.stats_parsed.{part}.{offset_column}" for part in _BOUNDS]
    wanted.append("add.stats_parsed.numRecords")
    paths = [file.schema.column(number).path for number in range(len(file.schema))]
    return [
        path
        for path in paths
        if any(path == name or path.startswith(f"{name}.") for name in wanted)
    ]


def _with_statistics(add: dict[str, Any]) -> dict[str, Any]:
    """Take the statistics from where they are: in JSON, or in columns."""
    parsed = add.pop("stats_parsed", None)
    if add.get("stats") is None:
        add["stats"] = parsed
    return add


# --- replay --------------------------------------------------------------------------------------


READER_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
_WITH_FEATURES = 3
_WITH_MAPPING = 2
MAPPING_MODE = "delta.columnMapping.mode"
_MODES = ("none", "name", "id")

_Key = tuple[str, str]
_Added = tuple[str, int, Mapping[str, str | None], DeletionVector | None, Any]
"""Path, size, partition values, deletion vector and statistics of a file."""


class Replay:
    """The state of a table while its actions are applied in order.

    Args:
        offset_column: the physical name of the column of offsets; "" for the column that is named
            so in the table.
    """

    def __init__(self, url: str, offset_column: str) -> None:
        self._url = url
        self._offset_column = offset_column
        self._adds: dict[_Key, _Added] = {}
        self._metadata: Mapping[str, Any] = {}
        self._protocol: Mapping[str, Any] = {}
        self._transactions: dict[str, int] = {}

    def apply_all(self, name: str, actions: Iterable[Action]) -> None:
        """Apply actions in order.

        Args:
            name: of their file.

        Raises:
            CorruptDataError: one is malformed.
        """
        with asking_for(self._url, name):
            for action in actions:
                self.apply(action)

    def apply(self, action: Action) -> None:
        """Apply one action.

        Raises:
            ValueError: it is malformed.
        """
        if add := action.get("add"):
            path, vector = _named_in(self._url, add)
            size, values = int(add["size"]), _object(add.get("partitionValues") or {})
            # The statistics are read at the end: most files of a long log are removed again.
            self._adds[_key_of(path, vector)] = (path, size, values, vector, add.get("stats"))
        elif remove := action.get("remove"):
            self._adds.pop(_key_of(*_named_in(self._url, remove)), None)
        elif metadata := action.get("metaData"):
            self._metadata = _object(metadata)
        elif protocol := action.get("protocol"):
            self._protocol = _object(protocol)
        elif transaction := action.get("txn"):
            application, version = transaction["appId"], transaction["version"]
            self._transactions[str(application)] = int(version)

    def offset_column(self) -> str:
        """The physical name of the column of offsets."""
        if self._offset_column:
            return self._offset_column
        column = self._columns().get(OFFSET_COLUMN)
        return column.physical_name if column is not None else OFFSET_COLUMN

    def snapshot(self, version: int, commit: str = "") -> Snapshot:
        """The state as a value.

        Args:
            commit: the digest of the version's commit.

        Raises:
            ValueError: an action is missing or malformed.
            UnsupportedTableError: the table needs what this release cannot read.
        """
        if not self._metadata or not self._protocol:
            raise ValueError("it has no metadata or no protocol")
        require_features(self._url, self._protocol)
        offsets = self.offset_column()
        files = [_file_of(*added, offsets) for added in self._adds.values()]
        files.sort(key=_order_of)
        return Snapshot(
            version=version,
            table_id=str(self._metadata["id"]),
            properties=dict(self._metadata.get("configuration") or {}),
            reader_features=_features(self._protocol),
            columns=self._columns(),
            partition_columns=tuple(self._metadata.get("partitionColumns") or ()),
            mapping=self._mapping(),
            files=tuple(files),
            transactions=dict(self._transactions),
            commit=commit,
        )

    def _columns(self) -> dict[str, TableColumn]:
        columns = parse_schema(self._metadata.get("schemaString", ""))
        if self._mapping() == "none":
            columns = tuple(unmapped(column) for column in columns)
        return {column.name: column for column in columns}

    def _mapping(self) -> str:
        version = self._protocol.get("minReaderVersion", 1)
        is_known = version == _WITH_MAPPING or "columnMapping" in _features(self._protocol)
        mode = (self._metadata.get("configuration") or {}).get(MAPPING_MODE, "none")
        if not is_known:
            return "none"
        if mode not in _MODES:
            raise UnsupportedTableError(
                f"the table at {shown_url(self._url)} has the unknown column mapping {mode!r}",
                hint="read the table with Spark",
            )
        return str(mode)


def require_features(url: str, protocol: Mapping[str, Any]) -> None:
    """Refuse a table whose features this release cannot read.

    Raises:
        UnsupportedTableError: names the features.
    """
    version = protocol.get("minReaderVersion", 1)
    unknown = sorted(_features(protocol) - READER_FEATURES)
    if version > _WITH_FEATURES:
        unknown = [f"reader version {version}"]
    if unknown:
        raise UnsupportedTableError(
            f"the table at {shown_url(url)} needs what this release cannot read: "
            f"{', '.join(unknown)}",
            hint="drop the feature from the table, or read the table with Spark",
        )


def replay(
    folder: Folder, files: LogFiles, checkpoint: Checkpoint | None, version: int, offset_column: str
) -> Snapshot:
    """Replay one version from a checkpoint, or from the first commit on.

    Raises:
        FileGoneError: a listed file is absent.
        CorruptDataError: a file is malformed; names it.
        TableUnavailableError: storage gave no certain answer.
        UnsupportedTableError: the table needs what this release cannot read.
    """
    state = Replay(folder.url, offset_column)
    first, digest = 0, ""
    name = f"{LOG}/{commit_name(version)}"
    if checkpoint is not None:
        first = checkpoint.version + 1
        for name, actions in read_checkpoint(folder, checkpoint, files.sizes, state.offset_column):
            state.apply_all(name, actions)
    for number in range(first, version + 1):
        name = f"{LOG}/{commit_name(number)}"
        actions, digest = read_commit(folder, number)
        state.apply_all(name, actions)
    if first > version:  # the checkpoint is of this version
        digest = commit_digest(folder, version)
    with asking_for(folder.url, name):
        return state.snapshot(version, digest)


def read_commit(folder: Folder, version: int) -> tuple[list[Action], str]:
    """The actions of a commit, and its digest.

    Raises:
        FileGoneError: there is no such commit.
        CorruptDataError: it is malformed.
        TableUnavailableError: storage gave no certain answer.
    """
    name = f"{LOG}/{commit_name(version)}"
    with asking_for(folder.url, name):
        data = folder.read(name)
        return parse_lines(data), _digest_of(data)


def commit_digest(folder: Folder, version: int) -> str:
    """The digest of a commit; "" if it is not there any more.

    Raises:
        TableUnavailableError: storage gave no certain answer.
    """
    name = f"{LOG}/{commit_name(version)}"
    with suppress(FileGoneError), asking_for(folder.url, name):
        return _digest_of(folder.read(name))
    return ""


def _digest_of(commit: bytes) -> str:
    return hashlib.blake2b(commit, digest_size=_DIGEST_BYTES).hexdigest()


def first_success(
    folder: Folder, files: LogFiles, version: int, offset_column: str
) -> Snapshot | None:
    """Replay one version from the best beginning that is whole; None if no beginning is there.

    Raises:
        CorruptDataError, FileGoneError: each beginning is damaged, or lacks a file.
    """
    problem: CorruptDataError | FileGoneError | None = None
    for checkpoint in files.checkpoints_for(version):
        try:
            return replay(folder, files, checkpoint, version, offset_column)
        except (CorruptDataError, FileGoneError) as error:
            problem = problem or error
    if problem is not None:
        raise problem
    return None


def _features(protocol: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(map(str, protocol.get("readerFeatures") or ()))


def _named_in(url: str, given: Any) -> tuple[str, DeletionVector | None]:
    """The path and the deletion vector of a file that an action names."""
    vector = _object(given).get("deletionVector")
    return path_below(url, given["path"]), None if vector is None else _vector_of(_object(vector))


def _vector_of(given: Mapping[str, Any]) -> DeletionVector:
    return DeletionVector(
        storage=str(given["storageType"]),
        place=str(given["pathOrInlineDv"]),
        offset=int(given.get("offset") or 0),
        size_bytes=int(given["sizeInBytes"]),
        cardinality=int(given["cardinality"]),
    )


def _key_of(path: str, vector: DeletionVector | None) -> _Key:
    return path, vector.identity if vector is not None else ""


def _file_of(
    path: str,
    size: int,
    values: Mapping[str, str | None],
    vector: DeletionVector | None,
    statistics: Any,
    offset_column: str,
) -> TableFile:
    found = statistics_of(statistics, offset_column)
    deleted = 0 if vector is None else vector.cardinality
    count = None if found.row_count is None else found.row_count - deleted
    with_offset = found.offset_count
    if vector is not None and with_offset != found.row_count:
        with_offset = None  # which of the deleted rows had an offset is not known
    bounds = (found.first_offset, found.last_offset, with_offset)
    return TableFile(path, size, count, dict(values), vector, *bounds)


def _order_of(file: TableFile) -> tuple[int, str]:
    """By the first offset; files of which it is unknown come first."""
    return (-1 if file.first_offset is None else file.first_offset), file.path


def _object(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise ValueError("an action is malformed")
    return given
