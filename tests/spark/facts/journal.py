"""A log of calls that many processes append to: one JSON line per call."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Call = dict[str, Any]


def record(folder: str, call: str, **details: Any) -> None:
    line = json.dumps({"call": call, "pid": os.getpid(), **details}) + "\n"
    file = os.open(Path(folder) / "calls.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def calls(folder: str | Path, *names: str) -> list[Call]:
    """All calls so far in the order they were made, or those with one of ``names``."""
    file = Path(folder) / "calls.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    found = [json.loads(line) for line in lines]
    return [call for call in found if not names or call["call"] in names]


def names(folder: str | Path) -> list[str]:
    return [call["call"] for call in calls(folder)]


def forget(folder: str | Path) -> None:
    (Path(folder) / "calls.jsonl").unlink(missing_ok=True)


def wait_for(folder: str, condition: Callable[[list[Call]], bool], *, seconds: float = 20) -> None:
    """Block until the calls so far satisfy ``condition``."""
    deadline = time.monotonic() + seconds
    while not condition(calls(folder)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not seen within {seconds} s; calls so far: {calls(folder)}")
        time.sleep(0.005)
