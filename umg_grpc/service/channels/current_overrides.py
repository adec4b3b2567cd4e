"""Overrides of channels and set prices in this process, as the database has them: every process applies a change
within seconds.
"""

import asyncio
from collections.abc import Awaitable, Callable

from umg_grpc.config import Config
from umg_grpc.routing.overridden_channels import DISABLED_SETTING, NO_OVERRIDES, Overrides, with_changes
from umg_grpc.routing.set_model_prices import NO_SET_PRICES, SetPrices
from umg_grpc.service.channels.channel_override_table import ChannelOverrideTable, SuccessfulCheck
from umg_grpc.service.channels.set_price_table import SetPriceTable
from umg_grpc.store.repeated_background_tasks import Background

LOAD_SECONDS = 2.0
"""Seconds between two reads of the tables, which have a row for each override, checked channel and set price."""
CLOSE_SECONDS = 2.0


class CurrentOverrides:
    """Overrides in memory, read from `start` to `aclose`. While the database is unavailable, the last ones hold."""

    def __init__(
        self,
        table: ChannelOverrideTable,
        price_table: SetPriceTable,
        changed: Callable[[], Awaitable[None]],
        checked: Callable[[SuccessfulCheck], None],
    ) -> None:
        """Create an empty memory. `changed`: called after a change; `checked`: called with each new check."""
        self.overrides: Overrides = NO_OVERRIDES
        self.prices: SetPrices = NO_SET_PRICES
        self.version = 0
        """Number of changes of the overrides and prices."""
        self._applied = 0
        """Last version whose change was announced."""
        self._table, self._price_table = table, price_table
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

    def in_force(self, config: Config) -> Config:
        """Return the config with the overrides and set prices that have an effect in it."""
        return with_changes(config, self.overrides, self.prices)

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
            prices = await self._price_table.read()
            known = self._checks
            self._checks = {each.channel: each.check_micros for each in checks}
            if known is not None:  # else the checks are older than this process, which has no circuit breaker yet
                for each in checks:
                    if each.check_micros > known.get(each.channel, 0):
                        self._checked(each)
            if (overrides, prices) != (self.overrides, self.prices):
                self.overrides, self.prices = overrides, prices
                self.version += 1
            if self._applied != self.version:  # also after a load that failed or was cancelled in between
                await self._changed()
                self._applied = self.version
