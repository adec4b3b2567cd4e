"""Download of the results of video tasks, in constant memory: from the blob store or from the provider."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.service.byte_ranges import selected_bytes
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.video_tasks.task_poll_scheduler import provider_task_of
from umg_grpc.store.blob_store import FILE_EXTENSIONS, BlobStore
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_results import TaskResult, results_of
from umg_grpc.store.video_task_table import QUEUED_STATE, RUNNING_STATE, SUBMITTING_STATE, SUCCEEDED_STATE
from umg_grpc.upstream.caller_url_fetch import DIRECT_ROUTE, Fetcher
from umg_grpc.upstream.upstream_interfaces import ContentPart
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus

MAX_CHUNK = 1 << 20
POLL_SECONDS = 20.0
"""Time limit of a poll for a new address of a result."""
MAX_POLLS, PAUSE_SECONDS = 30, 0.5
NO_FILES = frozenset({"text/html", "application/xhtml+xml", "application/json", "application/xml", "text/xml"})
"""Media types of pages and errors that some servers send with a status of success in place of a file."""
UNFINISHED_STATES: Mapping[int, str] = {
    SUBMITTING_STATE: "queued",
    QUEUED_STATE: "queued",
    RUNNING_STATE: "in_progress",
}

logger: FilteringBoundLogger = structlog.get_logger(__name__)

_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18}|\*)", re.IGNORECASE | re.ASCII)
_LENGTH = re.compile(r"[0-9]{1,18}")
"""Number of bytes that fits an int64."""


@dataclass(frozen=True)
class _Opened:
    """Result file that is open for reading: its metadata and its requested bytes."""

    head: pb.ContentHead
    chunks: AsyncGenerator[bytes, None]


class _Source(NamedTuple):
    """Place from which a result file may be read, with a function that opens the file there."""

    name: str
    """`store` (the blob store), `storage` (address at the provider without a key), `channel` (the provider's API with
    its key), or `poll` (address in the response to a new poll).
    """
    open: Callable[[], AbstractAsyncContextManager[_Opened]]


class TaskContent:
    """Reader of the result files of video tasks, each from the nearest source that has it."""

    def __init__(
        self,
        channels: Channels,
        fetcher: Fetcher,
        blobs: BlobStore | None,
        now: Callable[[], int],
        count: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        """Create a reader. `now`: microseconds since 1970. `count`: called with a source and `ok` or `failed`."""
        self._channels = channels
        self._fetcher = fetcher
        self._blobs = blobs
        self._count = count
        self._now = now

    async def open(
        self, row: MediaTask, request: pb.DownloadVideoRequest
    ) -> AsyncGenerator[pb.DownloadVideoResponse, None]:
        """Yield the metadata of a result, then its requested bytes. Raise UmgError: WRONG_STATE for an unfinished task;
        OBJECT_NOT_FOUND for a failed task, and for an absent or expired result; INVALID_FIELD for a variant that the
        model does not make; RANGE_NOT_SATISFIABLE, UPSTREAM_FAILED and other errors of the provider.
        """
        result, index = _selected(row, request)
        async with AsyncExitStack() as stack:
            opened = await self._opened(stack, row, result, index, request.range)
            yield pb.DownloadVideoResponse(head=opened.head)
            if opened.head.HasField("length_bytes") and not opened.head.length_bytes:
                return
            if request.range.HasField("limit") and not request.range.limit:
                return
            async with aclosing(opened.chunks) as chunks:
                async for chunk in chunks:
                    for begin in range(0, len(chunk), MAX_CHUNK):
                        yield pb.DownloadVideoResponse(chunk=chunk[begin : begin + MAX_CHUNK])

    async def _opened(
        self, stack: AsyncExitStack, row: MediaTask, result: TaskResult, index: int, wanted: pb.ByteRange
    ) -> _Opened:
        """Open the result from the first source at which it can be read. It stays open until `stack` is closed."""
        failure: UmgError | None = None
        for source in self._sources(row, result, index, wanted):
            try:
                opened = await stack.enter_async_context(source.open())
            except UmgError as error:
                if error.reason == pb.ERROR_REASON_RANGE_NOT_SATISFIABLE:
                    raise
                self._count(source.name, "failed")
                logger.info(
                    "a result of a video task cannot be read",
                    task=row.task_id,
                    channel=row.channel,
                    source=source.name,
                    outcome=error.name,
                    cause=error.cause or error.message,
                )
                failure = failure or error
            else:
                self._count(source.name, "ok")
                return opened
        is_late = result.url_expire_micros is not None and result.url_expire_micros <= self._now()
        if failure is None or is_late or failure.reason == pb.ERROR_REASON_OBJECT_NOT_FOUND:
            raise _not_found("the content of this task has expired; submit the task again")
        raise failure

    def _sources(self, row: MediaTask, result: TaskResult, index: int, wanted: pb.ByteRange) -> Iterator[_Source]:
        """Yield a result's sources, nearest first. The last is a new poll: the provider may return a new URL."""
        if result.blob_id:
            yield _Source("store", lambda: self._from_blob(result, wanted))
        yield from self._provider_sources(row, result, wanted)
        if not result.needs_key:
            yield _Source("poll", lambda: self._from_new_poll(row, result, index, wanted))

    def _provider_sources(self, row: MediaTask, result: TaskResult, wanted: pb.ByteRange) -> Iterator[_Source]:
        is_late = result.url_expire_micros is not None and result.url_expire_micros <= self._now()
        if result.url and not is_late:
            yield _Source("storage", lambda: self._from_url(row, result, wanted))
        if result.needs_key and row.channel in self._channels.videos:
            yield _Source("channel", lambda: self._from_channel(row, result, wanted))

    @asynccontextmanager
    async def _from_blob(self, result: TaskResult, wanted: pb.ByteRange) -> AsyncGenerator[_Opened, None]:
        if self._blobs is None:
            raise _not_found("the gateway stores no files")
        blob = await self._blobs.head(result.blob_id)
        start, end = selected_bytes(wanted, blob.size)
        head = pb.ContentHead(
            mime_type=blob.mime_type, total_bytes=blob.size, offset=start, length_bytes=end - start, etag=blob.etag
        )
        async with aclosing(self._blobs.read(blob, start, end)) as chunks:
            yield _Opened(head, chunks)

    @asynccontextmanager
    async def _from_url(
        self, row: MediaTask, result: TaskResult, wanted: pb.ByteRange
    ) -> AsyncGenerator[_Opened, None]:
        route = self._channels.routes.get(row.channel, DIRECT_ROUTE)
        async with self._fetcher.open(result.url, field=None, headers=range_header(wanted), route=route) as download:
            yield _part(download, result, wanted)

    @asynccontextmanager
    async def _from_channel(
        self, row: MediaTask, result: TaskResult, wanted: pb.ByteRange
    ) -> AsyncGenerator[_Opened, None]:
        upstream, known = self._channels.videos[row.channel], provider_task_of(row)
        theirs = ProviderResult(
            variant=pb.VideoVariant.ValueType(result.variant), needs_key=result.needs_key, mime_type=result.mime_type
        )
        async with upstream.content(known, theirs, range_header(wanted)) as part:
            yield _part(part, result, wanted)

    @asynccontextmanager
    async def _from_new_poll(
        self, row: MediaTask, result: TaskResult, index: int, wanted: pb.ByteRange
    ) -> AsyncGenerator[_Opened, None]:
        """Open the result at the address in the provider's response to a new poll: some providers sign a new address
        each time. `index`: position of the result among those of its variant.
        """
        status = await self._polled(row)
        fresh = [each for each in status.results if each.variant == result.variant]
        if index >= len(fresh):
            raise _not_found("the provider does not have the result any more")
        if data := fresh[index].data:
            start, end = selected_bytes(wanted, len(data))
            head = pb.ContentHead(
                mime_type=result.mime_type, total_bytes=len(data), offset=start, length_bytes=end - start
            )
            yield _Opened(head, _one(data[start:end]))
            return
        if not fresh[index].url or fresh[index].url == result.url:
            raise _not_found("the provider has no new address of the result")
        new = TaskResult(variant=result.variant, url=fresh[index].url, mime_type=result.mime_type)
        async with self._from_url(row, new, wanted) as opened:
            yield opened

    async def _polled(self, row: MediaTask) -> ProviderStatus:
        upstream, known = self._channels.videos.get(row.channel), provider_task_of(row)
        if upstream is None:
            raise _not_found("the channel of this task is not served any more")
        for _ in range(MAX_POLLS):
            status = (await upstream.poll([known], POLL_SECONDS)).get(known.id)
            if not isinstance(status, ProviderStatus):
                raise status or _not_found("the provider does not have the task any more")
            if status.state not in UNFINISHED_STATES:
                return status
            await asyncio.sleep(PAUSE_SECONDS)
        raise _broken("it is not ready; try again later")


