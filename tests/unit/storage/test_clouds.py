"""Google's and Microsoft's stores, with scripted answers: what is not sure is a doubt."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.storage import azure_blobs, clients, google, stores
from bkspark.storage.address import canonical, parse, shown_url, split_store, with_store
from bkspark.storage.connection import (
    NoSuchObject,
    ObjectTaken,
    RangeBehindEnd,
    StoreDoubt,
)

LAKE = "abfss://data@lake.dfs.core.windows.net"


@dataclass
class Scripted:
    """A session that gives the next answer of the script, and notes what it is asked."""

    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def request(self, method: str, address: str, **given: Any) -> "ScriptedAnswer":
        body = given["data"]
        data = body if isinstance(body, bytes) else body.read()
        self.asked.append((method, address, given["params"] or {}, data))
        return ScriptedAnswer(*self.answers.pop(0))


@dataclass
class ScriptedAnswer:
    status_code: int
    headers: dict[str, str]
    data: bytes

    @property
    def raw(self) -> "ScriptedAnswer":
        return self

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.data

    def __enter__(self) -> "ScriptedAnswer":
        return self

    def __exit__(self, *_: object) -> None:
        return None


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    script = Scripted()
    client = google.GoogleClient("https://store", script)
    monkeypatch.setattr(google, "_clients", clients.Clients(lambda *_: client))
    return script


@pytest.fixture
def objects() -> google.GoogleObjects:
    return google.GoogleObjects(parse("gs://bucket/place"))


def xml(code: str) -> bytes:
    return f"<Error><Code>{code}</Code></Error>".encode()


class TestGoogle:
    def test_a_put_has_the_generation_that_it_replaces(
        self, session: Scripted, objects: google.GoogleObjects
    ) -> None:
        session.answers = [(200, {}, b'{"generation": "8"}')] * 2
        assert objects.put("place/a", b"data", token="mine") == "8"
        objects.put("place/a", b"data", replaced="7")
        conditions = [wanted["ifGenerationMatch"] for _, _, wanted, _ in session.asked]
        assert conditions == ["0", "7"]
        assert b'"metadata": {"bkspark-token": "mine"}' in session.asked[0][3]
        assert b"data" in session.asked[0][3]

    @pytest.mark.parametrize(
        ("status", "data", "kind"),
        [
            (404, xml("NoSuchKey"), NoSuchObject),
            (404, xml("NoSuchBucket"), StoreDoubt),
            (412, b"", ObjectTaken),
            (416, b"", RangeBehindEnd),
            (401, b"", StoreDoubt),
            (403, xml("AccessDenied"), StoreDoubt),
            (409, b"", StoreDoubt),
            (429, b"", StoreDoubt),
            (500, b"", StoreDoubt),
            (302, b"", StoreDoubt),
        ],
    )
    def test_what_an_answer_is_taken_for(
        self,
        session: Scripted,
        objects: google.GoogleObjects,
        status: int,
        data: bytes,
        kind: type[StoreDoubt],
    ) -> None:
        session.answers = [(status, {}, data)]
        with pytest.raises(StoreDoubt) as caught:
            objects.get("place/a")
        assert type(caught.value) is kind
        assert len(session.asked) == 1
        assert caught.value.is_passing == (status in (409, 429, 500))
        assert caught.value.asks_for_less == (status == 429)

    @pytest.mark.parametrize(
        ("listing", "kind"),
        [
            ((200, {}, b"{}"), NoSuchObject),
            ((200, {}, b'{"items": [{"name": "place/a-later"}]}'), NoSuchObject),
            ((200, {}, b'{"items": [{"name": "place/a"}]}'), StoreDoubt),
            ((404, {}, b"{}"), StoreDoubt),
            ((500, {}, b""), StoreDoubt),
        ],
    )
    def test_a_server_that_does_not_say_what_is_missing_is_asked_for_a_listing(
        self,
        session: Scripted,
        objects: google.GoogleObjects,
        listing: tuple[int, dict[str, str], bytes],
        kind: type[StoreDoubt],
    ) -> None:
        session.answers = [(404, {}, b"Not Found"), listing]
        with pytest.raises(StoreDoubt) as caught:
            objects.get("place/a")
        assert type(caught.value) is kind

    def test_an_answer_that_is_not_whole_is_a_doubt(
        self, session: Scripted, objects: google.GoogleObjects
    ) -> None:
        told = {"x-goog-generation": "7", "Content-Length": "4"}
        session.answers = [(200, told, b"dat"), (200, {"Content-Length": "4"}, b"data")]
        with pytest.raises(StoreDoubt, match="cut short"):
            objects.get("place/a")
        with pytest.raises(StoreDoubt, match="generation"):
            objects.get("place/a")

    def test_a_part_is_whole_and_the_end_tells_its_size(
        self, session: Scripted, objects: google.GoogleObjects
    ) -> None:
        begun = (200, {"Location": "https://store/session"}, b"")
        half = (308, {"Range": "bytes=0-99"}, b"")
        whole = (308, {"Range": f"bytes=0-{2**18 - 1}"}, b"")
        session.answers = [
            *(begun, half, whole),
            *((200, {}, json.dumps({"generation": "8", "size": size}).encode()) for size in (7, 0)),
        ]
        parts = objects.begin("place/a", "mine")
        with pytest.raises(StoreDoubt, match="some bytes"):
            parts.send(0, bytes(2**18))
        parts.send(0, bytes(2**18))
        with pytest.raises(StoreDoubt, match="another size"):
            parts.finish()
        assert session.asked[0][2]["ifGenerationMatch"] == "0"

    def test_a_name_that_is_taken_is_told_at_the_end(
        self, session: Scripted, objects: google.GoogleObjects
    ) -> None:
        session.answers = [(412, {}, b"")]
        parts = objects.begin("place/a", "mine")
        parts.send(0, b"x")
        with pytest.raises(ObjectTaken):
            parts.finish()
        parts.abandon()
        assert session.answers == []


class Refused(Exception):
    """As the client's ``HttpResponseError``."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status_code = status
        self.error_code = code


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "BlobNotFound", NoSuchObject),
        (404, "ContainerNotFound", StoreDoubt),
        (404, "", StoreDoubt),
        (409, "BlobAlreadyExists", ObjectTaken),
        (412, "ConditionNotMet", ObjectTaken),
        (412, "LeaseIdMissing", StoreDoubt),
        (409, "ContainerBeingDeleted", StoreDoubt),
        (416, "InvalidRange", RangeBehindEnd),
        (403, "AuthenticationFailed", StoreDoubt),
        (403, "AuthorizationPermissionMismatch", StoreDoubt),
        (400, "InvalidBlockList", StoreDoubt),
        (500, "OperationTimedOut", StoreDoubt),
        (503, "ServerBusy", StoreDoubt),
    ],
)
def test_what_an_answer_of_azure_is_taken_for(
    status: int, code: str, kind: type[StoreDoubt]
) -> None:
    doubt = azure_blobs._meaning(
        Refused(status, code), azure_blobs.AzureClient("https://lake", None)
    )
    assert type(doubt) is kind
    assert doubt.asks_for_less == (status == 503)
    if kind is StoreDoubt:
        assert doubt.is_passing == (status >= 500 or code == "ContainerBeingDeleted")


