"""What a log remembers of the last versions of applications, and what it says of the others."""

import json
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkspark.errors import CorruptDataError, InvalidRequestError, OutcomeUnknownError
from bkspark.format.strict_json import Fields
from bkspark.format.transactions import NAME, decode, encode
from bkspark.protocol import bounds
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log import transactions
from bkspark.protocol.log.stream_run import app_id, queries_of
from bkspark.protocol.log.transactions import (
    DIGESTS_MAX,
    NAMED_MAX,
    QUERIES_MAX,
    QUERY_DIGESTS_MAX,
    TAIL_DIGESTS_MAX,
    has_committed,
    is_name,
    last_version,
    remembering,
    require_of_application,
)


def runs(count: int, first: int = 0, before: dict[str, int] | None = None) -> dict[str, int]:
    """What is remembered after so many applications of one version each."""
    done = {f"run-{number}": number for number in range(first, first + count)}
    return remembering(before or {}, done)


def names_of(found: dict[str, int]) -> list[str]:
    return [key for key in found if is_name(key)]


# --- what an application may say -----------------------------------------------------------------


@pytest.mark.parametrize(
    "version", [2**63, 10**30, -1, True, 1.0, "1", float("nan"), None, 20261127230932123456]
)
def test_a_version_that_no_record_holds_is_refused(version: object) -> None:
    with pytest.raises(InvalidRequestError, match="txnVersion must be a whole number from 0 to"):
        Transaction("app", version)


def test_the_greatest_version_is_one() -> None:
    assert Transaction("app", 2**63 - 1).version == 2**63 - 1


@pytest.mark.parametrize("name", ["", "x" * 1_025, "ü" * 171, "\ud800", 7, None, b"x"])
def test_a_name_that_is_none_or_too_long_is_refused(name: object) -> None:
    with pytest.raises(InvalidRequestError, match="txnAppId must have 1 to 1,024 bytes"):
        Transaction(name, 0)


def test_the_longest_name_is_one() -> None:
    assert Transaction("x" * bounds.APPLICATION_ID_BYTES_MAX, 0)


@pytest.mark.parametrize("name", ["stream/7", "#", "#0123456789abcdef"])
def test_an_application_takes_no_name_of_a_query_or_of_what_is_forgotten(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="must not begin with"):
        require_of_application(Transaction(name, 0))
    require_of_application(Transaction(f"x{name}", 0))
    require_of_application(None)


# --- what is remembered --------------------------------------------------------------------------


def test_the_newest_applications_are_remembered_by_name() -> None:
    found = runs(NAMED_MAX + 3)
    assert names_of(found) == [f"run-{n}" for n in range(3, NAMED_MAX + 3)]


def test_applications_one_by_one_leave_as_much_as_all_together() -> None:
    one_by_one: dict[str, int] = {}
    for number in range(NAMED_MAX + 9):
        one_by_one = remembering(one_by_one, {f"run-{number}": number})
    together = runs(NAMED_MAX + 9)
    assert one_by_one == together
    assert names_of(one_by_one) == names_of(together)


def test_an_application_that_commits_again_is_the_newest() -> None:
    found = runs(NAMED_MAX)
    found = remembering(found, {"run-0": 1})
    found = runs(1, NAMED_MAX, found)
    assert "run-0" in found
    assert "run-1" not in found


def test_of_those_before_them_the_version_is_known_by_a_digest() -> None:
    found = runs(NAMED_MAX + 10)
    for number in range(NAMED_MAX + 10):
        assert last_version(found, f"run-{number}") == number
        assert has_committed(found, Transaction(f"run-{number}", number))
        assert not has_committed(found, Transaction(f"run-{number}", number + 1))


def test_an_application_that_comes_again_has_its_name_again() -> None:
    found = runs(NAMED_MAX + 1)
    again = remembering(found, {"run-0": 9})
    assert again["run-0"] == 9
    assert len(again) == len(found)
    assert remembering(again, {"run-0": 3})["run-0"] == 9
    assert remembering(found, {"run-0": 0}) == found


@pytest.mark.parametrize(("in_tail", "last"), [(7, 7), (3, 5)])
def test_a_digest_of_a_tail_is_of_the_name_that_the_log_knows(in_tail: int, last: int) -> None:
    """A ledger remembers its own applications, and may know only the digest of such a name."""
    log = {"job": 5}
    tail = runs(NAMED_MAX, before={"job": in_tail})
    assert "job" not in tail
    both = remembering(log, tail)
    assert last_version(both, "job") == last
    assert has_committed(both, Transaction("job", last))
    assert len(both) == NAMED_MAX + 1
    assert last_version(runs(NAMED_MAX, NAMED_MAX, both), "job") == last


def test_no_number_of_applications_takes_more_than_its_room() -> None:
    name = "x" * bounds.APPLICATION_ID_BYTES_MAX
    numbers = range(NAMED_MAX + DIGESTS_MAX + 50)
    found = remembering({}, {f"{number}{name}"[: len(name)]: 2**63 - 1 for number in numbers})
    assert len(found) == NAMED_MAX + DIGESTS_MAX + 1
    assert found["#"] == 50
    assert len(json.dumps(encode(found))) < bounds.LOG_RECORD_BYTES_MAX / 2


def test_what_is_forgotten_cannot_be_told_from_what_is_new() -> None:
    found = runs(NAMED_MAX + DIGESTS_MAX + 1)
    assert not has_committed(found, Transaction("run-0", 0))
    assert has_committed(found, Transaction("run-1", 1))


