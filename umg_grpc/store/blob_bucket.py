"""Storage of result files in S3, compatible servers, Google Cloud Storage or Azure; needs the extra `blobs`."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Collection
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store, from_url

from umg_grpc.base.proxy_rules import is_local
from umg_grpc.store.blob_store import BlobEntry

if TYPE_CHECKING:
    from obstore.store import ClientConfig

READ_BYTES = 2 << 20
"""Bytes of each read request. Separate requests for the parts keep no connection busy while a slow reader waits."""
UPLOAD_BYTES = 8 << 20
"""Size of the parts of an upload, of which two are sent at once."""
TIMEOUT_SECONDS = 30
CONNECT_SECONDS = 5
MAX_RETRIES = 3
RETRY_SECONDS = 15
LIST_CHUNK = 1000

Result = TypeVar("Result")


class BlobBucket:
    """Bucket or container with one object for each result file; implements `BlobPlace`."""

    def __init__(self, url: str, *, endpoint: str | None, spool: Path) -> None:
        """Create a client of the bucket at `url`; credentials and region come from the environment. `endpoint`: URL of
        an S3-compatible server; `spool`: folder for files before their upload. Raise ValueError for an unusable URL.
        """
        is_plain = endpoint is not None and endpoint.startswith("http://")
        direct: ClientConfig = {}
        if endpoint is not None and is_local(endpoint):  # it would get the proxy of the environment
            direct = {"proxy_url": endpoint, "proxy_excludes": urlsplit(endpoint).hostname or ""}
        try:
            store = from_url(
                url,
                config={} if endpoint is None else {"endpoint": endpoint},
                client_options={
                    "allow_http": is_plain,
                    "timeout": timedelta(seconds=TIMEOUT_SECONDS),
                    "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                    **direct,
                },
                retry_config={"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            )
        except BaseError as error:
            raise ValueError(_first_line(error)) from None
        if not isinstance(store, S3Store | GCSStore | AzureStore):
            raise ValueError("expected s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX")
        self._store = store
        self._spool = spool

    @property
    def spool(self) -> Path:
        return self._spool

    async def put(self, name: str, file: Path, mime_type: str) -> None:
        attributes = {"Content-Type": mime_type}
        await _translated(
            obstore.put_async(
                self._store, name, file, attributes=attributes, chunk_size=UPLOAD_BYTES, max_concurrency=2
            )
        )

    async def size(self, name: str) -> int:
        return (await _translated(obstore.head_async(self._store, name)))["size"]

    async def read(self, name: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        while start < end:
            stop = min(start + READ_BYTES, end)
            part = await _translated(obstore.get_range_async(self._store, name, start=start, end=stop))
            start = stop
            yield bytes(part)

    async def delete(self, names: Collection[str]) -> None:
        try:
            await _translated(obstore.delete_async(self._store, [*names]))
        except FileNotFoundError:  # another replica deleted one of them meanwhile
            for name in names:
                with suppress(FileNotFoundError):
                    await _translated(obstore.delete_async(self._store, name))

    async def entries(self) -> AsyncIterator[BlobEntry]:
        try:
            async for batch in obstore.list(self._store, chunk_size=LIST_CHUNK):
                for found in batch:
                    yield BlobEntry(found["path"], found["size"])
        except BaseError as error:
            raise OSError(_first_line(error)) from None


async def _translated(work: Awaitable[Result]) -> Result:
    """Await a request to the bucket, and return its result. Errors of the library become OSError."""
    try:
        return await work
    except FileNotFoundError:
        raise FileNotFoundError("no such object") from None
    except (BaseError, OSError) as error:
        raise OSError(_first_line(error)) from None


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}"
