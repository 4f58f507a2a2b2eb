"""What options mean, and what is said when they make no sense."""

from dataclasses import replace
from functools import partial

import pytest
from places import LOG, Place, refusal
from pyspark.sql import SparkSession

import bkspark
from bkspark.admin.bookies import label
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, NoSuchEntryError, NoSuchLedgerError
from tests.thorough import always


@pytest.fixture(scope="module")
def ten(spark: SparkSession, shared_place: Place) -> Place:
    """A log of ten rows in two ledgers."""
    shared_place.write(spark.range(0, 6, 1, 2))
    shared_place.write(spark.range(6, 10, 1, 1))
    return shared_place


@pytest.fixture
def truncated(spark: SparkSession, place: Place) -> Place:
    """Ten rows in two ledgers, of which those below offset 4 are gone."""
    place.write(spark.range(0, 6, 1, 2))
    place.write(spark.range(6, 10, 1, 1))
    with Cluster(place.uri) as cluster:
        cluster.logs.update(LOG, lambda log: replace(log, first_offset=4))
    return place


# Ranges.

RANGES = {
    "everything": ({}, range(10)),
    "words": ({"startingOffsets": "EARLIEST", "endingOffsets": "Latest"}, range(10)),
    "within a ledger": ({"startingOffsets": 1, "endingOffsets": 3}, range(1, 3)),
    "across ledgers": ({"startingOffsets": 5, "endingOffsets": 8}, range(5, 8)),
    "from": ({"startingOffsets": 7}, range(7, 10)),
    "to": ({"endingOffsets": 2}, range(2)),
    "nothing": ({"startingOffsets": 4, "endingOffsets": 4}, range(0)),
    "at the end": ({"startingOffsets": 10}, range(0)),
    "latest": ({"startingOffsets": "latest"}, range(0)),
}


@pytest.mark.parametrize("case", always(["across ledgers"], RANGES))
def test_a_range_of_offsets_is_read(ten: Place, case):
    options, expected = RANGES[case]
    assert ten.ids(**options) == list(expected)


BAD_RANGES = {
    "word": ({"startingOffsets": "newest"}, InvalidRequestError, "startingOffsets must be"),
    "empty": ({"endingOffsets": ""}, InvalidRequestError, "endingOffsets must be"),
    "negative": ({"startingOffsets": -1}, InvalidRequestError, "not '-1'"),
    "fraction": ({"endingOffsets": "1.5"}, InvalidRequestError, "not '1.5'"),
    "ends at the earliest": (
        {"endingOffsets": "earliest"},
        InvalidRequestError,
        "endingOffsets must be latest or an offset >= 0, not 'earliest'",
    ),
    "JSON as for Kafka": (
        {"startingOffsets": '{"t":{"0":1}}'},
        InvalidRequestError,
        "startingOffsets names log 't', and the read is of log 'events'",
    ),
    "backwards": (
        {"startingOffsets": 5, "endingOffsets": 4},
        InvalidRequestError,
        "startingOffsets 5 is after endingOffsets 4",
    ),
    "starts behind the end": (
        {"startingOffsets": 11},
        InvalidRequestError,
        "startingOffsets 11 is after the end of log 'events', 10; begin at an existing offset",
    ),
    "ends behind the end": (
        {"endingOffsets": 11},
        NoSuchEntryError,
        "log 'events' ends at offset 10, before 11; set endingOffsets to latest",
    ),
}


@pytest.mark.parametrize("case", BAD_RANGES)
def test_a_range_that_makes_no_sense_is_refused(ten: Place, case):
    options, error, message = BAD_RANGES[case]
    assert message in refusal(error, lambda: ten.plan_read(**options))


def test_reading_below_the_truncation_point_is_an_error(truncated: Place):
    text = refusal(NoSuchEntryError, lambda: truncated.ids(startingOffsets=3))
    assert text.startswith("log 'events' is truncated below offset 4, so offset 3 cannot be read")


def test_reading_below_the_truncation_point_may_be_allowed(truncated: Place):
    for options, expected in (
        ({"startingOffsets": 0}, range(4, 10)),
        ({"startingOffsets": 5}, range(5, 10)),
        ({"startingOffsets": 0, "endingOffsets": 3}, range(0)),
        ({"startingOffsets": 9, "endingOffsets": 30}, range(9, 10)),
    ):
        assert truncated.ids(**options, failOnDataLoss=False) == list(expected), options


