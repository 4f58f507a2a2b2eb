"""Which process calls which writer method, how often, and with what, as tasks fail."""

from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

from facts.journal import calls, names, wait_for
from facts.probe_source import COMMIT_FAILURE, TASK_FAILURE


@pytest.fixture
def two_tasks(spark: SparkSession) -> DataFrame:
    return spark.range(0, 4, 1, 2)


def _write(df: DataFrame, journal: str, **options: Any) -> None:
    df.write.format("facts_sink").options(journal=journal, **options).mode("append").save()


def test_commit_runs_elsewhere_than_writer_on_a_copy_of_that_writer(two_tasks, journal):
    """The writer holds plain values only: its constructor's state is pickled and travels along."""
    _write(two_tasks, journal)
    (writer,) = calls(journal, "writer")
    (commit,) = calls(journal, "commit")
    assert commit["pid"] != writer["pid"]
    for call in (*calls(journal, "write"), commit):
        assert call["made_in"] == writer["pid"]


def test_writer_is_made_once_per_write_and_every_task_has_a_message(two_tasks, journal):
    """A write token drawn in `writer()` is one per job, shared by all tasks and by commit."""
    _write(two_tasks, journal)
    assert len(calls(journal, "writer")) == 1
    (commit,) = calls(journal, "commit")
    assert [message["partition"] for message in commit["messages"]] == [0, 1]


def test_tasks_write_in_other_processes_than_writer_and_commit(two_tasks, journal):
    """What a task did is known to commit from its message alone."""
    _write(two_tasks, journal)
    driver = {call["pid"] for call in calls(journal, "writer", "commit")}
    assert driver.isdisjoint(call["pid"] for call in calls(journal, "write"))


def test_explain_does_not_make_a_writer(spark, journal):
    """`writer()` may create things in the metadata store: it is called only to write."""
    spark.sql("CREATE TABLE explained (id BIGINT) USING facts_sink")
    try:
        insert = f"INSERT INTO explained WITH (journal = '{journal}') VALUES (1)"
        spark.sql(f"EXPLAIN {insert}").collect()
        assert names(journal) == []
        spark.sql(insert)
        assert len(calls(journal, "writer")) == 1
    finally:
        spark.sql("DROP TABLE explained")


def test_a_dataframe_without_partitions_still_runs_one_task_and_commits(spark, journal):
    """Appending nothing must be a commit without entries, not an error."""
    empty = spark.createDataFrame(spark.sparkContext.emptyRDD(), "id BIGINT")
    assert empty.rdd.getNumPartitions() == 0
    _write(empty, journal)
    assert [(call["partition"], call["rows"]) for call in calls(journal, "wrote")] == [(0, 0)]
    assert len(calls(journal, "commit")) == 1


def test_partitions_without_rows_are_written_too(spark, journal):
    """A task opens its ledger at the first row, not before: many partitions may be empty."""
    _write(spark.range(0, 1, 1, 3), journal)
    (commit,) = calls(journal, "commit")
    assert [message["rows"] for message in commit["messages"]] == [0, 0, 1]


def test_an_arrow_writer_gets_no_batch_for_a_partition_without_rows(spark, tmp_path):
    """The schema comes from `writer()`'s argument, not from the first batch."""
    spark.range(0, 1, 1, 2).write.format("facts_store").mode("append").save(str(tmp_path))
    assert [file.name for file in tmp_path.glob("*.arrow")] == ["1.arrow"]


def test_abort_is_not_a_barrier_and_has_none_for_unfinished_tasks(two_tasks, journal):
    """Cleaning up rests on the write token and on fencing, never on abort or its messages.

    The task that fails waits for the other to begin, and that one waits for abort and then
    writes: that it can shows that abort did not wait for it.
    """
    with pytest.raises(PythonException, match=TASK_FAILURE):
        _write(two_tasks, journal, failpartition=0, tasks=2, waitfor="abort")
    wait_for(journal, lambda seen: seen[-1]["call"] == "wrote")
    (abort,) = calls(journal, "abort")
    assert abort["messages"] == [None, None]
    assert names(journal)[-2:] == ["abort", "wrote"]
    assert calls(journal)[-1]["partition"] == 1
    assert not calls(journal, "commit")


def test_abort_follows_a_failed_commit_with_all_messages(two_tasks, journal):
    """Abort must look whether the commit took effect before it deletes anything.

    A commit whose answer was lost is a failed commit, too.
    """
    with pytest.raises(AnalysisException, match=COMMIT_FAILURE):
        _write(two_tasks, journal, failcommit=1)
    (commit,) = calls(journal, "commit")
    (abort,) = calls(journal, "abort")
    assert abort["messages"] == commit["messages"]
    assert None not in abort["messages"]
    assert abort["made_in"] == commit["made_in"]


def test_a_writer_that_raises_fails_the_write_without_abort(two_tasks, journal):
    """Checks of options and schema belong in `writer()`: nothing has begun that needs undoing."""
    with pytest.raises(AnalysisException, match="KeyError"):
        two_tasks.write.format("facts_store").option("journal", journal).mode("append").save()
    assert names(journal) == ["writer"]
