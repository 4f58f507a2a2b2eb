"""Places are found by name, wherever their files are."""

import pytest

from .places import ROOT, Place, place


def lines_of(name: str) -> list[str]:
    where = place(name)
    lines = (ROOT / where.path).read_text(encoding="utf-8").splitlines()
    return lines[where.first : where.end]


def test_a_method_is_found_with_its_decorators() -> None:
    first, second, *_ = lines_of("Lanes.is_congested")
    assert (first, second.strip()) == ("    @property", "def is_congested(self) -> bool:")


def test_a_class_and_a_module_are_places_too() -> None:
    assert lines_of("handles.lanes.Lanes")[0] == "class Lanes:"
    whole = (ROOT / "bkspark/ledger/handles/lanes.py").read_text(encoding="utf-8")
    assert lines_of("ledger.handles.lanes") == whole.splitlines()


def test_each_end_of_a_dotted_name_is_a_name_of_the_place() -> None:
    names = ("Lanes.join", "lanes.Lanes.join", "bkspark.ledger.handles.lanes.Lanes.join")
    assert len({place(name) for name in names}) == 1


@pytest.mark.parametrize("name", ["join", "Lanes.joins", "anes.join"])
def test_a_name_of_several_or_of_none_is_refused(name: str) -> None:
    with pytest.raises(AssertionError, match="a mutant must name one place"):
        place(name)


def test_only_what_stands_in_the_place_is_replaced() -> None:
    text = "a = 1\nb = 1\n"
    second = Place("none", first=1, end=2)
    assert second.replaced(text, "1", "2") == "a = 1\nb = 2\n"
    with pytest.raises(AssertionError, match="update the catalogue"):
        second.replaced(text, "a", "c")
