"""What loses data in models of the protocol loses none in the real code, as long as its rules hold.

And it does as soon as they do not: otherwise the script would show nothing.
"""

import pytest

from . import mutants
from .counterexamples import EXAMPLES
from .scripted import play


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_rule_makes_it_harmless(name: str) -> None:
    example = EXAMPLES[name]
    assert play(example.lines, example.quorum, **example.setting) == ""


@pytest.mark.parametrize("name", EXAMPLES)
def test_without_the_rule_it_does_harm(name: str) -> None:
    example = EXAMPLES[name]
    with mutants.changed(*example.broken):
        violation = play(example.lines, example.quorum, **example.setting)
    assert any(f"({rule})" in violation for rule in ("I1", "I2", "I3")), violation
