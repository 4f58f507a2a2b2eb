"""A driver of its own that follows a log into parquet files.

    python stream_to_files.py METADATA_URI LOG FOLDER SECONDS

FOLDER holds the checkpoint and the files. With 0 seconds it ends when it has read what is there;
else it follows the log for so long, or until it is killed.
"""

import sys
from pathlib import Path

from local_session import build_session, stop_session


def main(uri: str, name: str, folder: Path, seconds: int) -> None:
    spark = build_session(folder, "local[2]")
    log = spark.readStream.format("bookkeeper").option("metadataServiceUri", uri)
    rows = log.schema("id bigint, _offset bigint").option("maxEntriesPerTrigger", 40).load(name)
    writer = rows.writeStream.format("parquet").option("path", str(folder / "rows"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    trigger = {"processingTime": "0 seconds"} if seconds else {"availableNow": True}
    query = writer.trigger(**trigger).start()
    print("started", flush=True)
    query.awaitTermination(seconds or None)
    print("batches", len(query.recentProgress), flush=True)
    query.stop()
    stop_session(spark)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
