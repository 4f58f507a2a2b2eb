"""While a ledger gets a further member: others change its record, bookies lose what they took."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bkspark import verbs
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookieUnavailableError, NoSuchLedgerError
from bkspark.ledger.deleting import make_tombstone
from bkspark.ledger.handles.entry_reader import EntryReader
from bkspark.protocol.upkeep.repairing import left_by
from tests.integration.log.test_smaller_ledgers import away
from tests.integration.rig import Rig
from tests.kit.faulty import Operation

from .scenes import ENTRIES, members, take
from .test_repair import VALUES, assert_whole, repaired, values
from .test_repairs_between import at, holders, naming
from .test_widening import FULL, small


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    """With two bookies more than the two that ``small`` leaves."""
    return make_rig(kind="memory", metadata="memory", bookie_count=4)


def test_no_copy_is_missing_when_the_record_names_the_member(rig: Rig) -> None:
    ledger_id = small(rig)
    seen: list[list[bytes]] = []

    def look() -> None:
        """As it will be, with the new member alone."""
        with Cluster(rig.uri) as cluster:
            ledger = cluster.ledger(ledger_id).value
            [name] = holders(rig, ledger_id, {"bookie-3", "bookie-4"})
            [new] = [m for m in cluster.addresses() if m.bookie_id == name]
            alone = replace(ledger.last_fragment, ensemble=(new, ledger.last_fragment.ensemble[0]))
            with away(rig, "bookie-1", "bookie-2"):
                found = replace(ledger, fragments=(alone,))
                digester = make_digester(ledger.settings.digest, Password())
                reader = EntryReader(cluster, ledger_id, digester)
                replies = [reader.find(found, entry_id) for entry_id in range(ENTRIES)]
                seen.append([b"" for one in replies if one.record is None])

    with rig.faults.installed():
        at(rig, naming(ledger_id), look)
        assert repaired(rig).exit_status == 0
        rig.faults.forget()
    assert seen == [[]]


def test_two_repairs_at_once_add_one_member(rig: Rig) -> None:
    ledger_id = small(rig)
    first: list[str] = []

    def repair_beside() -> None:
        assert repaired(rig).exit_status == 0
        first.extend(members(rig, ledger_id))

    with rig.faults.installed():
        at(rig, naming(ledger_id), repair_beside)
        assert repaired(rig).exit_status == 0
        rig.faults.forget()
    assert members(rig, ledger_id) == first
    assert rig.ledger(ledger_id).quorum == FULL
    assert_whole(rig)


def test_a_record_that_changed_is_read_again(rig: Rig) -> None:
    """One member is moved in between: the wider record names who is there by then."""
    ledger_id = small(rig)
    left: list[str] = []

    def move() -> None:
        left.extend(members(rig, ledger_id)[:1])
        assert verbs.decommission(rig.uri, bookies=left).exit_status == 0

    with rig.faults.installed():
        at(rig, naming(ledger_id), move)
        assert repaired(rig).exit_status == 0
        rig.faults.forget()
    assert left[0] not in members(rig, ledger_id)
    assert rig.ledger(ledger_id).quorum == FULL
    assert_whole(rig)
    assert values(rig, ledger_id) == VALUES


def test_a_ledger_that_is_deleted_meanwhile_stays_deleted(rig: Rig) -> None:
    ledger_id = small(rig)

    def delete() -> None:
        with Cluster(rig.uri) as other:
            make_tombstone(other, ledger_id)

    with rig.faults.installed():
        at(rig, naming(ledger_id), delete)
        assert repaired(rig).exit_status == 0
        rig.faults.forget()
    with Cluster(rig.uri) as cluster, pytest.raises(NoSuchLedgerError):
        cluster.ledger(ledger_id)


def test_a_bookie_that_is_being_removed_joins_nothing(rig: Rig) -> None:
    ledger_id = small(rig)
    leaving: set[str] = set()

    def remove() -> None:
        with Cluster(rig.uri) as other:
            leaving.update(holders(rig, ledger_id, {"bookie-3", "bookie-4"}))
            for name in leaving:
                other.registrations.update(
                    name, lambda x: replace(x, is_read_only=True, is_leaving=True)
                )

    with rig.faults.installed():
        at(rig, naming(ledger_id), remove)
        assert repaired(rig).exit_status == 0
        rig.faults.forget()
    assert len(leaving) == 1
    assert leaving.isdisjoint(members(rig, ledger_id))
    assert rig.ledger(ledger_id).quorum == FULL
    assert_whole(rig)


def test_a_bookie_that_lost_its_copies_again_joins_nothing(rig: Rig) -> None:
    ledger_id = small(rig)
    forgot: set[str] = set()

    def forget() -> None:
        forgot.update(holders(rig, ledger_id, {"bookie-3", "bookie-4"}))
        for name in forgot:
            take(rig, name, "/journal/", ledger_id)

    with rig.faults.installed():
        at(rig, naming(ledger_id), forget)
        assert repaired(rig).exit_status == 0
        rig.faults.forget()
    assert len(forgot) == 1
    assert forgot.isdisjoint(members(rig, ledger_id))
    assert_whole(rig)


def test_a_bookie_that_cannot_take_copies_is_passed_over(rig: Rig) -> None:
    ledger_id = small(rig)
    refused: list[str] = []

    def refuse(_number: int, operation: Operation) -> None:
        is_new = operation.place in ("bookie-3", "bookie-4")
        if operation.call == "open_journal" and is_new and refused in ([], [operation.place]):
            refused[:] = [operation.place]
            raise BookieUnavailableError("its disk is full")

    with rig.faults.installed():
        rig.faults.decide = refuse
        assert repaired(rig).exit_status == 0
        rig.faults.forget()
    assert refused
    assert refused[0] not in members(rig, ledger_id)
    assert rig.ledger(ledger_id).quorum == FULL


def test_who_has_left_the_ledger_does_not_join_it_again(rig: Rig) -> None:
    """A collection removes what it has whenever it likes."""
    ledger_id = small(rig)
    with Cluster(rig.uri) as cluster:
        [left] = [m for m in cluster.addresses() if m.bookie_id == "bookie-3"]
        cluster.ledgers.update(
            str(ledger_id), lambda ledger: left_by(ledger or rig.ledger(ledger_id), [left])
        )
    assert repaired(rig).exit_status == 0
    assert members(rig, ledger_id)[2] == "bookie-4"
