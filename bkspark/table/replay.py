"""Replays the log of a table to the state at one version.

Rule 1. An unknown reader feature is refused by its name. So an unknown layout is an error, and
never wrong rows.
Rule 2. A file is live if the last action of its path and deletion vector adds it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bkspark.errors import CorruptDataError, UnsupportedTableError
from bkspark.format.arrow_schema import OFFSET_COLUMN
from bkspark.storage.address import shown_url
from bkspark.storage.folders import Folder
from bkspark.table.asking import FileGoneError, asking_for
from bkspark.table.checkpoints import Action, parse_lines, read_checkpoint
from bkspark.table.deletion_vectors import DeletionVector
from bkspark.table.delta_types import TableColumn, parse_schema, unmapped
from bkspark.table.log_files import LOG, Checkpoint, LogFiles, commit_name
from bkspark.table.paths import path_below
from bkspark.table.snapshot import Snapshot, TableFile, statistics_of

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

    def snapshot(self, version: int) -> Snapshot:
        """The state as a value.

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
    first = 0
    name = f"{LOG}/{commit_name(version)}"
    if checkpoint is not None:
        first = checkpoint.version + 1
        for name, actions in read_checkpoint(folder, checkpoint, files.sizes, state.offset_column):
            state.apply_all(name, actions)
    for number in range(first, version + 1):
        name = f"{LOG}/{commit_name(number)}"
        state.apply_all(name, read_commit(folder, number))
    with asking_for(folder.url, name):
        return state.snapshot(version)


def read_commit(folder: Folder, version: int) -> list[Action]:
    """The actions of a commit.

    Raises:
        FileGoneError: there is no such commit.
        CorruptDataError: it is malformed.
        TableUnavailableError: storage gave no certain answer.
    """
    name = f"{LOG}/{commit_name(version)}"
    with asking_for(folder.url, name):
        return parse_lines(folder.read(name))


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
