"""A command loads what it needs. Loading Arrow takes longer than most commands run."""

import json
import shlex
import subprocess
import sys

import pytest

CODE = """\
import json, sys
from bkspark.cli import main
statuses = [main(words) for words in json.loads(sys.argv[1])]
print(json.dumps([statuses, sorted(sys.modules)]), file=sys.stderr)
"""
HEAVY = {"numpy", "pandas", "pyarrow", "pyspark", "rich.progress"}
CLUSTER = {"bkspark.cluster.cluster", "bkspark.admin.survey", "bkspark.format.digest"}

HELP_NEEDS = {
    *("_version", "environment", "errors", "quantities"),
    *("admin", "admin.maintenance", "verbs", "verbs.commands", "verbs.declaring"),
    *("cluster", "cluster.arguments", "format", "format.layout", "storage", "storage.address"),
    *("protocol", "protocol.bookies", "protocol.bounds", "protocol.ledger"),
    "protocol.ledger.quorum",
}
"""What options and addresses need, beside the modules of the command line."""

LISTS = ["logs", "ledgers", "log show rows", "log count rows", "bookies"]
WORK = {"admin.auditing.audit", "ledger.recovery.recover", "protocol.recovery.recovering"}

HELP = ["--help", "log --help", "log read --help", "bookie --help", "repair --help", "--version"]
OF_METADATA = [
    *("logs", "log count rows", "log truncate rows --before 5 --dry-run", "ledgers", "bookies"),
    *("status", "metrics --json", "metadata damaged", "bookie readonly bookie-1 --dry-run"),
    *("bookie label bookie-1 a=b", "bookie sweep", "audit", "collect", "rebalance --dry-run"),
    *("repair", "recover --all --yes", "bookie decommission bookie-1 --dry-run"),
    "log delete rows --yes",
]


def loaded_by(commands, uri=""):
    """The modules that a process has loaded after it has run ``commands``, into a pipe."""
    common = ["--metadata", uri] if uri else []
    words = [[*shlex.split(command), *common] for command in commands]
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(words)], capture_output=True, text=True, check=True
    )
    statuses, modules = json.loads(done.stderr.splitlines()[-1])
    refused = [command for command, status in zip(commands, statuses) if status]
    assert not refused, done.stderr
    return {*modules}


def of_bkspark(modules):
    return {name.removeprefix("bkspark.") for name in modules if name.startswith("bkspark.")}


def test_help_loads_no_cluster():
    loaded = loaded_by(HELP)
    assert not loaded & {*HEAVY, *CLUSTER, "rich"}
    others = {name for name in of_bkspark(loaded) if name.partition(".")[0] != "cli"}
    assert others == HELP_NEEDS


@pytest.mark.thorough
def test_lists_load_no_audit_and_no_recovery(small_cluster, numbers):
    small_cluster.append("rows", [numbers(0, 10)])
    assert not of_bkspark(loaded_by(LISTS, small_cluster.uri)) & WORK


def test_commands_that_touch_no_rows_load_no_arrow(small_cluster, numbers):
    small_cluster.append("rows", [numbers(0, 10), numbers(10, 30)])
    assert not loaded_by(OF_METADATA, small_cluster.uri) & HEAVY
