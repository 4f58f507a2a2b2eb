"""``bkspark doctor``: check the setup of machine and session; each finding says how to fix it.

The check starts only interpreters, to ask their version, and the two processes that test an unknown
file system (``storage.litmus``); their test files are removed again.
"""

import importlib
import os
import pkgutil
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from importlib import metadata
from pathlib import Path

from bkspark._version import VERSION
from bkspark.admin.survey import Survey
from bkspark.cli import health
from bkspark.cli.output import Finding, Level
from bkspark.cluster.admission import storage_risk
from bkspark.cluster.arguments import METADATA_URI_VARIABLE
from bkspark.cluster.bookie_status import BookieStatus
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.protocol.log.record import LogRecord
from bkspark.quantities import plural
from bkspark.storage import stores
from bkspark.storage.address import shown_url, split_store
from bkspark.storage.connection import shown_endpoint

SOURCE_MODULE = "pyspark_bookkeeper"

# (package, first supported version, first unsupported version, what to install)
_PACKAGES = (
    ("pyspark", (4, 1), (4, 3), "pip install 'bkspark[spark]'"),
    ("pyarrow", (20,), None, "pip install 'pyarrow>=20'"),
    ("pandas", (2, 2), (3,), "pip install 'pandas>=2.2,<3'; pyspark 4.2 does not support pandas 3"),
)
# Java versions of Spark 4; Spark refuses others, or does not test them.
_JAVA_VERSIONS = (17, 21)
_ANSWER_SECONDS_MAX = 20
_UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"


def examine(metadata_uri: str) -> list[Finding]:
    """Check the parts visible from the local machine."""
    return [
        Finding(Level.OK, "bkspark", f"{VERSION} in {Path(sys.prefix)}"),
        _interpreter(),
        *(_package(*package) for package in _PACKAGES),
        _java(),
        Finding(Level.OK, "checksums", "CRC32C by fastcrc"),
        *_data_sources(),
        *_spark_defaults(),
        *_cluster(metadata_uri),
    ]


def _interpreter() -> Finding:
    """Check the workers' interpreter: Spark must run one with bkspark installed."""
    own = f"Python {platform.python_version()}"
    named = os.environ.get("PYSPARK_PYTHON")
    command = named or "python3"
    fix = f"export PYSPARK_PYTHON={sys.executable}"
    found = shutil.which(command)
    interpreter = f"PYSPARK_PYTHON ({command})" if named else "PYSPARK_PYTHON is not set: python3"
    if found is None:
        return Finding(Level.FAIL, "interpreter", f"{interpreter} does not exist", fix)
    if os.path.samefile(os.path.dirname(found), os.path.dirname(sys.executable)):
        return Finding(Level.OK, "interpreter", f"{own}, also for Spark's workers")
    answer = _answer([found, "-c", "import sys, bkspark; print('%d.%d' % sys.version_info[:2])"])
    if answer.strip() == "{}.{}".format(*sys.version_info[:2]):
        return Finding(Level.OK, "interpreter", f"{own}; Spark's workers run {found}")
    return Finding(
        Level.FAIL if named else Level.WARN,
        "interpreter",
        f"{interpreter} has another version than {own}, or lacks bkspark",
        fix,
    )


def _package(
    name: str, first: tuple[int, ...], beyond: tuple[int, ...] | None, fix: str
) -> Finding:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        level = Level.FAIL if name == "pyarrow" else Level.WARN
        return Finding(level, name, "is not installed", fix)
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    serves = numbers >= first and (beyond is None or numbers < beyond)
    return Finding(Level.OK, name, version) if serves else Finding(Level.FAIL, name, version, fix)


def _java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else "java"
    fix = f"install Java {_JAVA_VERSIONS[0]} and set JAVA_HOME"
    found = shutil.which(command)
    if found is None:
        return Finding(Level.FAIL, "java", f"{command} is not there", fix)
    version = re.search(r'version "(\d+)', _answer([found, "-version"]))
    if version is None:
        return Finding(Level.FAIL, "java", f"{found} does not show its version", fix)
    serves = int(version[1]) in _JAVA_VERSIONS
    level = Level.OK if serves else Level.WARN
    message = f"{version[1]} ({found})"
    return Finding(level, "java", message, "" if serves else fix)


