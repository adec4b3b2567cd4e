"""Servicer of the list of models that the calling key may use."""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection

from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.inprocess_channel import Context
from umg_grpc.routing import PublicModel, Router, under_name
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.pipeline.key_model_access import find_model, may_use
from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token, page_after, page_before


class ModelServicer(rpc.ModelServiceServicer):
    """Servicer of `umg.v1.ModelService`: the models that the calling key may use."""

    def __init__(self, channels: Channels, unknown: Callable[[], Awaitable[Collection[tuple[str, str]]]]) -> None:
        """Create a servicer. `unknown`: returns the channels and models that providers have refused as unknown."""
        self._channels = channels
        self._unknown = unknown

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:
        await validate(request)
        boundary, caller = decode_token(request.page_token), current().caller
        # without models of a provider's list that the provider has refused as unknown
        models = _models(self._channels.router, caller, await self._unknown())
        wanted = request.operation
        ids = sorted(name for name, model in models.items() if not wanted or wanted in model.described.operations)
        start, end = _page(boundary, ids, request.page_size if request.HasField("page_size") else len(ids))
        response = pb.ListModelsResponse(models=[under_name(models[name], name) for name in ids[start:end]])
        if end < len(ids):
            behind = page_after(ids[end - 1]) if end > start else PageBoundary(boundary.id)
            response.next_page_token = encode_token(behind)
        if start > 0:
            response.previous_page_token = encode_token(page_before(ids[start] if end > start else boundary.id))
        return response

    async def GetModel(self, request: pb.GetModelRequest, context: Context) -> pb.GetModelResponse:
        await validate(request)
        found = find_model(self._channels.router, current().caller, request.model)
        return pb.GetModelResponse(model=under_name(found.model, request.model))


def _models(router: Router, caller: Caller, unknown: Collection[tuple[str, str]]) -> dict[str, PublicModel]:
    """Return id or alias -> model, for all models that the caller's key may use."""
    gone = {model.id for model in router.models() if _is_gone(router, model, unknown)} if unknown else set[str]()
    models = {model.id: model for model in router.models() if may_use(router, caller, model)}
    for alias, resolved in router.aliases().items():
        if may_use(router, caller, resolved.model, alias):
            models[alias] = resolved.model
    return {name: model for name, model in models.items() if model.id not in gone} if gone else models


def _is_gone(router: Router, model: PublicModel, unknown: Collection[tuple[str, str]]) -> bool:
    targets = router.targets(model.id)
    return all(target.is_listed and (target.channel.name, target.model) in unknown for target in targets)


def _page(boundary: PageBoundary, ids: list[str], size: int) -> tuple[int, int]:
    place = bisect_left(ids, boundary.id)
    return (max(0, place - size), place) if boundary.back else (place, min(len(ids), place + size))
