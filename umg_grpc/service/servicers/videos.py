"""Servicer of video tasks: submission, look-up, cancellation, download, and the stream of their changes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import msgspec

from umg_grpc.access.caller import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.base.inprocess_channel import Context
from umg_grpc.routing import CREATE_VIDEO, REMIX_VIDEO, PublicModel
from umg_grpc.service.operations.video.video_submission import NewTask, Submissions
from umg_grpc.service.pipeline.call import Call, current
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.pipeline.model_access import find_model
from umg_grpc.service.pipeline.model_access import not_found as model_not_found
from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.service.unwritten_rows import unwritten
from umg_grpc.service.video_tasks.background_work import Tasks
from umg_grpc.service.video_tasks.database_errors import reports_outages
from umg_grpc.service.video_tasks.poll_hints import poll_hints
from umg_grpc.service.video_tasks.poll_outcomes import failure
from umg_grpc.service.video_tasks.poller import provider_task_of
from umg_grpc.service.video_tasks.result_download import TaskContent
from umg_grpc.service.video_tasks.task_requests import (
    already_exists,
    body_hash,
    check_urls,
    decode_data_urls,
    new_row,
    not_found,
)
from umg_grpc.store.blob_store import BlobStore
from umg_grpc.store.tables import MediaTask
from umg_grpc.store.video_task_results import results_of
from umg_grpc.store.video_task_table import CANCELLED, QUEUED, SUCCEEDED, TERMINAL, TaskFilter
from umg_grpc.upstream.caller_url_fetch import Fetcher
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.json import invalid
from umg_grpc.wire.video import video_request_checks

RETRY_COUNT = "x-stainless-retry-count"
"""Header of SDKs that repeat failed requests by themselves: the number of the repetition, 0 for the first request."""
RETRY_SECONDS = 120.0
"""Seconds within which an equal request that an SDK repeats is taken for the same submission."""
DEFAULT_PAGE = 20
WATCH_SECONDS = 1.0
"""Seconds between two reads of a watched task from the database, which other processes may have changed."""
CANCEL_SECONDS = 30.0
ANY_KEY = "*"


class VideoServicer(rpc.VideoServiceServicer):
    """Servicer of `umg.v1.VideoService`: tasks that make videos, and their results."""

    def __init__(
        self, channels: Channels, tasks: Tasks, submissions: Submissions, fetcher: Fetcher, blobs: BlobStore | None
    ) -> None:
        """Create the servicer. `blobs` is None if the operator stores no files."""
        self._channels = channels
        self._tasks = tasks
        self._submissions = submissions
        self._rows = tasks.context.rows
        self._fetcher = fetcher
        self._blobs = blobs
        self._content = TaskContent(channels, fetcher, blobs, tasks.context.now, tasks.context.metrics.read)

    # --- submission

    @reports_outages
    async def CreateVideoTask(self, request: pb.CreateVideoTaskRequest, context: Context) -> pb.CreateVideoTaskResponse:
        """Submit a video task exactly once. Return the task: accepted by a provider, or queued while it is unknown
        whether a provider has accepted it.
        """
        check(request)
        call = current()
        request = self._checked(call, request)
        check_urls(request, self._fetcher.check)
        model = self._model(call, request.model)
        self._channels.router.reachable(model.id, CREATE_VIDEO, call.caller.channels)
        row = await self._submitted(call, request, model)
        return pb.CreateVideoTaskResponse(task=self._shown(call, row))

    @reports_outages
    async def RemixVideoTask(self, request: pb.RemixVideoTaskRequest, context: Context) -> pb.RemixVideoTaskResponse:
        """Submit a task that changes the video of a finished task, to the channel and with the provider's key that made
        it.
        """
        check(request)
        call = current()
        source = await self._own(call.caller, request.task_id)
        if request.HasField("model") and request.model != source.model:
            raise invalid("model", f"a remix has the model of its source, `{source.model}`; send that or none")
        if source.state != SUCCEEDED:
            raise _wrong_state(source, "only a task that has succeeded can be changed")
        model = self._model(call, source.model)
        self._channels.router.reachable(model.id, REMIX_VIDEO, call.caller.channels)
        row = await self._submitted(call, _remix_request(source, request), model, source)
        return pb.RemixVideoTaskResponse(task=self._shown(call, row))

    def _checked(self, call: Call, request: pb.CreateVideoTaskRequest) -> pb.CreateVideoTaskRequest:
        """Return the request completed by the defaults of its model. Raise UmgError if it breaks a rule of the model's
        family or of the HTTP API by which it came.
        """
        family = upstream_model = ""
        with suppress(UmgError):
            found = self._channels.router.resolve(request.model).model
            target = self._channels.router.targets(found.id)[0]
            family, upstream_model = found.family, target.model
        checked = video_request_checks.check(request, family, upstream_model)
        decode_data_urls(checked)
        return checked

    def _model(self, call: Call, name: str) -> PublicModel:
        resolved = find_model(self._channels.router, call.caller, name)
        if resolved.suffix is not None:
            raise model_not_found(call.caller, name, self._channels.router)
        return resolved.model

    async def _repeated(
        self, call: Call, request: pb.CreateVideoTaskRequest, source_task_id: str | None
    ) -> MediaTask | None:
        """Return the existing task if this submission repeats it: by its idempotency key or external id, or as an
        automatic retry of an SDK that sends no key; None for a new submission. `source_task_id`: task that a remix
        changes, else None. Raise UmgError(ALREADY_EXISTS) for a key or external id that was used with another request.
        """
        owner, now = call.caller.key_id, self._tasks.context.now()
        fingerprint = body_hash(request, source_task_id)
        retries = call.arrival.metadata.get(RETRY_COUNT, "")
        if not request.HasField("idempotency_key") and retries.isdecimal() and int(retries):
            return await self._rows.find_repeated(owner, fingerprint, now - int(RETRY_SECONDS * 1e6))
        wanted = MediaTask(
            owner=owner,
            body_hash=fingerprint,
            idempotency_key=request.idempotency_key if request.HasField("idempotency_key") else None,
            external_task_id=request.external_task_id if request.HasField("external_task_id") else None,
        )
        if wanted.idempotency_key is None and wanted.external_task_id is None:
            return None
        existing = await self._rows.find_conflict(wanted)
        return _same(wanted, existing) if existing is not None else None

    async def _submitted(
        self, call: Call, request: pb.CreateVideoTaskRequest, model: PublicModel, source: MediaTask | None = None
    ) -> MediaTask:
        """Return the task for a checked request: the existing task that it repeats, else a new one, which is submitted.
        `source`: for a remix, the task that it changes, at whose channel it is submitted; else None.
        """
        source_id, kind = (None, request.kind) if source is None else (source.task_id, pb.VIDEO_TASK_KIND_REMIX)
        if (known := await self._repeated(call, request, source_id)) is not None:
            return known
        tasks, context = self._submissions, self._tasks.context
        targets = tasks.targets(call, model, CREATE_VIDEO if source is None else REMIX_VIDEO)
        if source is not None:
            targets = [target for target in targets if target.channel.name == source.channel][:1]
            if not targets:
                message = "the channel that made this task is not available any more; submit a new task"
                raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message)
        await tasks.admit(call, model, request.parameters, targets)
        row = new_row(call, request, model, context.process, context.now(), kind=kind, source_task_id=source_id)
        made_by = None if source is None else provider_task_of(source)
        new = NewTask(
            call=call, row=row, request=request, model=model, targets=targets, source=made_by, strict=call.strict
        )
        submitted = await tasks.submit(new)
        if submitted.task_id == row.task_id:
            return submitted
        return _same(row, submitted)  # another call with the same id was faster

    # --- look-up

    @reports_outages
    async def GetVideoTask(self, request: pb.GetVideoTaskRequest, context: Context) -> pb.GetVideoTaskResponse:
        """Return a task of the caller from the database, without a call to its provider."""
        check(request)
        call = current()
        if request.HasField("external_task_id"):
            row, named = await self._rows.find_external(call.caller.key_id, request.external_task_id), ""
            named = request.external_task_id
            if row is None and self._rows.may_lack_rows:
                raise unwritten(named)
        else:
            row, named = await self._own(call.caller, request.task_id), request.task_id
        if row is None or not _matches(row, request):
            raise not_found(named)
        return pb.GetVideoTaskResponse(task=self._shown(call, row))

    @reports_outages
    async def ListVideoTasks(self, request: pb.ListVideoTasksRequest, context: Context) -> pb.ListVideoTasksResponse:
        """Return a page of the caller's tasks; an administrator may request the tasks of another key."""
        check(request)
        caller = current().caller
        owner: str | None = caller.key_id
        if request.HasField("key_id") and request.key_id != caller.key_id:
            if not caller.administrator:
                message = "this API key may list its own tasks only; leave out `key_id`"
                raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation="admin")
            owner = None if request.key_id == ANY_KEY else request.key_id
        after = None
        if request.page_token:
            after = await self._rows.get(request.page_token)
            if after is None or (owner is not None and after.owner != owner):
                raise invalid("page_token", "this task is not in the list; begin with the first page")
        selection = TaskFilter(
            owner=owner,
            entry=request.entry,
            states=[int(state) for state in request.states],
            model=request.model if request.HasField("model") else None,
            task_ids=list(request.task_ids),
            oldest_first=request.order == pb.VIDEO_TASK_ORDER_OLDEST_FIRST,
        )
        size = request.page_size if request.HasField("page_size") else DEFAULT_PAGE
        rows, total = await self._rows.page(selection, after, size + 1)
        page = rows[:size]
        return pb.ListVideoTasksResponse(
            tasks=[self._tasks.context.view.task(row) for row in page],
            next_page_token=page[-1].task_id if len(rows) > size else "",
            total_count=total,
        )

    async def WatchVideoTask(
        self, request: pb.WatchVideoTaskRequest, context: Context
    ) -> AsyncGenerator[pb.WatchVideoTaskResponse, None]:
        """Yield the task at once, and again after each change of its state or progress, until the task has ended."""
        check(request)
        call, shown = current(), None
        with self._tasks.context.watching(request.task_id) as changed:
            while True:
                changed.clear()
                row = await self._own(call.caller, request.task_id)
                task = self._tasks.context.view.task(row)
                if (task.state, task.progress_percent) != shown:
                    shown = task.state, task.progress_percent
                    yield pb.WatchVideoTaskResponse(task=task)
                if row.state in TERMINAL:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), WATCH_SECONDS)

    async def DownloadVideo(
        self, request: pb.DownloadVideoRequest, context: Context
    ) -> AsyncGenerator[pb.DownloadVideoResponse, None]:
        """Yield the metadata of a result of a task, then the requested range of its bytes."""
        check(request)
        row = await self._own(current().caller, request.task_id)
        async with aclosing(self._content.open(row, request)) as messages:
            async for message in messages:
                yield message

    # --- changes

    @reports_outages
    async def DeleteVideoTask(self, request: pb.DeleteVideoTaskRequest, context: Context) -> pb.DeleteVideoTaskResponse:
        """Delete a task that has ended, with its files, or cancel a task that its provider has not started."""
        check(request)
        call = current()
        row = await self._own(call.caller, request.task_id)
        if request.entry and row.entry != request.entry:
            raise not_found(request.task_id)
        if row.state not in TERMINAL:
            return pb.DeleteVideoTaskResponse(task=self._tasks.context.view.task(await self._cancel(row)))
        if (deleted := await self._rows.delete(row.task_id)) is None:
            raise not_found(request.task_id)
        if self._blobs is not None:
            for result in results_of(deleted):
                if result.blob_id:
                    await self._blobs.delete(result.blob_id)
        self._tasks.context.changed(deleted)
        return pb.DeleteVideoTaskResponse(task=self._tasks.context.view.task(deleted))

    async def _cancel(self, row: MediaTask) -> MediaTask:
        """Cancel a task at its provider. Return the changed task. Raise UmgError(WRONG_STATE) if it cannot be
        cancelled.
        """
        upstream = self._channels.videos.get(row.channel)
        if row.state != QUEUED or upstream is None:
            raise _wrong_state(row, "it can be deleted when it has ended")
        if not await upstream.cancel(provider_task_of(row), CANCEL_SECONDS):
            raise _wrong_state(row, "its provider cannot cancel it now; it can be deleted when it has ended")
        now, tasks = self._tasks.context.now(), self._tasks.context
        cancelled = await self._rows.advance(
            row.task_id,
            CANCELLED,
            error=failure("task_cancelled", "the caller cancelled the task").SerializeToString(),
            update_micros=now,
            complete_micros=now,
            expire_micros=now + self._tasks.retention_micros,
            next_poll_micros=None,
        )
        if cancelled is None:  # it ended meanwhile
            return await self._rows.get(row.task_id) or row
        tasks.metrics.ended(cancelled.channel, "task_cancelled")
        tasks.changed(cancelled)
        return cancelled

    @reports_outages
    async def ReceiveVideoCallback(
        self, request: pb.ReceiveVideoCallbackRequest, context: Context
    ) -> pb.ReceiveVideoCallbackResponse:
        """Schedule an early poll of a task, about which its provider has sent a notification. The content of the
        notification is not trusted, and changes nothing.
        """
        check(request)
        tasks = self._tasks.context
        is_signed = tasks.signatures.is_valid(request.task_id, request.signature)
        row = await self._rows.get(request.task_id) if is_signed else None
        if row is None and is_signed and self._rows.may_lack_rows:
            raise unwritten(request.task_id)
        if row is None:
            tasks.metrics.called_back("in", "refused")
            raise not_found(request.task_id)
        _check_callback(request.body, row)
        tasks.metrics.called_back("in", "received")
        if row.state not in TERMINAL:
            await self._tasks.context.polls.make_due(row.task_id)
            tasks.wake_poller()
        return pb.ReceiveVideoCallbackResponse()

    @reports_outages
    async def _own(self, caller: Caller, task_id: str) -> MediaTask:
        """Return a task of this caller. Raise UmgError: OBJECT_NOT_FOUND, also for a task of another caller;
        UNAVAILABLE for one that may not be written yet.
        """
        row = await self._rows.get(task_id)
        if row is None and self._rows.may_lack_rows:
            raise unwritten(task_id)
        if row is None or row.owner != caller.key_id:
            raise not_found(task_id)
        return row

    def _shown(self, call: Call, row: MediaTask) -> pb.VideoTask:
        """Return the task as a message, and set the headers of the call that state when to read an unfinished task
        again.
        """
        call.facts.model, call.facts.channel = call.facts.model or row.public_model, row.channel
        if row.state not in TERMINAL:
            call.headers.update(poll_hints(row, self._tasks.context.now()))
        return self._tasks.context.view.task(row)