def test_transactions_of_a_ledger_that_are_put_together_with_the_logs_keep_the_higher_version() -> (
    None
):
    before = runs(NAMED_MAX + 5)
    ledger = remembering(before, {"run-9": 90, "new": 1})
    joined = remembering(before, ledger)
    assert joined["run-9"] == 90
    assert remembering(joined, before) == joined
    for number in range(NAMED_MAX + 5):
        assert last_version(joined, f"run-{number}") == (90 if number == 9 else number)


def test_numbers_of_what_is_forgotten_are_not_added_twice() -> None:
    assert remembering({"#": 5}, {"#": 7})["#"] == 7
    assert remembering({"#": 7}, {"#": 5})["#"] == 7


# --- queries -------------------------------------------------------------------------------------


def queries(count: int, before: dict[str, int] | None = None) -> dict[str, int]:
    return remembering(before or {}, {app_id(f"q{number}"): number for number in range(count)})


def test_no_number_of_applications_displaces_a_query() -> None:
    found = runs(NAMED_MAX + DIGESTS_MAX + 9, before=queries(3))
    assert [found[app_id(f"q{n}")] for n in range(3)] == [0, 1, 2]


def test_queries_are_bounded_too_and_a_batch_of_an_older_one_is_known() -> None:
    found = queries(QUERIES_MAX + 2)
    assert len(names_of(found)) == QUERIES_MAX
    assert has_committed(found, Transaction(app_id("q1"), 1))
    assert not has_committed(found, Transaction(app_id("q1"), 2))


def test_a_batch_of_a_query_that_may_be_forgotten_is_not_taken_for_a_new_one() -> None:
    found = queries(QUERIES_MAX + QUERY_DIGESTS_MAX + 1)
    with pytest.raises(OutcomeUnknownError, match="the 1 queries that had not written"):
        has_committed(found, Transaction(app_id("q0"), 7))
    assert not has_committed(found, Transaction(app_id("fresh"), 0))
    assert not has_committed(found, Transaction("app", 7))


def test_a_new_query_goes_on_where_only_applications_are_forgotten() -> None:
    found = runs(NAMED_MAX + DIGESTS_MAX + 9)
    assert not has_committed(found, Transaction(app_id("q"), 7))


def test_queries_of_a_log_are_known_by_name_or_by_digest() -> None:
    found = runs(3, before=queries(QUERIES_MAX + 1))
    known = queries_of({"other": ("run",)}, found)
    assert len(known) == QUERIES_MAX + 2
    assert transactions.digest_of(app_id("q0")) in known
    assert "q1" in known
    assert "other" in known


def test_numbers_of_what_is_forgotten_are_not_listed() -> None:
    counts = dict.fromkeys(transactions._FORGOTTEN.values(), 3)
    assert transactions.listed({"app": 7, **counts}) == {"app": 7}


# --- digests in a record --------------------------------------------------------------------------


def test_a_log_remembers_ten_thousand_others() -> None:
    assert DIGESTS_MAX >= 10_000
    found = runs(NAMED_MAX + DIGESTS_MAX)
    assert has_committed(found, Transaction("run-0", 0))
    assert "#" not in found


def test_a_record_of_rows_remembers_fewer_and_forgets_none_for_good() -> None:
    done = {f"run-{number}": number for number in range(NAMED_MAX + TAIL_DIGESTS_MAX + 9)}
    log = remembering({}, done)
    tail = remembering({}, done, is_of_tail=True)
    assert len(tail) == NAMED_MAX + TAIL_DIGESTS_MAX
    assert remembering(log, tail) == log
    assert list(remembering(log, tail)) == list(log)


def again(found: dict[str, int]) -> dict[str, int]:
    """As a reader decodes it from a record."""
    return decode(Fields({NAME: json.loads(json.dumps(encode(found)))}, "a record"))


@given(st.lists(st.text(min_size=1).filter(is_name), unique=True))
def test_the_order_survives_a_record(names: list[str]) -> None:
    assert list(again({name: place for place, name in enumerate(names)})) == names


def test_digests_are_packed_and_come_back_in_order() -> None:
    found = runs(NAMED_MAX + 5, before=queries(QUERIES_MAX + 3)) | {"#": 7}
    named, *packed = encode(found)
    assert (len(named), all(packed)) == (NAMED_MAX + QUERIES_MAX + 1, True)
    assert again(found) == found
    assert [key for key in again(found) if not is_name(key)] != []
    assert remembering(again(found), {"new": 1}) == remembering(found, {"new": 1})


@pytest.mark.parametrize("key", ["#zz", "#0123456789ABCDEF", "#0123456789abcdef0", "#stream/x"])
def test_what_is_no_digest_is_not_stored(key: str) -> None:
    with pytest.raises(InvalidRequestError, match="digests"):
        encode({"#0123456789abcdef": 1, key: 2})


def test_a_digest_of_a_version_beyond_64_bits_is_not_stored() -> None:
    with pytest.raises(InvalidRequestError, match="digests"):
        encode({"#0123456789abcdef": 2**63})


@pytest.mark.parametrize(
    "packed",
    [
        "?",
        "AAAA",
        b64encode(bytes(8) + b"\xff" * 8).decode(),
        b64encode(bytes(32)).decode(),
    ],
)
def test_digests_that_are_damaged_are_refused(packed: str) -> None:
    fields = Fields({NAME: [[], packed, ""]}, "a record")
    with pytest.raises((ValueError, CorruptDataError), match="digests of the transactions"):
        decode(fields)
