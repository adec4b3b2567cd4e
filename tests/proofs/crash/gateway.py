"""Changes to `umg` for the crash test: it polls video providers and repeats notifications within a second."""

from dataclasses import replace

from umg_grpc.service.video_tasks import caller_notifier
from umg_grpc.wire.video import VIDEO_PROTOCOLS

POLL_SECONDS = 0.5
NOTIFY_PAUSES = (0.5,) * 20


def prepare() -> None:
    """Change the pauses of this process."""
    for name, protocol in [*VIDEO_PROTOCOLS.items()]:
        VIDEO_PROTOCOLS[name] = replace(protocol, first_poll_seconds=POLL_SECONDS, poll_seconds=POLL_SECONDS)
    caller_notifier.RETRY_PAUSES = NOTIFY_PAUSES