def test_offsets_stay_when_a_log_is_truncated(truncated: Place):
    found = truncated.read(schema="_offset bigint").collect()
    assert sorted(row._offset for row in found) == list(range(4, 10))


# One ledger.


def test_a_ledger_is_read_by_its_id(ten: Place):
    first, second = (logged.ledger_id for logged in ten.log().ledgers)
    for options, expected in (
        ({"ledgerId": first}, range(6)),
        ({"ledgerId": second}, range(6, 10)),
        ({"ledgerId": second, "startingOffsets": 1, "endingOffsets": 3}, range(7, 9)),
    ):
        rows = ten.read(None, **options).collect()
        assert sorted(row.id for row in rows) == list(expected), options
    rows = ten.read(None, schema="_offset bigint, _entry_id bigint", ledgerId=second).collect()
    assert sorted(tuple(row) for row in rows) == [(n, n) for n in range(4)]


def test_a_range_past_the_end_of_a_ledger_is_refused(ten: Place):
    ledger_id = ten.log().ledgers[0].ledger_id
    options = {"ledgerId": ledger_id, "endingOffsets": 7}
    text = refusal(NoSuchEntryError, lambda: ten.read(None, **options).count())
    assert text == f"ledger {ledger_id} ends at offset 6, before 7; set endingOffsets to latest"
    assert ten.read(None, **options, failOnDataLoss=False).count() == 6


def test_a_ledger_is_not_written_as_a_dataframe(spark, ten: Place):
    text = refusal(InvalidRequestError, lambda: ten.write(spark.range(1), None, ledgerId=0))
    assert text == "ledgerId belongs to a batch read: leave it out of a batch write"


# What is not there.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "nope"}, "there is no log 'nope'; `bkspark logs` lists them"),
        (
            {"name": None, "ledgerId": 4711},
            "there is no ledger 4711; `bkspark ledgers` lists them; read entries of a "
            "compacted ledger from its log",
        ),
    ],
)
def test_what_does_not_exist_cannot_be_read(ten: Place, options, message):
    assert refusal(NoSuchLedgerError, lambda: ten.read(**options)) == message


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/b", ".", "..", "a..b", "x" * 300, "protokoll-é", "a b", "-a"]
)
def test_a_name_that_is_not_one_for_a_log_is_refused(spark, ten: Place, name):
    for action in (lambda: ten.plan_write(spark.range(1), name), lambda: ten.plan_read(name)):
        text = refusal(InvalidRequestError, action)
        assert text.startswith("log name ")
        assert "use 1 to 128 ASCII letters, digits" in text
        assert len(text) < 250


def test_a_log_must_be_named(spark, ten: Place):
    message = "no log is named: use load(NAME), save(NAME) or ledgerId (tables are not supported"
    for action in (
        lambda: ten.read(None),
        lambda: ten.plan_read(""),
        lambda: ten.plan_write(spark.range(1), ""),
        lambda: ten.write(spark.range(1), None),
    ):
        assert refusal(InvalidRequestError, action).startswith(message)


def test_a_table_of_a_catalog_is_refused_and_the_ways_in_its_place_are_named(spark, ten: Place):
    options = {"metadataServiceUri": ten.uri}
    writer = spark.range(3).write.format("bookkeeper").options(**options)
    there = f"USING bookkeeper OPTIONS (metadataServiceUri '{ten.uri}'"
    for action in (
        lambda: spark.sql(f"CREATE TABLE t {there}, path '{LOG}')"),
        lambda: spark.sql(f"CREATE TABLE t {there}) LOCATION '{LOG}'"),
        lambda: spark.sql(f"CREATE TABLE t {there}) AS SELECT 1 AS id"),
        lambda: spark.catalog.createTable("t", path=LOG, source="bookkeeper", **options),
        lambda: writer.saveAsTable("t"),
    ):
        text = refusal(InvalidRequestError, action)
        assert "tables are not supported: use save(NAME) in place of saveAsTable" in text
        assert "CREATE TEMPORARY VIEW v USING bookkeeper OPTIONS (path 'NAME')" in text
        assert "unknown option" not in text
    assert not spark.catalog.tableExists("t")


