"""Metrics of video tasks: polls, outcomes, cost, and undelivered notifications."""

from collections.abc import Mapping

from umg_grpc.service.metric_gauges import Level
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.store.callback_outbox import Backlog

OPEN_TASKS = Level("umg_video_tasks", "Video tasks that are polled.", ("channel",), "livemax")
POLL_LATENESS = Level("umg_video_poll_lateness_seconds", "Time by which the latest poll is overdue.", (), "livemax")
CALLBACK_BACKLOG = Level("umg_video_callbacks", "Notifications that are not delivered.", ("state",), "livemax")


class TaskMetrics:
    """Counters and gauges of the video tasks of this process, by channel and outcome."""

    def __init__(self, metrics: Metrics) -> None:
        self.submitted = metrics.counter("umg_video_submissions", "Tasks sent to a provider.", "channel", "outcome")
        self.polled = metrics.counter("umg_video_polls", "Polls of tasks.", "channel", "outcome")
        self.unknown = metrics.counter("umg_video_unknown_states", "States that the gateway does not know.", "channel")
        self.ended = metrics.counter("umg_video_task_ends", "Tasks that ended.", "channel", "outcome")
        self.called_back = metrics.counter("umg_video_callback_attempts", "Notifications.", "direction", "outcome")
        self.count_cost = metrics.count_cost
        self.read = metrics.counter("umg_video_content", "Reads of results.", "source", "outcome")
        self.copied = metrics.counter("umg_video_copies", "Copies of results to the blob store.", "outcome")
        self._open: Mapping[str, int] = {}
        self._lateness = 0.0
        self._backlog = Backlog(0, 0)
        metrics.watch(OPEN_TASKS, lambda: {(channel,): float(count) for channel, count in self._open.items()})
        metrics.watch(POLL_LATENESS, lambda: {(): self._lateness})
        metrics.watch(
            CALLBACK_BACKLOG,
            lambda: {("waiting",): float(self._backlog.waiting), ("given_up",): float(self._backlog.given_up)},
        )

    def set_open(self, tasks: Mapping[str, int], lateness: float) -> None:
        """Set the gauges of unfinished tasks by channel, and of the seconds for which the latest poll is overdue."""
        self._open, self._lateness = tasks, lateness

    def set_backlog(self, backlog: Backlog) -> None:
        """Set the gauges of undelivered notifications: the waiting ones, and the ones that were given up."""
        self._backlog = backlog
