"""Records that name entry logs, by the writer's machine in a plain loop: safe, or refused."""

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.errors import BookieUnavailableError, BookKeeperError, NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import EntryLog
from bkspark.protocol.log.batch import Holders, WrittenLog
from bkspark.protocol.writer.steps import (
    Acknowledge,
    Append,
    Checked,
    CheckMetadata,
    Copied,
    Copy,
    EndWriter,
    Enlist,
    Enlisted,
    Event,
    Failed,
    Gathered,
    Instruction,
    Stored,
    Submitted,
    Swap,
    Swapped,
)
from bkspark.protocol.writer.writing import LedgerWriter

from .script import ledger_of, member

QUICK = settings(max_examples=200, derandomize=True, database=None, deadline=None)
DOWN = BookieUnavailableError("it is down")


class Commits:
    """Commits of entry logs on bookies in memory, some of which fail."""

    def __init__(self, sizes: tuple[int, int, int], spares: str, failing: dict[str, str]) -> None:
        self.quorum = Quorum(*sizes)
        self.ledger: LedgerMetadata = ledger_of(self.quorum, [*"abcdef"[: sizes[0]]])
        self.writer = LedgerWriter(self.ledger)
        self.spares = [member(name) for name in spares]
        self.failing = failing
        self.disks: dict[str, set[EntryLog]] = {}
        self.records: dict[int, set[str]] = {}
        self.found_bad: set[str] = set()
        self.error: BookKeeperError | None = None

    def commit(self, number: int, on: list[str]) -> None:
        """Entry logs of all stripes, ``on`` the bookies named; they may be bad there."""
        logs = [EntryLog(f"{number:032x}", s, 1, 10, 0, "") for s in range(len(on))]
        written = [WrittenLog(log, tuple(who)) for log, who in zip(logs, on, strict=True)]
        for log in written:
            for who in log.bookie_ids:
                self._disk(who).add(log.entry_log)
        self.holders, self.logs, self.found_bad = Holders(written, self.quorum), logs, set()
        ensemble = self.writer.ensemble
        self.bring(Gathered(self.holders.ceding(ensemble, self.spares)))
        self.bring(Submitted(len(logs), 10 * len(logs), names_entry_logs=True))

    def bring(self, event: Event) -> None:
        to_do = deque(self.writer.receive(event))
        while to_do:
            for then in self.carried_out(to_do.popleft()):
                to_do += self.writer.receive(then)

    def carried_out(self, step: Instruction) -> list[Event]:
        match step:
            case Copy():
                return [self.copied(step)]
            case Append():
                self.require_copies(step)
                ids = step.add.first_entry_id, step.add.last_entry_id
                return [self.appended(index, *ids) for index in step.indexes]
            case Enlist():
                return [self.enlisted(step)]
            case CheckMetadata():
                return [Checked(step.ticket)]
            case Swap():
                self.ledger = step.applied_to(self.ledger)
                return [Swapped(self.ledger)]
            case Acknowledge():
                self.require_safe(step)
            case EndWriter(error):
                self.error = error
        return []

    def copied(self, step: Copy) -> Event:
        name, index, first = step.member.bookie_id, step.ensemble_index, step.add.first_entry_id
        bad: dict[str, str] = {}
        for log in self.holders.missing(index, name):
            if self.failing.get(name) == "copy":
                return Failed(index, name, DOWN)
            while True:
                try:
                    source, *_ = self.holders.sources(log, bad.keys())
                except NotEnoughBookiesError as error:
                    return Failed(index, name, BookieUnavailableError(str(error)))
                if self.failing.get(source) != "source":
                    break
                bad[source] = "it is damaged"
                self.found_bad.add(source)
            self._disk(name).add(log)
            self.holders.copied(log, name)
        return Copied(index, name, first, tuple(bad.items()))

    def appended(self, index: int, first: int, last: int) -> Event:
        name = self.writer.ensemble[index].bookie_id
        if self.failing.get(name) == "append":
            return Failed(index, name, DOWN)
        self.records.setdefault(first, set()).add(name)
        return Stored(index, name, first, last)

    def enlisted(self, step: Enlist) -> Enlisted:
        index, failed = step.ensemble_index, self.writer.changes.failed
        than = None if index in failed else self.writer.ensemble[index]
        passed_over: list[tuple[str, str]] = []
        for one in self.holders.preferred(index, self.spares, than=than):
            if one.bookie_id in step.exclude:
                continue
            if self.failing.get(one.bookie_id) != "join":
                return Enlisted(one, tuple(passed_over))
            passed_over.append((one.bookie_id, "it does not join"))
        return Enlisted(None, tuple(passed_over))

    # --- what must hold ----------------------------------------------------------------------

    def require_copies(self, step: Append) -> None:
        """R1: nobody gets the record that has not all its rows, and Qa members have them."""
        ensemble = self.writer.ensemble
        for index in step.indexes:
            name = ensemble[index].bookie_id
            assert not self.holders.missing(index, name)
        live = [i for i in range(len(ensemble)) if i not in self.writer.changes.failed]
        for log in self.logs:
            having = [i for i in live if log in self._disk(ensemble[i].bookie_id)]
            assert self.quorum.is_ack_quorum(self.quorum.write_set(log.stripe), having)

    def require_safe(self, step: Acknowledge) -> None:
        """Every write set has Qa members, as the metadata names them, with the record and rows."""
        [add] = step.adds
        ensemble = self.ledger.fragment_of(add.first_entry_id).ensemble
        has_record = self.records[add.first_entry_id]
        for write_set in self.quorum.write_sets():
            assert self.quorum.is_ack_quorum(
                write_set, [i for i in write_set if ensemble[i].bookie_id in has_record]
            )
        for log in self.logs:
            good = [
                index
                for index in self.quorum.write_set(log.stripe)
                if log in self._disk(ensemble[index].bookie_id)
                and ensemble[index].bookie_id in has_record - self.found_bad
            ]
            assert len(good) >= self.quorum.ack_quorum_size
        used = {one.bookie_id for one in ensemble}
        lacking = used - has_record
        assert lacking <= self.writer.changes.failures.keys(), "it was not even tried"
        free = {one.bookie_id for one in self.spares} - used - self.writer.changes.failures.keys()
        assert not (lacking and free), "a bookie could have taken its place"

    def _disk(self, name: str) -> set[EntryLog]:
        return self.disks.setdefault(name, set())


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Commits, list[list[str]]]:
    size = draw(st.integers(1, 5))
    write = draw(st.integers(1, size))
    sizes = (size, write, draw(st.integers(1, write)))
    stripe_count = Quorum(*sizes).stripe_count
    spares = "xyz"[: draw(st.integers(0, 3))]
    names = "abcdef"[:size] + spares
    how = st.sampled_from(["append", "copy", "join", "source"])
    failing = draw(st.dictionaries(st.sampled_from(names), how, max_size=3))
    on = st.sets(st.sampled_from(names), min_size=1).map(lambda who: "".join(sorted(who)))
    batch = st.lists(on, min_size=stripe_count, max_size=stripe_count)
    return Commits(sizes, spares, failing), draw(st.lists(batch, min_size=1, max_size=3))


@QUICK
@given(scenes())
def test_what_is_acknowledged_is_on_qa_members_of_each_write_set(
    scene: tuple[Commits, list[list[str]]],
) -> None:
    commits, batches = scene
    done = 0
    for number, on in enumerate(batches):
        commits.commit(number, on)
        if commits.error is not None:
            assert isinstance(commits.error, NotEnoughBookiesError)
            assert commits.failing
            break
        done += len(on)
        assert commits.writer.pending.last_add_confirmed == done - 1


def test_without_failures_all_have_everything() -> None:
    commits = Commits((4, 3, 2), "x", {})
    commits.commit(0, ["abc", "bcd", "ca", "x"])
    assert commits.error is None
    assert commits.records == {0: {"a", "b", "c", "d"}}