def test_a_cluster_must_be_named_and_be_there(spark, ten: Place, tmp_path):
    reader = spark.read.format("bookkeeper")
    text = refusal(InvalidRequestError, lambda: reader.load(LOG))
    assert text == (
        "no cluster is named: set the option metadataServiceUri or BKSPARK_METADATA_URI"
    )
    for uri, message in (
        (f"file://{tmp_path}/none", f"no bkspark cluster at file://{tmp_path}/none"),
        ("ftp://host/x", "ftp"),
        ("nonsense", "nonsense"),
    ):
        away = reader.option("metadataServiceUri", uri)
        assert message in refusal(InvalidRequestError, partial(away.load, LOG)), uri
    assert list(tmp_path.iterdir()) == []


# Names and values.

READ_PROBLEMS = {
    "a typo": (
        {"startingOffset": 1},
        "unknown option 'startingoffset', did you mean 'startingOffsets'?",
    ),
    "another typo": ({"failOnDataLos": 1}, "did you mean 'failOnDataLoss'?"),
    "a flag": ({"includeMetadata": "yes"}, "includeMetadata must be true or false, not 'yes'"),
    "a view": ({"view": "fragment"}, "view must be one of logs, ledgers, fragments, bookies"),
    "log and ledger": ({"ledgerId": 1}, "give a log's name or ledgerId, not both"),
    "limits of a stream": (
        {"maxEntriesPerTrigger": 5, "maxBytesPerTrigger": 5},
        "maxEntriesPerTrigger and maxBytesPerTrigger belong to a stream read: "
        "leave them out of a batch read",
    ),
    "part of a view": (
        {"view": "ledgers", "startingOffsets": 5},
        "startingOffsets belongs to a batch read or a stream read: "
        "leave it out of a batch read of a view",
    ),
    "two passwords": (
        {"passwordFile": "/a", "passwordEnv": "B"},
        "give only one of passwordFile, passwordEnv and password",
    ),
}


@pytest.mark.parametrize("case", READ_PROBLEMS)
def test_a_read_option_that_is_wrong_is_refused(ten: Place, case):
    options, message = READ_PROBLEMS[case]
    assert message in refusal(InvalidRequestError, lambda: ten.plan_read(**options))


WRITE_PROBLEMS = {
    "fewer bookies than copies": (
        {"ensembleSize": 2},
        "ensembleSize >= writeQuorumSize >= ackQuorumSize >= 1, got 2, 3, 2",
    ),
    "more acks than copies": ({"ackQuorumSize": 4}, "got 3, 3, 4"),
    "no acks": ({"ackQuorumSize": 0}, "ackQuorumSize must be a number from 1 to"),
    "not a number": ({"writeQuorumSize": "two"}, "writeQuorumSize must be a number from 1 to"),
    "digest": ({"digestType": "MD5"}, "digestType must be one of CRC32C, MAC, not 'MD5'"),
    "compression": ({"compression": "gzip"}, "compression must be one of none, lz4, zstd"),
    "half a transaction": ({"txnVersion": 1}, "give txnAppId and txnVersion together"),
    "transaction version": (
        {"txnAppId": "a", "txnVersion": -1},
        "txnVersion must be a whole number from 0 to 9223372036854775807, not '-1'",
    ),
    "block size": ({"rowsPerBlock": 0}, "rowsPerBlock must be a number from 1 to"),
    "a view": ({"view": "bookies"}, "view belongs to a batch read of a view: leave it out of"),
    "a limit": ({"maxEntriesPerTrigger": 5}, "maxEntriesPerTrigger belongs to a stream read"),
}


@pytest.mark.parametrize("case", WRITE_PROBLEMS)
def test_a_write_option_that_is_wrong_is_refused_and_nothing_is_written(spark, ten, case):
    options, message = WRITE_PROBLEMS[case]
    rows = spark.range(1)
    text = refusal(InvalidRequestError, lambda: ten.plan_write(rows, "fresh", **options))
    assert message in text
    assert not ten.has_log("fresh")


def test_all_problems_are_told_at_once(spark, ten: Place):
    options = {"ensembleSiz": 3, "compression": "gzip", "mergeSchema": "maybe", "txnVersion": 1}
    text = refusal(InvalidRequestError, lambda: ten.write(spark.range(1), **options))
    for part in ("'ensembleSize'?", "compression must", "mergeSchema must", "txnVersion together"):
        assert part in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ensembleSize": 5}, "log 'events' was created with quorum sizes 3/3/2, not 5/3/2"),
        ({"digestType": "MAC"}, "log 'events' was created with digestType CRC32C, not MAC"),
        ({"unbounded": "true"}, "log 'events' is chained (a row of ledgers), not unbounded"),
    ],
)
def test_a_log_keeps_the_settings_it_was_created_with(spark, ten: Place, options, message):
    text = refusal(InvalidRequestError, lambda: ten.plan_write(spark.range(1), **options))
    assert text.startswith(message)
    assert ("bkspark log convert events --unbounded" in text) == ("unbounded" in options)


