"""Every script says what its machine does."""

from pathlib import Path

import pytest

from .script import played

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_machine_does_what_the_script_says(script: Path) -> None:
    text = script.read_text()
    assert list(played(text)) == text.splitlines()


def test_a_script_that_says_something_else_is_noticed() -> None:
    text = SCRIPTS[0].read_text().replace("acknowledge 0 1-2", "acknowledge 0")
    assert list(played(text)) != text.splitlines()
