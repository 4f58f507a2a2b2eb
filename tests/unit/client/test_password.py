"""Ledger passwords come by reference and are never shown."""

from pathlib import Path

import pytest

from bkspark.client.password import Password
from bkspark.errors import InvalidRequestError


def test_a_password_is_found_by_reference_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    path.write_text("open sesame\n", encoding="utf-8")
    monkeypatch.setenv("SOME_SECRET", "open sesame")
    for password in (
        Password(file=str(path)),
        Password(env="SOME_SECRET"),
        Password(literal="open sesame"),
    ):
        assert password.resolve() == "open sesame"
        assert "open sesame" not in repr(password)
        assert password.is_given
    assert Password().resolve() is None
    path.write_text("\n", encoding="utf-8")
    for bad in (
        lambda: Password(file=str(path)).resolve(),
        lambda: Password(file=str(tmp_path / "none")).resolve(),
        lambda: Password(env="NOT_SET").resolve(),
        lambda: Password(env="A", literal="b"),
        lambda: Password(literal=b"open sesame"),
        lambda: Password(file=path),
    ):
        with pytest.raises(InvalidRequestError):
            bad()
