"""Receivers of notifications: further notifications wait while a receiver is being called or does not answer."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from umg_grpc.store.callback_outbox import Excluded, OutgoingCallback, receiver_of

RECEIVER_SHARE = 8
"""Maximum number of notifications of one key that are taken at the same time. A key with this number in flight gets no
more, so that it has less than twice as many.
"""
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 300.0
"""Seconds for which a receiver that did not answer is not called, doubled after each further failure."""
MAX_PAUSED = 200
"""Maximum number of receivers that pause, since the statement which takes notifications names each. Further ones are
called by the attempts of their notifications alone.
"""


class _Pause(NamedTuple):
    failures: int
    until: float
    """Time on the monotonic clock."""


class Receivers:
    """Receivers and API keys of the notifications in flight, and the pauses of receivers that did not answer."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._owners = Counter[str]()
        self._called = Counter[str]()
        self._pauses: dict[str, _Pause] = {}

    def begin(self, sent: OutgoingCallback) -> None:
        """Count a notification as in flight."""
        self._owners[sent.owner] += 1
        self._called[receiver_of(sent.url)] += 1

    def end(self, sent: OutgoingCallback, *, answered: bool) -> None:
        """Count a notification as ended. `answered`: its receiver sent a response; otherwise the receiver is paused."""
        receiver = receiver_of(sent.url)
        for counts, name in ((self._owners, sent.owner), (self._called, receiver)):
            counts[name] -= 1
            if not counts[name]:
                del counts[name]
        pause = self._pauses.pop(receiver, None)
        if answered:
            return
        now = self._now()
        if pause is not None and pause.until > now:  # of calls that failed together, the first one counts
            self._pauses[receiver] = pause
        elif pause is not None or len(self._pauses) < MAX_PAUSED:
            failures = pause.failures if pause is not None else 0
            seconds = min(FIRST_PAUSE_SECONDS * 2.0 ** min(failures, 16), MAX_PAUSE_SECONDS)
            self._pauses[receiver] = _Pause(failures + 1, now + seconds)

    def resume(self, url: str) -> None:
        """End the pause of the receiver of a URL."""
        self._pauses.pop(receiver_of(url), None)

    @property
    def excluded(self) -> Excluded:
        """Owners (API keys) and receivers that get no further notifications now."""
        now = self._now()
        forgotten = [name for name, pause in self._pauses.items() if pause.until < now - MAX_PAUSE_SECONDS]
        for name in forgotten:
            del self._pauses[name]
        paused = {name for name, pause in self._pauses.items() if pause.until > now or name in self._called}
        busy = {name for name, count in self._called.items() if count >= RECEIVER_SHARE}
        return Excluded(
            [name for name, count in self._owners.items() if count >= RECEIVER_SHARE], sorted(paused | busy)
        )
