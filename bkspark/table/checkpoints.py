"""Reads a checkpoint: the live files and the settings of a table at one version.

A checkpoint is one Parquet file, several parts, or a Parquet or JSON file that names further files
(sidecars). Only the columns that a reader uses are read.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from bkspark.storage.folders import Folder
from bkspark.table.asking import asking_for
from bkspark.table.log_files import LOG, SIDECARS, Checkpoint

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
