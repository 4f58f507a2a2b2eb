"""Editors show the maintenance calls as they are declared."""

from .admin_stub import PATH, stub


def test_the_stub_says_what_the_declarations_say() -> None:
    assert PATH.read_text(encoding="utf-8") == stub(), "run python tests/style/admin_stub.py"
