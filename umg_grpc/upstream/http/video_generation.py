"""Videos by a provider over HTTP: combines the provider's codec, the HTTP client, and the downloader for URLs."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from msgspec import structs

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.http_exchange_progress import ATTEMPT_PROGRESS
from umg_grpc.upstream.caller_url_fetch import DIRECT_ROUTE, Fetcher, ProviderRoute
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.proxy_response_detection import is_of_proxy, proxy_refusal
from umg_grpc.upstream.http.response_decoding import guarded
from umg_grpc.upstream.http.video_download import open_content
from umg_grpc.upstream.http.video_url_inlining import with_inline_media
from umg_grpc.upstream.http1.response import NO_HEADERS
from umg_grpc.upstream.upstream_interfaces import ContentPart
from umg_grpc.v1 import pb
from umg_grpc.wire.core.request_body_decoding import encode_body
from umg_grpc.wire.core.sse import BYTE_ORDER_MARK
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.provider_errors import unreadable
from umg_grpc.wire.errors.secret_masking import body_without_secrets
from umg_grpc.wire.text_format_interface import BIG_BYTES, UpstreamRequest
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest, Statuses, VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.response_decoding import unknown_task
from umg_grpc.wire.video.submission_encoding import encode_submission

Decoded = TypeVar("Decoded")
Decode = Callable[[int, Mapping[str, str], bytes], Decoded]

NO_LIST = frozenset({"400", "404", "405", "501"})
"""HTTP statuses by which a relay refuses a query of several tasks that its maker has."""
NOT_CANCELLED = frozenset({400, 404, 405, 409, 422})
"""HTTP statuses by which a provider refuses to cancel a task."""


class HttpVideo:
    """Video tasks at a channel's provider over HTTP. Raises UmgError if the connection or the provider fails."""

    def __init__(
        self,
        channel: HttpChannel,
        protocol: VideoProtocol,
        fetcher: Fetcher,
        route: ProviderRoute = DIRECT_ROUTE,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Create the video tasks of a channel. `fetcher`: downloads callers' media for providers that accept only
        bytes, and results on other hosts by `route`; `now`: returns Unix seconds.
        """
        self._channel = channel
        self._protocol = protocol
        self._fetcher = fetcher
        self._route = route
        self._now = now
        self._max_batch = protocol.max_batch

    @property
    def max_batch(self) -> int:
        return self._max_batch

    @property
    def first_poll_seconds(self) -> float:
        return self._protocol.first_poll_seconds

    @property
    def poll_seconds(self) -> float:
        return self._protocol.poll_seconds

    @property
    def deadline_seconds(self) -> float:
        return self._protocol.deadline_seconds

    async def submit(self, submission: Submission, seconds: float) -> tuple[ProviderTask, Report]:
        protocol = self._protocol
        end = asyncio.get_running_loop().time() + seconds
        if not protocol.takes_media_urls:
            submission = await with_inline_media(submission, self._fetcher, seconds)
        request = await _encoded(partial(encode_submission, protocol), submission)
        if submission.strict:
            request.report.refuse()
        key_id = submission.source.key_id if submission.source is not None else ""
        call = _Call(self._channel, protocol, request, key_id, is_submission=True)
        task = await call.send(
            end - asyncio.get_running_loop().time(),
            lambda status, headers, body: protocol.decode_created(status, headers, body, submission),
        )
        return replace(task, key_id=call.key_id), request.report

    async def find(self, submission: Submission, seconds: float) -> ProviderTask | None:
        encode, decode = self._protocol.encode_find, self._protocol.decode_found
        if encode is None or decode is None:
            return None
        end = asyncio.get_running_loop().time() + seconds
        for key_id in self._channel.key_ids:
            call = _Call(self._channel, self._protocol, encode(submission), key_id)
            task = await call.send(
                end - asyncio.get_running_loop().time(),
                lambda status, headers, body: decode(status, headers, body, submission),
            )
            if task is not None:
                return replace(task, key_id=call.key_id)
        return None

    async def poll(self, tasks: Sequence[ProviderTask], seconds: float) -> Mapping[str, ProviderStatus | UmgError]:
        end = asyncio.get_running_loop().time() + seconds
        found = dict[str, ProviderStatus | UmgError]()
        batches = self._batches(tasks)
        failure: UmgError | None = None
        for batch in batches:
            if failure is None:
                try:
                    found |= await self._poll_batch(batch, end)
                    continue
                except UmgError as error:
                    if len(batches) == 1:
                        raise
                    failure = error
            found |= {task.id: failure for task in batch}
        return found

    def _batches(self, tasks: Sequence[ProviderTask]) -> list[list[ProviderTask]]:
        batch_of = self._protocol.batch_of or (lambda _: "")
        batches = dict[str, list[ProviderTask]]()
        for task in tasks:
            batches.setdefault(batch_of(task), []).append(task)
        return list(batches.values())

    async def _poll_batch(self, tasks: Sequence[ProviderTask], end: float) -> Mapping[str, ProviderStatus | UmgError]:
        try:
            statuses = await self._query(self._protocol.encode_query(tasks), tasks, end)
        except UmgError as error:
            if len(tasks) == 1 or error.metadata.get("upstream_status") not in NO_LIST:
                raise
            return await self._poll_each(tasks, end)
        found = dict[str, ProviderStatus | UmgError]()
        for task in tasks:
            status = statuses.get(task.id, unknown_task())
            if isinstance(status, ProviderRequest):
                status = (await self._query(status, [task], end)).get(task.id, unknown_task())
            found[task.id] = unreadable() if isinstance(status, ProviderRequest) else self._complete(status)
        missing = [task for task in tasks if task.id not in statuses]
        if missing and len(tasks) > 1:  # a relay's list may ignore the ids of the query
            found |= await self._poll_each(missing, end, is_relay=len(missing) == len(tasks))
        return found

    async def _poll_each(
        self, tasks: Sequence[ProviderTask], end: float, *, is_relay: bool = True
    ) -> Mapping[str, ProviderStatus | UmgError]:
        """Query tasks one by one whose status a query for several tasks did not return."""
        found = dict[str, ProviderStatus | UmgError]()
        for task in tasks:
            try:
                found |= await self._poll_batch([task], end)
            except UmgError as error:
                found[task.id] = error
        if is_relay and any(isinstance(status, ProviderStatus) for status in found.values()):
            self._max_batch = 1
        return found

    async def _query(self, request: ProviderRequest, tasks: Sequence[ProviderTask], end: float) -> Statuses:
        call = _Call(self._channel, self._protocol, request, tasks[0].key_id)
        return await call.send(
            end - asyncio.get_running_loop().time(),
            lambda status, headers, body: self._protocol.decode_status(status, headers, body, tasks),
        )

    def _complete(self, status: ProviderStatus | UmgError) -> ProviderStatus | UmgError:
        """Return the status of a task, with an expiry of its result URLs if the provider states none; or its error."""
        seconds = self._protocol.result_seconds
        if isinstance(status, UmgError) or seconds is None or not status.results:
            return status
        until = datetime.fromtimestamp(self._now() + seconds, UTC)
        results = [
            replace(result, url_expire_time=until) if not result.data and result.url_expire_time is None else result
            for result in status.results
        ]
        return replace(status, results=results)

    async def cancel(self, task: ProviderTask, seconds: float) -> bool:
        protocol = self._protocol
        if protocol.encode_cancel is None:
            return False
        call = _Call(self._channel, protocol, protocol.encode_cancel(task), task.key_id)
        return await call.send(seconds, protocol.decode_cancelled or self._decode_cancelled)

    def _decode_cancelled(self, status: int, headers: Mapping[str, str], body: bytes) -> bool:
        if status in NOT_CANCELLED:
            return False
        if status >= 400:
            raise self._protocol.decode_error(status, headers, body)
        return True

    def content(
        self, task: ProviderTask, result: ProviderResult, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ContentPart]:
        return open_content(self._channel, self._protocol, self._fetcher, self._route, task, result, headers)


class _Call:
    """One HTTP request about video tasks. A submission is sent at most once."""

    def __init__(
        self,
        channel: HttpChannel,
        protocol: VideoProtocol,
        request: ProviderRequest,
        key_id: str,
        *,
        is_submission: bool = False,
    ) -> None:
        self.key_id = key_id
        self._channel = channel
        self._protocol = protocol
        self._request = request
        self._is_submission = is_submission
        self._is_sent = False

    async def send(self, seconds: float, decode: Decode[Decoded]) -> Decoded:
        """Send the request, and return the result of `decode` for a response of any status. Raise UmgError. The error
        of a submission has the `failure` AMBIGUOUS if the submission may have reached the provider.
        """
        try:
            return await self._send(seconds, decode)
        except UmgError as error:
            if self._is_submission and self._is_sent and error.failure in (None, Failure.TOO_LARGE):
                error.with_failure(Failure.AMBIGUOUS)  # the caller's own deadline, or a response over the limit
            raise

    async def _send(self, seconds: float, decode: Decode[Decoded]) -> Decoded:
        channel, request = self._channel, self._request
        encoded = UpstreamRequest(request.path, request.body, request.headers, request.report, request.method)
        endpoint, outgoing = await channel.outgoing(
            *(encoded, self._protocol.key_header, seconds),
            repeatable=not self._is_submission,
            max_bytes=self._protocol.max_response_bytes,
            key_id=self.key_id,
        )
        self.key_id = endpoint.key_id
        record = outgoing.on_send

        def on_send() -> None:
            self._is_sent = True
            if record is not None:
                record()

        status = 0
        headers: Mapping[str, str] = NO_HEADERS
        try:
            status, headers, body = await channel.client.fetch(
                structs.replace(outgoing, on_send=on_send, reuses=not self._is_submission)
            )
            body = body_without_secrets(body)  # a failed task has the provider's message
            response = await self._decoded(status, headers, body, decode, is_forwarded=outgoing.is_forwarded)
        except UmgError as error:
            channel.record_failure(error, endpoint, request.path, status, headers)
            raise
        if (progress := ATTEMPT_PROGRESS.get()) is not None:
            progress.refuses_changes = False  # a task that the provider has accepted is never refused
        channel.record_success(endpoint, headers, request.report)
        return response

    async def _decoded(
        self, status: int, headers: Mapping[str, str], body: bytes, decode: Decode[Decoded], *, is_forwarded: bool
    ) -> Decoded:
        """Return the result of `decode` for a response, in a thread if it is large."""
        by_name = {name.lower(): value for name, value in headers.items()}
        if status >= 400 and is_forwarded and is_of_proxy(by_name):
            raise proxy_refusal(status)
        if 300 <= status < 400:
            message = "the provider answered with a redirect, which is not followed; its base_url may be wrong"
            error = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, upstream_status=str(status))
            raise error.with_failure(Failure.DOWN)
        body = body.removeprefix(BYTE_ORDER_MARK)
        if len(body) < BIG_BYTES:
            return guarded(decode, status, by_name, body)
        return await asyncio.to_thread(guarded, decode, status, by_name, body)


async def _encoded(encode: Callable[[Submission], ProviderRequest], submission: Submission) -> ProviderRequest:
    """Return the result of `encode` for a submission. It runs in a thread, since media may be large."""
    return await asyncio.to_thread(encode_body, encode, submission)
