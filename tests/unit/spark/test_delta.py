"""What the builder of a session gets, so that the session knows Delta."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

import bkspark
from bkspark.errors import InvalidRequestError
from bkspark.spark import delta
from bkspark.spark.delta import coordinate


def options_of(builder: Any) -> dict[str, str]:
    return dict(builder._options)


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(delta.pyspark, "__version__", "4.2.1")
    builder = SparkSession.Builder()
    builder._options = {}
    return builder


def test_a_builder_gets_jars_an_extension_and_a_catalog(builder: Any) -> None:
    assert bkspark.configure_delta(builder) is builder
    found = options_of(builder)
    assert found["spark.jars.packages"] == "io.delta:delta-spark_4.2_2.13:4.4.0"
    assert found["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert found["spark.sql.catalog.spark_catalog"].endswith(".DeltaCatalog")


def test_what_spark_ships_is_not_asked_for(builder: Any) -> None:
    """A copy of it in ~/.m2 may be half a copy, and would end the start."""
    excluded = options_of(bkspark.configure_delta(builder))["spark.jars.excludes"].split(",")
    shipped = {"org.slf4j:*", "com.fasterxml.jackson*:*", "org.apache.hadoop:hadoop-client*"}
    assert shipped <= set(excluded)


def test_what_the_builder_has_stays_and_nothing_is_there_twice(builder: Any) -> None:
    builder.config("spark.jars.packages", "a:b:1, c:d:2")
    builder.config("spark.jars.excludes", "e:f")
    builder.config("spark.sql.extensions", "own.Extension")
    once = options_of(bkspark.configure_delta(builder))
    assert once["spark.jars.packages"].startswith("a:b:1,c:d:2,io.delta:")
    assert once["spark.jars.excludes"].startswith("e:f,")
    assert once["spark.sql.extensions"].startswith("own.Extension,io.delta")
    assert options_of(bkspark.configure_delta(builder)) == once


@pytest.mark.parametrize(
    ("version", "release"), [("4.1.0", "4.1"), ("4.2.1", "4.2"), ("4.2.0.dev1", "4.2")]
)
def test_each_spark_has_jars_of_its_own(version: str, release: str) -> None:
    assert coordinate(version) == f"io.delta:delta-spark_{release}_2.13:4.4.0"


@pytest.mark.parametrize("version", ["4.0.1", "4.3.0", "5.0.0"])
def test_a_spark_without_jars_is_refused(version: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"no jars for Spark {version}; use Spark 4.1"):
        coordinate(version)


@pytest.mark.parametrize(
    ("extensions", "is_refused"),
    [("", True), ("own.Extension", True), (f"own.Extension,{delta._EXTENSION}", False)],
)
def test_a_session_that_runs_without_delta_is_refused(
    builder: Any, monkeypatch: pytest.MonkeyPatch, extensions: str, is_refused: bool
) -> None:
    class Running:
        conf = {"spark.sql.extensions": extensions}  # noqa: RUF012 - a stand-in

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: Running)
    if is_refused:
        with pytest.raises(InvalidRequestError, match="a session without Delta is running"):
            bkspark.configure_delta(builder)
    else:
        assert bkspark.configure_delta(builder) is builder


def test_a_builder_of_spark_connect_is_refused() -> None:
    class Builder:
        __module__ = "pyspark.sql.connect.session"

    with pytest.raises(InvalidRequestError, match="Spark Connect session cannot run configure_"):
        bkspark.configure_delta(Builder())  # type: ignore[arg-type]
