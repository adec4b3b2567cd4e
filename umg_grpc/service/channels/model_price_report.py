"""Reader of the models of the gateway with their prices, and with the calls and keys of the last day."""

from __future__ import annotations  # most types are needed by type checkers alone, and slow to import

import asyncio
from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.routing.priced_models import ModelPosition, PricedModels, PriceView
from umg_grpc.service.resilience.circuit_breaker_snapshots import CircuitState
from umg_grpc.service.servicers.usage_filters import unknown_token
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.v1 import pb
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from umg_grpc.routing.set_model_prices import SetPrices
    from umg_grpc.service.channels.channel_source import ChannelStates
    from umg_grpc.service.channels.set_price_table import SetPriceTable
    from umg_grpc.store import Store
    from umg_grpc.store.key_selection import KeySelection

PAGE_SIZE = 100
COUNTED_SPAN = timedelta(days=1)
"""Time before now whose calls are counted; it begins with a whole hour, so that totals have its beginning."""


class ModelPriceReport:
    """Reader of the models with their prices."""

    def __init__(self, store: Store, table: SetPriceTable) -> None:
        self._table, self._usage, self._clock = table, UsageRecords(store), store.clock

    async def list(
        self, request: pb.ListModelPricesRequest, states: ChannelStates, keys: KeySelection, view: PriceView
    ) -> pb.ListModelPricesResponse:
        """Return a page of models, or one. `keys`: keys whose usage the caller may see. Raise UmgError."""
        after = _position(request.page_token) if request.page_token else None
        models = _models(states, await self._prices(states), await self._calls(keys))
        router = states.channels.router
        names = [router.resolve(request.model).model.id] if request.model else models.names()
        served = [(name, models.targets(name)) for name in names]
        rows = await asyncio.to_thread(models.rows, served, unpriced_only=request.unpriced_only)
        unpriced, text = [row for row in rows if row.unpriced], request.text.strip().lower()
        found = [row for row in rows if not text or row.fits(text, view)]
        found = sorted((row for row in found if after is None or row.position > after), key=lambda row: row.position)
        page = found[: request.page_size if request.HasField("page_size") else PAGE_SIZE]
        of_keys = await self._keys([row.model for row in page if row.unpriced and row.calls], keys)
        response = pb.ListModelPricesResponse(
            models=[
                models.message(row, of_keys.get(row.model, ()), view, is_whole=bool(request.model)) for row in page
            ],
            unpriced_models=len(unpriced),
            called_unpriced_models=sum(row.calls > 0 for row in unpriced),
        )
        if request.model and view is PriceView.WITH_ROUTES:
            failing = {(each.channel, each.model) for each in states.breakers if each.state is not CircuitState.CLOSED}
            for row, message in zip(page, response.models, strict=True):
                message.routes.extend(models.routes(row, failing))
        elif view is not PriceView.OF_CALLERS:
            response.overrides_without_model.extend(models.overrides_without_model())
        if len(found) > len(page):
            last = msgspec.json.encode(page[-1].position).decode()
            response.next_page_token = encode_token(PageBoundary(last))
        return response

    async def one(self, states: ChannelStates, prices: SetPrices, model: str, keys: KeySelection) -> pb.PricedModel:
        """Return a model as it is with these prices."""
        models = _models(states, prices, await self._calls(keys))
        [row] = models.rows([(model, models.targets(model))])
        of_keys = await self._keys([model] if row.unpriced else [], keys)
        return models.message(row, of_keys.get(model, ()), PriceView.WITH_SOURCES, is_whole=False)

    async def _prices(self, states: ChannelStates) -> SetPrices:
        """Return the set prices; those in memory while there is no database."""
        try:
            return await self._table.read()
        except (SQLAlchemyError, OSError):
            return states.prices

    async def _calls(self, keys: KeySelection) -> Mapping[str, int]:
        """Return the number of calls by model; none while there is no database."""
        try:
            sums = await self._usage.sums(["model"], CallFilter(self._since(), keys=keys))
        except (SQLAlchemyError, OSError):
            return {}
        return {str(each.group[0]): each.requests for each in sums}

    async def _keys(self, models: Sequence[str], keys: KeySelection) -> Mapping[str, Sequence[str]]:
        """Return the keys that called each of these models, the most frequent first."""
        if not models:
            return {}
        found = defaultdict[str, list[tuple[int, str]]](list)
        with suppress(SQLAlchemyError, OSError):
            calls = CallFilter(self._since(), only={"model": models}, keys=keys)
            for each in await self._usage.sums(["model", "key"], calls):
                model, key_id = map(str, each.group)
                found[model].append((-each.requests, key_id))
        return {model: [key_id for _, key_id in sorted(counted)] for model, counted in found.items()}

    def _since(self) -> datetime:
        since = datetime.fromtimestamp(self._clock.now(), UTC) - COUNTED_SPAN
        return since.replace(minute=0, second=0, microsecond=0)


def _models(states: ChannelStates, prices: SetPrices, calls: Mapping[str, int]) -> PricedModels:
    return PricedModels(states.config, states.channels.router, states.overrides, prices, calls)


def _position(token: str) -> ModelPosition:
    try:
        return msgspec.json.decode(decode_token(token).id, type=ModelPosition)
    except msgspec.DecodeError:
        raise unknown_token() from None
