"""Program `umg` that polls video providers and repeats notifications within a second, for the crash test."""

from dataclasses import replace

from umg_grpc.cli import main
from umg_grpc.service.tasks import notifier
from umg_grpc.wire.video import VIDEO_PROTOCOLS

POLL_SECONDS = 0.5
NOTIFY_PAUSES = (0.5,) * 20

if __name__ == "__main__":
    for name, protocol in [*VIDEO_PROTOCOLS.items()]:
        VIDEO_PROTOCOLS[name] = replace(protocol, first_poll_seconds=POLL_SECONDS, poll_seconds=POLL_SECONDS)
    notifier.PAUSES = NOTIFY_PAUSES
    main()
