"""A checkpoint that is restored from a backup; run as a program with spark-submit, prints JSON.

Arguments: the metadata URI, and a folder for the checkpoint and its backup.
"""

import json
import shutil
import sys
from pathlib import Path

from places import Place
from pyspark.sql import SparkSession

SOURCE, SINK = "in", "out"
ROWS = 10


def append(place: Place, first: int) -> None:
    place.write(place.spark.range(first, first + ROWS, 1, 2), SOURCE)


def copied(place: Place, checkpoint: Path, **options: object) -> str:
    """Copy what the source has, in a micro-batch or none; the error that it ends with."""
    writer = place.follow(SOURCE, **options).writeStream.format("bookkeeper")
    writer = writer.option("metadataServiceUri", place.uri)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    try:
        writer.start(SINK).awaitTermination()
    except Exception as error:
        return str(error)
    return ""


def main(uri: str, folder: Path) -> None:
    spark = SparkSession.builder.getOrCreate()
    place = Place(spark, uri, [])
    checkpoint, backup = folder / "checkpoint", folder / "backup"
    errors = []
    for number in range(3):
        append(place, number * ROWS)
        errors.append(copied(place, checkpoint))
        if number == 0:
            shutil.copytree(checkpoint, backup)
    shutil.rmtree(checkpoint)
    shutil.copytree(backup, checkpoint)
    restored = copied(place, checkpoint)
    ids = place.ids(SINK)
    append(place, 3 * ROWS)
    errors.append(copied(place, folder / "another", startingOffsets=3 * ROWS))
    print(
        json.dumps(
            {"errors": errors, "restored": restored, "ids": ids, "in the end": place.ids(SINK)}
        )
    )
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
