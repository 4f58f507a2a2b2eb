"""Ledger passwords come by reference and are never shown."""

import os
import threading
import traceback
from pathlib import Path

import pytest

from bkspark.cluster.password import Password
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


def test_a_password_that_is_no_utf8_is_refused_without_being_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python keeps such bytes of the environment as halves of characters, and fails much later."""
    path = tmp_path / "secret"
    path.write_bytes(b"open\xffsesame\n")
    monkeypatch.setenv("SOME_SECRET", "open\udcffsesame")
    for password in (
        Password(file=str(path)),
        Password(env="SOME_SECRET"),
        Password(literal="open\udcffsesame"),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            password.resolve()
        told = "".join(traceback.format_exception(caught.value))
        assert "sesame" not in repr(told)
        assert caught.value.__cause__ is None
        assert "is no text in UTF-8" in told


def test_a_password_file_without_an_end_is_refused_and_a_pipe_is_not(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="holds more than 65536 bytes"):
        Password(file="/dev/zero").resolve()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("open sesame\n",))
    writer.start()
    assert Password(file=str(pipe)).resolve() == "open sesame"
    writer.join()


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_a_line_end_is_no_part_of_a_password_wherever_it_is_kept(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    path.write_bytes(f"open\nsesame {end}".encode())
    monkeypatch.setenv("SOME_SECRET", f"open\nsesame {end}")
    assert Password(file=str(path)).resolve() == "open\nsesame "
    assert Password(env="SOME_SECRET").resolve() == "open\nsesame "


def test_a_variable_that_holds_a_line_end_alone_holds_no_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_SECRET", "\n")
    with pytest.raises(InvalidRequestError, match="SOME_SECRET named by passwordEnv"):
        Password(env="SOME_SECRET").resolve()


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
@pytest.mark.parametrize("what", ["file", "env"])
def test_a_name_that_nothing_can_have_is_refused_at_once(what: str, name: str) -> None:
    with pytest.raises(InvalidRequestError, match=rf"\bpassword{what.title()}( has|;)"):
        Password(**{what: name})
