"""What a conflict says, and what it does not say, in every kind of metadata store.

Numbers are those of the list of historical bugs: RB-27, the ambiguous compare-and-set.
"""

import pytest

from bkspark.cluster.records import Records
from bkspark.errors import (
    LedgerExistsError,
    MetadataVersionError,
    OutcomeUnknownError,
)
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.metadata.uri import format_store
from tests.kit.s3 import S3Proxy, S3Server

KEY = "ledgers/0000000000000001"
IN_FLIGHT = {"status": 409, "code": "ConditionalRequestConflict"}


def texts(store: MetadataStore) -> Records[str]:
    """Records that are a text; the nonce makes each one differ from all others."""

    def encode(value: str, nonce: str) -> bytes:
        return f"{nonce} {value}".encode()

    def decode(_name: str, data: bytes) -> str:
        return data.decode().partition(" ")[2]

    return Records(store, "", lambda name: f"ledgers/{name}", encode, decode)


def test_rb_27d_a_name_that_is_taken_is_not_a_version_that_changed(store: MetadataStore) -> None:
    """Who lost a creation must choose another name; to read and try again would never end."""
    records = texts(store)
    seen = records.create("a", "mine")
    with pytest.raises(LedgerExistsError, match="exists already"):
        texts(store).create("a", "mine")
    assert not issubclass(LedgerExistsError, MetadataVersionError)
    newest = records.replace("a", "changed", seen)
    with pytest.raises(MetadataVersionError):
        records.replace("a", "late", seen)
    assert records.get("a") == newest


def test_rb_27d_the_key_stays_taken_once_its_record_is_gone(store: MetadataStore) -> None:
    records = texts(store)
    records.create("a", "mine")
    store.delete("ledgers/a")
    with pytest.raises((LedgerExistsError, OutcomeUnknownError)):
        records.create("a", "again")


class TestInFlight:
    """409 of an object store: another request for this name is under way, and may yet win."""

    @pytest.fixture
    def s3(self, server: S3Server, proxy: S3Proxy) -> MetadataStore:
        return format_store(server.url())

    def test_rb_27c_is_unknown_and_not_lost(self, s3: MetadataStore, proxy: S3Proxy) -> None:
        s3.put(KEY, b"1", None)
        proxy.fail("PUT", **IN_FLIGHT)
        with pytest.raises(OutcomeUnknownError):
            s3.put(KEY, b"2", 1)
        with pytest.raises(OutcomeUnknownError):
            s3.put("ledgers/0000000000000002", b"1", None)
        proxy.heal()
        assert s3.get(KEY) == VersionedBytes(b"1", 1)
        assert s3.put(KEY, b"2", 1) == 2

    def test_rb_27c_what_was_applied_is_ones_own(self, s3: MetadataStore, proxy: S3Proxy) -> None:
        """The request in flight was an earlier try of the same creation."""
        proxy.fail("PUT", reaches_store=True, **IN_FLIGHT)
        assert s3.put(KEY, b"1", None) == 1
        assert s3.put(KEY, b"2", 1) == 2
        proxy.heal()
        assert s3.get(KEY) == VersionedBytes(b"2", 2)

    def test_rb_27c_taken_is_lost(self, s3: MetadataStore, proxy: S3Proxy) -> None:
        """412 is the store's last word: the name is somebody else's."""
        s3.put(KEY, b"theirs", None)
        proxy.heal()
        with pytest.raises(MetadataVersionError):
            s3.put(KEY, b"theirs", None)
        assert proxy.statuses("PUT") in ([], [412])

    def test_rb_27c_a_change_in_doubt_is_read_back(self, s3: MetadataStore, proxy: S3Proxy) -> None:
        """A client goes on with what the store says, not with what its own request was told."""
        records = texts(s3)
        seen = records.create("a", "1")
        proxy.fail("PUT", reaches_store=True, **IN_FLIGHT)
        changed = records.replace("a", "2", seen)
        proxy.heal()
        assert records.get("a") == changed
