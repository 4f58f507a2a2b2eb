"""A small writer of Delta tables, for tests: each commit, checkpoint and deletion vector by hand.

    table = HandTable(tmp_path / "t")
    table.create({"_offset": "long", "v": "string"})
    table.append(pa.table({"_offset": [0, 1], "v": ["a", "b"]}))
    table.checkpoint()

A real writer makes only what its release makes. This one makes old, damaged and future layouts too,
in milliseconds.
"""

import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

Action = dict[str, Any]

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC = 1681511377


def schema_string(columns: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> str:
    """Delta's JSON of columns: types by name, and their metadata."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": (metadata or {}).get(name, {})}
        for name, kind in columns.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


def mapped(number: int, physical: str) -> dict[str, Any]:
    """The metadata of a column with column mapping."""
    return {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}


@dataclass
class HandTable:
    """A table in a folder.

    Attributes:
        version: of the last commit; -1 before the first.
        live: the actions that added the live files, by path.
        settings: the last actions that are no files, by kind.
    """

    path: Path
    version: int = -1
    table_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    live: dict[str, Action] = field(default_factory=dict)
    settings: dict[str, Action] = field(default_factory=dict)
    transactions: dict[str, Action] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return self.path / "_delta_log"

    def create(
        self,
        columns: Mapping[str, Any],
        *,
        metadata: Mapping[str, Any] | None = None,
        partition: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        features: Sequence[str] = (),
        reader_version: int = 1,
    ) -> None:
        self.log.mkdir(parents=True)
        protocol: Action = {"minReaderVersion": reader_version, "minWriterVersion": 2}
        if features:
            protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
            protocol["readerFeatures"] = protocol["writerFeatures"] = list(features)
        self.commit(
            {"protocol": protocol},
            self.metadata(columns, metadata, partition, properties),
            operation="CREATE TABLE",
        )

    def metadata(
        self,
        columns: Mapping[str, Any],
        metadata: Mapping[str, Any] | None = None,
        partition: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> Action:
        return {
            "metaData": {
                "id": self.table_id,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema_string(columns, metadata),
                "partitionColumns": list(partition),
                "configuration": dict(properties or {}),
            }
        }

    def commit(self, *actions: Action, operation: str = "WRITE", **info: Any) -> int:
        """Write the next commit."""
        self.version += 1
        first = {"commitInfo": {"timestamp": 1000 + self.version, "operation": operation, **info}}
        lines = [json.dumps(action) for action in (first, *actions)]
        self.commit_file(self.version).write_text("\n".join(lines) + "\n", encoding="utf-8")
        for action in actions:
            [(kind, value)] = action.items()
            if kind == "add":
                self.live[value["path"]] = value
            elif kind == "remove":
                self.live.pop(value["path"], None)
            elif kind == "txn":
                self.transactions[value["appId"]] = value
            else:
                self.settings[kind] = value
        return self.version

    def commit_again(self, *actions: Action, operation: str = "UPDATE") -> None:
        """Another driver makes the newest version too, and its commit takes the place."""
        self.commit_file(self.version).unlink()
        self.version -= 1
        self.commit(*actions, operation=operation)

    def commit_file(self, version: int) -> Path:
        return self.log / f"{version:020d}.json"

    def write(
        self,
        rows: pa.Table,
        *,
        name: str = "",
        values: Mapping[str, str | None] | None = None,
        offsets: str = "_offset",
        statistics: bool = True,
        **parquet: Any,
    ) -> Action:
        """Write a data file; return the action that adds it."""
        name = name or f"part-{uuid.uuid4()}.parquet"
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, file, **parquet)
        add: Action = {
            "path": quote(name),
            "partitionValues": dict(values or {}),
            "size": file.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
        }
        if statistics:
            add["stats"] = json.dumps(_statistics(rows, offsets))
        return {"add": add}

    def append(self, rows: pa.Table, **how: Any) -> str:
        """Write a data file and commit it; return its name in the log."""
        add = self.write(rows, **how)
        self.commit(add)
        return str(add["add"]["path"])

    def remove(self, name: str, *, data_change: bool = True) -> Action:
        """The action that removes a live file."""
        action: Action = {"path": name, "deletionTimestamp": 0, "dataChange": data_change}
        vector = self.live[name].get("deletionVector")
        return {"remove": action if vector is None else {**action, "deletionVector": vector}}

    def rewrite(self, rows: pa.Table, names: Iterable[str], **how: Any) -> str:
        """Replace files by one with other rows, as an OPTIMIZE does."""
        add = self.write(rows, **how)
        add["add"]["dataChange"] = False
        removed = [self.remove(name, data_change=False) for name in names]
        self.commit(*removed, add, operation="OPTIMIZE")
        return str(add["add"]["path"])

    def vacuum(self) -> None:
        """Remove the files that are not live."""
        live = {self.path / name for name in self.live}
        for file in self.path.rglob("*.parquet"):
            if self.log not in file.parents and file not in live:
                file.unlink()

    def delete_rows(self, name: str, vector: Action) -> None:
        """Give a live file a deletion vector."""
        add = {**self.live[name], "deletionVector": vector}
        self.commit(self.remove(name), {"add": add}, operation="DELETE")

    def vector_file(self, data: bytes, cardinality: int, *, folder: str = "") -> Action:
        """Write a deletion vector to a file of its own; return its description."""
        number = uuid.uuid4()
        file = self.path / folder / f"deletion_vector_{number}.bin"
        file.parent.mkdir(exist_ok=True)
        digest = struct.pack(">I", zlib.crc32(data))
        file.write_bytes(b"\x01" + struct.pack(">i", len(data)) + data + digest)
        return {
            "storageType": "u",
            "pathOrInlineDv": folder + base85(number.bytes),
            "offset": 1,
            "sizeInBytes": len(data),
            "cardinality": cardinality,
        }

    def actions(self) -> list[Action]:
        """The state, as a checkpoint has it."""
        settings = [{kind: value} for kind, value in self.settings.items()]
        transactions = [{"txn": value} for value in self.transactions.values()]
        return [*settings, *transactions, *({"add": value} for value in self.live.values())]

    def checkpoint(self, *, parts: int = 1, hint: bool = True) -> list[Path]:
        """Write a classic checkpoint of the state, in one part or several."""
        stem, actions = f"{self.version:020d}.checkpoint", self.actions()
        names = (
            [f"{stem}.parquet"]
            if parts == 1
            else [f"{stem}.{n:010d}.{parts:010d}.parquet" for n in range(1, parts + 1)]
        )
        files = [self.log / name for name in names]
        for number, file in enumerate(files):
            write_actions(actions[number::parts], file)
        if hint:
            self.hint({"version": self.version, "size": len(actions)})
        return files

    def checkpoint_v2(self, *, kind: str = "parquet", sidecars: int = 2) -> list[Path]:
        """Write a checkpoint that names its data files in sidecars."""
        adds = [action for action in self.actions() if "add" in action]
        files = []
        (self.log / "_sidecars").mkdir(exist_ok=True)
        for number in range(sidecars):
            file = self.log / "_sidecars" / f"{uuid.uuid4()}.parquet"
            write_actions(adds[number::sidecars], file)
            files.append(file)
        named: list[Action] = [
            {"sidecar": {"path": file.name, "sizeInBytes": file.stat().st_size}} for file in files
        ]
        top = self.log / f"{self.version:020d}.checkpoint.{uuid.uuid4()}.{kind}"
        first: Action = {"checkpointMetadata": {"version": self.version}}
        rest = [action for action in self.actions() if "add" not in action]
        if kind == "json":
            lines = [json.dumps(action) for action in (first, *rest, *named)]
            top.write_text("\n".join(lines), encoding="utf-8")
        else:
            write_actions([*rest, *named], top)
        return [top, *files]

    def hint(self, content: object) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        (self.log / "_last_checkpoint").write_text(text, encoding="utf-8")

    def forget_commits(self, below: int) -> None:
        """Remove old commits, as a clean-up of the log does."""
        for version in range(below):
            self.commit_file(version).unlink(missing_ok=True)


def _statistics(rows: pa.Table, offsets: str) -> Action:
    if offsets not in rows.column_names:
        return {"numRecords": rows.num_rows}
    values = [value for value in rows.column(offsets).to_pylist() if value is not None]
    found: Action = {
        "numRecords": rows.num_rows,
        "nullCount": {offsets: rows.num_rows - len(values)},
    }
    if values:
        found |= {"minValues": {offsets: min(values)}, "maxValues": {offsets: max(values)}}
    return found


# --- checkpoints ---------------------------------------------------------------------------------

_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_ADD = [
    ("path", pa.string()),
    ("partitionValues", _TEXTS),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("deletionVector", _VECTOR),
    ("stats", pa.string()),
]
_SETTINGS = {
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64())]),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _TEXTS),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "sidecar": pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64())]),
}


def write_actions(actions: Sequence[Action], file: Path, parsed: pa.DataType | None = None) -> None:
    """Write a Parquet file of actions.

    Args:
        parsed: statistics are columns of this struct type, and no text.
    """
    add = pa.struct(_ADD if parsed is None else [*_ADD[:-1], ("stats_parsed", parsed)])
    kinds = {**_SETTINGS, "add": add}
    rows = []
    for action in actions:
        [(kind, value)] = action.items()
        given = dict(value)
        if kind == "add" and parsed is not None:
            given["stats_parsed"] = json.loads(given.pop("stats"))
        known = {field.name for field in kinds[kind]}
        rows.append({kind: {name: part for name, part in given.items() if name in known}})
    schema = pa.schema(list(kinds.items()))
    pq.write_table(pa.Table.from_pylist(rows, schema), file)


# --- deletion vectors ----------------------------------------------------------------------------


def base85(data: bytes) -> str:
    """Encode bytes in Base85; their number is a multiple of four."""
    found = ""
    for first in range(0, len(data), 4):
        number = int.from_bytes(data[first : first + 4], "big")
        found += "".join(_ALPHABET[number // 85**power % 85] for power in range(4, -1, -1))
    return found


def inline_vector(data: bytes, cardinality: int) -> Action:
    padded = data + bytes(-len(data) % 4)
    return {
        "storageType": "i",
        "pathOrInlineDv": base85(padded),
        "sizeInBytes": len(data),
        "cardinality": cardinality,
    }


def bitmap(*containers: tuple[int, str, Sequence[int]]) -> bytes:
    """A Roaring bitmap of 64 bits.

    Args:
        containers: the number of the block of 65,536 rows, the kind of container (``array``,
            ``bitmap`` or ``runs``), and the rows in the block.
    """
    by_high: dict[int, list[tuple[int, str, Sequence[int]]]] = {}
    for block, kind, rows in containers:
        by_high.setdefault(block >> 16, []).append((block & 0xFFFF, kind, rows))
    data = struct.pack("<iq", _MAGIC, len(by_high))
    for high, parts in sorted(by_high.items()):
        data += struct.pack("<I", high) + _bitmap32(parts)
    return data


def _bitmap32(parts: Sequence[tuple[int, str, Sequence[int]]]) -> bytes:
    runs = [kind == "runs" for _, kind, _ in parts]
    if any(runs):
        flags = sum(is_run << number for number, is_run in enumerate(runs))
        head = struct.pack("<I", 12347 | (len(parts) - 1) << 16)
        head += flags.to_bytes((len(parts) + 7) // 8, "little")
    else:
        head = struct.pack("<II", 12346, len(parts))
    head += b"".join(struct.pack("<HH", key, len(rows) - 1) for key, _, rows in parts)
    bodies = [_container(kind, rows) for _, kind, rows in parts]
    if not any(runs) or len(parts) >= 4:
        at = len(head) + 4 * len(parts)
        for body in bodies:
            head += struct.pack("<I", at)
            at += len(body)
    return head + b"".join(bodies)


def _container(kind: str, rows: Sequence[int]) -> bytes:
    if kind == "array":
        return struct.pack(f"<{len(rows)}H", *rows)
    if kind == "bitmap":
        return sum(1 << row for row in rows).to_bytes(8192, "little")
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][0] + runs[-1][1] + 1:
            runs[-1][1] += 1
        else:
            runs.append([row, 0])
    return struct.pack("<H", len(runs)) + b"".join(struct.pack("<HH", *run) for run in runs)
