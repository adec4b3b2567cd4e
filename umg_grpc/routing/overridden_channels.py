"""Overrides of channels: settings that administrators change while the gateway runs. The config has the others."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.config import Channel, Config
from umg_grpc.operations import ModelOperation
from umg_grpc.routing.channel_target import Target
from umg_grpc.routing.set_model_prices import SetPrices, with_set_prices
from umg_grpc.v1 import pb

DISABLED_SETTING, WEIGHT_SETTING = "disabled", "weight"
"""Names of the settings of a channel that overrides may have, as in `umg.v1.ChannelSettings`."""


@dataclass(frozen=True)
class ChannelOverride:
    """Setting of a channel that an administrator has changed. It holds in place of the config's."""

    channel: str
    setting: str
    value: int
    """Weight; 1 for a disabled channel."""
    note: str
    """Reason that the administrator gave; "" for none."""
    actor_id: str
    actor_name: str
    update_micros: int
    """Time of the change in microseconds since 1970."""

    @property
    def text(self) -> str:
        """Change as a phrase for operators: `disabled by ada: unpaid`."""
        change = self.setting if self.setting == DISABLED_SETTING else f"{self.setting} {self.value} set"
        return f"{change} by {self.actor_name}" + (f": {self.note}" if self.note else "")


Overrides = Mapping[tuple[str, str], ChannelOverride]
"""Override by channel and setting."""
NO_OVERRIDES: Overrides = {}


def overrides_by_setting(overrides: Iterable[ChannelOverride]) -> Overrides:
    """Return the overrides by channel and setting."""
    return {(each.channel, each.setting): each for each in overrides}


def with_overrides(config: Config, overrides: Overrides) -> Config:
    """Return the config with the overrides that have an effect in it."""
    if not overrides:
        return config
    return replace(config, channels=tuple(_overridden(channel, overrides) for channel in config.channels))


def with_changes(config: Config, overrides: Overrides, prices: SetPrices) -> Config:
    """Return the config with all changes of administrators that have an effect in it."""
    return with_set_prices(with_overrides(config, overrides), prices)


def ineffective_reason(override: ChannelOverride, channels: Collection[Channel]) -> str:
    """Return why an override has no effect on the channels of a config; "" for one that has."""
    channel = next((each for each in channels if each.name == override.channel), None)
    if channel is None:
        return "the config has no channel of this name"
    if override.setting == WEIGHT_SETTING and channel.weight_place:
        return f"{channel.weight_place} states the weight"
    return ""


def disabled_targets(targets: Iterable[Target], operation: ModelOperation) -> Sequence[Target]:
    """Return the disabled channels among the targets that support the operation."""
    return [target for target in targets if target.channel.disabled and target.supports(operation)]


def all_disabled(model: str) -> UmgError:
    """Return the error for a call of a model whose channels are all disabled. Its fallbacks may be called."""
    message = (
        f"all channels that serve the model `{model}` are disabled; use another model, or ask the gateway's operator"
    )
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, message, model=model).with_failure(Failure.NOT_SENT)


def _overridden(channel: Channel, overrides: Overrides) -> Channel:
    weight = None if channel.weight_place else overrides.get((channel.name, WEIGHT_SETTING))
    disabled = (channel.name, DISABLED_SETTING) in overrides
    if weight is None and not disabled:
        return channel
    return replace(channel, weight=channel.weight if weight is None else weight.value, disabled=disabled)
