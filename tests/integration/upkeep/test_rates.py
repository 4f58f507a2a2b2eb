"""``--max-bytes-per-second`` is of each bookie, whatever is done side by side."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from bkspark.admin.maintenance import Execution
from bkspark.admin.repairing import repair_command as repairing
from bkspark.admin.repairing.fill import Fill
from bkspark.admin.scrubbing import scrub as scrubbing
from bkspark.admin.scrubbing.look import ReadAll
from bkspark.admin.scrubbing.scrub import ScrubRequest
from bkspark.admin.survey import Survey
from bkspark.cluster.cluster import Cluster
from bkspark.ledger.recovery.running import Instruction, in_threads
from tests.integration.rig import Rig

from .scenes import members, take, written

RATE = 1e9


def watched(
    rounds: list[Sequence[Instruction[Any]]],
) -> Callable[[Sequence[Instruction[Any]]], list[Any]]:
    """Carries out what it is given, and notes what was carried out side by side."""

    def run(instructions: Sequence[Instruction[Any]]) -> list[Any]:
        rounds.append(instructions)
        return in_threads(instructions)

    return run


def test_a_repair_asks_no_bookie_for_more_and_others_do_not_wait_for_it(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=9)
    for _ in range(6):
        ledger_id = written(rig)
        take(rig, members(rig, ledger_id)[0], "/journal/", ledger_id)
    rounds: list[Sequence[Instruction[Any]]] = []
    with Cluster(rig.uri) as cluster, Survey(rig.uri) as survey:
        wanted = repairing.RepairRequest(bytes_per_second=RATE)
        report = repairing.repair(cluster, survey, wanted, Execution(run=watched(rounds)))
    assert report.done["places"] == 6
    filled = [[one for one in some if isinstance(one, Fill)] for some in rounds]
    sums = []
    for fills in filter(None, filled):
        asked: defaultdict[str, float] = defaultdict(float)
        for fill in fills:
            named = {m.bookie_id for m in fill.ledger.last_fragment.ensemble}
            for bookie_id in {*named, fill.address.bookie_id}:
                asked[bookie_id] += fill.bytes_per_second or 0
        assert max(asked.values()) <= RATE * 1.000001
        sums.append(sum(fill.bytes_per_second or 0 for fill in fills))
    assert max(sums) >= RATE


def test_a_scrub_reads_each_bookie_at_that_rate(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", bookie_count=5)
    written(rig, (5, 3, 2))
    rounds: list[Sequence[Instruction[Any]]] = []
    with Survey(rig.uri) as survey:
        scrubbing.scrub(survey, ScrubRequest(bytes_per_second=RATE), Execution(run=watched(rounds)))
    reads = [one for some in rounds for one in some if isinstance(one, ReadAll)]
    assert [one.bytes_per_second for one in reads] == [RATE] * 5
    assert len({one.address.bookie_id for one in reads}) == 5
