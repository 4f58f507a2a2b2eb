"""``format("bookkeeper")`` works without a call, and with one where the package came by zip."""

import os
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from local_session import REPOSITORY
from places import Place, make_place, refusal
from py4j.protocol import Py4JJavaError
from pyspark import SparkFiles
from pyspark.sql.datasource import DataSourceRegistration
from standalone import standalone_cluster
from submitted import environment_without_the_package, run, submission

import bkspark
from bkspark.errors import InvalidRequestError, NoSuchLedgerError


@pytest.fixture
def options(place: Place) -> str:
    return f"OPTIONS (metadataServiceUri '{place.uri}', path 'events')"


# The installed package.


def test_the_session_knows_the_format_without_a_call(spark, place: Place):
    place.write(spark.range(3))
    assert place.ids() == [0, 1, 2]


def test_every_session_knows_the_format(spark, place: Place):
    place.write(spark.range(3))
    other = spark.newSession().read.format("bookkeeper").option("metadataServiceUri", place.uri)
    assert other.load("events").count() == 3


def test_other_threads_know_the_format(spark, place: Place):
    """Writing looks the format up in the thread's active session, which a new thread lacks.

    The same holds for every Python data source. Making a DataFrame from values sets it.
    """

    def append(id_: int) -> None:
        place.write(spark.createDataFrame([(id_,)], "id bigint"))

    place.write(spark.range(3))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(place.ids).result() == [0, 1, 2]
        with pytest.raises(Py4JJavaError, match="DATA_SOURCE_NOT_FOUND"):
            pool.submit(place.write, spark.range(1)).result()
        pool.submit(append, 3).result()
    assert place.ids() == [0, 1, 2, 3]


def test_a_temporary_view_reads_and_inserts_with_sql(spark, place: Place, options):
    place.write(spark.range(3))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW logged USING bookkeeper {options}")
    assert spark.sql("SELECT sum(id) FROM logged").first()[0] == 3
    spark.sql("INSERT INTO logged SELECT id FROM range(3, 5)")
    spark.sql("INSERT INTO logged VALUES (5L)")
    assert place.ids() == [0, 1, 2, 3, 4, 5]


def test_a_view_in_sql_takes_every_option(spark, place: Place):
    place.write(spark.range(10))
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW part (_offset BIGINT, id BIGINT) "
        "USING bookkeeper OPTIONS ("
        f"metadataServiceUri '{place.uri}', path 'events', startingOffsets '7', endingOffsets '9')"
    )
    assert spark.sql("SELECT _offset, id FROM part ORDER BY id").collect() == [(7, 7), (8, 8)]


def test_insert_overwrite_in_sql_needs_truncate_too(spark, place: Place, options):
    place.write(spark.range(3))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW logged USING bookkeeper {options}")
    overwrite = "INSERT OVERWRITE logged SELECT id FROM range(9, 10)"
    text = refusal(InvalidRequestError, lambda: spark.sql(overwrite))
    assert text.startswith("overwrite replaces the whole log")
    assert place.ids() == [0, 1, 2]


# bkspark.register.


def test_register_takes_defaults_from_the_session_and_from_its_call(spark, tmp_path):
    one, other = (make_place(spark, tmp_path / name) for name in ("one", "other"))
    one.write(spark.range(1))
    other.write(spark.range(2))
    session = spark.newSession()
    session.conf.set("spark.bookkeeper.metadataServiceUri", one.uri)
    session.conf.set("spark.bookkeeper.startingOffsets", "latest")

    def count(**options: str) -> int:
        return session.read.format("bookkeeper").options(**options).load("events").count()

    bkspark.register(session)
    assert count() == 0
    bkspark.register(session, startingOffsets="earliest")
    assert count() == 1
    bkspark.register(session, STARTINGOFFSETS=0, metadataServiceUri=other.uri)
    assert count() == 2
    assert count(startingOffsets="1") == 1
    assert count(metadataserviceuri=one.uri) == 1


def test_a_default_with_a_wrong_name_is_refused_when_it_is_used(spark, place: Place):
    session = spark.newSession()
    bkspark.register(session, metadataServiceUrl=place.uri)
    text = refusal(InvalidRequestError, lambda: session.read.format("bookkeeper").load("events"))
    assert "unknown option 'metadataserviceurl', did you mean 'metadataServiceUri'?" in text


def test_register_refuses_a_literal_password(spark):
    session = spark.newSession()
    with pytest.raises(InvalidRequestError, match="use passwordFile or passwordEnv"):
        bkspark.register(session, Password="canary")
    session.conf.set("spark.bookkeeper.password", "canary")
    with pytest.raises(InvalidRequestError, match="event log would show a password") as caught:
        bkspark.register(session)
    assert "canary" not in str(caught.value)


def test_a_session_that_registered_finds_no_log_that_is_not_there(spark, place: Place):
    session = spark.newSession()
    bkspark.register(session, metadataServiceUri=place.uri)
    refusal(NoSuchLedgerError, lambda: session.read.format("bookkeeper").load("nope"))


def test_only_what_registers_knows_where_the_driver_keeps_its_files(spark, monkeypatch):
    names, seen = ["bkspark.zip"], []
    monkeypatch.setattr(spark.sparkContext, "_python_includes", names)
    monkeypatch.setattr(DataSourceRegistration, "register", lambda *_: seen.extend(names))
    bkspark.register(spark)
    root = SparkFiles.getRootDirectory()
    assert seen == ["bkspark.zip", root, f"{root}/bkspark.zip"]
    assert names == ["bkspark.zip"]


