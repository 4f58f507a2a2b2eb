"""Changes by compare-and-set: one's own is recognised when its answer is lost (R8, H6)."""

import secrets
from collections.abc import Callable

import pytest

from bkspark.cluster.records import Records
from bkspark.errors import (
    CorruptDataError,
    InvalidRequestError,
    LedgerExistsError,
    MetadataVersionError,
    OutcomeUnknownError,
)
from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store
from bkspark.testing.faulty import Fault, Faults, Moment
from bkspark.testing.faulty_cluster import FaultyMetadataStore

Changes = Records[int]


def records_of(store: MetadataStore) -> Changes:
    return Records(
        store,
        lambda name: f"counters/{name}",
        lambda value, nonce: f"{value} {nonce}".encode(),
        lambda _name, data: int(data.split()[0]),
    )


@pytest.fixture
def store() -> MetadataStore:
    return format_store(f"memory://{secrets.token_hex(8)}")


def with_faults(store: MetadataStore, fault: Callable[[int, str, str], Fault | None]) -> Changes:
    return records_of(FaultyMetadataStore(store, Faults(fault)))


def first_put(moment: Moment) -> Callable[[int, str, str], Fault | None]:
    left = [Fault(moment)]
    return lambda _number, call, _name: left.pop() if call == "put" and left else None


def test_a_change_whose_answer_was_lost_is_recognised(store: MetadataStore) -> None:
    records_of(store).create("x", 1)
    records = with_faults(store, first_put(Moment.AFTER))
    assert records.update("x", lambda value: (value or 0) + 1).value == 2
    assert records_of(store).get("x").value == 2
    assert with_faults(store, first_put(Moment.AFTER)).create("y", 5).value == 5


class Narrow:
    """A codec that stores what it does not read."""

    @staticmethod
    def records(store: MetadataStore) -> Changes:
        def decode(name: str, data: bytes) -> int:
            value = int(data.split()[0])
            if value > 9:
                raise CorruptDataError(f"{name}: no value")
            return value % 8

        return Records(
            store, lambda name: f"counters/{name}", lambda v, nonce: f"{v} {nonce}".encode(), decode
        )


@pytest.mark.parametrize("value", [10, 8])
def test_what_no_reader_would_read_as_it_is_is_not_stored(store: MetadataStore, value: int) -> None:
    records = Narrow.records(store)
    with pytest.raises(InvalidRequestError, match="counters/x was not changed"):
        records.create("x", value)
    assert records.get("x") is None
    seen = records.create("x", 7)
    for change in (
        lambda: records.replace("x", value, seen),
        lambda: records.update("x", lambda _: value),
        lambda: records.write_over("x", value),
    ):
        with pytest.raises(InvalidRequestError, match="counters/x was not changed"):
            change()
    assert records.get("x") == seen


def test_a_change_that_did_not_happen_is_unknown(store: MetadataStore) -> None:
    records_of(store).create("x", 1)
    with pytest.raises(OutcomeUnknownError):
        with_faults(store, first_put(Moment.BEFORE)).update("x", lambda value: 2)
    assert records_of(store).get("x").value == 1


def test_the_change_of_another_is_not_taken_for_one_s_own(store: MetadataStore) -> None:
    """Even if it made the very same value: only the random part tells."""
    records = records_of(store)
    records.create("x", 1)
    with pytest.raises(LedgerExistsError):
        records.create("x", 1)
    seen = records.get("x")
    records.replace("x", 2, seen)
    with pytest.raises(MetadataVersionError):
        records.replace("x", 2, seen)


def test_an_update_is_applied_to_what_others_made_meanwhile(store: MetadataStore) -> None:
    records = records_of(store)
    stale = records.create("x", 1)
    records.update("x", lambda value: (value or 0) + 10)
    assert records.update("x", lambda value: (value or 0) + 1, seen=stale).value == 12


def test_an_update_that_changes_nothing_stores_nothing(store: MetadataStore) -> None:
    records = records_of(store)
    before = records.create("x", 1)
    assert records.update("x", lambda value: value or 0) == before
    assert records.is_current("x", before)


def test_is_current_until_somebody_changes_it(store: MetadataStore) -> None:
    records = records_of(store)
    seen = records.create("x", 1)
    assert records.is_current("x", seen)
    records.update("x", lambda value: 2)
    assert not records.is_current("x", seen)


def test_a_change_that_its_caller_cannot_do_without_is_sent_again(store: MetadataStore) -> None:
    records_of(store).create("x", 1)
    for moment in (Moment.BEFORE, Moment.AFTER):
        records = with_faults(store, first_put(moment))
        before = records_of(store).get("x").value
        changed = records.update("x", lambda value: (value or 0) + 1, is_sent_again=True)
        assert changed.value == before + 1
        assert records_of(store).get("x") == changed


def test_a_request_that_comes_late_changes_nothing_twice(store: MetadataStore) -> None:
    """The first one is carried out after the look, before the second."""
    records_of(store).create("x", 1)

    class Late:
        def __init__(self) -> None:
            self.first: tuple[str, bytes, int | None] | None = None
            self.puts = 0

        def get(self, key: str) -> object:
            return store.get(key)

        def put(self, key: str, value: bytes, expected: int | None) -> int:
            self.puts += 1
            if self.first is None:
                self.first = (key, value, expected)
                raise OutcomeUnknownError("lost")
            store.put(*self.first)
            return store.put(key, value, expected)

    late = Late()
    changed = records_of(late).update("x", lambda value: (value or 0) + 1, is_sent_again=True)
    assert (changed.value, changed.stored.version, late.puts) == (2, 2, 2)
    assert records_of(store).get("x") == changed


def test_what_another_changed_on_top_stays_unknown(store: MetadataStore) -> None:
    records = records_of(store)
    records.create("x", 1)

    class Overtaken:
        def get(self, key: str) -> object:
            return store.get(key)

        def put(self, _key: str, _value: bytes, _expected: int | None) -> int:
            records.update("x", lambda value: (value or 0) + 10)
            raise OutcomeUnknownError("lost")

    with pytest.raises(OutcomeUnknownError):
        records_of(Overtaken()).update("x", lambda value: (value or 0) + 1, is_sent_again=True)
    assert records.get("x").value == 11
