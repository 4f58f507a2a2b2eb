"""The schedules that are shipped run what is there, and what the page of operations names."""

import re
from pathlib import Path

import pytest

from bkspark import environment
from bkspark.admin import agents
from bkspark.cli import agent

from .rounds import Rounds, stop

FOLDER = Path(__file__).parents[3]
CRONTAB = (FOLDER / "conf" / "bkspark.crontab").read_text()
SERVICE = (FOLDER / "conf" / "bkspark-upkeep.service").read_text()
WATCH = (FOLDER / "conf" / "bkspark-repair.service").read_text()
AGENT = (FOLDER / "conf" / "bkspark-agent.service").read_text()
OPERATIONS = (FOLDER / "docs" / "operations.md").read_text()

IN_CRONTAB = re.findall(r"^[*/0-9 ]{9,}\bbkspark (.+)$", CRONTAB, re.MULTILINE)
IN_SERVICE = re.findall(r"^ExecStart=-?/usr/bin/env bkspark (.+)$", SERVICE, re.MULTILINE)
[WATCHED] = re.findall(
    r"^ExecStart=/usr/bin/env bkspark repair --watch 600 (.+)$", WATCH, re.MULTILINE
)


def seconds_between(fields: str) -> int:
    """How often a line of the crontab runs."""
    minute, hour, _, _, weekday = fields.split()
    if minute.startswith("*/"):
        return int(minute[2:]) * 60
    return 3_600 if hour == "*" else 86_400 if weekday == "*" else 7 * 86_400


@pytest.fixture
def damaged(small_cluster, numbers):
    """A closed ledger of which one bookie lost its journal."""
    kept = small_cluster.append("events", [numbers(0, 9)])
    next(small_cluster.folder.glob("bookie-*/ledgers/*/*/journal/*")).unlink()
    return kept


@pytest.mark.parametrize("command", sorted({*IN_CRONTAB, *IN_SERVICE, f"repair {WATCHED}"}))
def test_each_command_of_a_schedule_is_one(run, damaged, command):
    status, out, err = run(*command.split(), "--dry-run")
    assert (status, err) == (0, "")
    assert out


def test_a_round_leaves_nothing_to_do(run, damaged):
    statuses = [run(*command.split())[0] for command in IN_SERVICE]
    assert statuses == [0] * len(IN_SERVICE)


def test_schedules_and_operations_name_the_same_verbs():
    verbs = {command.split()[0] for command in IN_CRONTAB}
    assert verbs == {"recover", "repair", "collect", "audit", "scrub"}
    assert {command.split()[0] for command in IN_SERVICE} < verbs
    for command in IN_CRONTAB:
        words = (
            " ".join(command.split()[:2]) if command.startswith("recover") else command.split()[0]
        )
        assert f"`bkspark {words}`" in OPERATIONS


def test_agents_keep_the_schedule_of_the_crontab():
    lines = re.findall(r"^((?:[*/0-9]+ +){5})bkspark (.+)$", CRONTAB, re.MULTILINE)
    found = {command.split()[0]: seconds_between(fields) for fields, command in lines}
    assert found == agents.UPKEEP
    assert "scrub --max-bytes-per-second 100000000" in CRONTAB
    assert agent._LIMITS == {"scrub": {"max_bytes_per_second": 100_000_000}}


def test_the_agent_of_the_service_is_a_command(run, small_cluster):
    [words] = re.findall(r"^ExecStart=/usr/bin/env bkspark (agent .+)$", AGENT, re.MULTILINE)
    status, out, err = run(*words.split(), "--once")
    assert (status, err) == (0, "")
    assert "scrub: " in out
    assert "`conf/bkspark-agent.service`" in OPERATIONS


def test_what_watches_for_ever_is_stopped_and_started_again(run, damaged):
    with environment.use(Rounds(stop)):
        status, out, _ = run("repair", "--watch", "600", *WATCHED.split())
    assert (status, len(out.splitlines())) == (0, 1)
    for line in ("SuccessExitStatus=1", "Restart=always", "WantedBy=multi-user.target"):
        assert line in WATCH.splitlines()
    assert "`conf/bkspark-repair.service`" in OPERATIONS