def _selected(row: MediaTask, request: pb.DownloadVideoRequest) -> tuple[TaskResult, int]:
    """Return the result that a download requests, and its position among the results of the same variant."""
    if row.state in UNFINISHED_STATES:
        state = UNFINISHED_STATES[row.state]
        message = f"task is not completed yet, current status: {state}"
        raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state=state)
    if row.state != SUCCEEDED_STATE:
        raise _not_found("the task has failed and has no content; its `error` has the reason")
    variant = request.variant or pb.VIDEO_VARIANT_VIDEO
    found = [each for each in results_of(row) if each.variant == variant]
    if not found:
        name = pb.VideoVariant.Name(variant).removeprefix("VIDEO_VARIANT_").lower()
        raise invalid("variant", f"this task has no result `{name}`; leave it out for the video")
    if request.index >= len(found):
        raise _not_found(f"this task has {len(found)} of these results; the first has index 0")
    return found[request.index], request.index


def range_header(wanted: pb.ByteRange) -> Mapping[str, str]:
    """Return the HTTP header `range` for the requested bytes; empty if all bytes or only the metadata are requested."""
    limit = wanted.limit if wanted.HasField("limit") else None
    if limit == 0 or (limit is None and not wanted.offset):
        return {}
    if not wanted.HasField("offset"):
        return {"range": f"bytes=-{limit}"}
    return {"range": f"bytes={wanted.offset}-{'' if limit is None else wanted.offset + limit - 1}"}


