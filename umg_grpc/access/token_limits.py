"""Token limits: tokens per minute of each caller in this process."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from umg_grpc.access.limit_errors import WINDOW_SECONDS, tokens_exceeded
from umg_grpc.wire.core.rate_limit_headers import LimitStatus


@dataclass(slots=True)
class TokenReservation:
    """Tokens of one call in the window of its key: an estimate, replaced by the actual number once it is known."""

    time: float
    tokens: int


class _Window:
    """Reservations of one key, the oldest first, and the sum of their tokens."""

    __slots__ = ("reservations", "total")

    def __init__(self) -> None:
        self.reservations: deque[TokenReservation] = deque()
        self.total = 0

    def add(self, now: float, tokens: int) -> TokenReservation:
        reservation = TokenReservation(now, tokens)
        self.reservations.append(reservation)
        self.total += tokens
        return reservation

    def remove_expired(self, now: float) -> None:
        while self.reservations and self.reservations[0].time <= now - WINDOW_SECONDS:
            self.total -= self.reservations.popleft().tokens

    def seconds_until(self, room: int, now: float) -> float:
        """Return the seconds until the sum is at most `room`."""
        left = self.total
        for reservation in self.reservations:
            left -= reservation.tokens
            if left <= room:
                return reservation.time + WINDOW_SECONDS - now
        return 0.0


class TokenWindows:
    """Windows of all callers. Each slides: in any 60 seconds, the estimates of the calls that were admitted and the
    corrections known at that time do not exceed the limit. Nothing runs in the background.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._windows: dict[str, _Window] = {}
        self._clean_up_at = 0.0

    def __len__(self) -> int:
        """Return the number of callers in memory, which are those of the last two minutes."""
        return len(self._windows)

    def reserve(self, key_id: str, limit: int, tokens: int) -> TokenReservation:
        """Reserve tokens in the window of a key. Raise UmgError(RATE_LIMITED)."""
        now = self._now()
        if now >= self._clean_up_at:
            self._clean_up(now)
        window = self._window(key_id)
        window.remove_expired(now)
        if window.total + tokens > limit:
            raise tokens_exceeded(key_id, limit, window.seconds_until(limit - tokens, now))
        return window.add(now, tokens)

    def correct(self, key_id: str, reservation: TokenReservation, tokens: int) -> None:
        """Replace the estimate of a call by its actual tokens. Of a call that lasted longer than the window, which no
        longer has the estimate, the tokens above it are counted now.
        """
        now, difference = self._now(), tokens - reservation.tokens
        if reservation.time > now - WINDOW_SECONDS:
            self._window(key_id).total += difference
            reservation.tokens = tokens
        elif difference > 0:
            self._window(key_id).add(now, difference)

    def status(self, key_id: str, limit: int) -> LimitStatus:
        """Return the limit of a key, its remaining tokens, and the time until all are available again."""
        now, window = self._now(), self._windows.get(key_id)
        if window is None:
            return LimitStatus(limit, limit, 0.0)
        window.remove_expired(now)
        if not window.reservations:
            return LimitStatus(limit, limit, 0.0)
        return LimitStatus(limit, max(0, limit - window.total), window.reservations[-1].time + WINDOW_SECONDS - now)

    def _window(self, key_id: str) -> _Window:
        window = self._windows.get(key_id)
        if window is None:
            window = self._windows[key_id] = _Window()
        return window

    def _clean_up(self, now: float) -> None:
        """Forget the callers without reservations in their windows."""
        self._clean_up_at = now + WINDOW_SECONDS
        for key_id, window in [*self._windows.items()]:
            window.remove_expired(now)
            if not window.reservations:
                del self._windows[key_id]
