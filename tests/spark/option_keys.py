"""The options that Spark's own methods of readers and writers give, on any kind of session.

As a program, on a session of Spark Connect: the arguments are a cluster and a folder; it prints
what came of each scenario, and of a recovery, as JSON.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

import bkspark

SOURCE = "source"
"""A log of three rows, with the ids 0, 1 and 2."""


@dataclass(frozen=True)
class Scene:
    """Where a scenario runs.

    Attributes:
        name: of the scenario, and of the log that it writes.
        folder: for checkpoints.
    """

    spark: Any
    uri: str
    folder: str
    name: str

    def reader(self, stream: bool = False) -> Any:
        reader = self.spark.readStream if stream else self.spark.read
        return reader.format("bookkeeper").option("metadataServiceUri", self.uri)

    def writer(self) -> Any:
        writer = self.spark.range(2).write.format("bookkeeper").mode("append")
        return writer.option("metadataServiceUri", self.uri)

    def stream(self) -> Any:
        """A query from the source, into the log of the scenario if it is not told another."""
        writer = self.reader(stream=True).load(SOURCE).writeStream.format("bookkeeper")
        writer = writer.option("checkpointLocation", f"{self.folder}/{self.name}")
        return writer.option("metadataServiceUri", self.uri).trigger(availableNow=True)

    def start(self, writer: Any, **arguments: Any) -> None:
        writer.start(self.name, **arguments).awaitTermination(60)

    def ids(self, name: str | None = None) -> list[int]:
        """The rows of the scenario's log, or of another one."""
        return sorted(row.id for row in self.reader().load(name or self.name).collect())


def _interval(scene: Scene) -> None:
    query = scene.stream().trigger(processingTime="100 milliseconds").start(scene.name)
    query.processAllAvailable()
    query.stop()


def _overwrite(scene: Scene) -> None:
    for _ in range(2):
        scene.writer().mode("overwrite").option("truncate", "true").save(scene.name)


def _read(scene: Scene, reader: Any) -> None:
    """Into the scenario's log, in a stream if the reader is one."""
    rows = reader.load()
    if rows.isStreaming:
        writer = rows.writeStream.format("bookkeeper").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", f"{scene.folder}/{scene.name}")
        scene.start(writer.option("metadataServiceUri", scene.uri))
    else:
        writer = rows.write.format("bookkeeper").option("metadataServiceUri", scene.uri)
        writer.mode("append").save(scene.name)


def _for_each_batch(scene: Scene) -> None:
    uri, name = scene.uri, scene.name

    def append(rows: Any, number: int) -> None:
        writer = rows.write.format("bookkeeper").option("metadataServiceUri", uri)
        writer.options(txnAppId=name, txnVersion=str(number)).mode("append").save(name)

    writer = scene.reader(stream=True).load(SOURCE).writeStream.foreachBatch(append)
    writer = writer.option("checkpointLocation", f"{scene.folder}/{name}")
    writer.trigger(availableNow=True).start().awaitTermination(60)


def _insert(scene: Scene) -> None:
    scene.writer().save(scene.name)
    scene.spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW v USING bookkeeper "
        f"OPTIONS (metadataServiceUri '{scene.uri}', path '{scene.name}')"
    )
    scene.spark.range(2, 4).write.insertInto("v")


def _table(scene: Scene) -> Any:
    rows = scene.spark.range(2).writeTo("t").using("bookkeeper").option("path", scene.name)
    return rows.option("metadataServiceUri", scene.uri)


