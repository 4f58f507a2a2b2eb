"""A message names the bookie that it is about once, whatever it passes on its way."""

import logging
import re

import pytest

from bkspark.admin.maintenance import Left
from bkspark.admin.repairing.fill import Filled, in_vain
from bkspark.bookie.checks import UnavailableOnOSError
from bkspark.bookie.contract import about, on_bookie, told_of
from bkspark.cluster import log_messages
from bkspark.errors import BookieUnavailableError
from bkspark.ledger.entry_log_reader import NoGoodSourceError
from tests.mutants.places import ROOT

WHO = "bookie-2"
NAME = f"bookie {WHO}"


def of_the_system() -> str:
    with pytest.raises(BookieUnavailableError) as caught, UnavailableOnOSError(NAME, "read", "x"):
        raise OSError(5, "Input/output error")
    return str(caught.value.args[0])


REASONS = [
    of_the_system(),
    f"{NAME} gave no answer within 10 s",
    f"{NAME}: s3://bucket/b has no cookie",
    f"{NAME}: cannot create x: the store answered 409 OperationAborted",
    f"{NAME} has lost data of ledger 7: it lacks the marker",
    "its file is cut",
    "bookie bookie-20 does not answer",
]


def warned(caplog: pytest.LogCaptureFixture, reason: str) -> str:
    caplog.clear()
    log_messages.given_up(logging.getLogger("bkspark.test"), 7, WHO, reason)
    return caplog.messages[-1]


@pytest.mark.parametrize("reason", REASONS)
def test_a_line_names_the_bookie_once(reason: str, caplog: pytest.LogCaptureFixture) -> None:
    left = Left(NAME, reason)
    for line in (
        told_of(WHO, reason),
        f"{left.subject}: {left.reason}",
        str(NoGoodSourceError("a file", {WHO: reason}).args[0]),
        in_vain(Filled(0, 0, ("entries 0 to 3",), faults={WHO: reason})),
        f"ledger 7 {on_bookie(WHO, reason)}",
        warned(caplog, reason),
    ):
        assert len(re.findall(rf"\b{WHO}\b(?!\d)", line)) == 1, line
        assert reason.rpartition(": ")[2].removeprefix(f"{NAME} ") in line


def test_what_is_said_behind_the_name_stays() -> None:
    assert about(NAME, f"{NAME}: cannot read x") == "cannot read x"
    assert about(NAME, f"{NAME} does not answer") == "does not answer"
    assert about(NAME, "bookie bookie-20: x") == "bookie bookie-20: x"
    assert about("", "x") == "x"


def test_nothing_else_puts_the_name_of_a_bookie_in_front_of_a_message() -> None:
    """``told_of`` and ``about`` are the only places that do."""
    bare = re.compile(r"\{(?:\w+\.)*(?:bookie_id|who)\}: \{(?!folder|about|shown_url)")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sorted((ROOT / "bkspark").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if bare.search(line) and not ("it may name" in line or "subject=" in line)
    ]
    assert found == []