def _data_sources() -> Iterator[Finding]:
    """Check the modules ``pyspark_*``: Spark registers each, and a failing module disables all."""
    names = sorted({m.name for m in pkgutil.iter_modules() if m.name.startswith("pyspark_")})
    if SOURCE_MODULE not in names:
        yield Finding(
            Level.WARN,
            "data source",
            f"Spark does not find {SOURCE_MODULE} by itself"
            + (": the package is installed as editable" if _can_import(SOURCE_MODULE) else ""),
            "add its folder to PYTHONPATH, or call bkspark.register(spark) in the session",
        )
    for name in names:
        problem = _import_problem(name)
        if problem:
            fix = f"fix or uninstall {name}: it disables automatic registration for all sources"
            yield Finding(Level.FAIL, "data source", f"{name}: {problem}", fix)
        elif name == SOURCE_MODULE:
            yield Finding(Level.OK, "data source", 'format("bookkeeper") needs no registration')


def _spark_defaults() -> Iterator[Finding]:
    path, text = _defaults()
    if path is None:
        yield _sockets("", "as seen from this machine")
        return
    if _is_on("spark.speculation", text):
        yield Finding(
            Level.WARN,
            "speculation",
            f"is on in {path}: writes stay exact, but losing attempts leave files behind",
            "keep it on only if slow tasks cost you more than the disk space",
        )
    else:
        yield Finding(Level.OK, "speculation", f"is off in {path}")
    yield _sockets(text, f"in {path}")


def _defaults() -> tuple[Path | None, str]:
    """Return the place and the text of ``spark-defaults.conf``; no place if there is none."""
    for folder in filter(None, (os.environ.get("SPARK_CONF_DIR"), _spark_home_conf())):
        path = Path(folder) / "spark-defaults.conf"
        with suppress(OSError):
            return path, path.read_text(encoding="utf-8", errors="replace")
    return None, ""


def _sockets(settings: str, where: str) -> Finding:
    """Check the connection between the JVM and Python, used by every row."""
    if _is_on(_UNIX_SOCKETS, settings):
        return Finding(Level.OK, "sockets", f"Unix sockets are on {where}")
    return Finding(
        Level.WARN,
        "sockets",
        f"Unix sockets between the JVM and Python are off {where}: with them, reads take a "
        "quarter less time",
        f"set {_UNIX_SOCKETS}=true, or submit with conf/bookkeeper.conf, which sets it",
    )


def _is_on(setting: str, settings: str) -> bool:
    """Return whether the text of a ``spark-defaults.conf`` enables the setting."""
    return bool(re.search(rf"(?mi)^\s*{re.escape(setting)}[\s=:]+true\s*$", settings))


def _cluster(metadata_uri: str) -> Iterator[Finding]:
    if not metadata_uri:
        yield Finding(
            Level.OK,
            "cluster",
            "none is named, so no cluster was checked",
            f"set {METADATA_URI_VARIABLE} or give --metadata URI to check a cluster",
        )
        return
    try:
        with Survey(metadata_uri) as cluster:
            statuses, lost = cluster.probe(), cluster.lost_members()
            everything = cluster.read_all()
            named = health.named_members(cluster, everything.ledgers, lost)
            logs = everything.logs
            undeleted = list(health.deletion_findings(logs))
            tables = list(_tables(cluster, [log for log in logs if log.tier is not None]))
            unreadable = list(health.unreadable_findings(cluster))
            storage = [*_stores(cluster, statuses), *_storage(cluster, statuses)]
    except BookKeeperError as error:
        yield Finding(Level.FAIL, "cluster", error.args[0], error.hint)
        return
    yield Finding(Level.OK, "cluster", f"answers at {shown_url(metadata_uri)}")
    yield from health.bookie_findings(statuses, lost, named)
    yield from undeleted
    yield from unreadable
    yield from storage
    yield from tables


_ONE_DRIVER = (
    "of two drivers that commit at once, both may be told that they did, and one commit is lost"
)
_S3_LOG_STORE = re.compile(r"(?mi)^\s*spark\.delta\.logStore\.s3a?\.impl[\s=:]+\S*DynamoDB")


