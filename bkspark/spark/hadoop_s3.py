"""What Spark needs for tables in buckets: Hadoop's client of S3, its settings, its addresses.

Rule. Spark and the readers of a log must reach the same bucket. So the client gets the endpoint of
the store that the table's address names, or of the AWS environment, for this bucket alone.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from bkspark.errors import InvalidRequestError
from bkspark.storage import stores
from bkspark.storage.address import shown_url, split_store
from bkspark.storage.folders import folder_url
from bkspark.storage.stores import Store

_CLIENT = re.compile(r"hadoop-client-api-([0-9][0-9.]*)\.jar")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


def is_in_bucket(url: str) -> bool:
    """Whether an address, as users write it, is in a bucket.

    Raises:
        InvalidRequestError: no such address.
    """
    return folder_url(url).startswith("s3://")


def for_spark(url: str) -> str:
    """Return the address of a table as Spark knows it: it has settings instead of stores."""
    if not is_in_bucket(url):
        return url
    plain, _ = split_store(folder_url(url))
    return f"s3a:{plain.removeprefix('s3:')}"


def s3_packages() -> list[str]:
    """Return coordinates of Hadoop's client of S3; none if Spark has it, or another Hadoop."""
    names = sorted(file.name for file in Path(_find_spark_home(), "jars").glob("hadoop-*.jar"))
    versions = [found[1] for found in map(_CLIENT.fullmatch, names) if found]
    if not versions or any(name.startswith("hadoop-aws-") for name in names):
        return []
    return [f"org.apache.hadoop:hadoop-aws:{versions[0]}"]


def s3_settings(url: str) -> dict[str, str]:
    """Return settings of a session, with which Spark reaches the bucket of a table.

    Raises:
        InvalidRequestError: no such address, or the store that it names is not known here.
    """
    plain, name = split_store(folder_url(url))
    bucket = plain.removeprefix("s3://").partition("/")[0]
    store = stores.find(name) if name else _of_environment()
    prefix = f"spark.hadoop.fs.s3a.bucket.{bucket}"
    return {f"{prefix}.{key}": value for key, value in _settings(store)}


def require_s3(spark: SparkSession, url: str) -> None:
    """Check that the session has a client for the bucket of a table.

    Raises:
        InvalidRequestError: it has none.
    """
    if not has_client(spark, url):
        raise InvalidRequestError(
            f"this Spark session has no client of S3 for the table at {shown_url(url)}",
            hint="make it with bkspark.configure_delta(SparkSession.builder, table=URL)"
            ".getOrCreate()",
        )


def has_client(spark: SparkSession, url: str) -> bool:
    """Whether the session can reach the kind of place where a table is."""
    if not is_in_bucket(url):
        return True
    context = spark.sparkContext
    assert context._jvm is not None
    conf = context._jsc.hadoopConfiguration()
    try:
        context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass("s3a", conf)
    except Py4JError:
        return False
    return True


def _of_environment() -> Store:
    """Return what bkspark takes from the environment of AWS; keys come before a profile."""
    profile = "" if _first(("AWS_ACCESS_KEY_ID",)) else _first(("AWS_PROFILE",))
    return Store(endpoint_url=_first(_ENDPOINTS), region=_first(_REGIONS), profile=profile)


def _first(names: tuple[str, ...]) -> str:
    return next(filter(None, (os.environ.get(name, "") for name in names)), "")


def _settings(store: Store) -> Iterator[tuple[str, str]]:
    if store.endpoint_url:
        yield "endpoint", store.endpoint_url
    if store.region:
        yield "endpoint.region", store.region
    is_virtual = store.addressing_style == "virtual"
    if store.addressing_style == "path" or (store.endpoint_url and not is_virtual):
        yield "path.style.access", "true"
    if store.profile:
        yield "auth.profile.name", store.profile
        yield (
            "aws.credentials.provider",
            "org.apache.hadoop.fs.s3a.auth.ProfileAWSCredentialsProvider",
        )
