"""Ledger passwords: they protect, and they are nowhere to be found.

A script without any registration call is submitted with everything on that could give a password
away: event log, INFO messages, plans, error texts. That takes a driver of its own; what is stored
and what is said of an error is looked at in the session of all tests as well.
"""

from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from places import Place, make_place, refusal
from pyspark.sql import SparkSession
from submitted import run, submission

from bkspark.errors import InvalidRequestError, UnauthorizedError

LITERAL, BY_ENV, BY_FILE, WRONG = "canary-lit-5f1", "canary-env-77c", "canary-file-d0e", "canary-no"
CANARIES = (LITERAL, BY_ENV, BY_FILE, WRONG)

SCRIPT = f"""\
    import contextlib, io, json, sys
    from pyspark.sql import SparkSession

    file = sys.argv[1]
    spark = SparkSession.builder.getOrCreate()
    ways = {{
        "literal": {{"password": "{LITERAL}"}},
        "env": {{"passwordEnv": "LEDGER_PASSWORD"}},
        "file": {{"passwordFile": file}},
    }}
    said = io.StringIO()
    rows, errors = {{}}, {{}}

    def failure(action):
        try:
            action()
        except Exception as error:
            return str(error) + repr(error)

    def load(name, **options):
        return spark.read.format("bookkeeper").options(**options).load(name)

    def append(rows, name, **options):
        rows.write.format("bookkeeper").options(**options).mode("append").save(name)

    for name, password in ways.items():
        append(spark.range(10), name, digestType="MAC", **password)
        logged = load(name, **password)
        with contextlib.redirect_stdout(said):
            logged.explain("extended")
            print(logged, logged._jdf.queryExecution().toString())
        rows[name] = sorted(row.id for row in logged.collect())

    for what, given in (("wrong", {{"password": "{WRONG}"}}), ("no", {{}})):
        errors["read " + what] = failure(lambda: load("env", **given).count())
        errors["write " + what] = failure(lambda: append(spark.range(1), "env", **given))
    view = "CREATE TEMPORARY VIEW v USING bookkeeper OPTIONS (path 'literal', password '{LITERAL}')"
    spark.sql(view)
    spark.sql("SELECT count(*) FROM v").collect()
    failing = spark.range(9).selectExpr("if(id = 8, raise_error('boom'), id) as id")
    errors["failed task"] = failure(lambda: append(failing, "literal", **ways["literal"]))
    print(json.dumps({{"rows": rows, "errors": errors, "plans": said.getvalue()}}))
"""

# The script holds the literal ones itself, and Spark's environment holds the variable.
ENVIRONMENT = {"LEDGER_PASSWORD": BY_ENV}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets")


@pytest.fixture(scope="module")
def submitted(spark: SparkSession, folder: Path) -> dict[str, Any]:
    place = make_place(spark, folder / "cluster")
    (folder / "events").mkdir()
    (folder / "password").write_text(BY_FILE + "\n")
    script = folder / "script.py"
    script.write_text(dedent(SCRIPT))
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(folder / "events"),
        "spark.eventLog.compress": "false",
        "spark.log.level": "INFO",
        "spark.sql.pyspark.worker.logging.enabled": "true",
    }
    command = submission(script, folder, conf, [str(folder / "password")])
    return run(command, folder, {**ENVIRONMENT, "BKSPARK_METADATA_URI": place.uri})


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["literal", "env", "file"])
def test_a_submitted_script_writes_and_reads_with_a_password(submitted, way):
    """Without a registration call, and with the cluster named by the environment."""
    assert submitted["rows"][way] == list(range(10))


@pytest.mark.thorough
@pytest.mark.parametrize("action", ["read", "write"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("wrong", "UnauthorizedError: the ledger password is wrong"),
        (
            "no",
            "UnauthorizedError: this ledger is protected by a password, and no password was given",
        ),
    ],
)
def test_without_the_right_password_there_is_no_access(submitted, action, given, message):
    assert message in submitted["errors"][f"{action} {given}"]


def _found_in(folder: Path) -> list[str]:
    return [
        f"{canary} in {file}"
        for file in folder.rglob("*")
        if file.is_file()
        for canary in CANARIES
        if canary.encode() in file.read_bytes()
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("canary", CANARIES)
def test_no_password_is_said(submitted, canary):
    assert submitted["errors"]["failed task"]
    assert "bookkeeper" in submitted["plans"]
    assert canary not in submitted["output"]


@pytest.mark.thorough
def test_no_password_is_in_the_event_log(submitted, folder: Path):
    files = [file for file in (folder / "events").rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) > 10_000
    assert _found_in(folder / "events") == []


@pytest.mark.thorough
def test_no_password_is_in_metadata_or_on_bookies(submitted, folder: Path):
    assert len(list((folder / "cluster").rglob("*"))) > 20
    assert _found_in(folder / "cluster") == []


def test_a_password_protects_and_is_neither_stored_nor_said(spark, place: Place, tmp_path, capfd):
    (tmp_path / "password").write_text(BY_FILE)
    place.write(spark.range(3), digestType="MAC", passwordFile=tmp_path / "password")
    assert place.ids(password=BY_FILE) == [0, 1, 2]
    for action in (
        lambda: place.ids(password=WRONG),
        lambda: place.write(spark.range(1), password=WRONG),
    ):
        text = refusal(UnauthorizedError, action)
        assert "the ledger password is wrong" in text
        assert WRONG not in text
    (tmp_path / "password").unlink()
    assert len(list(tmp_path.rglob("*"))) > 20
    assert _found_in(tmp_path) == []
    assert not [canary for canary in CANARIES for said in capfd.readouterr() if canary in said]


def test_mac_needs_a_password(spark, place: Place):
    text = refusal(UnauthorizedError, lambda: place.write(spark.range(1), digestType="MAC"))
    assert "passwordFile or passwordEnv in Spark" in text
    assert not place.has_log()


def test_a_password_that_would_protect_nothing_is_refused(spark, place: Place, tmp_path):
    """A new log, one that is there, and a stream; to read without need of it is harmless."""
    text = refusal(InvalidRequestError, lambda: place.write(spark.range(1), password="canary"))
    assert "a password needs digestType MAC" in text
    assert "canary" not in text
    assert not place.has_log()
    place.write(spark.range(3))
    text = refusal(InvalidRequestError, lambda: place.write(spark.range(1), password="canary"))
    assert "no password protects" in text
    stream = place.follow().writeStream.format("bookkeeper").option("password", "canary")
    stream.option("metadataServiceUri", place.uri).option("checkpointLocation", str(tmp_path / "c"))
    query = stream.trigger(availableNow=True).start("copy")
    text = refusal(InvalidRequestError, query.awaitTermination)
    assert "a password needs digestType MAC" in text
    assert not place.has_log("copy")
    assert place.ids(password="canary") == [0, 1, 2]


def test_a_password_reference_that_leads_nowhere_is_refused(spark, place: Place, tmp_path):
    (tmp_path / "empty").write_text("\n")
    for options, message in (
        ({"passwordFile": tmp_path / "none"}, f"passwordFile {tmp_path}/none cannot be read"),
        ({"passwordFile": tmp_path / "empty"}, f"passwordFile {tmp_path}/empty is empty"),
        ({"passwordEnv": "NO_SUCH"}, "the environment variable NO_SUCH named by passwordEnv"),
    ):
        write = partial(place.write, spark.range(1), digestType="MAC", **options)
        assert message in refusal(InvalidRequestError, write)
