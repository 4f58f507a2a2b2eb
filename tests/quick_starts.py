"""What processes that the tests start need not do again each time: compile, and load classes.

Some eighty drivers of Spark are started, each with a handful of Python processes. Two homes made
of links take the place of the installed ones. In that of Spark, pyspark is a folder with what was
compiled and no zip. In that of Java, ``java`` uses an archive of loaded classes, as soon as there
is one: the driver that is started with ``ARCHIVING`` in its environment leaves it at its end.
"""

import importlib.util
import os
import shutil
from pathlib import Path

ARCHIVE = "classes.jsa"
ARCHIVING = {"BKSPARK_TEST_ARCHIVING": "yes"}
_MADE = "BKSPARK_TEST_HOMES"

_JAVA = """\
#!/bin/sh
quick="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xlog:disable"
if [ -f "{archive}" ]; then
    exec "{java}" $quick -XX:SharedArchiveFile="{archive}" "$@"
fi
case "$BKSPARK_TEST_ARCHIVING $*" in
*org.apache.spark.launcher.Main*) ;; # prints the command of the driver
yes*org.apache.spark.deploy.SparkSubmit*)
    "{java}" $quick -XX:ArchiveClassesAtExit="{archive}.$$" "$@"
    status=$?
    mv "{archive}.$$" "{archive}"
    exit $status
    ;;
esac
exec "{java}" $quick "$@"
"""


def quick_starts(folder: Path) -> dict[str, str]:
    """Make the homes in ``folder``, unless another process has; what the environment has to say.

    Nothing where a test runs tests. A home of Spark that somebody has chosen is left alone, and
    where there is no Java, there is none.
    """
    if _MADE in os.environ:
        return {}
    if not folder.exists():
        made = folder.with_name(f"{folder.name}.{os.getpid()}")
        made.mkdir()
        _home_of_spark(made / "spark")
        _home_of_java(made / "java", archive=folder / ARCHIVE)
        try:
            made.rename(folder)
        except OSError:
            shutil.rmtree(made)
    found = {_MADE: str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    if "SPARK_HOME" not in os.environ and (folder / "spark").exists():
        found["SPARK_HOME"] = str(folder / "spark")
    if (home := folder / "java").exists():
        found["JAVA_HOME"] = str(home)
        found["PATH"] = os.pathsep.join([str(home / "bin"), os.environ.get("PATH", os.defpath)])
    return found


def _home_of_spark(home: Path) -> None:
    spec = importlib.util.find_spec("pyspark")  # found, not imported: that takes long
    if spec is None or spec.origin is None:
        return
    real = Path(spec.origin).parent
    _link_all(real, home, but="python")
    _link_all(real / "python/lib", home / "python/lib", but="pyspark.zip")
    (home / "python/lib/pyspark.zip").mkdir()
    (home / "python/lib/pyspark.zip/pyspark").symlink_to(real)


def _home_of_java(home: Path, archive: Path) -> None:
    chosen = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(chosen, "bin/java") if chosen else "java")
    if java is None:
        return
    real = Path(java).resolve()
    _link_all(real.parents[1], home, but="bin")
    _link_all(real.parent, home / "bin", but="java")
    command = home / "bin/java"
    command.write_text(_JAVA.format(java=real, archive=archive))
    command.chmod(0o755)


def _link_all(real: Path, folder: Path, but: str) -> None:
    folder.mkdir(parents=True)
    for path in real.iterdir():
        if path.name != but:
            (folder / path.name).symlink_to(path)