def _tables(cluster: Cluster, logs: list[LogRecord]) -> Iterator[Finding]:
    """Look at the tables of logs, and at what their writers need; nothing without a table."""
    if not logs:
        return
    from bkspark.admin.offloading.tables import look_at_tables

    for one in look_at_tables(cluster, [log.name for log in logs]).answers:
        subject = f"log {one.log}"
        if one.problem:
            level = Level.WARN if one.is_unknown else Level.FAIL
            yield Finding(level, subject, one.problem, one.hint)
        else:
            what = f"its table at {one.table} answers, version {one.version}"
            yield Finding(Level.OK, subject, what)
    yield from _delta()
    urls = [log.tier.table_url for log in logs if log.tier is not None]
    if any(url.startswith("file:") for url in urls):
        fix = "let one driver at a time write to such a table, OPTIMIZE and offloads included"
        yield Finding(Level.WARN, "delta", f"tables on a disk: {_ONE_DRIVER}", fix)
    if not all(url.startswith("file:") for url in urls) and not _S3_LOG_STORE.search(
        _defaults()[1]
    ):
        fix = (
            "let one driver at a time write to such a table, or set spark.delta.logStore.s3a.impl "
            "to io.delta.storage.S3DynamoDBLogStore for all drivers"
        )
        yield Finding(Level.WARN, "delta", f"tables in a bucket: {_ONE_DRIVER}", fix)


def _delta() -> Iterator[Finding]:
    """Name the jars of Delta for the installed Spark, which an offload needs."""
    try:
        spark = metadata.version("pyspark")
        from bkspark.spark.delta import coordinate

        yield Finding(Level.OK, "delta", f"an offload starts Spark with {coordinate(spark)}")
    except (metadata.PackageNotFoundError, ImportError):
        fix = "pip install 'bkspark[spark]' where offloads run"
        yield Finding(Level.WARN, "delta", "pyspark is not installed: no offload can run", fix)
    except InvalidRequestError as error:
        yield Finding(Level.WARN, "delta", str(error.args[0]), error.hint)


def _stores(cluster: Cluster, statuses: list[BookieStatus]) -> Iterator[Finding]:
    """Name the object stores of all places, and whether this machine knows them."""
    places = {status.record.bookie_id: status.record.place for status in statuses}
    users: dict[str, list[str]] = {}
    for user, place in {"metadata": cluster.store.uri, **places}.items():
        users.setdefault(split_store(place)[1], []).append(user)
    users.pop("", None)
    for name, used_by in sorted(users.items()):
        told = f"of {', '.join(used_by)}"
        try:
            endpoint = stores.find(name).endpoint_url
        except InvalidRequestError as error:
            yield Finding(Level.FAIL, f"store {name}", f"{told}: {error.args[0]}", error.hint)
        else:
            where = shown_endpoint(endpoint) if endpoint else "AWS"
            yield Finding(Level.OK, f"store {name}", f"{told}: {where}")


def _storage(cluster: Cluster, statuses: list[BookieStatus]) -> Iterator[Finding]:
    """Test the file systems now, except file systems that cannot be written."""
    yield from health.risk_findings(cluster, statuses)
    found = {
        status.record.bookie_id: status.record
        for status in statuses
        if not (status.problem or status.write_problem)
    }
    accepted = {name for name, record in found.items() if record.storage_risk}
    urls = {name: record.url for name, record in found.items() if name not in accepted}
    if not cluster.storage_risk:
        urls = {"metadata": cluster.store.uri, **urls}
    store = cluster.store.uri
    risks = {name: storage_risk(url, store, is_accepted=True) for name, url in urls.items()}
    for name, risk in risks.items():
        if risk:
            fix = "replace it by a place on a local disk or in a bucket"
            yield Finding(Level.FAIL, name, risk, fix)
    safe = sum(not risk for risk in risks.values())
    if safe:
        yield Finding(Level.OK, "storage", f"{plural(safe, 'place')} of a safe kind")


def _spark_home_conf() -> str | None:
    home = os.environ.get("SPARK_HOME")
    return os.path.join(home, "conf") if home else None


def _can_import(name: str) -> bool:
    return not _import_problem(name)


def _import_problem(name: str) -> str:
    """Return why ``name`` cannot be imported, in one line; empty on success."""
    try:
        with redirect_stdout(sys.stderr):
            importlib.import_module(name)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def _answer(command: list[str]) -> str:
    """Return the output of ``command`` on both streams; empty on failure."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""