class TestAddresses:
    @pytest.mark.parametrize(
        ("given", "url"),
        [
            ("s3a://bucket/a", "s3://bucket/a"),
            ("S3A://bucket/a", "s3://bucket/a"),
            ("gs://bucket/a", "gs://bucket/a"),
            ("abfs://data@lake.dfs.core.windows.net/a", f"{LAKE}/a"),
            ("az://data/a", "abfss://data/a"),
            (f"{LAKE}/a?store=east", f"{LAKE}/a?store=east"),
        ],
    )
    def test_spellings(self, given: str, url: str) -> None:
        assert canonical(given) == url
        assert parse(url).url == url
        assert shown_url(url) == url

    @pytest.mark.parametrize(
        "url",
        [
            *("gs://", "gs://B/a", "gs://bucket/../a", "gs://bucket/.a", "gs://u:hunter2@bucket/a"),
            *(
                "gs://data@lake.dfs.core.windows.net/a",
                "abfss://data@lake.example/a",
                "abfss://a/b",
            ),
            *("abfss://u:hunter2@lake.dfs.core.windows.net/a", "abfss://da--ta/a", f"{LAKE}/a?x=1"),
        ],
    )
    def test_no_addresses(self, url: str) -> None:
        with pytest.raises(InvalidRequestError) as caught:
            parse(url)
        assert "hunter2" not in str(caught.value)

    def test_stores(self) -> None:
        assert split_store(with_store(f"{LAKE}/a", "east")) == (f"{LAKE}/a", "east")
        assert with_store("gs://bucket/a", "east") == "gs://bucket/a?store=east"


