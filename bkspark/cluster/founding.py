"""Makes the metadata of a new cluster: the store, and the record with the cluster's identity."""

from bkspark.cluster.records import Records
from bkspark.format import cluster as cluster_format
from bkspark.format import layout
from bkspark.format.cluster import ClusterRecord
from bkspark.metadata import uri as metadata_stores


def make_cluster(metadata_uri: str, record: ClusterRecord) -> None:
    """Make the empty place at ``metadata_uri`` the metadata store of a cluster.

    Raises:
        InvalidRequestError: the place is not empty, or the store cannot be made.
    """
    store = metadata_stores.format_store(metadata_uri, record.group)
    try:
        Records(
            store,
            lambda name: name,
            cluster_format.encode_cluster,
            lambda _name, data: cluster_format.decode_cluster(data),
        ).create(layout.CLUSTER_KEY, record)
    finally:
        store.close()
