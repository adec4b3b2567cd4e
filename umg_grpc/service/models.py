"""The list of models, as the calling key may see it."""

import base64
import zlib
from bisect import bisect_left
from dataclasses import dataclass

from umg_grpc.access.caller import Caller
from umg_grpc.inprocess import Context
from umg_grpc.routing import PublicModel, Router, model_not_found, under_name
from umg_grpc.service.call import current
from umg_grpc.service.channels import Channels
from umg_grpc.service.validation import check
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.json import invalid


class ModelServicer(rpc.ModelServiceServicer):
    """`umg.v1.ModelService`."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:
        """One page of the models of this key, by id."""
        check(request)
        edge, caller = _edge(request), current().caller
        models = _models(self._channels.router, caller)
        ids = sorted(models)
        start, end = _page(edge, ids, request.page_size if request.HasField("page_size") else len(ids))
        response = pb.ListModelsResponse(models=[under_name(models[name], name) for name in ids[start:end]])
        if end < len(ids):
            response.next_page_token = _token(_behind(ids[end - 1]) if end > start else _Edge(edge.id))
        if start > 0:
            response.previous_page_token = _token(_Edge(ids[start] if end > start else edge.id, back=True))
        return response

    async def GetModel(self, request: pb.GetModelRequest, context: Context) -> pb.GetModelResponse:
        """One model, under the id asked for. One that this key may not use does not exist for it."""
        check(request)
        router = self._channels.router
        found = router.resolve(request.model)
        if not _may_use(router, current().caller, found.model, found.alias):
            raise model_not_found(request.model)
        return pb.GetModelResponse(model=under_name(found.model, request.model))


def _models(router: Router, caller: Caller) -> dict[str, PublicModel]:
    """Those that the key may use, by all their names."""
    models = {model.id: model for model in router.models() if _may_use(router, caller, model)}
    for alias, stands_for in router.aliases().items():
        if _may_use(router, caller, stands_for.model, alias):
            models[alias] = stands_for.model
    return models


def _may_use(router: Router, caller: Caller, model: PublicModel, alias: str = "") -> bool:
    """Whether the key's models have it, and one of the key's channels serves it."""
    return caller.may_use(model.id, alias) and router.reaches(model.id, caller.channels)


@dataclass(frozen=True)
class _Edge:
    """A place between two ids: in front of the first that is not less than this one. A list that changes between two
    pages loses nothing by it.
    """

    id: str = ""
    back: bool = False
    """Whether the page ends there; else it begins there."""


def _behind(model: str) -> _Edge:
    return _Edge(f"{model}\0")  # the least id that is greater


def _edge(request: pb.ListModelsRequest) -> _Edge:
    """Where the page stands. Raises UmgError(INVALID_FIELD) for a token that is none."""
    match request.WhichOneof("position"):
        case "page_token":
            return _read_token(request.page_token)
        case "after_id":
            return _behind(request.after_id)
        case "before_id":
            return _Edge(request.before_id, back=True)
        case None:
            return _Edge()


def _page(edge: _Edge, ids: list[str], size: int) -> tuple[int, int]:
    """First and last+1 position of the page."""
    place = bisect_left(ids, edge.id)
    return (max(0, place - size), place) if edge.back else (place, min(len(ids), place + size))


def _token(edge: _Edge) -> str:
    said = (b"<" if edge.back else b">") + edge.id.encode()
    return base64.urlsafe_b64encode(zlib.crc32(said).to_bytes(4) + said).decode().rstrip("=")


def _read_token(token: str) -> _Edge:
    """The inverse. Raises UmgError(INVALID_FIELD) for any text that `_token` did not make."""
    try:
        said = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[4:].decode()
    except ValueError:
        said = ""
    edge = _Edge(said[1:], back=said.startswith("<"))
    if _token(edge) != token:
        raise invalid(
            "page_token", "no earlier answer gave this token; send one as it came, or none for the first page"
        )
    return edge
