"""Administration of the prices of models: their list, and prices that are set while the gateway runs."""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from typing import TYPE_CHECKING

from umg_grpc.access.principals import WHOLE_GATEWAY
from umg_grpc.access.role_permissions import Extent
from umg_grpc.base.errors import UmgError
from umg_grpc.routing.priced_models import PriceView
from umg_grpc.routing.set_model_prices import EVERY_CHANNEL, SetPrice, checked_prices, price_place, prices_by_place
from umg_grpc.service.channels.model_price_report import ModelPriceReport
from umg_grpc.service.channels.set_price_table import SetPriceTable
from umg_grpc.service.servicers.administrative_calls import AdministrativeCalls, RequestCheck
from umg_grpc.store.key_selection import KeySelection
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from umg_grpc.access.access_control import Authority
    from umg_grpc.base.inprocess_channel import Context
    from umg_grpc.routing.set_model_prices import SetPrices
    from umg_grpc.service.channels.channel_source import ChannelSource, ChannelStates
    from umg_grpc.store import Store

PRICE_VIEWS = {Extent.PART: PriceView.WITH_SOURCES, Extent.ALL: PriceView.WITH_ROUTES}


class ModelPriceAdministration:
    """Methods of `umg.v1.ModelPriceService`. `check` raises UmgError for a request that breaks a rule of the schema."""

    def __init__(self, store: Store, source: ChannelSource, check: RequestCheck) -> None:
        self._calls = AdministrativeCalls("ModelPriceService", store, check)
        self._acts = ModelPriceActs(store, source)

    async def ListModelPrices(self, request: pb.ListModelPricesRequest, context: Context) -> pb.ListModelPricesResponse:
        return await self._calls.run(request, context, self._acts.list)

    async def UpdateModelPrice(
        self, request: pb.UpdateModelPriceRequest, context: Context
    ) -> pb.UpdateModelPriceResponse:
        return await self._calls.run(request, context, self._acts.update)


class ModelPriceActs:
    """Acts on prices, with the rights of a caller."""

    def __init__(self, store: Store, source: ChannelSource) -> None:
        self._source, self._table = source, SetPriceTable(store)
        self._report = ModelPriceReport(store, self._table)

    async def list(self, request: pb.ListModelPricesRequest, authority: Authority) -> pb.ListModelPricesResponse:
        """Return a page of models, or one."""
        extent = authority.greatest_extent(pb.PERMISSION_PRICES_READ)
        view = PRICE_VIEWS.get(extent, PriceView.OF_CALLERS)
        return await self._report.list(request, await self._source.states(), _keys(authority), view)

    async def update(self, request: pb.UpdateModelPriceRequest, authority: Authority) -> pb.UpdateModelPriceResponse:
        """Set prices of a model, or take them back."""
        authority.check_account(pb.PERMISSION_PRICES_WRITE, WHOLE_GATEWAY)
        states, known = await self._source.states(), await self._table.read()
        prices = checked_prices(request.prices)
        place = (_model(request.model, states, known, is_removal=not prices), request.channel)
        _check_place(place, states, known, is_removal=not prices)
        new = SetPrice(*place, prices, request.note, "", "", 0) if prices else None
        if not request.dry_run:
            new = await self._table.change(*place, prices, request.note)
            await self._source.apply()
        others = [each for key, each in known.items() if key != place]
        planned = prices_by_place([*others, new] if new is not None else others)
        if not _channels(place[0], states):  # its last price was taken back
            return pb.UpdateModelPriceResponse()
        return pb.UpdateModelPriceResponse(model=await self._report.one(states, planned, place[0], _keys(authority)))


def _keys(authority: Authority) -> KeySelection:
    """Return the keys whose usage the caller may see."""
    return KeySelection(scope=authority.key_scope(pb.PERMISSION_USAGE_READ))


def _model(name: str, states: ChannelStates, known: SetPrices, *, is_removal: bool) -> str:
    """Return the id of the model with a name. Raise UmgError(MODEL_NOT_FOUND), unless a price of it is removed."""
    try:
        return states.channels.router.resolve(name).model.id
    except UmgError:
        if is_removal and any(model == name for model, _ in known):
            return name
        raise


def _channels(model: str, states: ChannelStates) -> Sequence[str]:
    try:
        return [target.channel.name for target in states.channels.router.targets(model)]
    except UmgError:
        return ()


def _check_place(place: tuple[str, str], states: ChannelStates, known: SetPrices, *, is_removal: bool) -> None:
    """Raise UmgError for a price that the file fixes (WRONG_STATE), and for a channel that does not serve the model
    (OBJECT_NOT_FOUND). A price that was set can always be taken back.
    """
    model, channel = place
    if is_removal and place in known:
        return
    if (fixed := price_place(states.config, model)) and not is_removal:
        message = (
            f"{fixed} states the price of `{model}`: change it there and reload the config, or remove it there to set"
            " it here"
        )
        raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="config")
    channels = _channels(model, states)
    if channel != EVERY_CHANNEL and channel not in channels:
        message = f"channel: no channel {echo(channel)} serves `{model}`; name one of {', '.join(channels) or 'none'}"
        raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=channel[:100])
