"""Choice of the storage for result files by the config: a folder or an object storage bucket."""

from pathlib import Path

from umg_grpc.store.blob_folder import BlobFolder
from umg_grpc.store.blob_store import BlobPlace
from umg_grpc.store.database_constants import StoreError

BLOBS_FOLDER = "blobs"
"""Folder of the blobs in the data directory; with a bucket it has only the files that are being uploaded."""
INSTALL_COMMAND = "pip install 'unified-model-gateway[blobs]'"


def blob_place(url: str | None, endpoint: str | None, data: Path) -> BlobPlace:
    """Return the storage for result files at `url`, the URL of a bucket; None selects a folder in the data directory.
    Nothing is created or connected yet. `endpoint`: URL of an S3-compatible server. Raise StoreError for an unusable
    URL, or if the optional packages for buckets are not installed.
    """
    folder = BlobFolder(data / BLOBS_FOLDER)
    if url is None:
        return folder
    try:
        from umg_grpc.store.blob_bucket import BlobBucket  # an optional package
    except ImportError as error:
        raise StoreError(f"blobs.url needs the package {error.name}: {INSTALL_COMMAND}") from None
    try:
        return BlobBucket(url, endpoint=endpoint, spool=folder.spool)
    except ValueError as error:
        raise StoreError(f"blobs.url: {error}") from None
