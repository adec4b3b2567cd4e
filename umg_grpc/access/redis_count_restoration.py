"""Restoring of the counts of limits that Redis has lost with its data, from the counts of this process."""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from umg_grpc.access.limit_errors import WINDOW_SECONDS
from umg_grpc.store.redis_client import Redis, RedisUnavailable
from umg_grpc.store.repeated_background_tasks import Background

if TYPE_CHECKING:
    from redis.asyncio import Redis as Client

RETRY_SECONDS = 0.5

# KEYS[1]: the hash of a limit. ARGV: the units of a second, the prefix of the fields, the lifetime of the hash in
# seconds, then pairs: an age in units, and the amount to add at that time, by the server's clock.
RESTORE_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * ARGV[1] + math.floor(time[2] * ARGV[1] / 1000000)
for place = 4, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[2] .. string.format('%.0f', now - ARGV[place]), ARGV[place + 1])
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 0
"""


class Amount(NamedTuple):
    """Amount that counts against a limit: its time on the clock of this process, and requests or tokens."""

    time: float
    amount: int


class Hash(NamedTuple):
    """Form of a limit's hashes in Redis: prefixes of keys and of fields, and time units per second in the fields."""

    prefix: str
    field: str
    units: int
    lifetime_seconds: int


class Restoring:
    """Writer of amounts that are missing in Redis to the counts of the limits, in the background until `aclose`. This
    process admitted them while Redis was unavailable, or in the last minute before Redis lost its data.
    """

    def __init__(self, redis: Redis, form: Hash, now: Callable[[], float], work: str) -> None:
        """Create a writer. `now`: returns seconds of a monotonic clock; `work`: its work in words, for the log."""
        self._redis, self._form, self._now, self._work = redis, form, now, work
        self._unknown: dict[str, deque[Amount]] = {}
        self._background: Background | None = None

    def add(self, limit_id: str, amount: Amount) -> None:
        """Write an amount that was admitted without Redis."""
        waiting = self._unknown.setdefault(limit_id, deque())
        waiting.append(amount)
        while waiting[0].time <= self._now() - WINDOW_SECONDS:  # during a long outage
            waiting.popleft()
        self._wake()

    def replace(self, limit_id: str, amounts: Iterable[Amount]) -> None:
        """Write all amounts of the last minute, since Redis has lost its data."""
        if found := deque(amounts):
            self._unknown[limit_id] = found
            self._wake()

    async def aclose(self) -> None:
        """Stop writing, after a last attempt."""
        if self._background is not None:
            await self._background.aclose(RETRY_SECONDS)

    def _wake(self) -> None:
        if self._background is None:
            self._background = Background(self._work, self._write, every=RETRY_SECONDS, at_end=True)
        self._background.wake()

    async def _write(self) -> None:
        while self._unknown:
            limit_id, amounts = self._unknown.popitem()
            try:
                await self._redis.run(partial(self._run_script, limit_id, amounts))
            except RedisUnavailable:
                amounts.extend(self._unknown.get(limit_id, ()))
                self._unknown[limit_id] = amounts
                return

    async def _run_script(self, limit_id: str, amounts: Iterable[Amount], client: "Client") -> None:
        form, now, counts = self._form, self._now(), Counter[int]()
        for time, amount in amounts:
            counts[int((now - time) * form.units)] += amount
        pairs = [str(each) for pair in counts.items() for each in pair]
        head = [str(form.units), form.field, str(form.lifetime_seconds)]
        await client.eval(RESTORE_SCRIPT, 1, form.prefix + limit_id, *head, *pairs)
