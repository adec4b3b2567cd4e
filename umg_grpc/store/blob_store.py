"""Store of result files (blobs), for example images and videos, for a limited time, in a folder or in object storage.
The id of a blob contains its time, its SHA-256 and its media type, so that serving it needs no database, and several
processes and replicas can share one store without coordination: a blob never changes, it appears only when complete,
and each process would delete the same oldest blobs.
"""

import asyncio
import hashlib
import re
import secrets
import tempfile
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple, Protocol, TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.store.database_time import Clock, MachineClock
from umg_grpc.store.repeated_background_tasks import Background
from umg_grpc.v1 import pb

logger: FilteringBoundLogger = structlog.get_logger(__name__)

PART_BYTES = 256 << 10
"""Largest part of a blob that is read at once."""
SPOOL_BYTES = 1 << 20
"""Bytes of a stream that are collected before they are written."""
SWEEP_SECONDS = 300.0
CLOSE_SECONDS = 5.0
PARTIAL_SECONDS = 86400.0
"""Age in seconds from which an incomplete file is deleted: the process that wrote it is taken for ended."""
STORED_BYTES, SERVED_BYTES = "stored", "served"
"""Directions in which transferred bytes are counted: into the store, and out of it."""

MEDIA_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "bin": "application/octet-stream",
}
"""Media types that blobs can have, by the extension in their ids. None of them runs scripts in a browser."""
FILE_EXTENSIONS = {media_type: extension for extension, media_type in MEDIA_TYPES.items()}
BLOB_ID = re.compile(
    rf"(?P<time>[0-9a-f]{{8}})[0-9a-f]{{12}}-(?P<hash>[A-Za-z0-9_-]{{43}})\.(?P<kind>{'|'.join(MEDIA_TYPES)})"
)

Result = TypeVar("Result")


@dataclass(frozen=True)
class Blob:
    """Stored result file: its id, from which the media type, hash and time are read, and its size."""

    id: str
    size: int

    @cached_property
    def _parts(self) -> re.Match[str]:
        parts = BLOB_ID.fullmatch(self.id)
        if parts is None:
            raise ValueError("this is no id of a blob")
        return parts

    @property
    def mime_type(self) -> str:
        """Media type, one of `MEDIA_TYPES`."""
        return MEDIA_TYPES[self._parts["kind"]]

    @property
    def etag(self) -> str:
        """SHA-256 of the bytes in hexadecimal digits, used as the entity tag."""
        return urlsafe_b64decode(f"{self._parts['hash']}=").hex()

    @property
    def create_time(self) -> datetime:
        """Time at which the blob was stored, in whole seconds."""
        return datetime.fromtimestamp(int(self._parts["time"], 16), UTC)

    @property
    def extension(self) -> str:
        """File name extension for the blob's media type, without a dot."""
        return self._parts["kind"]


class BlobEntry(NamedTuple):
    """Name and size in bytes of one object in a folder or bucket."""

    name: str
    size: int


