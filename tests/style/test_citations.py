"""Every rule that is named by its number is written down, and every line about one is true.

The page is `bkspark/protocol/README.md`.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from .sources import FOLDERS, ROOT, own_files

PAGE = ROOT / "bkspark/protocol/README.md"

NUMBER = r"RB-\d{2}[a-z]?|[RHIJ]\d+"
LINE = re.compile(rf"\| ({NUMBER}) \| (.+) \| (.+) \|")
NAMED = re.compile(rf"\b({NUMBER})\b")
IN_A_NAME = re.compile(r"\btest_(rb|[rhij])_?(\d+[a-z]?)_")
NEEDS_NONE = "none needed: "
ELSEWHERE = re.compile(
    r"\b(features|reliability|design|style|ecosystem|tiering|house),? (\d+\.\d|§ ?\d|[A-Z]\d)"
    r"|\bprotocol document\b(?! of BookKeeper)",
    re.IGNORECASE,
)
"""Documents that are not in the repository, by section, or by their names."""
BREAK = re.compile(r"\s*\n[\s#*>|]*")
"""Between two lines of a text or of a comment."""


@dataclass(frozen=True)
class Line:
    """What the page says of one number.

    Attributes:
        files: that keep the rule, or none, and then ``keeping`` says why none is needed.
    """

    number: str
    meaning: str
    keeping: str
    files: tuple[str, ...]


@cache
def page() -> tuple[Line, ...]:
    rows = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("|")]
    found = [match for match in map(LINE.fullmatch, rows) if match]
    headings = sum(row.startswith("|--") for row in rows)
    assert len(found) == len(rows) - 2 * headings, "a line that this test cannot read"
    return tuple(Line(*m.groups(), tuple(re.findall(r"`([^`]+)`", m[3]))) for m in found)


@cache
def named() -> dict[str, set[str]]:
    """By path in the repository, the numbers that it names."""
    files = [path for path in own_files() if path.relative_to(ROOT).parts[0] in FOLDERS]
    texts = {path for path in files if path.suffix in {".py", ".md", ".conf"}} - {PAGE}
    return {
        str(path.relative_to(ROOT)): numbers_in(path.read_text(encoding="utf-8"))
        for path in (*sorted(texts), ROOT / "README.md", ROOT / "CHANGELOG.md")
    }


def numbers_in(text: str) -> set[str]:
    in_names = (
        f"RB-{number}" if kind == "rb" else f"{kind.upper()}{number}"
        for kind, number in IN_A_NAME.findall(text)
    )
    return {*NAMED.findall(text), *in_names}


def test_numbers_are_found_in_texts_and_in_the_names_of_tests() -> None:
    text = "see R8, RB-20b; def test_rb_27c_x def test_h3_y def test_r6_z; H264x, S3, RB-1, SHR3"
    assert numbers_in(text) == {"R8", "RB-20b", "RB-27c", "H3", "R6"}


def test_every_number_that_is_named_has_its_line() -> None:
    written = {line.number for line in page()}
    dangling = {path: left for path, numbers in named().items() if (left := numbers - written)}
    assert dangling == {}


def test_every_line_says_who_keeps_it_and_they_name_it() -> None:
    """Each file that a line names names the line's number; or there is a reason for none."""
    wrong = [
        (line.number, file)
        for line in page()
        for file in line.files
        if line.number not in named().get(file, ())
    ]
    unkept = [line.number for line in page() if not line.files]
    unsaid = [line.number for line in page() if line.keeping.startswith(NEEDS_NONE)]
    assert (wrong, unkept) == ([], unsaid)


def test_no_number_is_there_twice_or_left_out() -> None:
    """Those of a kind go up by one from the first; of J, not all are asked for."""
    numbers = [line.number for line in page()]
    assert len(set(numbers)) == len(numbers)
    for kind in ("R", "H", "RB-", "I"):
        counted = [int(n) for number in numbers if (n := number.removeprefix(kind)).isdigit()]
        assert counted == list(range(1, len(counted) + 1)), kind


def test_nothing_is_cited_that_is_not_here() -> None:
    files = [ROOT / path for path in named() if path != str(Path(__file__).relative_to(ROOT))]
    found = {str(p): m[0] for p in files if (m := elsewhere(p.read_text(encoding="utf-8")))}
    assert found == {}


def elsewhere(text: str) -> re.Match[str] | None:
    return ELSEWHERE.search(BREAK.sub(" ", text))


@pytest.mark.parametrize(
    "text",
    [
        "as it is (features 2.3)",
        "as it is (features\n2.3)",
        "    # as it is (features\n    # 2.3)",
        "Reliability A4",
        "it has to end (design\n\u00a75)",
        "the steps of the protocol\n    document",
    ],
)
def test_a_citation_is_seen_wherever_its_line_breaks(text: str) -> None:
    assert elsewhere(text)


def test_what_the_internet_has_may_be_cited() -> None:
    assert elsewhere("the protocol document of BookKeeper, features of 3 kinds, design: 5") is None
