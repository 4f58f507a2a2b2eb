"""How an audit looks: at what, how often, and what of it is believed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bkspark.admin.auditing import audit as auditing
from bkspark.admin.auditing import look as journals_shown
from bkspark.admin.auditing.audit import audit
from bkspark.admin.auditing.findings import AuditStep
from bkspark.admin.maintenance import Execution, Report
from bkspark.admin.survey import Survey
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.errors import NoSuchLedgerError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.ledger.journals.journal_reader import JournalReader
from bkspark.ledger.recovery.running import Instruction, Runner, in_threads
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.log.contents import DroppedLedgers
from tests.integration import going_on
from tests.integration.rig import Rig
from tests.log_with import log_with

from .scenes import CHECKED, PARTITIONS, audited, copies, members, take, written


def test_what_was_found_is_not_believed_of_a_ledger_that_changed_meanwhile(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_id = written(rig)
    take(rig, members(rig, ledger_id)[0], "/journal/")
    looks: list[tuple[int, ...]] = []

    class Audit(auditing.Audit):
        def _look(self, step: AuditStep) -> list[int]:
            looks.append(step.ledger_ids)
            return super()._look(step)

    def has_changed(_cluster: Cluster, _ledger: LedgerMetadata) -> bool:
        return len(looks) < 2

    monkeypatch.setattr("bkspark.admin.auditing.audit.Audit", Audit)
    monkeypatch.setattr("bkspark.admin.auditing.audit.has_changed", has_changed)
    report = audited(rig)
    assert looks == [(ledger_id,), (ledger_id,)]
    assert len(report.details["copies"]) == 1
    assert report.counters[CHECKED] == 1


def test_only_what_was_named_is_looked_at_and_no_report_is_noted(rig: Rig) -> None:
    ledger_id = written(rig)
    other = rig.write(PARTITIONS).ledger_id
    take(rig, members(rig, ledger_id)[0], "/journal/", ledger_id)
    assert audited(rig, logs=[rig.log_name]).left == []
    assert audited(rig, ledgers=[other]).left == []
    assert len(audited(rig, ledgers=[ledger_id]).left) == 1
    with Cluster(rig.uri) as cluster:
        assert cluster.upkeep.reports.get("audit") is None
    with pytest.raises(NoSuchLedgerError):
        audited(rig, ledgers=[99])


def test_the_last_audit_of_all_is_noted_and_a_dry_run_is_none(rig: Rig) -> None:
    written(rig)
    report = audited(rig, dry_run=True)
    assert (report.plan["ledgers"], report.plan["steps"], report.counters) == (1, 1, {})
    with Cluster(rig.uri) as cluster:
        assert cluster.upkeep.reports.get("audit") is None
        audited(rig)
        first = cluster.upkeep.reports.get("audit")
        audited(rig)
        second = cluster.upkeep.reports.get("audit")
    assert first is not None
    assert second is not None
    assert first.value.counters[CHECKED] == 1
    assert second.value.ended_ms >= first.value.ended_ms
    assert replace(second.value, began_ms=0, ended_ms=0) == replace(
        first.value, began_ms=0, ended_ms=0
    )


def recording(answers: list[tuple[Any, Any]]) -> Runner:
    """Threads, and every instruction with its answer is kept in ``answers``."""

    def run(instructions: Sequence[Instruction[Any]]) -> list[Any]:
        found = in_threads(instructions)
        answers.extend(zip(instructions, found))
        return found

    return run


def audited_by(rig: Rig, run: Runner) -> Report:
    with Survey(rig.uri) as cluster:
        return audit(cluster, Execution(run=run))


def test_a_healthy_bookie_says_nothing_of_its_ledgers(rig: Rig) -> None:
    for sizes in ((3, 3, 2), (4, 2, 2), (5, 3, 2)):
        written(rig, sizes)
    rig.write(PARTITIONS, (5, 3, 2))
    answers: list[tuple[Any, Any]] = []
    audited_by(rig, recording(answers))
    assert len(answers) == len(rig.urls)
    assert all(answer.holdings == {} for _, answer in answers)


def test_a_bookie_that_was_silent_is_not_waited_for_in_every_step(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bkspark.admin.auditing.findings.LEDGERS_AT_ONCE", 1)
    for _ in range(4):
        written(rig, (5, 5, 4))
    rig.lose("bookie-2")
    answers: list[tuple[Any, Any]] = []
    report = audited_by(rig, recording(answers))
    assert report.plan["steps"] == 4
    asked = [look.address.bookie_id for look, _ in answers]
    assert (asked.count("bookie-1"), asked.count("bookie-2")) == (4, 1)
    assert report.counters["NUM_LEDGERS_NOT_KNOWN_TO_HAVE_ALL_REPLICAS"] == 4


def test_what_a_log_has_let_go_of_is_not_missing(rig: Rig) -> None:
    rig.write(PARTITIONS, (3, 3, 2))
    ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    one = members(rig, ledger_id)[0]
    take(rig, one, "/journal/", ledger_id)
    assert len(copies(audited(rig))) == 1
    with Cluster(rig.uri) as cluster:
        cluster.logs.update(
            rig.log_name,
            lambda log: log_with(
                log, ledgers=log.ledgers[:1], dropped=DroppedLedgers((ledger_id,))
            ),
        )
    report = audited(rig)
    assert copies(report) == []
    assert report.counters[CHECKED] == 1
    found = {(row["bookie_id"], row["reason"]) for row in report.details["orphans"]}
    assert (members(rig, ledger_id)[1], "the ledger was dropped from its log") in found


@pytest.mark.parametrize("has_own_end", [False, True])
def test_a_journal_of_copies_is_read_record_by_record(
    make_rig: Callable[..., Rig], has_own_end: bool
) -> None:
    """Only its own writer fills a journal without leaving anything out.

    Who copies what others wrote may go on with records of its own.
    """
    rig = make_rig(kind="file")
    ledger_id = written(rig)
    member = rig.ledger(ledger_id).last_fragment.ensemble[0]
    digester = Digester(rig.ledger(ledger_id).settings.digest)
    [name] = [n for n in rig.names(member.bookie_id) if "/journal/" in n]
    with Cluster(rig.uri) as cluster:
        address = cluster.addresses()[member]
    with open_bookie(address).open_root() as root:
        reader = JournalReader(root, name, digester, ledger_id=ledger_id)
        records = [x for x in reader.forwards(reader.stored) if not x.record.is_confirmation]
        rig.replace_file(member.bookie_id, name, None)
        other = root.open_journal(name if has_own_end else layout.journal(ledger_id, 2, "f" * 32))
        copied = replace(records[0].record, token="e" * 32)
        for record, stored in ((copied, records[0]), (records[-1].record, records[-1])):
            encoded = journal.encode(record, digester, stored.messages)
            other.append(encoded.frame(0, other.end))
        other.close()
    # A later term than the ledger's own counts for nothing: nobody closed it in that one.
    with Cluster(rig.uri) as cluster:
        cluster.ledgers.update(str(ledger_id), lambda found: replace(found, term=2))
    assert copies(audited(rig)) == [(member.bookie_id, 1, 10, "below write quorum", False)]


def test_a_journal_that_a_takeover_removes_meanwhile_is_no_damage(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was listed, nothing was in it that counts, and it is gone when it is looked into."""
    with Cluster(rig.uri) as cluster:
        handle = going_on.begun(cluster)
        handle.append(b"0")
        handle.release()
        going_on.successor(cluster, handle.ledger_id).release()
        real, rivals = journals_shown.show_one, list[str]()

        def overtaken(*args: Any) -> journals_shown.JournalsShown:
            if not rivals:
                rivals.append("one")
                going_on.successor(cluster, handle.ledger_id).release()
            return real(*args)

        monkeypatch.setattr(journals_shown, "show_one", overtaken)
        assert (audited(rig).left, rivals) == ([], ["one"])
