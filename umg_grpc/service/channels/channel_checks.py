"""Live checks of channels for administrators: one request to a provider, at most one at a time for a channel."""

from collections.abc import Sequence

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel
from umg_grpc.routing import Target
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.resilience.circuit_breaker_snapshots import BreakerState, CircuitState
from umg_grpc.service.single_channel_check import CheckResult, check_channel, target_at
from umg_grpc.v1 import pb


class ChannelChecks:
    """Checks of the channels of one process."""

    def __init__(self) -> None:
        self._running: set[str] = set()

    async def check(
        self, channels: Channels, breakers: Sequence[BreakerState], channel: Channel, model: str, seconds: float
    ) -> CheckResult:
        """Check a channel within `seconds`. `breakers`: circuit breakers of this process; `model`: the model to call,
        by any of its names; "" for one whose circuit breaker is not closed or, without one, any. Raise UmgError:
        MODEL_NOT_FOUND for a model that the channel does not serve, WRONG_STATE while another check of it runs.
        """
        target = _named(channels, channel, model) if model else _failing(channels, breakers, channel)
        if channel.name in self._running:
            message = f"a check of the channel `{channel.name}` runs; wait for its result"
            raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="checking")
        self._running.add(channel.name)
        try:
            return await check_channel(channel, channels, seconds, target)
        finally:
            self._running.discard(channel.name)


def _named(channels: Channels, channel: Channel, model: str) -> Target:
    try:
        target = target_at(channel.name, channels.router.resolve(model).model.id, channels)
    except UmgError:
        target = None
    if target is None:
        named = (each.id for each in channel.models if each.upstream == model and "*" not in each.id)
        target = next((found for name in named if (found := target_at(channel.name, name, channels))), None)
    if target is None:
        message = f"the channel `{channel.name}` serves no model `{model}`; `umg models` lists the channels of each"
        raise UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, message, model=model)
    return target


def _failing(channels: Channels, breakers: Sequence[BreakerState], channel: Channel) -> Target | None:
    """Return a model of the channel whose circuit breaker is not closed or, for a channel inside the gateway, which has
    no model list, any; None without one.
    """
    is_own = channel.name not in channels.providers
    failing = {
        each.model for each in breakers if each.channel == channel.name and each.state is not CircuitState.CLOSED
    }
    exact = (each for each in channel.models if "*" not in each.id and (is_own or each.upstream in failing))
    return next((found for each in exact if (found := target_at(channel.name, each.id, channels))), None)
