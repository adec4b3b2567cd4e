"""Tasks that a provider does not report as it should, counted until they are given up."""

from collections import OrderedDict

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_protocol import ProviderRequest, StatusOrMore
from umg_grpc.wire.video.provider_task import ProviderStatus, ProviderTask
from umg_grpc.wire.video.task_errors import TASK_EXPIRED, TASK_FAILED, task_error

MAX_MISSES = 3
"""Consecutive polls after which a task without a usable status has failed."""
MAX_TASKS = 10_000
"""Maximum number of tasks that are counted, the least recently polled first out."""


class Misses:
    """Counter of the consecutive polls in which a provider did not have a task, or reported its success without a
    usable file. Both may be temporary, shortly after the submission or the end. The counts are lost at a restart, which
    only prolongs the wait.
    """

    def __init__(self) -> None:
        self._counts = OrderedDict[tuple[str, str], int]()

    def judge(self, task: ProviderTask, status: StatusOrMore | None) -> ProviderStatus | UmgError:
        """Return the status of a task. `status`: as the provider reports it; None if it does not report the task."""
        match status:
            case UmgError() if status.reason != pb.ERROR_REASON_OBJECT_NOT_FOUND:
                return status
            case None | UmgError() | ProviderRequest():
                if self._count(task) < MAX_MISSES:
                    message = "the provider does not have the task; it is polled again"
                    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.TRANSIENT)
                message = "the provider does not have the task any more; submit it again"
                ended = ProviderStatus(state=pb.VIDEO_TASK_STATE_FAILED, error=task_error(TASK_EXPIRED, message))
            case ProviderStatus(state=pb.VIDEO_TASK_STATE_SUCCEEDED, results=results) if not results:
                if self._count(task) < MAX_MISSES:
                    return ProviderStatus(state=pb.VIDEO_TASK_STATE_RUNNING)
                message = "the provider reports success, but has no video; submit it again"
                ended = ProviderStatus(state=pb.VIDEO_TASK_STATE_FAILED, error=task_error(TASK_FAILED, message))
            case ProviderStatus():
                ended = status
        self._counts.pop((task.key_id, task.id), None)
        return ended

    def _count(self, task: ProviderTask) -> int:
        key = (task.key_id, task.id)
        count = self._counts.pop(key, 0) + 1
        self._counts[key] = count
        if len(self._counts) > MAX_TASKS:
            self._counts.popitem(last=False)
        return count
