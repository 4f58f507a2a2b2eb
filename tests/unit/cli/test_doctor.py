"""What the doctor says when something is not as it should be."""

import shutil
import sys
from pathlib import Path

import pytest

from bkspark.cli import doctor
from bkspark.cli.output import Level
from tests.benchmarks.dataframe import SETTINGS

SHIPPED = Path(__file__).parents[3] / "conf" / "bookkeeper.conf"


def found(subject, uri=""):
    return [finding for finding in doctor.examine(uri) if finding.subject == subject]


def test_every_warning_and_failure_says_how_to_fix_it(small_cluster, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(doctor.metadata, "version", lambda name: "99.0")
    findings = doctor.examine(small_cluster.uri)
    bad = [finding for finding in findings if finding.level is not Level.OK]
    assert {"interpreter", "java", "pandas", "pyspark"} <= {finding.subject for finding in bad}
    assert all(finding.fix for finding in bad)


def test_this_interpreter_serves_when_spark_is_told_to_use_it(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    [finding] = found("interpreter")
    assert finding.level is Level.OK


def test_an_interpreter_without_the_package_fails(monkeypatch, tmp_path):
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    [finding] = found("interpreter")
    assert finding.level is Level.FAIL
    assert sys.executable in finding.fix


def test_pandas_3_is_refused(monkeypatch):
    versions = {"pandas": "3.0.1", "pyspark": "4.2.0", "pyarrow": "26.0.1"}
    monkeypatch.setattr(doctor.metadata, "version", versions.__getitem__)
    [finding] = found("pandas")
    assert finding.level is Level.FAIL
    assert "<3" in finding.fix
    assert found("pyspark")[0].level is Level.OK


def test_a_broken_neighbour_that_disables_registration_is_named(monkeypatch, tmp_path):
    (tmp_path / "pyspark_broken_neighbour.py").write_text("import no_such_module_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    bad = [finding for finding in found("data source") if finding.level is Level.FAIL]
    assert any("pyspark_broken_neighbour" in finding.message for finding in bad)


@pytest.mark.parametrize("line", ["spark.speculation true", "spark.speculation=TRUE"])
def test_speculation_is_found_in_sparks_own_settings(monkeypatch, tmp_path, line):
    (tmp_path / "spark-defaults.conf").write_text(f"# a comment\n{line}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    [finding] = found("speculation")
    assert finding.level is Level.WARN


def test_a_comment_is_not_a_setting(monkeypatch, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("# spark.speculation true\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    [finding] = found("speculation")
    assert finding.level is Level.OK


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("spark.python.unix.domain.socket.enabled true", Level.OK),
        ("spark.python.unix.domain.socket.enabled=false", Level.WARN),
        ("# spark.python.unix.domain.socket.enabled true", Level.WARN),
    ],
)
def test_it_is_told_how_spark_and_python_talk(monkeypatch, tmp_path, line, level):
    (tmp_path / "spark-defaults.conf").write_text(f"{line}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    [finding] = found("sockets")
    assert finding.level is level


@pytest.mark.parametrize("folder", [None, "empty"])
def test_without_settings_of_spark_it_is_told_what_makes_reads_faster(
    monkeypatch, tmp_path, folder
):
    """After ``pip install`` there are none, and no variable names a place for them."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    if folder is not None:
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    [finding] = found("sockets")
    assert finding.level is Level.WARN
    assert "a quarter less time" in finding.message
    assert "spark.python.unix.domain.socket.enabled=true" in finding.fix
    assert "conf/bookkeeper.conf" in finding.fix


def test_the_settings_that_are_shipped_are_those_that_doctor_looks_for(monkeypatch, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text(SHIPPED.read_text())
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert {found(name)[0].level for name in ("sockets", "speculation")} == {Level.OK}


def test_the_settings_that_are_shipped_are_those_that_speed_was_measured_with():
    lines = [line.split(maxsplit=1) for line in SHIPPED.read_text().splitlines()]
    shipped = dict(line for line in lines if line and not line[0].startswith("#"))
    assert shipped.items() >= SETTINGS.items()


def test_the_cluster_is_looked_at_if_one_is_named(small_cluster):
    assert found("cluster", small_cluster.uri)[0].level is Level.OK
    shutil.rmtree(small_cluster.bookie("bookie-3"))
    assert found("bookie-3", small_cluster.uri)[0].level is Level.FAIL
    assert found("cluster", "file:///there/is/nothing")[0].level is Level.FAIL
