"""The list of models, as the calling key may see it."""

from umg_grpc.inprocess import Context
from umg_grpc.routing import PublicModel, model_not_found
from umg_grpc.service.call import current
from umg_grpc.service.channels import Channels
from umg_grpc.service.validation import check
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import FORMATS


class ModelServicer(rpc.ModelServiceServicer):
    """`umg.v1.ModelService`."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:
        """One page of the models of this key, by id."""
        check(request)
        caller = current().caller
        models = sorted(
            (model for model in self._channels.router.models() if caller.may_use(model.id)), key=lambda m: m.id
        )
        start, end = _page(request, [model.id for model in models])
        response = pb.ListModelsResponse(models=[_model(model) for model in models[start:end]])
        if end < len(models):
            response.next_page_token = models[end - 1].id
        if start > 0:
            response.previous_page_token = models[start].id if start < len(models) else models[-1].id
        return response

    async def GetModel(self, request: pb.GetModelRequest, context: Context) -> pb.GetModelResponse:
        """One model. One that this key may not use does not exist for it."""
        check(request)
        caller = current().caller
        model = self._channels.router.model(request.model)
        if not caller.may_use(model.id):
            raise model_not_found(request.model)
        return pb.GetModelResponse(model=_model(model))


def _page(request: pb.ListModelsRequest, ids: list[str]) -> tuple[int, int]:
    """First and last+1 position of the page. A position is an id: a list that changes between two pages loses
    nothing.
    """
    size = request.page_size if request.HasField("page_size") else len(ids)
    after = request.page_token or request.after_id
    if request.before_id:
        end = sum(1 for model_id in ids if model_id < request.before_id)
        return max(0, end - size), end
    start = sum(1 for model_id in ids if model_id <= after) if after else 0
    return start, min(len(ids), start + size)


def _model(model: PublicModel) -> pb.Model:
    described = pb.Model(
        id=model.id,
        owned_by=model.owned_by,
        display_name=model.display_name,
        family=model.family,
        operations=[pb.MODEL_OPERATION_GENERATE],
        formats=list(FORMATS),
        lifecycle=pb.MODEL_LIFECYCLE_ACTIVE,
    )
    if model.create_time is not None:
        described.create_time.FromDatetime(model.create_time)
    return described