class BlobPlace(Protocol):
    """Interface of a storage for blobs by names. Raises FileNotFoundError for an unknown name, else OSError."""

    @property
    def spool(self) -> Path:
        """Local folder of incomplete files, from which `put` moves them; for a folder storage on its file system."""
        ...

    async def put(self, name: str, file: Path, mime_type: str) -> None:
        """Move the complete local file into the storage under `name`. `mime_type`: recorded by object storage."""
        ...

    async def size(self, name: str) -> int:
        """Return the size in bytes of the stored object `name`."""
        ...

    def read(self, name: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an object from offset `start` to offset `end` (exclusive), in parts of any size."""
        ...

    async def delete(self, names: Collection[str]) -> None:
        """Delete the stored objects with these names. A name that does not exist is no error."""
        ...

    def entries(self) -> AsyncIterator[BlobEntry]:
        """Yield the names and sizes in bytes of all stored objects."""
        ...


class BlobStore:
    """Store of result files in a folder or bucket. From `start` to `aclose` it deletes files by age and total size."""

    def __init__(
        self,
        place: BlobPlace,
        *,
        ttl: float,
        max_bytes: int,
        clock: Clock | None = None,
        count: Callable[[str, int], None] = lambda *_: None,
    ) -> None:
        """Create a store in a folder or bucket. `ttl`: seconds after which a blob is deleted. `max_bytes`: total size
        above which the oldest blobs are deleted. `clock`: time that all processes of the storage share. `count`: called
        with `STORED_BYTES` or `SERVED_BYTES` and a number of bytes.
        """
        self.ttl = ttl
        self.size_bytes = 0
        """Size of all blobs, as far as this process knows: at the last sweep, and the ones that it stored since."""
        self._place = place
        self._max_bytes = max_bytes
        self._clock = clock or MachineClock()
        self._count = count
        self._sweeper: Background | None = None

    def start(self) -> None:
        """Start the background task that deletes blobs that are too old or exceed the total size."""
        self._sweeper = Background("the sweep of result files", self.sweep, every=SWEEP_SECONDS)
        self._sweeper.wake()

    async def aclose(self) -> None:
        """Stop the background task that deletes blobs."""
        if self._sweeper is not None:
            await self._sweeper.aclose(CLOSE_SECONDS)

    async def put(self, data: bytes, mime_type: str) -> Blob:
        """Store a blob; a type outside `MEDIA_TYPES` becomes octet-stream. Raise UmgError(UNAVAILABLE) on failure."""

        async def chunks() -> AsyncGenerator[bytes, None]:
            yield data

        return await self.put_stream(chunks(), mime_type)

    async def put_stream(self, chunks: AsyncIterable[bytes], mime_type: str, *, max_bytes: int | None = None) -> Blob:
        """Store a stream of bytes as a blob, in constant memory; after an error nothing is stored. `mime_type`: as in
        `put`. Raise UmgError: UNAVAILABLE if the storage fails, UPSTREAM_FAILED for more than `max_bytes`; and any
        exception of the stream itself.
        """
        limit = self._max_bytes if max_bytes is None else min(max_bytes, self._max_bytes)
        spooled = await _guarded(asyncio.to_thread(_Spooled, self._place.spool))
        try:
            async for chunk in chunks:
                if spooled.size + len(chunk) > limit:
                    message = f"the result is larger than {limit / 2**20:.4g} MiB, and was not stored"
                    raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.TOO_LARGE)
                if spooled.add(chunk) >= SPOOL_BYTES:
                    await _guarded(asyncio.to_thread(spooled.flush))
            await _guarded(asyncio.to_thread(spooled.finish))
            blob = Blob(self._new_id(spooled.hash.digest(), mime_type), spooled.size)
            await _guarded(self._place.put(blob.id, spooled.path, blob.mime_type))
        finally:
            await asyncio.shield(asyncio.to_thread(spooled.remove))
        self._count(STORED_BYTES, blob.size)
        self.size_bytes += blob.size
        if self.size_bytes > self._max_bytes and self._sweeper is not None:
            self._sweeper.wake()
        return blob

    async def head(self, blob_id: str) -> Blob:
        """Return the blob without its bytes. Raise UmgError: OBJECT_NOT_FOUND, or UNAVAILABLE if the storage fails."""
        if not BLOB_ID.fullmatch(blob_id):
            raise not_found()
        try:
            return Blob(blob_id, await self._place.size(blob_id))
        except FileNotFoundError:
            raise not_found() from None
        except OSError as error:
            raise _unavailable(error) from None

    async def read(self, blob: Blob, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a blob from offset `start` to `end` (exclusive; None: its end), in parts of at most
        `PART_BYTES`. Raise UmgError: OBJECT_NOT_FOUND if it was deleted, UNAVAILABLE if the storage fails.
        """
        end = blob.size if end is None else min(end, blob.size)
        try:
            async with aclosing(self._place.read(blob.id, start, end)) as parts:
                async for part in parts:
                    for position in range(0, len(part), PART_BYTES):
                        piece = part[position : position + PART_BYTES]
                        self._count(
                            SERVED_BYTES, len(piece)
                        )  # before the caller has the last piece, and reads the metrics
                        yield piece
        except FileNotFoundError:
            raise not_found() from None
        except OSError as error:
            raise _unavailable(error) from None

    async def delete(self, blob_id: str) -> None:
        """Delete the blob with this id, if it exists. Raise UmgError(UNAVAILABLE)."""
        await _guarded(self._place.delete([blob_id]))

    async def sweep(self) -> None:
        """Delete blobs older than `ttl`, then the oldest beyond `max_bytes`; none by a wrong clock. Raise OSError."""
        if not self._clock.is_trusted:
            return
        size_before = self.size_bytes
        entries = sorted([entry async for entry in self._place.entries() if BLOB_ID.fullmatch(entry.name)])
        total = sum(entry.size for entry in entries)
        expired_before = f"{int(self._clock.now() - self.ttl):08x}"
        deleted = list[str]()
        for entry in entries:  # ids begin with the time, so the oldest come first
            if entry.name >= expired_before and total <= self._max_bytes:
                break
            deleted.append(entry.name)
            total -= entry.size
        if deleted:
            await self._place.delete(deleted)
            logger.info("result files deleted", files=len(deleted), left=len(entries) - len(deleted), bytes_left=total)
        self.size_bytes += total - size_before  # keeps the sizes of blobs that were stored meanwhile
        # modified at times of this machine's clock, which is right now
        await asyncio.to_thread(_remove_partial_files, self._place.spool, time.time() - PARTIAL_SECONDS)

    def _new_id(self, digest: bytes, mime_type: str) -> str:
        kind = FILE_EXTENSIONS.get(mime_type, "bin")
        encoded = urlsafe_b64encode(digest).decode().rstrip("=")
        return f"{int(self._clock.now()):08x}{secrets.token_hex(6)}-{encoded}.{kind}"


class _Spooled:
    """Temporary local file of a blob that is received, with its size and SHA-256. Methods except `add` block."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file: IO[bytes] = tempfile.NamedTemporaryFile(dir=folder, delete=False)  # noqa: SIM115  closed by `finish`
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self.path = Path(self._file.name)
        self.size = 0
        self.hash = hashlib.sha256()

    def add(self, chunk: bytes) -> int:
        """Buffer a chunk of the blob. Return the number of bytes that are buffered and not written yet."""
        self._waiting.append(chunk)
        self._waiting_bytes += len(chunk)
        self.size += len(chunk)
        return self._waiting_bytes

    def flush(self) -> None:
        for chunk in self._waiting:
            self.hash.update(chunk)
            self._file.write(chunk)
        self._waiting, self._waiting_bytes = [], 0

    def finish(self) -> None:
        self.flush()
        self._file.close()

    def remove(self) -> None:
        """Delete the temporary file; do nothing if it was moved."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def not_found() -> UmgError:
    """Return the error for a missing file, the same whether it does not exist or the caller may not read it."""
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, "this file does not exist, or its link has expired")


async def _guarded(work: Awaitable[Result]) -> Result:
    try:
        return await work
    except OSError as error:
        raise _unavailable(error) from None


def _unavailable(error: OSError) -> UmgError:
    failure = UmgError(pb.ERROR_REASON_UNAVAILABLE, "the store of result files cannot be used now; try again")
    failure.cause = f"{type(error).__name__}: {error}"
    return failure


def _remove_partial_files(folder: Path, modified_before: float) -> None:
    """Delete temporary files last modified before a time in Unix seconds, whose processes were killed."""
    for path in folder.iterdir() if folder.is_dir() else ():
        try:
            if path.stat().st_mtime < modified_before:
                path.unlink()
        except FileNotFoundError:
            continue