def _part(part: ContentPart, result: TaskResult, wanted: pb.ByteRange) -> _Opened:
    """Return the requested bytes of a provider's HTTP response; cut them out if it ignored the range."""
    headers = part.headers
    head = pb.ContentHead(mime_type=_mime_type(headers, result))
    if etag := headers.get("etag", "").removeprefix("W/").strip('"'):
        head.etag = etag
    found = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
    total = int(found[3]) if found is not None and found[3] != "*" else None
    if part.status == 416:
        size = {} if total is None else {"total_bytes": str(total)}
        raise UmgError(
            pb.ERROR_REASON_RANGE_NOT_SATISFIABLE, "the range begins after the end of the content; send another", **size
        )
    check_type(headers)
    if total is not None:
        head.total_bytes = total
    if part.status == 206:
        if found is None or found[1] is None or (wanted.HasField("offset") and int(found[1]) != wanted.offset):
            raise _broken("its server answered with another range")
        head.offset, head.length_bytes = int(found[1]), int(found[2]) - int(found[1]) + 1
        if head.length_bytes < 1:
            raise _broken("its server answered with a range that ends before it begins")
        return _Opened(head, _cut(part.chunks(), 0, head.length_bytes))
    length = headers.get("content-length", "")
    if _LENGTH.fullmatch(length) and headers.get("content-encoding", "identity") == "identity":
        head.total_bytes = int(length)
        start, end = selected_bytes(wanted, head.total_bytes)
        head.offset, head.length_bytes = start, end - start
        return _Opened(head, _cut(part.chunks(), start, end - start))
    head.offset = wanted.offset
    limited = wanted.HasField("limit") and wanted.HasField("offset")
    return _Opened(head, _cut(part.chunks(), wanted.offset, wanted.limit if limited else None, is_exact=False))


def _mime_type(headers: Mapping[str, str], result: TaskResult) -> str:
    declared = _declared(headers)
    is_media = declared in FILE_EXTENSIONS and declared.startswith(("video/", "image/"))
    return declared if is_media else result.mime_type


def check_type(headers: Mapping[str, str]) -> None:
    """Raise UmgError(UPSTREAM_FAILED) if a response is declared as a web page or an error instead of a file."""
    if (declared := _declared(headers)) in NO_FILES:
        raise _broken(f"its server sent {declared} in place of a file")


def _declared(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


async def _cut(
    chunks: AsyncGenerator[bytes, None], skipped: int, length: int | None, *, is_exact: bool = True
) -> AsyncGenerator[bytes, None]:
    """Yield `length` bytes of a stream (None: all) after its first `skipped` bytes."""
    left = length
    async with aclosing(chunks):
        async for chunk in chunks:
            if skipped:
                chunk, skipped = chunk[skipped:], max(0, skipped - len(chunk))  # noqa: PLW2901  the rest of it
            if left is not None:
                chunk = chunk[:left]  # noqa: PLW2901
                left -= len(chunk)
            if chunk:
                yield chunk
            if left == 0:
                return
    if left and is_exact:
        message = "the provider's storage sent fewer bytes than it declared; try again"
        raise UmgError(pb.ERROR_REASON_UPSTREAM_CUT, message).with_failure(Failure.AMBIGUOUS)


async def _one(data: bytes) -> AsyncGenerator[bytes, None]:
    yield data


def _not_found(message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message)


def _broken(why: str) -> UmgError:
    message = f"the provider's result could not be fetched: {why}"
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.AMBIGUOUS)
