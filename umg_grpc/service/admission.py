"""From a caller's message to a request that may be served: decoded, checked, allowed, and under its family's rules."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from google.protobuf.message import Message

from umg_grpc import families
from umg_grpc.access.limits import RequestLimits
from umg_grpc.errors import UmgError
from umg_grpc.routing import Resolved
from umg_grpc.service.call import Call
from umg_grpc.service.channels import Channels
from umg_grpc.service.sources import read_source
from umg_grpc.service.validation import check
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS
from umg_grpc.wire.format import TextFormat, name_model
from umg_grpc.wire.json import invalid


class Admitted(NamedTuple):
    """A request that may be served."""

    request: pb.GenerateRequest
    resolved: Resolved


class Admission:
    """Decides what is served."""

    def __init__(self, channels: Channels, limits: RequestLimits, body_limit: int) -> None:
        self._channels = channels
        self._limits = limits
        self._body_limit = body_limit  # of a source document, in bytes: the same that the HTTP face has

    async def admit(self, call: Call, message: Message, request: pb.GenerateRequest, *, stream: bool) -> Admitted:
        """The request to serve: what an untrusted source document says, else what the caller filled in. Raises UmgError
        for what breaks a rule of the schema (in `message`, which holds the request) or of the model's family, and when
        the key may not have it now.
        """
        admitted = await self.look(call, message, request)
        self.rule(admitted, stream=stream)
        await self._limits.admit(call.caller)
        call.model = admitted.resolved.model.id  # also of one that comes to no channel
        return admitted

    def rule(self, admitted: Admitted, *, stream: bool) -> None:
        """Check the tool that has to be called, and put the request under the rules of its model's family. Raises
        UmgError.
        """
        request, resolved = admitted
        if not request.thread.previous_response_id:  # whose tools its thread keeps
            _check_choice(request)
        families.apply(request, resolved.rules, resolved.suffix, stream=stream)

    async def look(
        self, call: Call, message: Message, request: pb.GenerateRequest, *, counted: bool = False
    ) -> Admitted:
        """The same for a request that is only looked at: no family changes it, and no limit counts it. `counted`: its
        source is the body of a counting call, where the format has one of its own.

        What a codec decoded is not held against the rules again: its own are as strict (a test holds every codec to
        that), and a look at each part of a long conversation takes longer than all else here.
        """
        if not request.HasField("source"):
            check(message if message is request or not request.ListFields() else request)
        elif not call.trusted:
            request = await self._decoded(request, counted=counted)
        if not (
            request.messages
            or request.instructions
            or request.previous_response_id
            or request.conversation_id
            or request.thread.previous_response_id
            or request.HasField("prompt_template")
        ):
            text = "messages must not be empty; send at least one"
            raise UmgError(pb.ERROR_REASON_MISSING_FIELD, text, field="messages")
        resolved = self._channels.router.resolve(request.model)  # one that does not exist is 404 for every key
        call.caller.check_model(resolved.model.id, resolved.alias)
        self._channels.router.check(resolved.model.id, pb.MODEL_OPERATION_GENERATE, call.caller.channels)
        return Admitted(request, resolved)

    async def _decoded(self, given: pb.GenerateRequest, *, counted: bool) -> pb.GenerateRequest:
        def decode(codec: TextFormat, body: bytes, headers: Mapping[str, str]) -> pb.GenerateRequest:
            if counted and codec.decode_count is not None:
                request = codec.decode_count(body, headers)
            else:
                request = codec.decode_request(body, headers).canonical
            if codec.model_in_path:
                name_model(request, given.model)
            return request

        return await read_source(given.source, FORMATS, decode, none="no text format", limit=self._body_limit)


def _check_choice(request: pb.GenerateRequest) -> None:
    """Raises UmgError(INVALID_FIELD) where a tool has to be called that the request does not have. What only a provider
    knows (a tool of one format, a template, cached content) may have any.
    """
    choice, tools = request.tool_choice, request.tools
    if choice.mode != pb.TOOL_CHOICE_MODE_REQUIRED or any(tool.HasField("opaque") for tool in tools):
        return
    if request.HasField("prompt_template") or request.cached_content:
        return
    if not tools:
        raise invalid("tool_choice", "a tool is required and there are none; add `tools`")
    known = {name for tool in tools for name in _names(tool)}
    for position, name in enumerate(choice.names):
        if name not in known:
            raise invalid(f"tool_choice.names[{position}]", f"there is no tool `{name[:64]}`; name one of `tools`")


def _names(tool: pb.Tool) -> Sequence[str]:
    """The names by which a tool may be chosen."""
    match tool.WhichOneof("kind"):
        case "function":
            return (tool.function.name,)
        case "custom":
            return (tool.custom.name,)
        case "web_search":
            return ("web_search", tool.web_search.declared_type)
        case "file_search":
            return ("file_search",)
        case _:
            return ()
