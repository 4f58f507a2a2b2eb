"""Rows of every type go to a table of Delta's own making, and what its owner changes is noticed."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bkspark import verbs
from bkspark.cluster.cluster import Cluster
from bkspark.errors import TableChangedError
from tests.integration.rig import Rig

Conf = Callable[[dict[str, str]], AbstractContextManager[None]]
LOG = "flights"
COLUMNS = (
    "id",
    "if(id % 3 = 0, null, cast(id as string)) AS s",
    "cast(id % 100 AS byte) AS b",
    "cast(null AS int) AS i",
    "array(id, null) AS a",
    "struct(id AS x, 'q' AS y) AS st",
    "map('k', id) AS m",
    "timestamp'1500-03-01 00:00:00' AS t",
    "timestamp_ntz'0001-01-01 00:00:00' AS tn",
    "timestamp'9999-12-31 23:59:59.999999' AS tl",
    "date'0001-01-01' AS d",
    "if(id % 2 = 0, cast('NaN' AS double), -0.0d) AS f",
    "cast(id AS decimal(20, 3)) AS de",
    "unhex('00ff') AS bin",
    "array(struct(array(cast(null AS string)) AS n)) AS deep",
)


@pytest.fixture
def rig(delta_spark: SparkSession, tmp_path: Path) -> Rig:
    rig = Rig(tmp_path / "cluster", kind="posix", bookie_count=3)
    append(delta_spark, rig)
    return rig


def append(spark: SparkSession, rig: Rig) -> None:
    rows = spark.range(0, 100).selectExpr(*COLUMNS)
    sizes = {"ensembleSize": 3, "writeQuorumSize": 2, "ackQuorumSize": 2}
    writer = rows.write.format("bookkeeper").options(metadataServiceUri=rig.uri, **sizes)
    writer.mode("append").save(LOG)


def test_an_owner_renames_columns_and_offloads_go_on(
    delta_spark: SparkSession, tmp_path: Path, place: str
) -> None:
    rig = Rig(tmp_path / "cluster", kind="posix", bookie_count=3)
    made = "id", "id AS `a.b``c`", "struct(id AS x, array(struct(id AS y)) AS l) AS st"
    for first in (0, 50):
        rows = delta_spark.range(first, first + 50).selectExpr(*made)
        rows.write.format("bookkeeper").option("metadataServiceUri", rig.uri).mode("append").save(
            LOG
        )
        verbs.offload(rig.uri, log=LOG, table=place, accept_single_copy=True, spark=delta_spark)
        if not first:
            delta_spark.sql(
                f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('delta.columnMapping.mode' = "
                "'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
            )
            for old, new in (
                ("id", "number"),
                ("_offset", "place"),
                ("st.x", "first"),
                ("st.l.element.y", "second"),
            ):
                delta_spark.sql(f"ALTER TABLE delta.`{place}` RENAME COLUMN {old} TO {new}")
    assert segments(rig) == [(0, 50), (50, 100)]
    table = delta_spark.read.format("delta").load(place)
    found = table.select("place", "number", "`a.b``c`", "st.first", "st.l").sort("place").collect()
    assert [(*row[:4], row.l[0].second) for row in found] == [(i,) * 5 for i in range(100)]


def segments(rig: Rig) -> list[tuple[int, int]]:
    with Cluster(rig.uri) as cluster:
        tier = cluster.log(LOG).value.tier
    return [] if tier is None else [(one.begin, one.end) for one in tier.segments]


def codecs(place: str) -> set[str]:
    return {file.name.split(".")[-2] for file in Path(place).glob("*.parquet")}


def test_a_log_of_all_types_is_offloaded(
    delta_spark: SparkSession, rig: Rig, place: str, conf: Conf
) -> None:
    def offload(**given: object) -> int:
        report = verbs.offload(
            rig.uri, log=LOG, accept_single_copy=True, spark=delta_spark, **given
        )
        return int(report.done.get("entries", 0))

    assert offload(table=place) == 100
    append(delta_spark, rig)
    assert codecs(place) == {"zstd"}
    delta_spark.sql(f"OPTIMIZE delta.`{place}`")
    with conf({"spark.sql.parquet.compression.codec": "gzip"}):
        assert offload() == 100
    assert "gz" in codecs(place)
    delta_spark.sql(f"OPTIMIZE delta.`{place}` ZORDER BY (b)")
    delta_spark.sql(f"VACUUM delta.`{place}` RETAIN 0 HOURS")
    assert offload() == 0
    table = delta_spark.read.format("delta").load(place)
    assert table.columns[:4] == ["_offset", "_ledger_id", "_entry_id", "_timestamp"]
    own = delta_spark.read.format("bookkeeper").option("metadataServiceUri", rig.uri).load(LOG)
    names = [name for name in own.columns if name != "m"]  # maps cannot be compared
    assert table.select(names).exceptAll(own.select(names)).count() == 0
    assert segments(rig) == [(0, 100), (100, 200)]
    delta_spark.sql(f"UPDATE delta.`{place}` SET s = 'x' WHERE _offset = 5")
    with pytest.raises(TableChangedError, match="some of offsets 0 to 99"):
        offload()
    offload(accept_changes=True)
    assert offload() == 0
    verbs.offload(rig.uri, log=LOG, stop=True, spark=delta_spark)
    assert segments(rig) == []
