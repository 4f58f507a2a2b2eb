"""Finds the metadata store for a URI. The scheme picks the kind; no message shows credentials.

No connection is opened here: a store connects at first use. A kind is loaded at first use, because
otherwise each process that Spark starts would load all kinds.
"""

from bkspark import environment
from bkspark.errors import InvalidRequestError
from bkspark.metadata import contract
from bkspark.metadata.contract import FormattableStore, MetadataKind, MetadataStore
from bkspark.metadata.files import FileMetadataStore
from bkspark.storage import outside
from bkspark.storage.address import canonical, instead_of, shown_url

_SUPPORTED = (
    "file:///directory, s3://bucket/prefix, gs://bucket/prefix, "
    "abfss://container@account.dfs.core.windows.net/prefix, zk://host:port/path or memory://name"
)


def open_store(uri: str) -> MetadataStore:
    """The store at ``uri``, which must be formatted before its first use."""
    store: MetadataStore = _store(uri)
    return environment.opened(environment.METADATA, store)


def format_store(uri: str, group: int | None = None) -> MetadataStore:
    """Make the empty place at ``uri`` a metadata store.

    Args:
        group: of users that share the store, if the store is a folder.

    Raises:
        InvalidRequestError: the place is not empty, or the store cannot be made.
    """
    store = _store(uri)
    if isinstance(store, FileMetadataStore):
        store.format(group)
    else:
        store.format()
    return store


def has_record(uri: str, key: str) -> bool:
    """Whether a store at ``uri`` has a record; False also if there is no store."""
    store = open_store(uri)
    try:
        return store.get(key) is not None
    except InvalidRequestError:  # not yet a store
        return False
    finally:
        store.close()


def _store(uri: str) -> FormattableStore:
    uri = canonical(uri)
    match contract.split_uri(uri).scheme:
        case "file":
            return FileMetadataStore(uri)
        case "memory":
            from bkspark.metadata.memory import MemoryMetadataStore

            return MemoryMetadataStore(uri)
        case "s3" | "gs" | "abfss":
            from bkspark.metadata.object_store import BucketMetadataStore

            return BucketMetadataStore(uri)
        case "zk":
            from bkspark.metadata.zookeeper import ZooKeeperMetadataStore

            return ZooKeeperMetadataStore(uri)
        case "":
            raise _no_scheme(uri)
        case scheme:
            return _store_of_another_package(scheme, uri)


def _store_of_another_package(scheme: str, uri: str) -> FormattableStore:
    kind = outside.kind_of(outside.METADATA_STORES, scheme, MetadataKind)
    if kind is None:
        more = "".join(f", {name}://" for name in outside.schemes(outside.METADATA_STORES))
        raise InvalidRequestError(
            f"metadata store {shown_url(uri)}: {scheme}:// is not supported",
            hint=instead_of(scheme, f"use {_SUPPORTED}{more}"),
        )
    return kind.store(uri)


def _no_scheme(uri: str) -> InvalidRequestError:
    path = shown_url(uri)
    example = f"file://{path}" if path.startswith("/") else "file:///absolute/path"
    return InvalidRequestError(
        f"metadata store {path!r} has no scheme", hint=f"for a folder write {example}"
    )
