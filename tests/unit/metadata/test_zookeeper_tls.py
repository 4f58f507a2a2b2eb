"""Servers of ZooKeeper that take connections by TLS: with and without certificates of clients."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.metadata import zookeeper_session
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.uri import format_store, open_store
from bkspark.metadata.zookeeper_access import CA_VARIABLE, CERTIFICATE_VARIABLE, encryption
from tests.kit.zookeeper import missing, zookeeper

HOST = "127.0.0.1"


class Certificates:
    """Files with an authority, another one, and a client's certificate with its key."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        server = authority.issue_cert(HOST)
        self.ca, self.server, self.client, self.other = (
            folder / f"{name}.pem" for name in ("ca", "server", "client", "other")
        )
        authority.cert_pem.write_to_path(self.ca)
        chain = b"".join(part.bytes() for part in server.cert_chain_pems)
        self.server.write_bytes(_as_java_reads_it(server.private_key_pem.bytes()) + chain)
        authority.issue_cert("client").private_key_and_cert_chain_pem.write_to_path(self.client)
        trustme.CA().cert_pem.write_to_path(self.other)


def _as_java_reads_it(key: bytes) -> bytes:
    return load_pem_private_key(key, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def uri(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that asks each client for a certificate."""
    stores = {"keyStore": certificates.server, "trustStore": certificates.ca}
    settings = {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.clientAuth": "need",
        **{f"ssl.{name}.location": str(file) for name, file in stores.items()},
        **{f"ssl.{name}.type": "PEM" for name in stores},
    }
    with zookeeper(tmp_path_factory.mktemp("tls"), tls=settings) as servers:
        yield f"zk://{servers.hosts}/tls"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_session, "CONNECT_SECONDS", 3.0)


@pytest.mark.thorough
@pytest.mark.skipif(bool(missing()), reason=missing())
class TestWithAServer:
    def test_records_are_written_and_read(
        self, uri: str, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(CA_VARIABLE, str(certificates.ca))
        monkeypatch.setenv(CERTIFICATE_VARIABLE, str(certificates.client))
        with closing(format_store(uri)) as store:
            assert store.put("key", b"value", None) == 1
        with closing(open_store(uri)) as again:
            assert again.get("key") == VersionedBytes(b"value", 1)

    @pytest.mark.parametrize(
        ("ca", "client", "said"),
        [
            ("", "", f"set {CA_VARIABLE}"),
            ("other", "client", "unable to get local issuer certificate"),
            ("ca", "", f"it wants a certificate; set {CERTIFICATE_VARIABLE}"),
        ],
    )
    def test_the_error_says_what_the_handshake_lacked(
        self,
        uri: str,
        certificates: Certificates,
        monkeypatch: pytest.MonkeyPatch,
        ca: str,
        client: str,
        said: str,
    ) -> None:
        if ca:
            monkeypatch.setenv(CA_VARIABLE, str(getattr(certificates, ca)))
        if client:
            monkeypatch.setenv(CERTIFICATE_VARIABLE, str(getattr(certificates, client)))
        with closing(open_store(uri)) as store, pytest.raises(OutcomeUnknownError) as caught:
            store.get("key")
        assert said in f"{caught.value} {caught.value.hint}"


def test_nothing_is_encrypted_without_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CA_VARIABLE, raising=False)
    assert encryption() == {}
    monkeypatch.setenv(CERTIFICATE_VARIABLE, "/client.pem")
    with pytest.raises(InvalidRequestError, match=f"{CERTIFICATE_VARIABLE} needs {CA_VARIABLE}"):
        encryption()


def test_files_are_tried_before_a_connection(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(CA_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(InvalidRequestError, match="cannot be used: No such file"):
        encryption()
    monkeypatch.setenv(CA_VARIABLE, str(certificates.ca))
    assert encryption() == {"use_ssl": True, "ca": str(certificates.ca), "check_hostname": True}
    monkeypatch.setenv(CERTIFICATE_VARIABLE, str(certificates.ca))  # it has no key
    with pytest.raises(InvalidRequestError, match=CERTIFICATE_VARIABLE):
        encryption()
