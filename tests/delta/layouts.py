"""What a table's owner may do with a log's rows, each as a small table.

A layout makes a table of `ROWS` rows, and returns how the log's columns are read with Spark now, as
SQL by the log's name; an empty text for a column that Spark cannot give any more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.spark.local_session import sql_conf

ROWS = 400
COLUMNS = ("_offset", "_ledger_id", "_entry_id", "k", "v", "day", "at", "price", "s", "m")


@dataclass
class Owner:
    """The owner of a table.

    Attributes:
        first_version: the version of which the log knows the columns.
        now: SQL of columns that are read otherwise now.
    """

    spark: SparkSession
    path: str
    first_version: int = 0
    now: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> str:
        return f"delta.`{self.path}`"

    def rows(self, first: int = 0, end: int = ROWS) -> DataFrame:
        """The log's rows, as a copy of them has them."""
        ids = self.spark.range(first, end, 1, 2)
        return ids.selectExpr(
            "id AS _offset",
            "id div 100 AS _ledger_id",
            "id % 100 AS _entry_id",
            "if(id % 11 = 0, null, int(id % 7)) AS k",
            "if(id % 13 = 0, null, concat('v', id)) AS v",
            "date_add(date'2024-02-28', int(id % 3)) AS day",
            "timestamp_micros(id * 1234567891) AS at",
            "cast(if(id % 5 = 0, null, id / 8) AS decimal(12,3)) AS price",
            "if(id % 17 = 0, null, struct(int(id) AS a, array(string(id), null) AS b)) AS s",
            "if(id % 19 = 0, null, map(string(id), struct(id AS x), 'none', null)) AS m",
        )

    def append(self, rows: DataFrame | None = None, **options: str) -> None:
        rows = self.rows() if rows is None else rows
        rows.write.format("delta").mode("append").options(**options).save(self.path)

    def create(self, clauses: str = "", properties: Mapping[str, str] | None = None) -> None:
        """Make the table empty, and then append the rows in two commits."""
        names = ", ".join(
            f"{field.name} {field.dataType.simpleString()}" for field in self.rows().schema
        )
        given = ", ".join(f"'{key}' = '{value}'" for key, value in (properties or {}).items())
        tail = f"TBLPROPERTIES ({given})" if given else ""
        self.spark.sql(f"CREATE TABLE {self.table} ({names}) USING delta {clauses} {tail}")
        self.append(self.rows(0, ROWS // 2))
        self.append(self.rows(ROWS // 2, ROWS))

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("TABLE_HERE", self.table)).collect()

    def with_conf(self, **settings: str) -> Any:
        return sql_conf(self.spark, {name.replace("__", "."): v for name, v in settings.items()})


VECTORS = {"delta.enableDeletionVectors": "true"}
NO_VECTORS = {"delta.enableDeletionVectors": "false"}
BY_NAME = {"delta.columnMapping.mode": "name"}


def plain(owner: Owner) -> None:
    owner.create()


def after(owner: Owner, *statements: str, **properties: str) -> None:
    """The rows, and then statements."""
    owner.create(properties={name.replace("__", "."): v for name, v in properties.items()})
    for statement in statements:
        owner.sql(statement)


def deletions(owner: Owner, *conditions: str) -> None:
    owner.create(properties=VECTORS)
    for condition in conditions:
        owner.sql(f"DELETE FROM TABLE_HERE WHERE {condition}")


def renamed(owner: Owner) -> None:
    owner.create(properties=BY_NAME)
    owner.sql("ALTER TABLE TABLE_HERE RENAME COLUMN v TO w")
    owner.sql("ALTER TABLE TABLE_HERE RENAME COLUMN k TO v")
    owner.sql("ALTER TABLE TABLE_HERE RENAME COLUMN _entry_id TO e")
    owner.sql("OPTIMIZE TABLE_HERE")
    owner.now = {"v": "w", "k": "v", "_entry_id": "e"}


def renamed_offsets(owner: Owner) -> None:
    owner.create(properties=BY_NAME)
    owner.sql("ALTER TABLE TABLE_HERE RENAME COLUMN _offset TO position")
    owner.now = {"_offset": "position"}


def renamed_fields(owner: Owner) -> None:
    """Of a struct in a map and of one that stands alone, and one field is made anew."""
    owner.create(properties=BY_NAME)
    owner.sql("ALTER TABLE TABLE_HERE RENAME COLUMN s.a TO b2")
    owner.sql("ALTER TABLE TABLE_HERE RENAME COLUMN m.value.x TO y")
    owner.sql("OPTIMIZE TABLE_HERE")
    owner.now = {
        "s": "if(s is null, null, struct(s.b2 AS a, s.b AS b))",
        "m": "transform_values(m, (k, v) -> if(v is null, null, struct(v.y AS x)))",
    }


def mapping_added_later(owner: Owner) -> None:
    owner.create()
    owner.first_version = 2
    owner.sql(
        "ALTER TABLE TABLE_HERE SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    owner.sql("ALTER TABLE TABLE_HERE RENAME COLUMN v TO w")
    owner.now = {"v": "w"}


def made_again(owner: Owner) -> None:
    """A column that the log does not know takes the place of a dropped one, and its name."""
    owner.create(properties=BY_NAME)
    owner.sql("ALTER TABLE TABLE_HERE DROP COLUMN v")
    owner.sql("ALTER TABLE TABLE_HERE ADD COLUMN v bigint")
    owner.sql("UPDATE TABLE_HERE SET v = 5")
    owner.now = {"v": ""}


def by_id(owner: Owner) -> None:
    owner.create(properties={"delta.columnMapping.mode": "id"})
    owner.sql("ALTER TABLE TABLE_HERE RENAME COLUMN v TO w")
    owner.now = {"v": "w"}


def merged(owner: Owner) -> None:
    """A column that is in later files only."""
    owner.append(owner.rows(0, 200).drop("v"))
    owner.append(owner.rows(200, ROWS), mergeSchema="true")
    owner.first_version = 1


def partitioned(owner: Owner, *columns: str) -> None:
    owner.create(f"PARTITIONED BY ({', '.join(columns)})")


STRANGE = (
    "'a/b', 'c%d', 'e=f', 'ü', ' g h ', '', null, 'x:y', \"it''s\", '#?', '+', 'z%2Fz', "
    "'__HIVE_DEFAULT_PARTITION__x'"
)


def partitioned_by_strange_texts(owner: Owner) -> None:
    rows = owner.rows().selectExpr("* except (v)", f"array({STRANGE})[int(_offset % 13)] AS v")
    rows.write.format("delta").partitionBy("v").save(owner.path)


def partitioned_by_all_kinds(owner: Owner) -> None:
    """Other columns are partitions here than those that the log has."""
    rows = owner.rows().selectExpr(
        "* except (k, v, day, at, price)",
        "if(_offset % 4 = 0, null, int(_offset % 4) - 2) AS k",
        "string(_offset % 2 = 0) AS v",
        "array(date'0001-01-01', date'1970-01-01', null, date'9999-12-31')[int(_offset % 4)] "
        "AS day",
        "array(timestamp'0001-01-01 00:00:00Z', timestamp'1969-12-31 23:59:59.000001Z', null, "
        "timestamp'9999-12-31 23:59:59.999999Z')[int(_offset % 4)] AS at",
        "array(cast(-0.5 AS decimal(12,3)), 123456789.125, null)[int(_offset % 3)] AS price",
    )
    writer = rows.write.format("delta").partitionBy("k", "v", "day", "at", "price")
    writer.save(owner.path)


def clustered(owner: Owner) -> None:
    owner.create("CLUSTER BY (v)")
    owner.sql("OPTIMIZE TABLE_HERE")


def restored(owner: Owner) -> None:
    owner.create()
    owner.sql("DELETE FROM TABLE_HERE WHERE _offset % 3 = 0")
    owner.sql("UPDATE TABLE_HERE SET v = 'changed'")
    owner.sql("RESTORE TABLE TABLE_HERE TO VERSION AS OF 2")


def old_times(owner: Owner, kind: str) -> None:
    """Timestamps of years 1 and 9999, also in nested columns and by an OPTIMIZE of the owner."""
    times = (
        "array(timestamp'0001-01-01 00:00:00Z', timestamp'1500-03-01 12:30:00.123456Z', "
        "timestamp'1969-12-31 23:59:59.999999Z', timestamp'2262-04-12 00:00:00Z', "
        "timestamp'9999-12-31 23:59:59.999999Z', null)[int(_offset % 6)]"
    )
    rows = owner.rows().selectExpr("* except (at, day)", f"{times} AS at", f"date({times}) AS day")
    with owner.with_conf(spark__sql__parquet__outputTimestampType=kind):
        owner.append(rows)
        owner.append(owner.rows(ROWS, ROWS + 2))
        owner.sql("OPTIMIZE TABLE_HERE")
        owner.sql(f"DELETE FROM TABLE_HERE WHERE _offset >= {ROWS}")


def checkpointed(owner: Owner, policy: str = "", conf: Mapping[str, str] | None = None) -> None:
    """A checkpoint with each commit, and no commit before the last two."""
    properties = {"delta.checkpointInterval": "1"}
    if policy:
        properties["delta.checkpointPolicy"] = policy
    with sql_conf(owner.spark, conf or {}):
        owner.create("PARTITIONED BY (day)", properties)
        owner.sql("DELETE FROM TABLE_HERE WHERE _offset = 7")


def checkpointed_in_columns(owner: Owner) -> None:
    owner.create(
        properties={
            "delta.checkpointInterval": "1",
            "delta.checkpoint.writeStatsAsJson": "false",
            "delta.checkpoint.writeStatsAsStruct": "true",
        }
    )


def widened(owner: Owner) -> None:
    owner.create(properties={"delta.enableTypeWidening": "true"})
    owner.sql("ALTER TABLE TABLE_HERE ALTER COLUMN k TYPE bigint")
    owner.sql("ALTER TABLE TABLE_HERE ALTER COLUMN price TYPE decimal(20,6)")
    owner.sql("ALTER TABLE TABLE_HERE ALTER COLUMN s.a TYPE bigint")
    owner.sql("UPDATE TABLE_HERE SET v = v WHERE _offset < 100")
    owner.now = {
        "k": "int(k)",
        "price": "cast(price AS decimal(12,3))",
        "s": "if(s is null, null, struct(int(s.a) AS a, s.b AS b))",
    }


def widened_more(owner: Owner) -> None:
    owner.create(properties={"delta.enableTypeWidening": "true"})
    owner.sql("ALTER TABLE TABLE_HERE ALTER COLUMN k TYPE double")
    owner.sql("OPTIMIZE TABLE_HERE")
    owner.now = {"k": "int(k)"}


def cleaned_up(owner: Owner) -> None:
    """Old commits are removed as Delta does it some day, and so are files that are not live."""
    owner.create(properties={"delta.checkpointInterval": "2"})
    for _ in range(3):
        owner.sql("UPDATE TABLE_HERE SET v = v WHERE _offset % 50 = 3")
    owner.sql("OPTIMIZE TABLE_HERE")
    owner.sql("VACUUM TABLE_HERE RETAIN 0 HOURS")
    log = Path(owner.path) / "_delta_log"
    newest = max(int(file.name[:20]) for file in log.glob("*.checkpoint.parquet"))
    for version in range(newest):
        (log / f"{version:020d}.json").unlink()
    owner.first_version = newest


def appended_by_others(owner: Owner) -> None:
    owner.create()
    owner.append(owner.rows(0, 9).selectExpr("* except (_offset)", "cast(null AS long) AS _offset"))
    owner.append(owner.rows(ROWS, ROWS + 9))
    owner.sql(f"DELETE FROM TABLE_HERE WHERE _offset >= {ROWS} AND _offset % 2 = 0")


LAYOUTS: dict[str, Callable[[Owner], None]] = {
    "plain": plain,
    "optimized": lambda o: after(o, "OPTIMIZE TABLE_HERE"),
    "z-ordered": lambda o: after(o, "OPTIMIZE TABLE_HERE ZORDER BY (v)"),
    "copied on delete": lambda o: after(
        o, "DELETE FROM TABLE_HERE WHERE k = 3", delta__enableDeletionVectors="false"
    ),
    "updated": lambda o: after(o, "UPDATE TABLE_HERE SET v = 'new' WHERE k = 3"),
    "single rows deleted": lambda o: deletions(o, "_offset IN (0, 57, 199, 200, 399)"),
    "every second row deleted": lambda o: deletions(o, "_offset % 2 = 1"),
    "a range of rows deleted": lambda o: deletions(o, "_offset BETWEEN 50 AND 250"),
    "several deletions of one file": lambda o: deletions(
        o, "_offset = 3", "_offset = 5", "_offset BETWEEN 20 AND 40", "k = 2"
    ),
    "deleted and purged": lambda o: after(
        o,
        "DELETE FROM TABLE_HERE WHERE k = 2",
        "REORG TABLE TABLE_HERE APPLY (PURGE)",
        delta__enableDeletionVectors="true",
    ),
    "renamed": renamed,
    "offsets renamed": renamed_offsets,
    "fields renamed": renamed_fields,
    "mapping added later": mapping_added_later,
    "dropped and made again": made_again,
    "mapped by id": by_id,
    "column added later": merged,
    "partitioned by date": lambda o: partitioned(o, "day"),
    "partitioned by two": lambda o: partitioned(o, "k", "day"),
    "partitioned by strange texts": partitioned_by_strange_texts,
    "partitioned by all kinds": partitioned_by_all_kinds,
    "restored": restored,
    "INT96 of all years": lambda o: old_times(o, "INT96"),
    "microseconds of all years": lambda o: old_times(o, "TIMESTAMP_MICROS"),
    "checkpoint": checkpointed,
    "checkpoint of several parts": lambda o: checkpointed(
        o, "classic", {"spark.databricks.delta.checkpoint.partSize": "2"}
    ),
    "checkpoint v2 in Parquet": lambda o: checkpointed(
        o, "v2", {"spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet"}
    ),
    "checkpoint v2 in JSON": lambda o: checkpointed(
        o, "v2", {"spark.databricks.delta.checkpointV2.topLevelFileFormat": "json"}
    ),
    "checkpoint with statistics in columns": checkpointed_in_columns,
    "widened": widened,
    "widened to double": widened_more,
    "clustered": lambda o: o.create("CLUSTER BY (_offset)"),
    "clustered and optimized": clustered,
    "row tracking": lambda o: after(
        o, "UPDATE TABLE_HERE SET v = 'x' WHERE k = 1", delta__enableRowTracking="true"
    ),
    "in-commit timestamps": lambda o: after(
        o, "OPTIMIZE TABLE_HERE", delta__enableInCommitTimestamps="true"
    ),
    "append only": lambda o: after(o, "OPTIMIZE TABLE_HERE", delta__appendOnly="true"),
    "log cleaned up": cleaned_up,
    "rows of others": appended_by_others,
}

LOG_FILES = {
    "checkpoint": "[0-9]*.checkpoint.parquet",
    "checkpoint of several parts": "[0-9]*.checkpoint.0000000002.000000000[2-9].parquet",
    "checkpoint v2 in Parquet": "[0-9]*.checkpoint.*-*.parquet",
    "checkpoint v2 in JSON": "[0-9]*.checkpoint.*-*.json",
    "checkpoint with statistics in columns": "[0-9]*.checkpoint.parquet",
}
"""What a layout must have in its log, or it is not the layout of its name."""