class TestCredentials:
    @pytest.fixture(autouse=True)
    def nothing_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [*os.environ]:
            if name.startswith(("AZURE_", "GOOGLE_", "STORAGE_")):
                monkeypatch.delenv(name)

    def test_accounts_of_azure(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "west.key").write_text("d2VzdA==\n")
        (tmp_path / "stores.toml").write_text(
            '[west]\naccount = "west"\nidentity_file = "west.key"\n'
            '[near]\nendpoint_url = "http://near:1/west"\naccount = "west"\n'
            'identity_file = "west.key"\n'
        )
        monkeypatch.setenv(stores.VARIABLE, str(tmp_path / "stores.toml"))
        monkeypatch.setenv("AZURE_STORAGE_KEY", "bGFrZQ==")
        told = [
            azure_blobs._account_of(*given)
            for given in (("", "lake.dfs.core.windows.net"), ("west", ""), ("near", ""))
        ]
        assert [endpoint for endpoint, _, _ in told] == [
            "https://lake.blob.core.windows.net",
            "https://west.blob.core.windows.net",
            "http://near:1/west",
        ]
        names = [(key.named_key.name, key.named_key.key) for _, key, _ in told]
        assert names == [("lake", "bGFrZQ=="), ("west", "d2VzdA=="), ("west", "d2VzdA==")]

    def test_a_connection_string_is_of_its_account(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given = "AccountName=lake;AccountKey=bGFrZQ==;BlobEndpoint=http://near:1/lake;"
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", given)
        assert azure_blobs._account_of("", "")[0] == "http://near:1/lake"
        endpoint, credential, _ = azure_blobs._account_of("", "other.dfs.core.windows.net")
        assert endpoint == "https://other.blob.core.windows.net"
        assert not hasattr(credential, "named_key")

    def test_an_unknown_account_is_a_doubt(self) -> None:
        with pytest.raises(StoreDoubt, match="the account is not known"):
            azure_blobs._account_of("", "")

    def test_no_credentials_of_google(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file-hunter2")
        with pytest.raises(StoreDoubt, match="no credentials") as caught:
            google._connect("", "")
        assert "hunter2" not in str(caught.value)

    def test_clients_show_no_secret(self) -> None:
        shown = repr(
            (google.GoogleClient("https://a", "hunter2"), azure_blobs.AzureClient("b", "hunter2"))
        )
        assert "hunter2" not in shown


def test_a_forked_process_makes_its_own_clients() -> None:
    made = clients.Clients(lambda store, _: f"{store} of {os.getpid()}")
    assert made.of("east") == made.of("east") == f"east of {os.getpid()}"
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, made.of("east").encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.read() not in ("", made.of("east"))
    os.wait()


@pytest.mark.parametrize(
    ("module", "extra"),
    [("google.auth.transport.requests", "gcs"), ("azure.storage.blob", "azure")],
)
def test_a_missing_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    connect = {"gcs": google._connect, "azure": azure_blobs._connect}[extra]
    with pytest.raises(InvalidRequestError, match=rf"bkspark\[{extra}\]"):
        connect("", "")
