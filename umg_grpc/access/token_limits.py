"""Limits of tokens per minute for each API key or model, counted in this process."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from umg_grpc.access.limit_errors import WINDOW_SECONDS, tokens_exceeded
from umg_grpc.access.per_process_limit_shares import Share
from umg_grpc.access.redis_count_restoration import Amount
from umg_grpc.wire.core.rate_limit_headers import LimitStatus


@dataclass(slots=True)
class TokenReservation:
    """Tokens of one call that count against a limit: the estimated number first, later the actual one."""

    time: float
    tokens: int


class _Window:
    """Tokens of one key or model in the last 60 seconds: the reservations, oldest first, and their sum."""

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
        """Return the seconds until so much has expired that the sum is at most `room`; 0 for an empty window."""
        left = self.total
        for reservation in self.reservations:
            left -= reservation.tokens
            if left <= room:
                return reservation.time + WINDOW_SECONDS - now
        return 0.0


class TokenWindows:
    """Limiter of the tokens per minute of each API key or model, by a sliding window of 60 seconds in this process. A
    call counts with its estimated tokens until `correct` replaces them by the actual number; it is rejected if the
    estimate exceeds the limit. Corrections may exceed the limit; they delay later calls.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._windows: dict[str, _Window] = {}
        self._clean_up_at = 0.0

    def __len__(self) -> int:
        """Return the number of keys and models in memory, those of the last two minutes."""
        return len(self._windows)

    def reserve(self, key_id: str, limit: int, tokens: int) -> TokenReservation:
        """Count a call's estimated tokens. Raise UmgError(RATE_LIMITED) if the last 60 seconds would exceed `limit`."""
        now = self._now()
        if now >= self._clean_up_at:
            self._clean_up(now)
        window = self._window(key_id)
        window.remove_expired(now)
        if window.total + tokens > limit:
            raise tokens_exceeded(key_id, limit, window.seconds_until(limit - tokens, now))
        return window.add(now, tokens)

    def correct(self, key_id: str, reservation: TokenReservation, tokens: int) -> None:
        """Replace the estimated tokens of a reservation by the actual number. If its call lasted longer than the
        window, so that the estimate has expired, only the tokens above it are counted, now.
        """
        now, difference = self._now(), tokens - reservation.tokens
        if reservation.time > now - WINDOW_SECONDS:
            self._window(key_id).total += difference
            reservation.tokens = tokens
        elif difference > 0:
            self._window(key_id).add(now, difference)

    def check_share(self, key_id: str, limit: int, share: Share, reservation: TokenReservation) -> None:
        """Check a call's reservation against this process's share of the limit: Redis did not count it. Beyond the
        share, remove the reservation and raise UmgError(RATE_LIMITED). The only call of the span is always accepted.
        """
        now, window = self._now(), self._window(key_id)
        counted = [each for each in window.reservations if each.time > share.since]
        if len(counted) <= 1 or sum(each.tokens for each in counted) <= share.amount:
            return
        reservation.tokens, window.total = 0, window.total - reservation.tokens
        raise tokens_exceeded(key_id, limit, max(1.0, counted[0].time + WINDOW_SECONDS - now))

    def used(self, key_id: str) -> list[Amount]:
        """Return the tokens of the calls of the last minute, each with its time."""
        now, window = self._now(), self._windows.get(key_id)
        if window is None:
            return []
        window.remove_expired(now)
        return [Amount(each.time, each.tokens) for each in window.reservations]

    def status(self, key_id: str, limit: int) -> LimitStatus:
        """Return the limit, the remaining tokens, and the seconds until all tokens are available again."""
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
        self._clean_up_at = now + WINDOW_SECONDS
        for key_id, window in [*self._windows.items()]:
            window.remove_expired(now)
            if not window.reservations:
                del self._windows[key_id]
