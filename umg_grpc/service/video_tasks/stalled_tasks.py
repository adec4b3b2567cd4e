"""Stalls: conditions in which a video task makes no progress at its provider. A stall that lasts fails the task, so
that no caller waits for the deadline; a short one does not, as the provider may still make and charge the video.
"""

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.store.video_task_polls import Claim, Stall
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_task_types import ProviderStatus

LOST_TASK, REFUSED_QUERY, NO_VIDEO, UNKNOWN_STATE = "lost", "refused", "no_video", "state"
LOST_SECONDS = 60.0
"""Time for which a provider has to answer that it does not have the task: a relay may not know a new task yet."""
REFUSED_SECONDS = 600.0
"""Time for which a provider has to refuse the queries of a task: some relays state so that the task has failed."""
NO_VIDEO_SECONDS = 300.0
"""Time for which a task that succeeded is polled for its video: a relay may still copy the file to its own storage."""
UNKNOWN_STATE_SECONDS = 1800.0
"""Time for which a state that the gateway does not know counts as running while the progress does not change. It is
longer than almost all videos take; most protocols give a task up after this time too.
"""


def failed_poll(claim: Claim, response: ProviderStatus | UmgError | None, now: int) -> Stall | None:
    """Return a task's stall after a failed poll. A stall begins when the provider responds that it does not have the
    task, or refuses the query. After other failures, for example a rate limit, an earlier stall continues.
    """
    if not isinstance(response, UmgError):
        return claim.stall
    if response.reason == pb.ERROR_REASON_OBJECT_NOT_FOUND:
        return _continued(claim, LOST_TASK, now)
    return _continued(claim, REFUSED_QUERY, now) if response.failure is Failure.CALLER else claim.stall


def no_video(claim: Claim, now: int) -> Stall:
    """Return the stall of a task that succeeded without a video. `now`: in microseconds since 1970."""
    return _continued(claim, NO_VIDEO, now)


def unknown_state(claim: Claim, status: ProviderStatus, now: int) -> Stall:
    """Return the stall of a task in a state that is unknown. It begins anew with each change of state or progress."""
    return _continued(claim, f"{UNKNOWN_STATE} {status.unknown_word} {status.progress_percent}", now)


def has_lasted(stall: Stall | None, name: str, seconds: float, now: int) -> bool:
    """Return whether the stall has this name and has lasted for `seconds`. `now`: in microseconds since 1970."""
    return stall is not None and stall.name.startswith(name) and now - stall.since_micros >= seconds * 1e6


def _continued(claim: Claim, name: str, now: int) -> Stall:
    return claim.stall if claim.stall is not None and claim.stall.name == name else Stall(name, now)
