"""What a session gets for a table in a bucket, and how Spark is told where the table is."""

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import bkspark
from bkspark.errors import InvalidRequestError
from bkspark.spark import delta, hadoop_s3, offload
from bkspark.spark.hadoop_s3 import for_spark, s3_packages, s3_settings
from bkspark.storage import stores

OWN = "spark.hadoop.fs.s3a.bucket.lake."
ENVIRONMENT = (
    *("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"),
    *("AWS_PROFILE", "AWS_ACCESS_KEY_ID"),
)


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*ENVIRONMENT, stores.VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "stores.toml"
    file.write_text(
        '[east]\nendpoint_url = "http://east:9000"\nregion = "r1"\nprofile = "p"\n'
        '[west]\nendpoint_url = "https://west"\naddressing_style = "virtual"\n[aws]\n'
    )
    monkeypatch.setenv(stores.VARIABLE, str(file))


@pytest.mark.parametrize(
    ("url", "known"),
    [
        ("s3://lake/events", "s3a://lake/events"),
        ("s3a://lake/events/", "s3a://lake/events"),
        ("s3://lake/events?store=east", "s3a://lake/events"),
        ("s3a://lake/events?store=east", "s3a://lake/events"),
        (" S3A://lake/events ", "s3a://lake/events"),
        ("file:///data/events", "file:///data/events"),
    ],
)
def test_spark_knows_a_table_by_the_address_of_its_own_client(url: str, known: str) -> None:
    assert for_spark(url) == known


class TestSettings:
    def test_nothing_is_set_for_aws_itself(self) -> None:
        assert s3_settings("s3://lake/events") == {}

    def test_those_of_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://all")
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://s3")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "r2")
        assert s3_settings("s3a://lake/events") == {
            f"{OWN}endpoint": "http://s3",
            f"{OWN}endpoint.region": "r2",
            f"{OWN}path.style.access": "true",
        }

    def test_a_profile_of_the_environment_comes_after_its_keys(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_PROFILE", "ann")
        assert s3_settings("s3://lake/events")[f"{OWN}auth.profile.name"] == "ann"
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        assert s3_settings("s3://lake/events") == {}

    @pytest.mark.usefixtures("named")
    def test_those_of_the_store_that_the_address_names(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://all")
        assert s3_settings("s3://lake/events?store=east") == {
            f"{OWN}endpoint": "http://east:9000",
            f"{OWN}endpoint.region": "r1",
            f"{OWN}path.style.access": "true",
            f"{OWN}auth.profile.name": "p",
            f"{OWN}aws.credentials.provider": "org.apache.hadoop.fs.s3a.auth."
            "ProfileAWSCredentialsProvider",
        }
        assert s3_settings("s3://lake/events?store=west") == {f"{OWN}endpoint": "https://west"}
        assert s3_settings("s3://lake/events?store=aws") == {}

    @pytest.mark.usefixtures("named")
    def test_an_unknown_store_is_refused(self) -> None:
        with pytest.raises(InvalidRequestError, match=r"has no table \[north\]"):
            s3_settings("s3://lake/events?store=north")


class TestPackages:
    def of(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> list[str]:
        (folder / "jars").mkdir()
        for name in names:
            (folder / "jars" / name).touch()
        monkeypatch.setattr(hadoop_s3, "_find_spark_home", lambda: str(folder))
        return s3_packages()

    def test_the_client_has_the_version_of_hadoop(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = self.of(tmp_path, monkeypatch, "hadoop-client-api-3.5.0.jar", "a.jar")
        assert found == ["org.apache.hadoop:hadoop-aws:3.5.0"]

    @pytest.mark.parametrize(
        "names", [(), ("hadoop-client-api-3.5.0.jar", "hadoop-aws-3.5.0.jar")], ids=len
    )
    def test_none_is_needed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
    ) -> None:
        assert self.of(tmp_path, monkeypatch, *names) == []


class TestBuilder:
    @pytest.fixture
    def builder(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
        monkeypatch.setattr(delta.pyspark, "__version__", "4.2.1")
        monkeypatch.setattr(delta, "s3_packages", lambda: ["org.apache.hadoop:hadoop-aws:3.5.0"])
        builder = SparkSession.Builder()
        builder._options = {}
        return builder

    def test_a_table_in_a_bucket_brings_client_and_settings(
        self, builder: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://all")
        bkspark.configure_delta(builder, table="s3://lake/events")
        found = dict(builder._options)
        assert found["spark.jars.packages"].endswith(",org.apache.hadoop:hadoop-aws:3.5.0")
        assert found[f"{OWN}endpoint"] == "http://all"

    def test_what_the_builder_says_of_the_bucket_stays(
        self, builder: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://all")
        builder.config(f"{OWN}endpoint", "http://own")
        bkspark.configure_delta(builder, table="s3a://lake/events")
        assert builder._options[f"{OWN}endpoint"] == "http://own"

    @pytest.mark.parametrize("table", ["", "/data/events"])
    def test_a_table_on_a_disk_needs_no_client(self, builder: Any, table: str) -> None:
        bkspark.configure_delta(builder, table=table)
        assert "hadoop-aws" not in builder._options["spark.jars.packages"]

    def test_a_client_that_the_user_asks_for_is_not_excluded(self, builder: Any) -> None:
        excluded = bkspark.configure_delta(builder)._options["spark.jars.excludes"].split(",")
        assert "org.apache.hadoop:hadoop-client*" in excluded
        assert not [name for name in excluded if name in ("org.apache.hadoop:*", "*:*")]


class TestSession:
    def test_a_session_without_a_client_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        spark: Any = object()
        monkeypatch.setattr(offload, "has_delta", lambda _: True)
        monkeypatch.setattr(hadoop_s3, "has_client", lambda _spark, url: "s3" not in url)
        assert offload.copier_of(spark, ["file:///data/events"])
        with pytest.raises(InvalidRequestError, match="no client of S3 for the table at s3://l"):
            offload.copier_of(spark, ["file:///data/events", "s3://lake/events"])

    def test_a_table_on_a_disk_asks_for_no_client(self) -> None:
        spark: Any = None
        assert hadoop_s3.has_client(spark, "file:///data/events")


class TestReasons:
    def test_what_a_task_of_ours_says_comes_first(self) -> None:
        text = (
            "[PYTHON] failed: Traceback\n  File x\nValueError: no\n"
            "bkspark.errors.CorruptDataError: no bookie gives it; bring one back\n SQLSTATE: 38000"
        )
        assert offload._reason(Exception(text)) == "no bookie gives it; bring one back"

    def test_spark_says_it_in_its_first_line(self) -> None:
        assert offload._reason(Exception("\n[TABLE] is away\n at x")) == "[TABLE] is away"

    def test_java_says_it_in_its_first_cause(self) -> None:
        class Thrown:
            def __init__(self, text: str, cause: "Thrown | None") -> None:
                self.text, self._cause = text, cause

            def getCause(self) -> "Thrown | None":
                return self._cause

            def toString(self) -> str:
                return self.text

        class Failed(Py4JJavaError):
            def __init__(self) -> None:
                self.java_exception = Thrown("outer", Thrown("AccessDenied: bucket lake", None))

            def __str__(self) -> str:
                return "An error occurred while calling o1.save."

        assert offload._reason(Failed()) == "AccessDenied: bucket lake"
