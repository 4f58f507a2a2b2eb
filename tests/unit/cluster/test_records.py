"""Changes by compare-and-set: one's own is recognised when its answer is lost (R8, H6)."""

import secrets
from collections.abc import Callable

import pytest

from bkspark.cluster.records import SENT_AGAIN_MAX, Records
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    InvalidRequestError,
    LedgerExistsError,
    MetadataVersionError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.format import cluster
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.metadata.uri import format_store
from tests.kit.faulty import Fault, Faults, FaultyMetadataStore, Moment

Changes = Records[int]


def records_of(store: MetadataStore) -> Changes:
    return Records(
        store,
        "",
        lambda name: f"counters/{name}",
        lambda value, nonce: f"{value} {nonce}".encode(),
        lambda _name, data: int(data.split()[0]),
    )


@pytest.fixture
def store() -> MetadataStore:
    return format_store(f"memory://{secrets.token_hex(8)}")


def counters(store: MetadataStore, cluster_id: str) -> Changes:
    return Records(
        store,
        cluster_id,
        "counters/{}".format,
        lambda value, nonce: cluster.encode_counter("counters/x", value, nonce),
        lambda _, data: cluster.decode_counter("counters/x", data),
    )


def test_a_record_of_another_cluster_is_unreadable_and_never_absent(store: MetadataStore) -> None:
    theirs, ours = counters(store, "a" * 32), counters(store, "b" * 32)
    stored = theirs.create("x", 1).stored
    for work in (lambda: ours.get("x"), lambda: ours.update("x", lambda value: (value or 0) + 1)):
        with pytest.raises(CorruptDataError, match=f"it is of cluster {'a' * 32}") as found:
            work()
        assert "metadata damaged" in found.value.hint
    assert store.get("counters/x") == stored
    skipped: list[str] = []
    answers = {"x": lambda: store.get("counters/x")}
    assert ours.of_all(answers, lambda key, _error: skipped.append(key)) == {}
    assert skipped == ["counters/x"]
    ours.write_over("x", 5)
    assert ours.get("x").value == 5
    with pytest.raises(CorruptDataError, match="is not of this cluster"):
        theirs.get("x")


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
            store,
            "",
            lambda name: f"counters/{name}",
            lambda v, nonce: f"{v} {nonce}".encode(),
            decode,
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


WAYS: dict[str, Callable[[Changes], int]] = {
    "create": lambda records: records.create("new", 2).value,
    "replace": lambda records: records.replace("x", 2, records.get("x")).value,
    "update": lambda records: records.update("x", lambda value: (value or 0) + 1).value,
    "write over": lambda records: records.write_over("x", 2).value,
}
"""Every change; each makes a 2."""


class Scripted:
    """A store of which each answer to a put is scripted, and then all are good.

    Attributes:
        sent: the first put; whatever is sent again must be the same.
        puts: how many there were.
        may_look: whether a look is answered.
    """

    def __init__(self, store: MetadataStore, *script: Callable[["Scripted"], object]) -> None:
        self.store = store
        self.puts = 0
        self.sent: tuple[str, bytes, int | None] | None = None
        self.may_look = True
        self._script = list(script)

    def get(self, key: str) -> VersionedBytes | None:
        if not self.may_look:
            raise OutcomeUnknownError("could not surely get; nothing was changed")
        return self.store.get(key)

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        self.puts += 1
        if self._script:
            self.sent = self.sent or (key, value, expected)
            assert self.sent == (key, value, expected)
            self._script.pop(0)(self)
        return self.store.put(key, value, expected)

    def take_effect(self) -> None:
        """What was sent changes the record."""
        self.store.put(*self.sent)

    def interfere(self) -> None:
        """Another client makes the next version."""
        found = self.store.get(self.sent[0])
        value = b"10 of another client"
        self.store.put(self.sent[0], value, None if found is None else found.version)


def lost(_store: Scripted) -> None:
    raise OutcomeUnknownError("could not surely put")


def done(store: Scripted) -> None:
    store.take_effect()
    lost(store)


def overtaken(store: Scripted) -> None:
    store.interfere()
    lost(store)


def overtaken_twice(store: Scripted) -> None:
    store.interfere()
    overtaken(store)


def done_and_hidden(store: Scripted) -> None:
    store.may_look = False
    done(store)


def late_and_followed(store: Scripted) -> None:
    """What was sent first takes effect now, and another client changes what it made."""
    store.take_effect()
    store.interfere()


def nothing_sent(_store: Scripted) -> None:
    raise NothingSentError("may not write; nothing was sent")


DONE, UNKNOWN = 2, OutcomeUnknownError
SETTLED = {
    "it was done": ([done], DONE, 1),
    "it was not done": ([lost], DONE, 2),
    "it was not done for long": ([lost] * SENT_AGAIN_MAX, DONE, SENT_AGAIN_MAX + 1),
    "no answer ever comes": ([lost] * (SENT_AGAIN_MAX + 2), UNKNOWN, SENT_AGAIN_MAX + 1),
    "it was done late": ([lost, Scripted.take_effect], DONE, 2),
    "another client was first": ([overtaken], MetadataVersionError, 1),
    "another client was first in the end": ([lost, overtaken], MetadataVersionError, 2),
    "two changes were made": ([overtaken_twice], UNKNOWN, 1),
    "it was done late and followed": ([lost, late_and_followed], UNKNOWN, 2),
    "nobody can look": ([done_and_hidden], UNKNOWN, 1),
    "nothing was sent": ([nothing_sent], NothingSentError, 1),
    "nothing was sent the second time": ([lost, nothing_sent], UNKNOWN, 2),
}
"""What happens to puts, what comes of the change, and how often it was sent."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", SETTLED)
def test_a_lost_answer_is_settled_by_looking(store: MetadataStore, way: str, case: str) -> None:
    script, end, puts = SETTLED[case]
    records_of(store).create("x", 1)
    scripted = Scripted(store, *script)
    if end is MetadataVersionError and way == "update":
        assert WAYS[way](records_of(scripted)) == 11  # applied to what the other client made
        return
    if end == DONE:
        assert WAYS[way](records_of(scripted)) == DONE
    else:
        is_taken = end is MetadataVersionError and way == "create"
        with pytest.raises(BookKeeperError) as caught:
            WAYS[way](records_of(scripted))
        assert type(caught.value) is (LedgerExistsError if is_taken else end)
        assert "could not surely get" not in str(caught.value)
    assert scripted.puts == puts
