"""Models without a price in this process: a metric counts them; the log names them and keys that cannot use them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from umg_grpc.access.api_keys import ApiKeys, Key
from umg_grpc.access.cached_api_keys import caller_of
from umg_grpc.access.caller_identity import Caller
from umg_grpc.routing import PRICE_REMEDY, Router, is_unpriced, shortened, unpriced_models
from umg_grpc.service.metric_gauges import UNPRICED_MODELS
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.pipeline.key_model_access import may_use
from umg_grpc.service.service_metrics import Metrics, Values

MAX_LABELS = 100
"""Maximum number of models with a label value of their own in the metric; the others are counted together."""
OTHERS_LABEL = "other"
MAX_CALLED = 1000
"""Maximum number of remembered models that were called and that only a pattern of the config serves."""
FILE_NAME = "budgets_named"
"""File in the data directory with the version of the program that has named the keys with refused models."""
PAGE_SIZE = 500
GATEWAY_VERSION = version("unified-model-gateway")

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class UnpricedModels:
    """Models without a price: models of the current config, and models that this process was called for."""

    def __init__(self, channels: Channels, metrics: Metrics) -> None:
        self._channels = channels
        self._router: Router | None = None
        self._known: Sequence[str] = ()
        self._called = dict[str, None]()
        metrics.watch(UNPRICED_MODELS, self._values)

    @property
    def known(self) -> Sequence[str]:
        """Models in the list of models that have no price."""
        if self._router is not (router := self._channels.router):
            self._router, self._known = router, unpriced_models(router)
        return self._known

    def note(self, model: str) -> None:
        """Note a call of a model without a price, and log it once. Listed models were logged at the start."""
        if model not in self._called and len(self._called) < MAX_CALLED and model not in self.known:
            self._called[model] = None
            logger.warning("a model without a price is called", model=model, remedy=PRICE_REMEDY)

    def log(self) -> None:
        """Log the models in the list of models that have no price."""
        if known := self.known:
            logger.warning("models without a price", count=len(known), models=shortened(known), remedy=PRICE_REMEDY)

    async def name_keys(self, keys: ApiKeys, data: Path) -> None:
        """Log each key with a budget that cannot use some models because they have no price. This is done once for each
        version of the program with the data directory `data`. If the database is unavailable, the next start does it.
        """
        file = data / FILE_NAME
        models = self._unpriced_somewhere()
        if not models or await asyncio.to_thread(_version_in, file) == GATEWAY_VERSION:
            return
        with suppress(SQLAlchemyError, OSError):
            async for key in _live_keys(keys):
                self._name(key, models)
            await asyncio.to_thread(file.write_text, GATEWAY_VERSION)

    def _unpriced_somewhere(self) -> Sequence[str]:
        """Return the listed models that some channel serves without a price: a key may be restricted to it."""
        router, found = self._channels.router, list[str]()
        for model in router.models():
            channels = [target.channel.name for target in router.targets(model.id)]
            if any(is_unpriced(router, model.id, ((channel,),)) for channel in channels):
                found.append(model.id)
        return found

    def _name(self, key: Key, models: Sequence[str]) -> None:
        """Log which of the models are refused to a key, if any are."""
        caller = caller_of(key)
        if not caller.has_hard_budget:
            return
        if refused := [model for model in models if self._is_refused(caller, model)]:
            logger.warning(
                "models without a price are refused to a key with a budget",
                key=key.key_id,
                name=key.name,
                count=len(refused),
                models=shortened(refused),
                remedy=PRICE_REMEDY,
            )

    def _is_refused(self, caller: Caller, model: str) -> bool:
        router = self._channels.router
        public = router.resolve(model).model
        operations = caller.model_operations
        return may_use(router, caller, public) and is_unpriced(router, model, caller.channel_rules, operations)

    def _values(self) -> Values:
        names = [*self.known, *self._called]
        values: dict[tuple[str, ...], float] = {(name,): 1.0 for name in names[:MAX_LABELS]}
        if len(names) > MAX_LABELS:
            values[OTHERS_LABEL,] = float(len(names) - MAX_LABELS)
        return values


async def _live_keys(keys: ApiKeys) -> AsyncGenerator[Key, None]:
    """Yield the keys that are neither revoked nor expired. Raise SQLAlchemyError."""
    after, has_more = "", True
    while has_more:
        page, after = await keys.page(after, PAGE_SIZE)
        for key in page:
            yield key
        has_more = after != ""


def _version_in(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""
