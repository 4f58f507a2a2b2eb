"""The file of stores: what a name means on this machine, and the mistakes in it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.storage import address, connection, stores
from bkspark.storage.clients import Clients
from bkspark.storage.connection import StoreDoubt
from bkspark.storage.stores import Store

WHOLE = """
[east-2]
endpoint_url = "https://s3.east.example:9000"
region = "us-east-1"
addressing_style = "path"
ca_file = "ca.pem"
profile = "east"

[aws]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "stores.toml"
    monkeypatch.setenv(stores.VARIABLE, str(file))
    (tmp_path / "ca.pem").write_text("certificates")
    return file


def test_a_store_is_what_its_table_says(file: Path) -> None:
    file.write_text(WHOLE)
    ca_file = str(file.parent / "ca.pem")
    whole = Store("https://s3.east.example:9000", "us-east-1", "path", ca_file, "east")
    assert stores.find("east-2") == whole
    assert stores.find("aws") == Store()


def test_a_file_beside_the_process_is_found(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(WHOLE)
    monkeypatch.chdir(file.parent)
    monkeypatch.setenv(stores.VARIABLE, "stores.toml")
    assert stores.find("east-2").ca_file == str(file.parent / "ca.pem")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a", "is not TOML"),
        ("[a]\n[a]", "is not TOML"),
        ("\xff", "is not TOML"),
        ("a = 1", "a is not a table"),
        ("[[a]]", "a is not a table"),
        ("[A]", "is not the name of a store"),
        (f"[{'a' * 64}]", "is not the name of a store"),
        ("['a\\nb']", "is not the name of a store"),
        ("[a.b]", "unknown setting 'b'"),
        ("[a]\nendpoint = 'http://h'", "unknown setting 'endpoint'"),
        ("[a]\nEndpoint_url = 'http://h'", "unknown setting"),
        ("[a]\nregion = 1", "region of store a is not a text"),
        ("[a]\nregion = ''", "region of store a is not a text"),
        ("[a]\nregion = '''\nx'''\nprofile = '''a\nb'''", "is not a text in one line"),
        ("[a]\nprofile = ['x']", "profile of store a is not a text"),
        (f"[a]\nprofile = '{'x' * 1001}'", "profile of store a is not a text"),
        ("[a]\naddressing_style = 'host'", "is not one of auto, path, virtual"),
        ("[a]\nendpoint_url = 'h:9000'", "is not http://HOST:PORT"),
        ("[a]\nendpoint_url = 'ftp://h'", "is not http://HOST:PORT"),
        ("[a]\nendpoint_url = 'http://'", "is not http://HOST:PORT"),
        ("[a]\nendpoint_url = 'http://h:port'", "is not http://HOST:PORT"),
        ("[a]\nendpoint_url = 'http://[h'", "is not http://HOST:PORT"),
        ("[a]\nendpoint_url = 'http://me:hunter2@h'", "has a secret in it"),
        ("[a]\nendpoint_url = 'http://h/?key=hunter2'", "has a secret in it"),
        ("[a]\nendpoint_url = 'http://h/#hunter2'", "has a secret in it"),
        ("[a]\nca_file = 'none.pem'", "ca_file of store a cannot be read: No such file"),
        ("[a]\nca_file = '.'", "ca_file of store a cannot be read"),
        *(
            (f"[a]\n{name} = 'hunter2'", f"has the secret {name}")
            for name in ("secret", "key", "aws_secret_access_key", "password", "session_token")
        ),
        ("[b]\n[a]\nsecret = 'hunter2'", "has the secret"),
    ],
)
def test_a_mistake_in_the_file_is_told_in_one_line(file: Path, text: str, words: str) -> None:
    file.write_text(text, encoding="latin-1")
    for name in ("a", "b"):
        with pytest.raises(InvalidRequestError) as caught:
            stores.find(name)
        assert words in str(caught.value)
        assert str(file) in str(caught.value)
        assert caught.value.hint
        assert "\n" not in str(caught.value)
        assert "hunter2" not in str(caught.value)


