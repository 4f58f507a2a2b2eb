"""Agents of bookies: what a round does, which agent does it, and what is shown of it."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from bkspark import environment, verbs
from bkspark.admin import agents
from bkspark.admin.agents import OF_BOOKIE, OF_UPKEEP, Agent, BookieRounds, UpkeepRounds
from bkspark.admin.collecting.freeing import Doomed
from bkspark.admin.maintenance import Left, Report
from bkspark.admin.metrics import gauges
from bkspark.admin.survey import Survey
from bkspark.bookie.memory import MemoryRoot
from bkspark.cli import main
from bkspark.cluster import lease
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.election import Election, living
from bkspark.cluster.lease import Leases, this_process
from bkspark.errors import BookieUnavailableError, MetadataVersionError, OutcomeUnknownError
from bkspark.format import layout
from bkspark.format.upkeep_records import Lease, ReportRecord
from bkspark.ledger.deleting import delete_ledger
from bkspark.storage.changes import Changes
from tests.integration.rig import Rig
from tests.integration.waiting import wait_until
from tests.kit.own_clock import OwnClock

from .scenes import members, written

ELSEWHERE = replace(this_process(), host="far-away", machine="another one", pid=77)


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


@pytest.fixture
def cluster(rig: Rig) -> Iterator[Cluster]:
    with Cluster(rig.uri) as cluster:
        yield cluster


class Told(list[tuple[str, str]]):
    """The events of an agent."""

    def __call__(self, subject: str, event: str) -> None:
        self.append((subject, event))


def agent_of(cluster: Cluster, bookie_id: str, told: Told, **settings: float) -> Agent:
    return Agent(cluster, [BookieRounds(cluster, bookie_id, told, **settings)], told)


def elect_elsewhere(cluster: Cluster, name: str) -> None:
    other = Lease(f"election.{name}", "ab" * 16, ELSEWHERE, 1_700_000_000_000)
    put_over(cluster, other)


def put_over(cluster: Cluster, found: Lease) -> None:
    """Let that be the lease, though its holder renews it meanwhile."""
    for _ in range(1_000):
        with suppress(MetadataVersionError):
            Leases(cluster, found.verb)._records.write_over(found.verb, found)
            return
    raise AssertionError("its holder was faster each time")


def files(rig: Rig, bookie_id: str, ledger_id: int) -> list[str]:
    return [n for n in rig.names(bookie_id) if n.startswith(layout.ledger_folder(ledger_id))]


def test_a_round_tries_the_bookie_and_reports_its_space(rig: Rig, cluster: Cluster) -> None:
    told, before = Told(), rig.names("bookie-1")
    assert agent_of(cluster, "bookie-1", told).once()
    assert told == []
    assert rig.names("bookie-1") == before
    seen = cluster.upkeep.reports.get("agent.bookie-1")
    assert seen is not None
    assert (seen.value.left, seen.value.counters[agents.FREED]) == (0, 0)
    status = cluster.look_at(cluster.bookie("bookie-1").value)
    assert (agents.FREE_BYTES in seen.value.counters) == status.tells_space


def test_a_bookie_that_does_not_keep_what_it_is_given_is_told_of_once(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    agent = agent_of(cluster, "bookie-1", told, sanity_seconds=0.0)
    with monkeypatch.context() as patched:
        patched.setattr(MemoryRoot, "read", lambda *_, **__: b"other")
        assert [agent.once(), agent.once()] == [False, False]
    with monkeypatch.context() as patched:
        patched.setattr(MemoryRoot, "put_new", refused)
        assert not agent.once()
    seen = cluster.upkeep.reports.get("agent.bookie-1")
    assert seen is not None
    assert seen.value.left == 1
    assert agent.once()
    assert [event for _, event in told] == [
        "a file that was just written has other contents",
        "the disk refuses",
        "the problem is over",
    ]


def refused(*_: object, **__: object) -> bool:
    raise BookieUnavailableError("the disk refuses")


def test_the_bookie_is_tried_again_when_its_time_has_come(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_of(cluster, "bookie-1", Told())
    assert agent.once()
    monkeypatch.setattr(MemoryRoot, "put_new", refused)
    assert agent.once()
    clock = OwnClock()
    clock.ahead = agents.SANITY_SECONDS
    with environment.use(clock):
        assert not agent.once()


def test_a_deleted_ledger_is_freed_on_the_agents_own_bookie(rig: Rig, cluster: Cluster) -> None:
    kept, deleted, told = written(rig), written(rig), Told()
    own, other = members(rig, deleted)[:2]
    agent = agent_of(cluster, own, told)
    delete_ledger(cluster, deleted)
    assert agent.once()
    assert files(rig, own, deleted) == []
    assert files(rig, own, kept)
    assert files(rig, other, deleted)
    [(subject, event)] = told
    assert (subject, event.startswith("1 deleted ledger freed: ")) == (own, True)
    assert agent.once()
    assert len(told) == 1
    seen = cluster.upkeep.reports.get(f"agent.{own}")
    assert seen is not None
    assert seen.value.counters[agents.FREED] == 1
    assert verbs.collect(rig.uri).exit_status == 0
    assert cluster.ledgers.get(str(deleted)) is None
    assert verbs.audit(rig.uri).exit_status == 0


@pytest.fixture
def served(make_rig: Callable[..., Rig]) -> Iterator[Callable[[], tuple[Rig, list[int]]]]:
    """Begins to serve bookie-1 of a cluster with three ledgers; the next round is far away."""
    rig = make_rig(kind="file", metadata="file", bookie_count=3)
    with Cluster(rig.uri) as cluster:
        agent = Agent(cluster, [BookieRounds(cluster, "bookie-1", lambda *_: None)], print, 3_600.0)

        def serve() -> tuple[Rig, list[int]]:
            task = environment.start(agent.run, "agent")
            wait_until(lambda: cluster.upkeep.reports.get("agent.bookie-1"))
            assert task.is_alive()
            return rig, ledgers

        ledgers = [written(rig) for _ in range(3)]
        yield serve
        agent.stop()


def test_a_deleted_ledger_is_freed_between_two_rounds(
    served: Callable[[], tuple[Rig, list[int]]],
) -> None:
    """The kernel tells of the change, each time."""
    rig, ledgers = served()
    with Cluster(rig.uri) as cluster:
        first, second, kept = ledgers
        for ledger_id in (first, second):
            delete_ledger(cluster, ledger_id)
            wait_until(lambda ledger_id=ledger_id: not files(rig, "bookie-1", ledger_id))
        assert files(rig, "bookie-1", kept)


def test_what_is_deleted_during_a_look_is_freed_too(
    make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look of a round, and the one after it: a change is told from before the look on."""
    rig = make_rig(kind="file", metadata="file", bookie_count=3)
    ledgers = [written(rig) for _ in range(2)]
    left, real = list(ledgers), BookieRounds._deleted

    def deleted(self: BookieRounds, ledger_ids: frozenset[int]) -> list[Doomed]:
        found = real(self, ledger_ids)
        if left:
            delete_ledger(cluster, left.pop())
        return found

    monkeypatch.setattr(BookieRounds, "_deleted", deleted)
    with Cluster(rig.uri) as cluster:
        agent = Agent(cluster, [BookieRounds(cluster, "bookie-1", lambda *_: None)], print, 3_600.0)
        task = environment.start(agent.run, "agent")
        for ledger_id in ledgers:
            wait_until(lambda ledger_id=ledger_id: not files(rig, "bookie-1", ledger_id))
        agent.stop()
        task.join(60)


