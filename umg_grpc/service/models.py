"""The list of models, as the calling key may see it."""

import base64
import zlib
from bisect import bisect_left
from dataclasses import dataclass

from umg_grpc.inprocess import Context
from umg_grpc.routing import model_not_found
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
        models = {model.id: model for model in self._channels.router.models() if caller.may_use(model.id)}
        ids = sorted(models)
        start, end = _page(edge, ids, request.page_size if request.HasField("page_size") else len(ids))
        response = pb.ListModelsResponse(models=[models[model_id].described for model_id in ids[start:end]])
        if end < len(ids):
            response.next_page_token = _token(_behind(ids[end - 1]) if end > start else _Edge(edge.id))
        if start > 0:
            response.previous_page_token = _token(_Edge(ids[start] if end > start else edge.id, back=True))
        return response

    async def GetModel(self, request: pb.GetModelRequest, context: Context) -> pb.GetModelResponse:
        """One model, under the id asked for. One that this key may not use does not exist for it."""
        check(request)
        found = self._channels.router.resolve(request.model)
        if not current().caller.may_use(found.model.id):
            raise model_not_found(request.model)
        response = pb.GetModelResponse(model=found.model.described)
        if response.model.display_name == response.model.id:
            response.model.display_name = request.model
        response.model.id = request.model
        return response


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
