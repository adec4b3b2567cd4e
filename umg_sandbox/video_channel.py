"""Simulated video models. Tasks are not stored: their state follows from parameters and time, so survives restarts."""

import time
from asyncio import get_running_loop, wait, wrap_future
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission
from umg_sandbox import simulated_faults
from umg_sandbox.video_task_parameters import VideoPlan, decode_plan, encode_plan, plan_of
from umg_sandbox.words_from_prompt import digest

QUEUE_SECONDS, RUN_SECONDS = 1.0, 3.0
FAULT_SHARE = 0.6
"""Fraction of a task's duration after which a task with a simulated fault fails or stops to progress."""
POLL_SECONDS = 1.0
WAIT_SECONDS = 1.0
"""Maximum seconds that a poll waits for a finished task's file; without it the task is reported as running."""
MAX_ENCODINGS = 8
"""Maximum number of files that are encoded or wait to be polled; tasks beyond it are reported as running."""
MAX_BATCH = 16
RECENT_FILES, RECENT_PIXELS = 16, 1920 * 1080 * 240
"""Number of kept files for tasks with equal parameters, and most pixels of all their frames: some 2 MB of files."""

_FAILED = pb.VideoTaskError(
    code="task_failed", status_code=500, message="a simulated failure, as [[fail]] in the prompt selects it"
)
_BLOCKED = pb.VideoTaskError(
    code="content_policy_violation",
    status_code=400,
    message="the prompt violates the simulated content policy, as its mark selects it; change the prompt",
)
FAULT_FAILURES: Mapping[str, pb.VideoTaskError] = {
    simulated_faults.FAIL_MARK: _FAILED,
    simulated_faults.CUT_MARK: _FAILED,
    simulated_faults.REFUSE_MARK: _BLOCKED,
    simulated_faults.BLOCK_MARK: _BLOCKED,
}
"""Fault mark in the prompt -> error of the task. `[[fail:429]]` rejects it, and with `[[slow]]` it never ends."""


@dataclass(frozen=True)
class _Content:
    """Result file that was drawn for one download, which implements `ContentPart`."""

    data: bytes
    mime_type: str
    status: int = 200

    @property
    def headers(self) -> Mapping[str, str]:
        return {"content-type": self.mime_type, "content-length": str(len(self.data))}

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self.data


