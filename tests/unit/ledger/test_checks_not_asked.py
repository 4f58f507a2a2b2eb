"""A writer that cannot ask the metadata store has sent entries before: their outcome is unknown."""

import secrets
from collections.abc import Iterator

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.cluster.records import Records
from bkspark.errors import NothingSentError, OutcomeUnknownError

REASON = "metadata store m cannot check 'l': Too many open files"


@pytest.fixture
def keeper() -> Iterator[BookKeeper]:
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [f"memory://{secrets.token_hex(8)}" for _ in range(3)])
    with BookKeeper(uri) as keeper:
        yield keeper


@pytest.fixture
def no_file(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The metadata checks of writers cannot be made."""

    def is_current(*_: object) -> bool:
        raise NothingSentError(f"{REASON}; nothing was sent", hint="raise the limit")

    monkeypatch.setattr(Records, "is_current", is_current)
    return monkeypatch


def require_open(error: BaseException) -> None:
    assert type(error) is OutcomeUnknownError
    assert REASON in str(error)
    assert "nothing was sent" not in str(error)


def test_an_entry_of_a_ledger_may_have_been_stored(
    keeper: BookKeeper, no_file: pytest.MonkeyPatch
) -> None:
    handle = keeper.create_ledger()
    with pytest.raises(OutcomeUnknownError) as caught:
        handle.append(b"a")
    require_open(caught.value)
    no_file.undo()
    reader = keeper.open_ledger(handle.ledger_id)  # which recovers it
    assert [entry.value for entry in reader.read()] == [b"a"]


@pytest.mark.parametrize("unbounded", [False, True])
def test_an_entry_of_a_log_may_have_been_stored(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch, unbounded: bool
) -> None:
    log = keeper.create_log("log", unbounded=unbounded)
    writer = log.writer()
    assert writer.append(b"a") == 0

    def is_current(*_: object) -> bool:
        raise NothingSentError(f"{REASON}; nothing was sent")

    monkeypatch.setattr(Records, "is_current", is_current)
    with pytest.raises(OutcomeUnknownError, match="offset 1 is undecided") as caught:
        writer.append(b"b")
    require_open(caught.value)
