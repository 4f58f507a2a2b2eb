"""Addresses are shown without what may be secret, and none has a character that is not shown."""

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.storage.address import require_fit, shown_url


@pytest.mark.parametrize(
    "url",
    [
        "file:///data/meta",
        "file:///home/me@corp/x",
        "file:///a b/c",
        "s3://bucket/a/b",
        "s3://bucket/a/b?store=east-1",
        "zk://h1:2181,h2:2181/bk",
        "zk://[::1]:2181/bk",
        "memory://x",
        "/data/meta",
        "data/meta",
        "",
    ],
)
def test_an_address_without_secrets_is_shown_as_it_is(url: str) -> None:
    assert shown_url(url) == url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://user:secret@bucket/a", "s3://***@bucket/a"),
        ("s3://us/er:sec@ret@bucket/a", "s3://***@bucket/a"),
        ("s3://secret%40bucket/a", "s3://***@bucket/a"),
        ("s3://user:secret", "s3://***"),
        ("s3://user:sec?ret@bucket", "s3://***"),
        ("s3://token?secret@bucket", "s3://***"),
        ("s3://bucket/a?key=secret", "s3://bucket/a"),
        ("s3://bucket/a#secret", "s3://bucket/a"),
        ("s3://bucket/a?store=Secret", "s3://bucket/a"),
        ("s3://bucket/a?store=a&key=secret", "s3://bucket/a"),
        ("s3://bucket/a?store=" + "s" * 64, "s3://bucket/a"),
        ("s3://user:sec?store=ret@bucket", "s3://***"),
        ("s3://user:secret?store=east", "s3://***"),
        ("s3://user:secret@bucket?store=east", "s3://***@bucket?store=east"),
        ("file:///user:secret@host/a", "file://***@host/a"),
        ("file:///user%3Asecret%40host/a", "file://***@host/a"),
        ("file:///a?secret", "file:///a"),
        ("user:secret@host", "***@host"),
        ("//user:secret@host", "//***@host"),
        ("zk:user:secret@h/bk", "***@h/bk"),
        ("zk://h:2181,user:secret/bk", "zk://***"),
        ("s3://b/" + "x" * 300, "s3://b/" + "x" * 193),
        ("file:///a\n\x1b[2J\u202e", "file:///a\ufffd\ufffd[2J\ufffd"),
    ],
)
def test_what_may_be_secret_is_hidden(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    "char", ["\n", "\r", "\t", "\x1b", "\x7f", "\x9b", "\u202e", "\u2028", "\udc80"]
)
def test_what_does_not_just_stand_there_is_refused(char: str) -> None:
    url = f"file:///a{char}b"
    with pytest.raises(InvalidRequestError, match=f"U\\+{ord(char):04X}") as caught:
        require_fit(url)
    assert char not in str(caught.value)


@pytest.mark.parametrize("url", ["file:///データ", "file:///é ü", "file:///a%0A"])
def test_letters_of_all_people_are_fit(url: str) -> None:
    assert require_fit(url) == url