ZIPPED = """\
    import json, sys
    from pathlib import Path
    from unittest.mock import patch

    from pyspark import SparkFiles
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    for package in sys.argv[1:]:
        spark.sparkContext.addPyFile(package)
    try:
        spark.range(1).write.format("bookkeeper").mode("append").save("events")
        found = True
    except Exception as error:
        found = "DATA_SOURCE_NOT_FOUND" not in str(error)

    import bkspark

    # What an executor on another host is told: a folder that it does not have.
    with patch.object(SparkFiles, "getRootDirectory", lambda: "/nowhere/userFiles"):
        bkspark.register(spark)
    spark.range(2).write.format("bookkeeper").mode("append").save("events")

    bkspark.register(spark, compression="lz4")
    spark.range(2, 6).write.format("bookkeeper").mode("append").save("events")
    rows = spark.read.format("bookkeeper").option("includeMetadata", "true").load("events")

    folder = Path.cwd()

    def stream(name, rows, writer_format, **options):
        writer = rows.writeStream.format(writer_format).options(**options)
        writer = writer.option("checkpointLocation", str(folder / f"to-{name}"))
        return writer.trigger(availableNow=True)

    logged = spark.readStream.format("bookkeeper").load("events")
    stream("files", logged, "parquet").start(str(folder / "files")).awaitTermination()
    files = spark.readStream.schema("id bigint").parquet(str(folder / "files"))
    stream("sunk", files, "bookkeeper").start("sunk").awaitTermination()
    sunk = spark.readStream.format("bookkeeper").load("sunk")
    stream("copied", sunk, "bookkeeper").start("copied").awaitTermination()

    def ids(name):
        return sorted(row.id for row in spark.read.format("bookkeeper").load(name).collect())

    print(json.dumps({
        "found before": found,
        "package": bkspark.__file__,
        "rows": sorted([row.id, row._offset] for row in rows.collect()),
        "files": sorted(row.id for row in spark.read.parquet(str(folder / "files")).collect()),
        "sunk": ids("sunk"),
        "copied": ids("copied"),
    }))
"""


@pytest.fixture
def zipped(tmp_path: Path) -> str:
    """The package as ``--py-files`` takes it."""
    package = tmp_path / "bkspark.zip"
    with zipfile.ZipFile(package, "w") as archive:
        for file in (REPOSITORY / "bkspark").rglob("*.py"):
            archive.write(file, file.relative_to(REPOSITORY))
    return str(package)


@contextmanager
def local(folder: Path, bare: Mapping[str, str]) -> Iterator[str]:
    """A driver that runs its tasks itself."""
    yield "local[2]"


def by_submission(package: str) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """Settings, words and environment of a program whose package comes by ``--py-files``."""
    return {"spark.submit.pyFiles": package}, [], {}


def by_call(package: str) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """``addPyFile``, called by the program."""
    return {}, [package], {}


def by_archive(package: str) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """``--archives``: executors unpack it beside their work, and the driver has it by itself."""
    bare = os.pathsep.join([str(Path(package).parent / "site")])
    conf = {
        "spark.archives": f"{package}#packages",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(["packages", bare]),
    }
    return conf, [], {"PYTHONPATH": os.pathsep.join([package, bare])}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("cluster", "deliver"),
    [
        (local, by_submission),
        (standalone_cluster, by_submission),
        (standalone_cluster, by_call),
        (standalone_cluster, by_archive),
    ],
)
def test_a_zip_is_enough_with_register_for_batches_and_streams(
    spark, tmp_path: Path, zipped, cluster, deliver
):
    place = make_place(spark, tmp_path)
    script = tmp_path / "script.py"
    script.write_text(dedent(ZIPPED))
    bare = environment_without_the_package(tmp_path)
    delivery, words, extra = deliver(zipped)
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", bare) as address:
        conf = {
            "spark.master": address,
            "spark.executor.memory": "512m",
            "spark.cores.max": "2",
            "spark.bookkeeper.metadataServiceUri": place.uri,
            **delivery,
        }
        outcome = run(submission(script, tmp_path, conf, words), tmp_path, {**bare, **extra})
    assert outcome["found before"] is False
    assert "bkspark.zip" in outcome["package"]
    ids = list(range(6))
    assert outcome["rows"] == [[number, number] for number in ids]
    assert outcome["files"] == outcome["sunk"] == outcome["copied"] == sorted(place.ids()) == ids


@pytest.mark.thorough
@pytest.mark.parametrize("cluster", [local, standalone_cluster])
def test_a_zip_is_enough_for_jobs(spark, tmp_path: Path, zipped, cluster):
    place = make_place(spark, tmp_path)
    spark.range(5).write.parquet(str(tmp_path / "landing"))
    bare = environment_without_the_package(tmp_path)
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", bare) as address:

        def submit(name: str, *words: str) -> dict[str, Any]:
            arguments = ["--metadata", place.uri, *words]
            conf = {
                "spark.master": address,
                "spark.executor.memory": "512m",
                "spark.cores.max": "2",
                "spark.submit.pyFiles": zipped,
            }
            return run(
                submission(REPOSITORY / "jobs" / name, tmp_path, conf, arguments), tmp_path, bare
            )

        appended = submit("append.py", "--log", "events", "--path", str(tmp_path / "landing"))
        assert appended["end_offset"] == 5
        assert sorted(place.ids()) == list(range(5))
        assert submit("audit.py")["left"] == []
