"""Last-use times of API keys: recorded in memory by each call, written to the database in the background."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store.repeated_background_tasks import Background

CHECK_SECONDS = 5.0
WRITE_SECONDS = 60.0  # between two writes of one key
CLOSE_SECONDS = 2.0


class KeyUses:
    """Recorder of the last use of each API key, from `start` to `aclose`. If a key was not used for a minute, its next
    use is in the database within seconds; further uses are written once a minute.
    """

    def __init__(
        self, keys: ApiKeys, *, monotonic: Callable[[], float] = time.monotonic, skew: Callable[[], float] = lambda: 0.0
    ) -> None:
        """Create a recorder. `skew`: returns the seconds by which this process's clock is ahead of the database's."""
        self._skew = skew
        self._keys = keys
        self._monotonic = monotonic
        self.used: dict[str, float] = {}
        """Last uses in Unix seconds by key id: a call sets that of its key, a write to the database removes it."""
        self._written: dict[str, float] = {}
        """Time of the last write, of the writes of the last minute."""
        self._writer: Background | None = None

    def start(self) -> None:
        """Start the background task that writes last-use times to the database."""
        self._writer = Background("writing the last uses of keys", self.write, every=CHECK_SECONDS, at_end=True)

    async def aclose(self) -> None:
        """Write all last-use times that are not in the database yet, within a bounded time, and stop."""
        writer, self._writer = self._writer, None
        if writer is not None:
            self._written.clear()  # so that the last step writes all
            await writer.aclose(CLOSE_SECONDS)

    async def write(self) -> None:
        """Write the last use of each key for which none was written within the last minute. Raise SQLAlchemyError."""
        now = self._monotonic()
        self._written = {key: at for key, at in self._written.items() if at > now - WRITE_SECONDS}
        due = {key: used for key, used in self.used.items() if key not in self._written}
        if not due:
            return
        skew = self._skew()
        await self._keys.record_uses({key: datetime.fromtimestamp(used - skew, UTC) for key, used in due.items()})
        for key, used in due.items():
            self._written[key] = now
            if self.used[key] == used:  # not used again meanwhile
                del self.used[key]