class SandboxVideo:
    """Video tasks of simulated models. One video is encoded at a time, in a thread."""

    def __init__(self, *, total_seconds: float, now: Callable[[], float] = time.time) -> None:
        """Create the video tasks of a channel. `total_seconds`: time after which an unfinished task has failed."""
        self.max_batch = MAX_BATCH
        self.first_poll_seconds = self.poll_seconds = POLL_SECONDS
        self.deadline_seconds = total_seconds
        self._now = now
        self._executor = ThreadPoolExecutor(1, "sandbox-video")
        self._encodings: dict[str, Future[Sequence[ProviderResult]]] = {}

    async def submit(self, submission: Submission, seconds: float) -> tuple[ProviderTask, Report]:
        if simulated_faults.mark(submission.request.parameters.prompt) == simulated_faults.BUSY_MARK:
            raise simulated_faults.busy()
        # the loop's own threads, not the encoder's: a submission does not wait for videos
        plan = await get_running_loop().run_in_executor(None, plan_of, submission, self._now())
        return self._task(submission, plan), Report()

    async def find(self, submission: Submission, seconds: float) -> ProviderTask | None:
        try:
            task, _ = await self.submit(submission, seconds)
        except UmgError:
            return None
        return task

    def _task(self, submission: Submission, plan: VideoPlan) -> ProviderTask:
        task_id = f"simulated-{digest(submission.task_id).hex()}"
        return ProviderTask(id=task_id, model=submission.model, key_id="", facts=encode_plan(plan))

    async def poll(self, tasks: Sequence[ProviderTask], seconds: float) -> Mapping[str, ProviderStatus | UmgError]:
        return {task.id: await self._status(task, min(WAIT_SECONDS, seconds) / len(tasks)) for task in tasks}

    async def _status(self, task: ProviderTask, seconds: float) -> ProviderStatus:
        plan = decode_plan(task.facts)
        running = self._now() - plan.submit_time - QUEUE_SECONDS
        if running < 0:
            return ProviderStatus(state=pb.VIDEO_TASK_STATE_QUEUED, progress_percent=0)
        share = min(running / RUN_SECONDS, 1)
        if plan.fault and share >= FAULT_SHARE:
            if plan.fault in FAULT_FAILURES:
                return ProviderStatus(state=pb.VIDEO_TASK_STATE_FAILED, error=FAULT_FAILURES[plan.fault])
            if plan.fault == simulated_faults.SLOW_MARK:
                share = FAULT_SHARE
        if share >= 1 and (results := await self._results(task, plan, seconds)) is not None:
            usage = pb.VideoUsage(video_count=plan.count, output_seconds=-(-plan.frame_count // plan.frame_rate))
            usage.output_seconds *= plan.count
            return ProviderStatus(
                state=pb.VIDEO_TASK_STATE_SUCCEEDED, progress_percent=100, results=results, usage=usage
            )
        return ProviderStatus(state=pb.VIDEO_TASK_STATE_RUNNING, progress_percent=min(99, int(share * 100)))

    async def _results(self, task: ProviderTask, plan: VideoPlan, seconds: float) -> Sequence[ProviderResult] | None:
        """Return the result files of a finished task; None if they are not encoded within `seconds`."""
        if (encoding := self._encodings.get(task.id)) is None:
            if not self._has_room():
                return None
            encoding = self._encodings[task.id] = self._executor.submit(_encode_results, plan)
        await wait([wrap_future(encoding)], timeout=seconds)
        if not encoding.done():
            return None
        self._encodings.pop(task.id, None)
        return encoding.result()

    def _has_room(self) -> bool:
        if len(self._encodings) < MAX_ENCODINGS:
            return True
        done = next((name for name, encoding in self._encodings.items() if encoding.done()), None)
        return done is not None and self._encodings.pop(done) is not None

    async def cancel(self, task: ProviderTask, seconds: float) -> bool:
        return self._now() < decode_plan(task.facts).submit_time + QUEUE_SECONDS

    @asynccontextmanager
    async def content(
        self, task: ProviderTask, result: ProviderResult, headers: Mapping[str, str]
    ) -> AsyncGenerator[_Content, None]:
        plan, index = decode_plan(task.facts), int(result.needs_key.rpartition("/")[2])
        work = self._executor.submit(_encode, plan, result.variant, index)
        yield _Content(await wrap_future(work), result.mime_type)


def _encode_results(plan: VideoPlan) -> Sequence[ProviderResult]:
    """Encode the result files: videos, then last frames. Previews are drawn when they are downloaded."""
    variants = [pb.VIDEO_VARIANT_VIDEO]
    variants += [pb.VIDEO_VARIANT_LAST_FRAME] if plan.last_frame else []
    previews = (pb.VIDEO_VARIANT_THUMBNAIL, pb.VIDEO_VARIANT_SPRITESHEET) if plan.previews else ()
    encoded = [
        _result(plan, variant, data=_encode(plan, variant, index))
        for variant in variants
        for index in range(plan.count)
    ]
    drawn = [
        _result(plan, variant, needs_key=f"{pb.VideoVariant.Name(variant).lower()}/{index}")
        for variant in previews
        for index in range(plan.count)
    ]
    return [*encoded, *drawn]


def _result(
    plan: VideoPlan, variant: "pb.VideoVariant.ValueType", data: bytes = b"", needs_key: str = ""
) -> ProviderResult:
    from umg_sandbox.video_encoding import MIME_TYPES

    is_whole = variant in (pb.VIDEO_VARIANT_VIDEO, pb.VIDEO_VARIANT_LAST_FRAME)
    return ProviderResult(
        variant=variant,
        data=data,
        needs_key=needs_key,
        mime_type=MIME_TYPES[variant],
        duration_seconds=plan.seconds if variant == pb.VIDEO_VARIANT_VIDEO else None,
        width=plan.width if is_whole else None,
        height=plan.height if is_whole else None,
    )


def _encode(plan: VideoPlan, variant: "pb.VideoVariant.ValueType", index: int) -> bytes:
    encode = _encode_file if plan.width * plan.height * plan.frame_count <= RECENT_PIXELS else _encode_file.__wrapped__
    return encode(msgspec.structs.replace(plan, submit_time=0.0), variant, index)


@lru_cache(RECENT_FILES)
def _encode_file(plan: VideoPlan, variant: "pb.VideoVariant.ValueType", index: int) -> bytes:
    # imported at the first video: its libraries take 30 MB
    from umg_sandbox.video_encoding import encode_variant

    return encode_variant(plan, variant, index)
