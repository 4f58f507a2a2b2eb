"""What a scrub marks and takes back, what it leaves out, and what it believes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bkspark import environment, verbs
from bkspark.admin.auditing.look import NotLooked
from bkspark.admin.maintenance import Execution
from bkspark.admin.scrubbing import scrub as scrubbing
from bkspark.admin.scrubbing.look import ReadAll, Scrubbed
from bkspark.admin.scrubbing.scrub import ScrubRequest
from bkspark.admin.survey import Survey
from bkspark.bookie import memory
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.format import layout
from bkspark.protocol.ledger.metadata import LedgerMetadata
from tests.integration.rig import Rig
from tests.kit.faulty import METADATA, Fault, Operation

from .flipping import flip, frames_of, journal_of, marks, places, scrubbed
from .scenes import PARTITIONS, audited, copies, members, written

# --- marks ----------------------------------------------------------------------------------------


def test_what_is_damaged_is_missing_for_an_audit_until_it_is_good_again(rig: Rig) -> None:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    name = journal_of(rig, one, ledger_id)
    data, begins = rig.file_bytes(one, name), frames_of(rig, one, name)
    flip(rig, one, name, begins[5] - 1)
    assert copies(audited(rig)) == []  # it believes the ends
    scrubbed(rig)
    assert copies(audited(rig)) == [(one, 3, 3, "below write quorum", False)]
    [row] = audited(rig).details["copies"]
    assert f"a scrub found {name}, byte {begins[4]}" in row["reason"]
    rig.replace_file(one, name, data)
    assert scrubbed(rig).exit_status == 0
    assert marks(rig) == {}
    assert audited(rig).exit_status == 0


def test_a_damaged_journal_is_told_of_until_its_records_are_there_again(
    make_rig: Callable[..., Rig],
) -> None:
    """It stays, as nothing is written over; but nothing is missing any more."""
    rig = make_rig(kind="memory", bookie_count=3)
    ledger_id = written(rig)
    name = journal_of(rig, "bookie-1", ledger_id)
    flip(rig, "bookie-1", name, frames_of(rig, "bookie-1", name)[1])  # behind the header
    assert scrubbed(rig).left
    assert audited(rig).left
    assert not verbs.repair(rig.uri).left
    assert name in rig.names("bookie-1")
    assert not audited(rig).left
    assert not scrubbed(rig).left


def test_a_damaged_entry_log_is_missing_for_an_audit(rig: Rig) -> None:
    ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    one = members(rig, ledger_id)[0]
    name = next(name for name in rig.names(one) if "/entries/" in name)
    flip(rig, one, name, 600)
    assert audited(rig).exit_status == 0
    scrubbed(rig)
    [row] = audited(rig).details["copies"]
    assert (row["bookie_id"], row["missing"]) == (one, name)
    assert row["reason"] == "a scrub found damage in it"


def test_a_record_of_entry_logs_that_is_damaged_is_missing_for_an_audit(rig: Rig) -> None:
    ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    one = members(rig, ledger_id)[0]
    name = journal_of(rig, one, ledger_id)
    flip(rig, one, name, len(rig.file_bytes(one, name)) - 1)
    report = scrubbed(rig)
    assert [left.subject for left in report.left] == [f"ledger {ledger_id} on {one}"]
    assert {row["bookie_id"] for row in audited(rig).details["copies"]} == {one}


def test_copies_that_were_made_anew_beside_the_damage_count(memory_rig: Rig) -> None:
    """As a repair makes them: in a journal of its own. The damaged one is never written over."""
    ledger_id = written(memory_rig)
    one, other, _ = members(memory_rig, ledger_id)
    name = journal_of(memory_rig, one, ledger_id)
    good = memory_rig.file_bytes(other, journal_of(memory_rig, other, ledger_id))
    flip(memory_rig, one, name, frames_of(memory_rig, one, name)[5] - 1)
    scrubbed(memory_rig)
    assert copies(audited(memory_rig)) != []
    disk = memory.find_disk(memory_rig.urls[one])
    assert disk is not None
    disk.files[layout.journal(ledger_id, 1, "ab" * 16)] = memory.MemoryFile(good)
    assert audited(memory_rig).exit_status == 0
    report = scrubbed(memory_rig)
    assert (report.left, report.exit_status, places(report)) == ([], 0, [(one, name)])
    assert marks(memory_rig) == {}


def test_a_repair_makes_what_is_damaged_again(rig: Rig) -> None:
    """Records where they were, in another journal; entry logs on another bookie."""
    ledger_id = written(rig)
    other_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    one, there = members(rig, ledger_id)[0], members(rig, other_id)[1]
    flip(rig, one, journal_of(rig, one, ledger_id), 1500)
    flip(rig, there, next(name for name in rig.names(there) if "/entries/" in name), 600)
    scrubbed(rig)
    assert verbs.repair(rig.uri).exit_status == 0
    assert (one in members(rig, ledger_id), there in members(rig, other_id)) == (True, False)
    assert audited(rig).exit_status == 0
    assert scrubbed(rig).exit_status == 0
    assert marks(rig) == {}


def test_marks_of_what_is_gone_are_taken_back(rig: Rig) -> None:
    for _ in range(2):
        ledger_id = written(rig)
        one = members(rig, ledger_id)[0]
        name = journal_of(rig, one, ledger_id)
        flip(rig, one, name, frames_of(rig, one, name)[5] - 1)
    scrubbed(rig)
    assert {ledger_id for _, ledger_id in marks(rig)} == {0, 1}
    with BookKeeper(rig.uri) as keeper:
        keeper.delete_ledger(0)
    scrubbed(rig, ledgers=[1])
    assert {ledger_id for _, ledger_id in marks(rig)} == {0, 1}
    scrubbed(rig)
    assert {ledger_id for _, ledger_id in marks(rig)} == {1}


# --- how much is read -----------------------------------------------------------------------------


class Chance(environment.RealEnvironment):
    """Draws what it is told, over and over."""

    def __init__(self, *drawn: float) -> None:
        super().__init__()
        self._drawn = drawn
        self._count = 0

    def draw(self) -> float:
        self._count += 1
        return self._drawn[(self._count - 1) % len(self._drawn)]


def test_a_sample_is_drawn_and_its_size_is_said(rig: Rig) -> None:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    name = journal_of(rig, one, ledger_id)
    flip(rig, one, name, frames_of(rig, one, name)[5] - 1)
    with environment.use(Chance(0.5)):
        report = scrubbed(rig, sample=0.5)
    assert (report.done["files"], report.left) == (0, [])
    assert report.plan["sample"] == 0.5
    assert "only 0.5 of the files were read" in report.summary
    with environment.use(Chance(0.4)):
        report = scrubbed(rig, sample=0.5)
    assert (report.done["files"], places(report)) == (3, [(one, name)])


def test_what_a_sample_has_left_out_stays_marked(rig: Rig) -> None:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    name = journal_of(rig, one, ledger_id)
    flip(rig, one, name, frames_of(rig, one, name)[5] - 1)
    scrubbed(rig)
    with environment.use(Chance(0.9)):
        assert scrubbed(rig, sample=0.5).left == []
    assert marks(rig).keys() == {(one, ledger_id)}


@pytest.mark.parametrize("options", [{"sample": 0}, {"sample": 1.5}, {"max_bytes_per_second": -1}])
def test_numbers_out_of_range_are_refused(memory_rig: Rig, options: dict[str, float]) -> None:
    with pytest.raises(InvalidRequestError):
        scrubbed(memory_rig, **options)


def test_a_dry_run_reads_nothing(memory_rig: Rig) -> None:
    written(memory_rig)
    report = scrubbed(memory_rig, dry_run=True)
    assert (report.done, report.plan["ledgers"]) == ({}, 1)
    with Cluster(memory_rig.uri) as cluster:
        assert cluster.upkeep.reports.get("scrub") is None
        scrubbed(memory_rig, ledgers=[0])
        assert cluster.upkeep.reports.get("scrub") is None
        scrubbed(memory_rig)
        assert cluster.upkeep.reports.get("scrub") is not None


# --- what cannot be read --------------------------------------------------------------------------


def test_a_bookie_that_is_away_is_named_and_its_marks_stay(rig: Rig) -> None:
    ledger_id = written(rig)
    one, other, _ = members(rig, ledger_id)
    name = journal_of(rig, one, ledger_id)
    flip(rig, one, name, frames_of(rig, one, name)[5] - 1)
    scrubbed(rig)
    lost = rig.lose(one)
    report = scrubbed(rig)
    assert [left.subject for left in report.left] == [f"bookie {one}"]
    assert report.summary == "1 bookie could not be read"
    rig.bring_back(one, lost)
    assert marks(rig).keys() == {(one, ledger_id)}
    assert other not in {bookie_id for bookie_id, _ in marks(rig)}


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], None]], None]]:
    """``changes(what)``: before a bookie's first answer is believed, ``what`` happens."""
    todo: list[Callable[[], None]] = []
    real = ReadAll.run

    def run(self: ReadAll, *args: Any) -> Scrubbed | NotLooked:
        answer = real(self, *args)
        while todo:
            todo.pop()()
        return answer

    monkeypatch.setattr(ReadAll, "run", run)
    yield todo.append
    assert not todo


