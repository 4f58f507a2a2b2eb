"""The kinds of object stores, by the scheme of an address; each is loaded at first use."""

from bkspark.storage.address import BucketPlace
from bkspark.storage.contract import ObjectStore


def open_objects(place: BucketPlace) -> ObjectStore:
    """The store of a place, without a request."""
    match place.scheme:
        case "gs":
            from bkspark.storage.google import GoogleObjects

            return GoogleObjects(place)
        case "abfss":
            from bkspark.storage.azure_blobs import AzureObjects

            return AzureObjects(place)
        case _:
            from bkspark.storage.s3 import S3Objects

            return S3Objects(place)
