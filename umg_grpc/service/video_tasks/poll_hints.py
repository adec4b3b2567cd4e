"""Headers that state when a caller should read an unfinished task again."""

from umg_grpc.store.tables import MediaTask

POLL_AFTER, RETRY_AFTER = "openai-poll-after-ms", "retry-after"
POLL_SECONDS = ((15.0, 1), (60.0, 3), (600.0, 5), (float("inf"), 10))
"""Pairs of an age in seconds and the seconds until the next read of a task that is younger."""


def poll_hints(task: MediaTask, now_micros: int) -> dict[str, str]:
    """Return headers with the time until the task should be read again, in ms and in s; empty for an ended task."""
    age = (now_micros - task.create_micros) / 1e6
    seconds = next(pause for until, pause in POLL_SECONDS if age < until)
    return {POLL_AFTER: str(1000 * seconds), RETRY_AFTER: str(seconds)}