def test_a_store_that_is_not_there_says_what_to_do(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be read: No such file"):
        stores.find("a")
    file.mkdir()
    with pytest.raises(InvalidRequestError, match="cannot be read: Is a directory"):
        stores.find("a")
    file.rmdir()
    file.write_text("")
    with pytest.raises(InvalidRequestError, match=r"has no table \[a\].*it has no store"):
        stores.find("a")
    file.write_text("[b]\n[c]\n")
    with pytest.raises(InvalidRequestError, match=r"has no table \[a\].*it has b, c"):
        stores.find("a")
    monkeypatch.delenv(stores.VARIABLE)
    with pytest.raises(InvalidRequestError, match="BKSPARK_STORES is not set"):
        stores.find("a")


@pytest.mark.parametrize(
    ("endpoint", "place"),
    [
        ("http://Host:9000/", "host:9000"),
        ("http://host:9000", "host:9000"),
        ("https://host", "host"),
        ("https://host.:443/a", "host"),
        ("http://host:80", "host"),
        ("http://[::1]:9000", "[::1]:9000"),
        ("https://s3.amazonaws.com", ""),
        ("https://s3.eu-west-1.amazonaws.com", ""),
        ("https://s3.dualstack.eu-west-1.amazonaws.com:443", ""),
        ("https://s3.cn-north-1.amazonaws.com.cn", "amazonaws.com.cn"),
        ("https://amazonaws.com.example", "amazonaws.com.example"),
        ("https://notamazonaws.com", "notamazonaws.com"),
    ],
)
def test_an_endpoint_has_one_spelling(endpoint: str, place: str) -> None:
    assert stores.place_of(endpoint) == place


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("s3://bucket/a?store=east", ("s3://bucket/a", "east")),
        ("s3://bucket/a", ("s3://bucket/a", "")),
        ("s3://bucket/a?store=East", ("s3://bucket/a?store=East", "")),
        ("s3://bucket/a?store=", ("s3://bucket/a?store=", "")),
        ("s3://bucket/a?store=a&b", ("s3://bucket/a?store=a&b", "")),
        ("shelf:///a?store=east", ("shelf:///a?store=east", "")),
    ],
)
def test_the_store_in_an_address(url: str, parts: tuple[str, str]) -> None:
    assert address.split_store(url) == parts


def test_an_address_with_a_store_has_one_spelling() -> None:
    for url in ("s3://bucket/a/", "S3://bucket/a"):
        place = address.parse(address.with_store(url, "east"))
        assert (place.url, place.store) == ("s3://bucket/a?store=east", "east")


def test_hints_name_the_settings_of_the_store() -> None:
    error = type("NoCredentialsError", (Exception,), {})()
    assert connection._doubt(error, "east").hint == "set the profile of store east"
    assert "AWS_PROFILE" in connection._doubt(error, "").hint
    lost = connection._doubt(ConnectionResetError(), "east")
    assert "no answer from store east" in str(lost.strerror)
    assert lost.hint == "check that the store runs, and endpoint_url of store east"


def test_a_store_that_is_not_known_is_a_doubt_to_a_request(file: Path) -> None:
    file.write_text(WHOLE)
    with pytest.raises(StoreDoubt, match="store west is not known") as caught:
        connection.call("get_object", store="west", Bucket="b", Key="k")
    assert "add the table" in caught.value.hint


def test_a_named_store_takes_no_endpoint_and_no_key_of_the_process(file: Path) -> None:
    file.write_text(WHOLE)
    for name in ("aws", "east-2"):
        settings = connection._settings_of(name)
        assert settings["config_kwargs"]["ignore_configured_endpoint_urls"] is True
        taken = ("key", "secret", "token", "username", "password", "session")
        assert [settings[name] for name in taken] == [None] * 6
        assert not settings["anon"]
    assert settings["endpoint_url"] == "https://s3.east.example:9000"
    assert settings["client_kwargs"] == {
        "region_name": "us-east-1",
        "verify": str(file.parent / "ca.pem"),
    }
    assert settings["config_kwargs"]["s3"] == {"addressing_style": "path"}
    assert settings["profile"] == "east"
    plain = connection._settings_of("aws")
    assert (plain["endpoint_url"], plain["client_kwargs"]) == (None, {})
    assert "profile" not in plain
    assert connection._settings_of("") == {}


def test_a_connection_that_hangs_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()
    made: list[str] = []

    def connect(store: str) -> str:
        if store == "slow":
            begun.set()
            assert may_end.wait(60)
        made.append(store)
        return f"client of {store}"

    monkeypatch.setattr(connection, "_filesystems", Clients(lambda store, _: connect(store)))
    with ThreadPoolExecutor(3) as pool:
        slow = [pool.submit(connection._connected, "slow") for _ in range(2)]
        try:
            assert begun.wait(60)
            assert pool.submit(connection._connected, "east").result(30) == "client of east"
        finally:
            may_end.set()
        assert [one.result(60) for one in slow] == ["client of slow"] * 2
    assert sorted(made) == ["east", "slow"]
