"""Labels of a bookie are few, short, and shown in one line."""

import pytest

from bkspark.protocol import bounds
from bkspark.protocol.bookies import (
    in_store,
    labels_after,
    require_label_name,
    require_labels,
    require_store_name,
)

LONGEST = "a" * bounds.LABEL_NAME_LENGTH_MAX


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"zone": "eu-1", "rack": "r 7 é", "host.name_0-1": ""},
        {LONGEST: "é" * bounds.LABEL_VALUE_LENGTH_MAX},
        {f"n{number}": "x" for number in range(bounds.LABELS_MAX)},
    ],
)
def test_labels_within_their_bounds(labels: dict[str, str]) -> None:
    assert require_labels(labels) == labels
    assert list(require_labels(labels)) == sorted(labels)


@pytest.mark.parametrize(
    "labels",
    [
        *({name: "x"} for name in ("", "Rack", "1", "-a", "a b", "é", "a=b", "a\n", LONGEST + "a")),
        {"a": "é" * (bounds.LABEL_VALUE_LENGTH_MAX + 1)},
        *({"a": f"x{letter}y"} for letter in "\n\t\0\x1b\x7f\x85\u2028\u2029\ud800"),
        {1: "x"},
        {"a": 1},
        {"a": None},
        {f"n{number}": "x" for number in range(bounds.LABELS_MAX + 1)},
    ],
)
def test_labels_beyond_their_bounds(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="label"):
        require_labels(labels)


def test_a_change_sets_replaces_and_removes() -> None:
    before = {"rack": "r7", "zone": "a"}
    assert labels_after(before, {"rack": "r8", "host": "h"}, ["zone", "none"]) == {
        "rack": "r8",
        "host": "h",
    }
    full = {f"n{number}": "x" for number in range(bounds.LABELS_MAX)}
    with pytest.raises(ValueError, match="more than"):
        labels_after(full, {"one": "x"}, [])
    assert len(labels_after(full, {"one": "x"}, ["n0"])) == bounds.LABELS_MAX


@pytest.mark.parametrize("name", ["", "A", "a" * 64, None, 5])
def test_a_name_that_is_no_label_s(name: object) -> None:
    with pytest.raises(ValueError, match="is not the name of a label"):
        require_label_name(name)


# --- the store of a bookie -----------------------------------------------------------------------


def test_the_name_of_a_store_is_short_and_plain() -> None:
    longest = "s" * bounds.STORE_NAME_LENGTH_MAX
    for name in ("s", "minio-2", "r_1", longest):
        assert require_store_name(name) == name
    for bad in ("", "Minio", "2", "-a", "a b", "a\n", "é", longest + "s", None, 3):
        with pytest.raises(ValueError, match="is not the name of a store"):
            require_store_name(bad)


def test_an_address_names_its_store_unless_it_is_the_usual_one() -> None:
    assert in_store("s3://bucket/b", "minio") == "s3://bucket/b?store=minio"
    assert in_store("s3://bucket/b", "") == "s3://bucket/b"
