"""What all jobs have in common when spark-submit runs them."""

import json
import subprocess

import pytest
from local_session import REPOSITORY
from submitted import environment, submission

import bkspark


def submit(name, folder, *words):
    return subprocess.run(
        submission(REPOSITORY / "jobs" / name, folder, {}, words),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.thorough
def test_data_goes_to_stdout_and_what_is_told_to_stderr(place, tmp_path):
    with bkspark.BookKeeper(place.uri) as opened:
        handle = opened.create_ledger()
        handle.append(b"0")
        handle.release()
    words = ["--metadata", place.uri, "--ledger", str(handle.ledger_id)]
    done = submit("recover.py", tmp_path, *words)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["last_entry_id"] == 0
    assert "IN_RECOVERY" in done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("recover.py", ["--ledger", "99"], "bkspark: there is no ledger 99; "),
        ("append.py", ["--log", "a", "--path", "/p", "--version", "7"], "bkspark: --app-id and "),
        ("append.py", ["--log", "a"], "error: the following arguments are required: --path"),
    ],
)
def test_a_call_that_has_to_be_changed(name, words, said, place, tmp_path):
    done = submit(name, tmp_path, "--metadata", place.uri, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
