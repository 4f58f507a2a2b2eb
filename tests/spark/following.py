"""Running a streaming query over a log until it has nothing more to read, and what it gave."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from places import LOG, Place
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

COLUMNS = "id bigint, _offset bigint"


@dataclass
class Follower:
    """A query with a checkpoint of its own.

    Attributes:
        batches: by batch id, the (id, offset) of its rows as they came.
        progress: of the last run, a dictionary for each trigger.
    """

    place: Place
    checkpoint: Path
    name: str = LOG
    schema: str | None = COLUMNS
    batches: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    progress: list[dict[str, Any]] = field(default_factory=list)

    def run(self, **options: object) -> list[int]:
        """Read what is available now; returns the ids of the rows of this run."""
        before = set(self.batches)
        query = self.start({"availableNow": True}, **options)
        query.awaitTermination()
        self.progress = [_as_dict(item) for item in query.recentProgress]
        new = sorted(set(self.batches) - before)
        return [
            row[0] for batch_id in new for row in sorted(self.batches[batch_id], key=_by_offset)
        ]

    def start(
        self,
        trigger: dict[str, Any],
        on_batch: Callable[[DataFrame, int], None] | None = None,
        **options: object,
    ) -> StreamingQuery:
        rows = self.place.follow(self.name, schema=self.schema, **options)
        writer = rows.writeStream.foreachBatch(on_batch or self.take)
        return writer.option("checkpointLocation", str(self.checkpoint)).trigger(**trigger).start()

    def take(self, rows: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = [(row.id, row._offset) for row in rows.collect()]

    @property
    def ids(self) -> list[int]:
        """The rows of all runs by batch, in log order."""
        return [
            row[0]
            for _, rows in sorted(self.batches.items())
            for row in sorted(rows, key=_by_offset)
        ]

    def sources(self) -> list[dict[str, Any]]:
        """What the last run's progress says about the log, trigger by trigger."""
        return [item["sources"][0] for item in self.progress]


def _by_offset(row: tuple[int, int]) -> int:
    return row[1]


def _as_dict(progress: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(progress.json)
    return found
