"""Overrides of channels in this process, as the database has them: every process applies a change within seconds."""

import asyncio
from collections.abc import Awaitable, Callable

from umg_grpc.routing.overridden_channels import DISABLED_SETTING, NO_OVERRIDES, Overrides
from umg_grpc.service.channels.channel_override_table import ChannelOverrideTable, SuccessfulCheck
from umg_grpc.store.repeated_background_tasks import Background

LOAD_SECONDS = 2.0
"""Seconds between two reads of the tables, which have a row for each override and for each checked channel."""
CLOSE_SECONDS = 2.0


class CurrentOverrides:
    """Overrides in memory, read from `start` to `aclose`. While the database is unavailable, the last ones hold."""

    def __init__(
        self,
        table: ChannelOverrideTable,
        changed: Callable[[], Awaitable[None]],
        checked: Callable[[SuccessfulCheck], None],
    ) -> None:
        """Create an empty memory. `changed`: called after a change; `checked`: called with each new check."""
        self.overrides: Overrides = NO_OVERRIDES
        self._table = table
        self._changed = changed
        self._checked = checked
        self._checks: dict[str, int] | None = None
        """Channel -> time of its last known check; None before the first read."""
        self._loading = asyncio.Lock()
        self._loader: Background | None = None

    @property
    def disabled(self) -> list[str]:
        """Names of the disabled channels."""
        return [channel for channel, setting in self.overrides if setting == DISABLED_SETTING]

    def is_disabled(self, channel: str) -> bool:
        """Return whether a channel is disabled."""
        return (channel, DISABLED_SETTING) in self.overrides

    def start(self) -> None:
        """Start reading the tables."""
        self._loader = Background("reading the overrides of channels", self.load, every=LOAD_SECONDS)

    async def aclose(self) -> None:
        """Stop reading."""
        if self._loader is not None:
            await self._loader.aclose(CLOSE_SECONDS)

    async def load(self) -> None:
        """Read the tables, and apply their changes."""
        async with self._loading:  # an earlier read must not be applied after a later one
            overrides, checks = await self._table.read()
            known = self._checks
            self._checks = {each.channel: each.check_micros for each in checks}
            if known is not None:  # else the checks are older than this process, which has no circuit breaker yet
                for each in checks:
                    if each.check_micros > known.get(each.channel, 0):
                        self._checked(each)
            if overrides != self.overrides:
                self.overrides = overrides
                await self._changed()