def test_option_names_are_matched_in_any_case(ten: Place):
    assert ten.read(STARTINGOFFSETS=8, IncludeMetadata="TRUE").columns[1:2] == ["_offset"]


@pytest.mark.parametrize("compression", always(["ZSTD"], ["none", "lz4", "ZSTD"]))
def test_rows_may_be_compressed(spark, ten: Place, compression):
    ten.write(spark.range(1000), f"compressed-{compression}", compression=compression)
    assert ten.ids(f"compressed-{compression}") == list(range(1000))


# Views.


@pytest.mark.parametrize(
    "view",
    always(["fragments"], ["ledgers", "fragments", "bookies", "history", "underreplicated"]),
)
def test_a_view_is_a_dataframe_of_the_whole_cluster_or_of_one_log(ten: Place, view):
    everything, one = ten.read(None, view=view), ten.read(view=view)
    assert everything.schema == one.schema
    assert one.count() <= everything.count()
    assert everything.select(everything.columns[0]).count() == everything.count()
    refusal(NoSuchLedgerError, lambda: ten.read("nope", view=view).count())


def test_views_say_what_is_there(spark, place: Place):
    place.write(spark.range(0, 6, 1, 2), txnAppId="app", txnVersion=7)
    place.write(spark.range(6, 10))
    first, second = (logged.ledger_id for logged in place.log().ledgers)
    ledgers = place.read(None, view="ledgers").orderBy("ledger_id").collect()
    assert [(row.ledger_id, row.log, row.state, row.entries) for row in ledgers] == [
        (first, LOG, "CLOSED", 6),
        (second, LOG, "CLOSED", 4),
    ]
    fragments = place.read(view="fragments").collect()
    assert {len(row.ensemble) for row in fragments} == {3}
    label(place.uri, "bookie-1", labels={"rack": "r7", "zone": "a"})
    bookies = place.read(None, view="bookies").collect()
    labels = {row.bookie_id: row.labels for row in bookies}
    assert labels == {"bookie-1": {"rack": "r7", "zone": "a"}, "bookie-2": {}, "bookie-3": {}}
    assert sorted((row.bookie_id, row.is_usable) for row in bookies) == [
        ("bookie-1", True),
        ("bookie-2", True),
        ("bookie-3", True),
    ]
    history = place.read(view="history").orderBy("first_offset").collect()
    assert [(row.first_offset, row.entries) for row in history] == [(0, 6), (6, 4)]
    assert [tuple(done) for done in history[0].transactions] == [("app", 7)]
    assert [place.read(versionAsOf=row.version).count() for row in history] == [6, 10]
    as_of = {"version_as_of": history[0].version, "metadataServiceUri": place.uri}
    assert bkspark.read(place.spark, "events", **as_of).count() == 6
    assert place.read(view="underreplicated").count() == 0
    place.entry_logs(0)[0].unlink()
    place.entry_logs(1)[-1].unlink()
    missing = place.read(view="underreplicated").collect()
    assert {row.bookie_id for row in missing} == {"bookie-1", "bookie-2"}


def test_a_temporary_view_reads_a_version(spark, ten: Place):
    for option, count in (("versionAsOf '0'", 6), ("timestampAsOf '2100-01-01T00:00:00Z'", 10)):
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW as_it_was USING bookkeeper OPTIONS "
            f"(metadataServiceUri '{ten.uri}', path '{LOG}', {option})"
        )
        assert spark.sql("select count(*) from as_it_was").first()[0] == count


def test_a_view_may_be_projected_and_queried_with_sql(spark, ten: Place):
    found = ten.read(None, view="bookies", schema="is_usable boolean, bookie_id string")
    assert found.columns == ["is_usable", "bookie_id"]
    found.createOrReplaceTempView("their_bookies")
    assert spark.sql("select count(*) from their_bookies where is_usable").first()[0] == 3


def test_a_view_without_such_a_column_is_refused(ten: Place):
    text = refusal(
        InvalidRequestError, lambda: ten.plan_read(None, view="bookies", schema="nope int")
    )
    assert text.startswith("there is no column 'nope'; columns are bookie_id, url")