def test_what_a_round_told_is_not_over_after_a_change(rig: Rig, cluster: Cluster) -> None:
    told = Told()

    class Full(BookieRounds):
        def round(self) -> str:
            return "the disk is full"

        def news(self) -> str:
            heard.put(None)
            return ""

    heard = environment.inbox()
    agent = Agent(cluster, [Full(cluster, "bookie-1", told)], told, 3_600.0)
    task = environment.start(agent.run, "agent")
    wait_until(lambda: len(told) == 2)
    for _ in range(2):
        agent._served[0].changes.tell()
        heard.get(timeout=60)
    agent.stop()
    task.join(60)
    assert [event for _, event in told] == [
        "this agent serves it",
        "the disk is full",
    ]


def test_looks_for_deletions_take_a_small_part_of_the_time(
    rig: Rig, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However fast records change."""
    pauses: list[float] = []

    class Slow(BookieRounds):
        def news(self) -> str:
            clock.ahead += 2.0
            return ""

    agent = Agent(cluster, [Slow(cluster, "bookie-1", print)], print, 3_600.0)
    [one] = agent._served
    clock = OwnClock()
    with closing(Changes()) as told, environment.use(clock):
        monkeypatch.setattr(Changes, "wait", lambda *_: len(pauses) < 3)
        monkeypatch.setattr(agents._Served, "is_woken_within", lambda _, s: pauses.append(s))
        agent._pause(one, told)
    assert pauses == pytest.approx([agents.NEWS_SECONDS, 20.0, 20.0], rel=0.1)


def test_what_cannot_be_read_is_not_freed(rig: Rig, cluster: Cluster) -> None:
    unknown, deleted = written(rig), written(rig)
    own = members(rig, deleted)[0]
    delete_ledger(cluster, deleted)
    key = layout.ledger_key(unknown)
    seen = cluster.store.get(key)
    assert seen is not None
    cluster.store.put(key, b"what is this?", seen.version)
    assert agent_of(cluster, own, Told()).once()
    assert files(rig, own, unknown)
    assert files(rig, own, deleted) == []


def test_a_full_disk_is_noted_and_told_of(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, free = Told(), [1]
    agent = agent_of(cluster, "bookie-1", told)
    monkeypatch.setattr(MemoryRoot, "free_bytes", lambda _: free[0])
    monkeypatch.setattr(MemoryRoot, "total_bytes", lambda _: 1000)
    agent.once()
    assert cluster.bookie("bookie-1").value.is_full
    free[0] = 900
    agent.once()
    assert not cluster.bookie("bookie-1").value.is_full
    assert [event for _, event in told][-1] == "it has room again, and gets new ledgers"
    assert len(told) == 2


def test_a_second_agent_leaves_the_bookie_to_the_first(cluster: Cluster) -> None:
    told = Told()
    elect_elsewhere(cluster, f"{OF_BOOKIE}bookie-1")
    assert agent_of(cluster, "bookie-1", told).once()
    assert cluster.upkeep.reports.get("agent.bookie-1") is None
    assert "another agent serves it" in told[0][1]
    assert "process 77 on far-away" in told[0][1]


def test_an_agent_serves_until_it_is_stopped_or_another_one_is_elected(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    monkeypatch.setattr(lease, "LOOK_SECONDS", 0.01)
    events = environment.inbox()
    rounds = BookieRounds(cluster, "bookie-1", lambda *_: None)
    agent = Agent(cluster, [rounds], lambda *event: events.put(event), 3_600.0)
    task = environment.start(agent.run, "agent")
    assert events.get(timeout=60) == ("bookie-1", "this agent serves it")
    elect_elsewhere(cluster, rounds.election)
    assert "no longer: another agent" in events.get(timeout=60)[1]
    verb = f"election.{rounds.election}"
    put_over(cluster, Lease(verb, "cd" * 16, ELSEWHERE, 1, is_held=False))
    assert events.get(timeout=60) == ("bookie-1", "this agent serves it")
    agent.stop()
    task.join(60)
    assert not task.is_alive()
    assert Election(cluster, rounds.election).leader() is None


def report(verb: str, left: str = "") -> Report:
    return Report(verb, {}, {"ledgers": 2}, [Left(verb, left)] if left else [])


def test_upkeep_runs_what_is_due_and_was_not_run_lately(cluster: Cluster) -> None:
    told, ran = Told(), []
    done = {"recover": report("recover"), "audit": report("audit", "a copy is missing")}

    def call(name: str) -> Report:
        ran.append(name)
        return done[name]

    calls = {name: lambda name=name: call(name) for name in done}
    now = environment.now_ms()
    cluster.upkeep.reports.note("audit", ReportRecord("audit", now, now, 0, {}))
    upkeep = UpkeepRounds(cluster, calls, told, begin=None)
    agent = Agent(cluster, [upkeep], told)
    assert agent.once()
    assert ran == ["recover"]
    clock = OwnClock()
    clock.ahead = agents.UPKEEP["recover"]
    with environment.use(clock):
        agent.once()
        assert ran == ["recover", "recover"]
        cluster.upkeep.reports.note("audit", ReportRecord("audit", 1, 1, 0, {}))
        clock.ahead = agents.UPKEEP["audit"] + 1
        assert not agent.once()
    assert ran == ["recover", "recover", "recover", "audit"]
    assert told[0] == ("recover", "2 ledgers")
    assert ("audit", "2 ledgers; audit: a copy is missing") in told


def test_upkeep_goes_on_after_a_command_that_fails(cluster: Cluster) -> None:
    told = Told()

    def away() -> Report:
        raise OutcomeUnknownError("the store is away")

    upkeep = UpkeepRounds(
        cluster, {"recover": away, "repair": lambda: report("repair")}, told, None
    )
    assert not Agent(cluster, [upkeep], told).once()
    assert told[:2] == [("recover", "the store is away"), ("repair", "2 ledgers")]


def test_one_of_all_agents_does_the_upkeep(cluster: Cluster) -> None:
    told = Told()
    elect_elsewhere(cluster, OF_UPKEEP)
    calls = {"recover": lambda: pytest.fail("it ran")}
    assert Agent(cluster, [UpkeepRounds(cluster, calls, told, None)], told).once()


def test_a_leader_is_alive_if_it_renews_between_two_looks(cluster: Cluster) -> None:
    for name in ("bookie-1", "bookie-2"):
        elect_elsewhere(cluster, OF_BOOKIE + name)
    elect_elsewhere(cluster, "another.election")
    verb = f"election.{OF_BOOKIE}bookie-2"
    renewed = Lease(verb, "ab" * 16, ELSEWHERE, 1_700_000_000_000, renewals=1)
    renew = lambda: put_over(cluster, renewed)  # noqa: E731
    with environment.use(OwnClock(renew)):
        found = living(cluster, OF_BOOKIE)
    assert list(found) == [f"{OF_BOOKIE}bookie-2"]
    assert found[f"{OF_BOOKIE}bookie-2"].process_id == 77


def test_no_agent_costs_no_time(cluster: Cluster) -> None:
    with environment.use(OwnClock(lambda: pytest.fail("it waited"))):
        assert agents.living_agents(cluster) == {}


def test_living_agents_are_shown(
    rig: Rig,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    monkeypatch.setattr("bkspark.cluster.election.LOOK_SECONDS", 0.05)
    wrong = ReportRecord("agent.bookie-1", 1, 1, 1, {})
    with Election(cluster, f"{OF_BOOKIE}bookie-1"):
        cluster.upkeep.reports.note("agent.bookie-1", wrong)
        main(["--metadata", rig.uri, "bookies", "--json"])
        rows = json.loads(capsys.readouterr().out)
        assert [(row["agent"] or {}).get("process_id") for row in rows] == [
            this_process().pid,
            None,
            None,
        ]
        main(["--metadata", rig.uri, "bookies"])
        assert f"process {this_process().pid} on" in capsys.readouterr().out
        main(["--metadata", rig.uri, "status"])
        out = capsys.readouterr().out
        assert "1 of 3 bookies have a living agent" in out
        assert "its agent found something wrong" in out
        with Survey(rig.uri) as survey:
            [gauge] = [one for one in gauges(survey) if "agent" in one.name]
        assert list(gauge.values) == ["bookie-1"]
    main(["--metadata", rig.uri, "status"])
    assert "agent" not in capsys.readouterr().out


def test_the_command_runs_one_round(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--metadata", rig.uri, "agent", "--once", "--upkeep", "--bookie", "bookie-1"]
    assert main([*words, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["subject"] for line in lines] == [*agents.UPKEEP]
    assert main(words) == 0  # each ran lately
    assert capsys.readouterr().out == ""
    assert main([*words[:3], "--once"]) == 2
    assert main([*words, "--bookie", "bookie-9"]) == 2
    assert "no bookie 'bookie-9'" in capsys.readouterr().err