def test_what_is_found_is_believed_only_of_records_that_did_not_change(
    memory_rig: Rig, changes: Callable[[Callable[[], None]], None]
) -> None:
    ledger_id = written(memory_rig)
    one = members(memory_rig, ledger_id)[0]
    name = journal_of(memory_rig, one, ledger_id)
    flip(memory_rig, one, name, frames_of(memory_rig, one, name)[5] - 1)
    with BookKeeper(memory_rig.uri) as keeper:
        changes(lambda: keeper.delete_ledger(ledger_id))
        report = scrubbed(memory_rig)
    assert (report.left, report.done["ledgers"], marks(memory_rig)) == ([], 0, {})


def store_away(_number: int, operation: Operation) -> Fault | None:
    return Fault() if operation.place == METADATA else None


def damaged_one(rig: Rig) -> int:
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    name = journal_of(rig, one, ledger_id)
    flip(rig, one, name, frames_of(rig, one, name)[5] - 1)
    return ledger_id


def test_what_was_found_is_told_though_the_rest_cannot_be_read(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Say Spark ends in the midst of it."""
    damaged, other = damaged_one(memory_rig), written(memory_rig)
    monkeypatch.setattr(scrubbing, "LEDGERS_AT_ONCE", 1)

    def run(instructions: Sequence[Any]) -> list[Any]:
        if any(ledger.ledger_id == other for one in instructions for ledger in one.ledgers):
            raise OutcomeUnknownError("the executors are gone")
        return [one.run() for one in instructions]

    with Survey(memory_rig.uri) as survey:
        report = scrubbing.scrub(survey, ScrubRequest(), Execution(run=run))
        with pytest.raises(OutcomeUnknownError):
            scrubbing.scrub(survey, ScrubRequest(), Execution(run=run), ledgers=[other])
    assert report.done["ledgers"] == 1
    assert {left.subject: left.reason for left in report.left} == {
        f"ledger {damaged} on {members(memory_rig, damaged)[0]}": report.left[0].reason,
        "the rest": "it was not read: the executors are gone",
    }
    assert report.summary.endswith("the rest was not read")
    assert len(marks(memory_rig)) == 1


def test_what_was_found_is_told_though_the_metadata_store_is_gone_by_then(
    make_rig: Callable[..., Rig], changes: Callable[[Callable[[], None]], None]
) -> None:
    rig = make_rig(kind="memory", metadata="file")
    damaged = damaged_one(rig)
    folder = rig.folder / "metadata"
    changes(lambda: folder.rename(rig.folder / "away"))
    report = scrubbed(rig, no_lease=True)
    (rig.folder / "away").rename(folder)
    assert report.exit_status == 1
    assert report.done["files"] == 3
    assert f"ledger {damaged}" in {left.subject for left in report.left}


def test_marks_of_a_ledger_whose_record_cannot_be_read_stay(memory_rig: Rig) -> None:
    damaged = damaged_one(memory_rig)
    scrubbed(memory_rig)
    before = marks(memory_rig)
    with Cluster(memory_rig.uri) as cluster:
        key = layout.ledger_key(damaged)
        seen = cluster.store.get(key)
        assert seen is not None
        cluster.store.put(key, b"?", seen.version)
    assert scrubbed(memory_rig).exit_status == 1
    assert marks(memory_rig) == before != {}


def test_damage_of_a_ledger_whose_record_cannot_be_looked_up_again_is_told_and_not_marked(
    memory_rig: Rig, changes: Callable[[Callable[[], None]], None]
) -> None:
    damaged = damaged_one(memory_rig)
    with memory_rig.faults.installed():
        changes(lambda: setattr(memory_rig.faults, "decide", store_away))
        report = scrubbed(memory_rig, no_lease=True)
        memory_rig.faults.forget()
    reasons = {left.subject: left.reason for left in report.left}
    assert "a part of it is damaged" in reasons[f"ledger {damaged}"]
    assert "all that was read is good" not in report.summary
    assert (report.details["damage"], marks(memory_rig)) == ([], {})


def test_a_ledger_that_changes_each_time_is_named(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_id = written(memory_rig)
    one = members(memory_rig, ledger_id)[0]
    name = journal_of(memory_rig, one, ledger_id)
    flip(memory_rig, one, name, frames_of(memory_rig, one, name)[5] - 1)
    real = ReadAll.run

    def noted(ledger: LedgerMetadata | None) -> LedgerMetadata:
        assert ledger is not None
        custom = {"n": ledger.settings.custom_metadata.get("n", "") + "1"}
        return replace(ledger, settings=replace(ledger.settings, custom_metadata=custom))

    def run(self: ReadAll, *args: Any) -> Scrubbed | NotLooked:
        with Cluster(memory_rig.uri) as cluster:
            cluster.ledgers.update(str(ledger_id), noted)
        return real(self, *args)

    monkeypatch.setattr(ReadAll, "run", run)
    report = scrubbed(memory_rig)
    assert [left.reason for left in report.left] == ["it changed each time the scrub looked"]
    assert marks(memory_rig) == {}


def test_only_the_ledgers_that_are_named_are_read(memory_rig: Rig) -> None:
    for _ in range(2):
        written(memory_rig)
    report = scrubbed(memory_rig, ledgers=[1])
    assert (report.done["ledgers"], report.done["files"]) == (1, 3)