SCENARIOS: dict[str, Callable[[Scene], object]] = {
    # Batch writes.
    "save": lambda s: s.writer().save(s.name),
    "save-path-option": lambda s: s.writer().option("path", s.name).save(),
    "save-arguments": lambda s: s.writer().save(s.name, compression="lz4"),
    "save-twice-named": lambda s: s.writer().option("path", s.name).save(s.name),
    "save-overwrite": _overwrite,
    "save-partitionBy": lambda s: s.writer().partitionBy("id").save(s.name),
    "save-clusterBy": lambda s: s.writer().clusterBy("id").save(s.name),
    "save-bucketBy": lambda s: s.writer().bucketBy(2, "id").save(s.name),
    "saveAsTable": lambda s: s.writer().option("path", s.name).saveAsTable("t"),
    "insertInto": _insert,
    "create-properties": lambda s: _table(s).tableProperty("a", "b").create(),
    "create-partitionedBy": lambda s: _table(s).partitionedBy("id").create(),
    # Batch reads.
    "load-path-option": lambda s: _read(s, s.reader().option("path", SOURCE)),
    "load-schema": lambda s: _read(s, s.reader().schema("id bigint").option("path", SOURCE)),
    "load-many": lambda s: s.reader().load([SOURCE, SOURCE]).collect(),
    # Stream writes.
    "stream": lambda s: s.start(s.stream()),
    "stream-path-option": lambda s: s.stream().option("path", s.name).start().awaitTermination(60),
    "stream-queryName": lambda s: s.start(s.stream().queryName("named")),
    "stream-arguments": lambda s: s.start(
        s.stream(), outputMode="append", queryName="named-too", compression="lz4"
    ),
    "stream-outputMode": lambda s: s.start(s.stream().outputMode("append")),
    "stream-update": lambda s: s.start(s.stream().outputMode("update")),
    "stream-complete": lambda s: s.start(s.stream().outputMode("complete")),
    "stream-once": lambda s: s.start(s.stream().trigger(once=True)),
    "stream-interval": _interval,
    "stream-continuous": lambda s: s.start(s.stream().trigger(continuous="1 second")),
    "stream-realTime": lambda s: s.start(s.stream().trigger(realTime="1 minute")),
    "stream-partitionBy": lambda s: s.start(s.stream().partitionBy("id")),
    "stream-clusterBy": lambda s: s.start(s.stream().clusterBy("id")),
    "toTable": lambda s: s.stream().toTable("streamed").awaitTermination(60),
    "foreachBatch": _for_each_batch,
    # Stream reads.
    "follow-path-option": lambda s: _read(s, s.reader(stream=True).option("path", SOURCE)),
    "follow-schema": lambda s: _read(
        s, s.reader(stream=True).schema("id bigint").option("path", SOURCE)
    ),
    # What other sources call by another name.
    "read-subscribe": lambda s: _read(
        s, s.reader().option("subscribe", "a").option("path", SOURCE)
    ),
    "read-snapshot-id": lambda s: _read(
        s, s.reader().option("snapshot-id", 1).option("path", SOURCE)
    ),
    "read-startingVersion": lambda s: _read(
        s, s.reader().option("startingVersion", 1).option("path", SOURCE)
    ),
    "follow-minOffsetsPerTrigger": lambda s: _read(
        s, s.reader(stream=True).option("minOffsetsPerTrigger", 5).option("path", SOURCE)
    ),
    "read-numPartitions": lambda s: _read(
        s, s.reader().option("numPartitions", 5).option("path", SOURCE)
    ),
    "write-kafka": lambda s: s.writer().option("kafka.bootstrap.servers", "a:9").save(s.name),
    "follow-startingTimestamp": lambda s: _read(
        s, s.reader(stream=True).option("startingTimestamp", "1").option("path", SOURCE)
    ),
}


def outcomes(spark: Any, uri: str, folder: str) -> dict[str, list[int] | str]:
    """The rows that each scenario wrote, or the error with which it ended."""
    source = spark.range(3).write.format("bookkeeper").option("metadataServiceUri", uri)
    source.mode("append").save(SOURCE)
    found: dict[str, list[int] | str] = {}
    for name, scenario in SCENARIOS.items():
        scene = Scene(spark, uri, folder, name)
        try:
            scenario(scene)
            found[name] = scene.ids()
        except Exception as error:  # the test looks at what it says
            found[name] = str(error)
    return found


def main(uri: str, folder: str) -> None:
    spark = (
        SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    found = outcomes(spark, uri, folder)
    try:
        bkspark.recover_ledger(spark, uri, 0)
    except bkspark.BookKeeperError as error:
        found["recover_ledger"] = str(error)
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
