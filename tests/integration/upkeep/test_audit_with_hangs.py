"""A bookie that hangs, at whatever it is asked for, is unknown, and holds up nobody for ever."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from bkspark.admin.auditing import audit as auditing
from bkspark.admin.auditing.audit import audit, gaps_of
from bkspark.admin.maintenance import Execution
from bkspark.admin.survey import Survey
from bkspark.ledger.recovery import running
from bkspark.ledger.recovery.running import in_threads
from tests.integration.faults.test_hanging_bookies import Gates
from tests.integration.rig import Rig
from tests.stopwatch import Stopwatch, patience
from tests.thorough import always

from .scenes import copies, members, written


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Iterator[Rig]:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    with rig.faults.installed():
        yield rig


@pytest.fixture
def gates(rig: Rig) -> Iterator[Gates]:
    gates = Gates(rig.faults)
    yield gates
    gates.open()


@pytest.mark.parametrize("call", always(["list"], ["open_root", "list", "read", "size"]))
def test_a_bookie_that_hangs_is_unknown(
    call: str, rig: Rig, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "TELLS_MAX", 2)
    monkeypatch.setattr("bkspark.admin.auditing.findings.LEDGERS_AT_ONCE", 1)
    ledger_ids = [written(rig, (5, 5, 4)) for _ in range(3)]
    hanging = members(rig, ledger_ids[0])[0]
    gates.closed = {(hanging, call)}
    told: list[str] = []
    run: Any = partial(in_threads, tell=told.append, tell_seconds=patience(0.5))
    with Survey(rig.uri) as cluster:
        report = audit(cluster, Execution(run=run))
    assert copies(report) == [(hanging, 0, 11, "unknown", True)] * 3
    assert report.left[0].subject == f"bookie {hanging}"
    assert any(hanging in line for line in told)
    assert gates.held == [hanging]


@pytest.mark.thorough
def test_a_view_waits_less_long_than_an_audit(
    rig: Rig, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "TELLS_MAX", 2)
    monkeypatch.setattr(running, "TELL_SECONDS", 30.0)
    monkeypatch.setattr(auditing, "SHOWN_TELL_SECONDS", patience(0.5))
    ledger_id = written(rig, (5, 5, 4))
    hanging = members(rig, ledger_id)[0]
    gates.closed = {(hanging, "list")}
    watch = Stopwatch()
    with Survey(rig.uri) as cluster:
        gaps = gaps_of(cluster, [ledger_id])
    assert watch.seconds < 20
    assert [(gap.member.bookie_id, gap.is_unknown) for gap in gaps] == [(hanging, True)]
