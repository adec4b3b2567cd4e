"""Attempts of one submission of a video task: the request to each channel, and the rule for another attempt."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.routing import Target
from umg_grpc.service.pipeline.channel_attempt import Attempt, UnmendedRequests
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video.provider_task_types import ProviderTask, Submission

SUBMIT_SECONDS = 45.0
UNKNOWN_OUTCOME = frozenset({Failure.AMBIGUOUS, Failure.TOO_LARGE})
"""Failures after which the provider may have accepted the task."""

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class VideoCall:
    """Submission of a task to one channel. It is encoded when it is sent, so its report is empty until then."""

    def __init__(self, channels: Channels, channel: str, submission: Submission) -> None:
        self._channels = channels
        self._channel = channel
        self._submission = submission
        self.report = Report()

    async def send(self) -> ProviderTask:
        """Submit the task. Raise UmgError, whose `failure` is AMBIGUOUS if the provider may have accepted the task."""
        upstream, submission = self._channels.videos[self._channel], self._submission
        try:
            async with asyncio.timeout(SUBMIT_SECONDS):
                accepted, self.report = await upstream.submit(submission, SUBMIT_SECONDS)
                return accepted
        except UmgError:
            raise
        except Exception as error:  # the provider may have accepted it before this failure
            logger.error("the submission of a task failed", task=submission.task_id, exc_info=error)
            message = "the provider's response to the submission could not be read"
            raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.AMBIGUOUS) from None


@dataclass(frozen=True)
class VideoEncoder(UnmendedRequests):
    """Encoder of one submission for each channel at which it is tried."""

    channels: Channels
    submission: Callable[[Target], Submission]

    async def encode(self, target: Target) -> Attempt[VideoCall]:
        channel = target.channel.name
        return Attempt(channel, target, VideoCall(self.channels, channel, self.submission(target)))


class VideoLoop(FailoverLoop[Attempt[VideoCall]]):
    """Attempts of one submission. No further attempt follows one in which the provider may have accepted the task."""

    def should_retry(self, attempt: Attempt[VideoCall], error: UmgError) -> bool:
        if error.failure in UNKNOWN_OUTCOME:
            return False
        if error.failure is None:  # this provider does not support the request, and another one may
            self._plan.refuse(attempt.target, error)
            return self.has_others
        return super().should_retry(attempt, error)
