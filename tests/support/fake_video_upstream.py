"""Simulated video provider in the process of the test, which counts the submissions of each task."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.upstream_interfaces import ContentPart
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission

PROTOCOL = "vidA"
URL = "https://results.example/video.mp4"
VIDEO = ProviderResult(url=URL, duration_seconds=5.0)
QUEUED = ProviderStatus(state=pb.VIDEO_TASK_STATE_QUEUED)
RUNNING = ProviderStatus(state=pb.VIDEO_TASK_STATE_RUNNING)
SUCCEEDED = ProviderStatus(state=pb.VIDEO_TASK_STATE_SUCCEEDED, results=[VIDEO])
FAILED = ProviderStatus(
    state=pb.VIDEO_TASK_STATE_FAILED,
    error=pb.VideoTaskError(code="content_policy_violation", status_code=400, message="the prompt is not allowed"),
)


def config(*models: str, channels: Sequence[str] = ("videos",), price: int = 0) -> str:
    """Return a config whose channels make videos with the models, at a price of credits for a video."""
    lines = ["channels:"]
    for name in channels:
        lines.append(f"  - {{name: {name}, protocols: [{PROTOCOL}], base_url: 'https://provider.example', api_key: k,")
        lines.append(f"     models: [{', '.join(models)}]}}")
    if price:
        lines.append("models:")
        lines += [f"  {model}: {{price: {{video: {price}}}}}" for model in models]
    return "\n".join(lines) + "\n"


@dataclass
class FakeVideos:
    """Upstream whose answers a test sets. Each task gets the statuses of `script` in turn; the last one stays."""

    script: Sequence[ProviderStatus | UmgError] = (QUEUED, RUNNING, SUCCEEDED)
    refusals: list[UmgError | BaseException] = field(default_factory=list)
    """Errors of the next submissions."""
    accepts_before_refusal: bool = False
    """Whether a submission that fails was accepted nevertheless, and can be found."""
    max_batch: int = 10
    first_poll_seconds: float = 0.05
    poll_seconds: float = 0.05
    deadline_seconds: float = 60.0
    is_cancellable: bool = True
    submitted: Counter[str] = field(default_factory=Counter)
    """Number of submissions by the gateway's id."""
    requests: list[Submission] = field(default_factory=list)
    polled: Counter[str] = field(default_factory=Counter)
    looked_up: Counter[str] = field(default_factory=Counter)
    """Number of look-ups of each submission by the gateway's id."""
    accepted: set[str] = field(default_factory=set)
    cancelled: list[str] = field(default_factory=list)
    hold: asyncio.Event | None = None
    """Event that submissions wait for."""

    async def submit(self, submission: Submission, seconds: float) -> tuple[ProviderTask, Report]:
        self.submitted[submission.task_id] += 1
        self.requests.append(submission)
        if self.hold is not None:
            await self.hold.wait()
        if self.refusals:
            if self.accepts_before_refusal:
                self.accepted.add(submission.task_id)
            raise self.refusals.pop(0)
        self.accepted.add(submission.task_id)
        return self._task(submission), Report()

    async def find(self, submission: Submission, seconds: float) -> ProviderTask | None:
        self.looked_up[submission.task_id] += 1
        return self._task(submission) if submission.task_id in self.accepted else None

    async def poll(self, tasks: Sequence[ProviderTask], seconds: float) -> Mapping[str, ProviderStatus | UmgError]:
        assert len(tasks) <= self.max_batch
        answers: dict[str, ProviderStatus | UmgError] = {}
        for task in tasks:
            answers[task.id] = self.script[min(self.polled[task.id], len(self.script) - 1)]
            self.polled[task.id] += 1
        return answers

    async def cancel(self, task: ProviderTask, seconds: float) -> bool:
        self.cancelled.append(task.id)
        return self.is_cancellable

    @asynccontextmanager
    async def content(
        self, task: ProviderTask, result: ProviderResult, headers: Mapping[str, str]
    ) -> AsyncGenerator[ContentPart, None]:
        raise NotImplementedError
        yield

    def _task(self, submission: Submission) -> ProviderTask:
        return ProviderTask(id=f"up-{submission.task_id}", model=submission.model, key_id="key", facts="{}")