def _same(wanted: MediaTask, existing: MediaTask) -> MediaTask:
    """Return `existing` if `wanted` repeats it with the same request. Raise UmgError(ALREADY_EXISTS) if only the
    idempotency key or the external id is the same.
    """
    if wanted.idempotency_key is not None and wanted.idempotency_key == existing.idempotency_key:
        if wanted.body_hash == existing.body_hash:
            return existing
        raise already_exists("the idempotency key was used for a task with other content; send another key")
    named = wanted.external_task_id
    raise already_exists(f"external_task_id: you have a task with the id `{named}`; send another id")


def _matches(row: MediaTask, request: pb.GetVideoTaskRequest) -> bool:
    """Return whether a task was submitted by the HTTP API, and has the kind and the model, that the request states; one
    that it does not state matches.
    """
    if request.entry and row.entry != request.entry:
        return False
    if request.kind and row.kind != request.kind:
        return False
    return not request.HasField("model") or row.model == request.model


def _remix_request(source: MediaTask, request: pb.RemixVideoTaskRequest) -> pb.CreateVideoTaskRequest:
    """Return the request of a remix: the parameters of the task `source` with the prompt of `request`, and without
    media.
    """
    remix = pb.CreateVideoTaskRequest(
        model=source.model,
        entry=pb.VIDEO_ENTRY_VIDEO_OBJECT,
        parameters=pb.CreateVideoTaskRequest.FromString(source.request).parameters,
        idempotency_key=request.idempotency_key if request.HasField("idempotency_key") else None,
    )
    remix.parameters.ClearField("media")
    remix.parameters.prompt, remix.parameters.extra_json = request.prompt, request.extra_json
    return remix


def _check_callback(body: bytes, row: MediaTask) -> None:
    """Check the body of a provider's notification about the task `row`. Raise UmgError if it is no JSON object, or if
    it names another task.
    """
    try:
        found = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        ids = [msgspec.json.decode(found[name], type=str) for name in ("id", "task_id") if name in found]
    except msgspec.DecodeError:
        raise invalid(
            "body", "expected a JSON object; its `id` or `task_id` is the provider's id of the task"
        ) from None
    if ids and row.upstream_task_id and row.upstream_task_id not in ids:
        raise invalid("body", "the notification names another task")


def _wrong_state(row: MediaTask, advice: str) -> UmgError:
    state = pb.VideoTaskState.Name(pb.VideoTaskState.ValueType(row.state)).removeprefix("VIDEO_TASK_STATE_").lower()
    return UmgError(pb.ERROR_REASON_WRONG_STATE, f"the task is {state}: {advice}", state=state)
