"""Items of an input or an output -> parts and messages."""

import base64

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire import state
from umg_grpc.wire.json import given, missing, parse
from umg_grpc.wire.media import decode_base64, sniff
from umg_grpc.wire.opaque import keep_turn
from umg_grpc.wire.responses import client_tools, schema
from umg_grpc.wire.responses.content import decode_content, decode_part

ROLES = {
    "system": pb.ROLE_SYSTEM,
    "developer": pb.ROLE_DEVELOPER,
    "user": pb.ROLE_USER,
    "assistant": pb.ROLE_ASSISTANT,
}
ROLE_NAMES = {value: name for name, value in ROLES.items()}
BARE_PARTS = ("input_text", "input_image", "input_file", "input_audio")
SERVER_TOOLS = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_execution",
}

DECLARING = ("additional_tools", "tool_search_output", "tool_search_call")
"""Items that declare tools, and those of the provider's own search among tools."""

OURS = "umg_"
"""Behind the prefix of ids that we made (`rs_umg_...`), so that they are told from a provider's."""

REDACTED = f"{state.PREFIX}redacted."
"""Before the state of reasoning that its provider hides (messages `redacted_thinking`), where it is shown."""

AHEAD = f"{state.PREFIX}ahead."
"""Before a state that stands for itself, of the item that follows it; without this it is of the item before."""


# --- caller -> canonical


class InputDecoder:
    """The items of one input, in order. Each is a message of its own; bare parts that follow one another are one turn
    of the user, and the state of a part, which has no place in this format, is no item. Raises UmgError naming the
    field.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._request = request
        self._messages = request.messages
        self._paths = request.source.opaque_paths
        self._turn: pb.Message | None = None  # of the bare parts just before
        self._made: pb.Part | None = None  # last part that the model made, just before
        self._ahead: pb.Part | None = None  # whose state is that of the next item
        self.added: list[tuple[Raw, str]] = []
        """Tools that items declare, each with its path."""

    def decode(self, items: str | list[Raw]) -> None:
        """Fills `request.messages`."""
        if isinstance(items, str):
            self._messages.add(role=pb.ROLE_USER).parts.add().text.text = items
            return
        for index, raw in enumerate(items):
            self._item(raw, f"input[{index}]")
        self._take_ahead(None)

    def _item(self, raw: Raw, at: str) -> None:
        head = parse(schema.ItemHead, raw, at)
        if head.type in BARE_PARTS:
            self._take_ahead(None)
            if self._turn is None:
                self._turn = self._messages.add(role=pb.ROLE_USER)
            decode_part(raw, self._turn, at)
            self._made = None
            return
        self._turn = None
        match head.type or ("message" if head.role is not None else None):
            case "message" if head.role is not None and head.role not in ROLES:
                self._take_ahead(None)
                self._made = None
                keep_turn(self._request, raw, head.role, f"{at}.role")
            case "message":
                self._message(parse(schema.MessageItem, raw, at), f"{at}.content")
            case kind if kind in client_tools.OUTPUTS and self._client_result(raw, kind, at):
                pass
            case kind if kind in DECLARING and self._declares(raw, kind, at):
                pass
            case "function_call_output" | "custom_tool_call_output":
                self._result(parse(schema.CallOutput, raw, at), at, custom=head.type == "custom_tool_call_output")
            case "reasoning":
                self._reasoning(parse(schema.ReasoningItem, raw, at))
            case None if head.id is None:
                raise missing(f"{at}.type")
            case kind:
                message = pb.Message(role=pb.ROLE_ASSISTANT)
                decode_item(raw, kind or "item_reference", message, at)
                self._add(message)
                if message.parts[0].HasField("opaque"):
                    self._paths[f"messages[{len(self._messages) - 1}].parts[0]"] = at

    def _tools(self, raw: Raw, at: str) -> list[tuple[Raw, str]]:
        tools = parse(schema.AdditionalTools, raw, at).tools
        return [(tool, f"{at}.tools[{index}]") for index, tool in enumerate(tools)]

    def _declares(self, raw: Raw, kind: str, at: str) -> bool:
        """Take the tools of an item that declares some, or of the provider's own search among tools, into the tools of
        the request. Return False for a call of the caller's own search.
        """
        if kind == "tool_search_call":
            if client_tools.decode_call(raw, kind, pb.Part(), at):
                return False
        else:
            self.added += self._tools(raw, at)
        message = pb.Message()
        _keep(raw, kind, message)
        message.parts[0].opaque.handling = pb.OPAQUE_HANDLING_CARRIED
        self._add(message)
        self._paths[f"messages[{len(self._messages) - 1}].parts[0]"] = at
        return True

    def _client_result(self, raw: Raw, kind: str, at: str) -> bool:
        """Add the result of a tool that the caller runs. Return False for another's."""
        part = pb.Part()
        if not client_tools.decode_output(raw, kind, part.tool_result, at):
            return False
        self._take_ahead(None)
        if kind == "tool_search_output":
            self.added += self._tools(raw, at)
        self._messages.add(role=pb.ROLE_TOOL, parts=[part])
        self._made = None
        return True

    def _take_ahead(self, part: pb.Part | None) -> None:
        """Gives the state that waits for the next item to its part; to None where that is not the model's."""
        waiting, self._ahead = self._ahead, None
        if waiting is None:
            return
        if part is None:
            self._messages.add(role=pb.ROLE_ASSISTANT, parts=[waiting])
        else:
            part.state.CopyFrom(waiting.state)

    def _add(self, message: pb.Message) -> None:
        """Adds what the model made; an item of an unknown type has no role."""
        first = message.parts[0]
        if first.HasField("opaque"):
            message.role = pb.ROLE_UNSPECIFIED
        self._take_ahead(first if first.HasField("tool_call") else None)
        self._messages.append(message)
        self._made = self._messages[-1].parts[0]

    def _message(self, item: schema.MessageItem, at: str) -> None:
        self._take_ahead(None)
        message = self._messages.add(role=ROLES[item.role])
        message.message_id, message.phase = item.id or "", item.phase or ""
        decode_content(item.content, message, at)
        for position, part in enumerate(message.parts):
            if part.HasField("opaque"):
                self._paths[f"messages[{len(self._messages) - 1}].parts[{position}]"] = f"{at}[{position}]"
        self._made = message.parts[-1] if item.role == "assistant" and message.parts else None

    def _result(self, item: schema.CallOutput, at: str, *, custom: bool) -> None:
        if item.call_id is None and item.name is None:
            raise missing(f"{at}.call_id")
        self._take_ahead(None)
        result = self._messages.add(role=pb.ROLE_TOOL).parts.add().tool_result
        result.call_id, result.name, result.item_id = item.call_id or "", item.name or "", item.id or ""
        result.custom = custom
        if item.output != "":
            decode_content(item.output, result, f"{at}.output")
        self._made = None

    def _reasoning(self, item: schema.ReasoningItem) -> None:
        """Reasoning, or only the state of the part before or behind it."""
        part = pb.Part()
        decode_reasoning(item, part, shown=True)
        bare = part.state.format == "native" and not (part.reasoning.texts or part.reasoning.summaries)
        if bare and (item.encrypted_content or "").startswith(AHEAD):
            self._take_ahead(None)
            self._ahead = part
        elif bare and self._made is not None:
            self._made.state.CopyFrom(part.state)
        else:
            self._add(pb.Message(role=pb.ROLE_ASSISTANT, parts=[part]))


# --- caller or provider -> canonical


def decode_item(raw: Raw, kind: str, message: pb.Message, at: str) -> None:
    """Adds what an item other than a message or reasoning holds: one part, two for a search with its sources.

    Raises UmgError naming the field below `at`.
    """
    match kind:
        case "function_call":
            call = parse(schema.FunctionCall, raw, at)
            target = message.parts.add().tool_call
            target.call_id, target.name, target.item_id = call.call_id, call.name, call.id or ""
            target.arguments_json, target.namespace = call.arguments or "", call.namespace or ""
        case "custom_tool_call":
            custom = parse(schema.CustomCall, raw, at)
            target = message.parts.add().tool_call
            target.call_id, target.name, target.item_id = custom.call_id, custom.name, custom.id or ""
            target.text, target.namespace = custom.input or "", custom.namespace or ""
        case _ if kind in client_tools.CALLS and client_tools.decode_call(raw, kind, part := pb.Part(), at):
            message.parts.append(part)
        case "web_search_call" | "file_search_call" | "code_interpreter_call":
            _decode_server_tool(parse(schema.ToolItem, raw, at), SERVER_TOOLS[kind], message, at)
        case "image_generation_call":
            image = parse(schema.ImageItem, raw, at)
            if image.result:
                media = message.parts.add().media
                media.kind, media.media_id = pb.MEDIA_KIND_IMAGE, image.id or ""
                media.data = decode_base64(image.result, f"{at}.result")
                media.mime_type = sniff(media.data) or "image/png"
            else:
                _keep(raw, kind, message)
        case _:
            _keep(raw, kind, message)


def decode_reasoning(item: schema.ReasoningItem, part: pb.Part, *, shown: bool) -> None:
    """`shown`: whether the state comes from a caller, to whom that of any format is shown.

    Thoughts of another format stand in the summary, since that is what this format's clients show.
    """
    thoughts = part.reasoning
    thoughts.SetInParent()
    thoughts.item_id = item.id or ""
    thoughts.texts.extend(piece.text for piece in item.content or ())
    if text := item.encrypted_content:
        if shown:
            thoughts.redacted = text.startswith(REDACTED)
            part.state.CopyFrom(read_state(text))
        else:
            # what was marked when it was passed on (`response.wrapped`), and is read from the frames that were kept
            part.state.format, part.state.data = "responses", text.removeprefix(f"{state.PREFIX}responses.")
    ours = thoughts.item_id.startswith(f"rs_{OURS}") and not part.HasField("state")
    foreign = ours or part.state.format not in ("", "responses")
    summary = [piece.text for piece in item.summary or ()]
    (thoughts.texts if shown and foreign else thoughts.summaries).extend(summary)


def _decode_server_tool(item: schema.ToolItem, name: str, message: pb.Message, at: str) -> None:
    call = message.parts.add().server_tool_call
    call.call_id, call.name = item.id or "", name
    call.status = "" if item.status in (None, "completed") else item.status or ""
    call.queries.extend(item.queries or ())
    sources: list[schema.SearchSource] = []
    if given(item.action):
        action = parse(schema.SearchAction, item.action, f"{at}.action")
        call.input_json, call.format = str(item.action, "utf-8"), "responses"
        call.queries.extend(action.queries or ([action.query] if action.query else ()))
        sources = action.sources or []
    elif item.code is not None:
        call.input_json, call.format = msgspec.json.encode(item.code).decode(), "responses"
    output = item.outputs if given(item.outputs) else item.results
    if not sources and not given(output):
        return
    result = message.parts.add().server_tool_result
    result.call_id, result.name = call.call_id, name
    result.results.extend(pb.SearchResult(url=source.url) for source in sources if source.url)
    if given(output):
        result.output_json, result.format = str(output, "utf-8"), "responses"


def _keep(raw: Raw, kind: str, message: pb.Message) -> None:
    opaque = message.parts.add().opaque
    opaque.format, opaque.type, opaque.json = "responses", kind, str(raw, "utf-8")


# --- canonical -> caller or provider


def reasoning_item(part: pb.Part, item_id: str, *, shown: bool) -> dict[str, object]:
    """A `reasoning` item. `shown`: all thoughts go into the summary, which is what clients show."""
    thoughts = part.reasoning
    said = [*thoughts.texts, *thoughts.summaries] if shown else thoughts.summaries
    item: dict[str, object] = {
        "id": item_id,
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text} for text in said],
    }
    if thoughts.texts and not shown:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in thoughts.texts]
    return item


def shown_state(part: pb.Part, *, ahead: bool = False) -> str:
    """The part's state for a caller. `ahead`: whether it stands in an item of its own before that of the part."""
    marks = (AHEAD if ahead else "") + (REDACTED if part.reasoning.redacted else "")
    return marks + state.show(part.state, "responses")


def read_state(text: str) -> pb.ReasoningState:
    """The state that a caller was shown as this."""
    return state.read(text.removeprefix(AHEAD).removeprefix(REDACTED), "responses")


def image_item(media: pb.MediaPart, item_id: str) -> dict[str, object]:
    """An `image_generation_call` item."""
    return {
        "id": item_id,
        "type": "image_generation_call",
        "status": "completed",
        "result": base64.b64encode(media.data).decode(),
    }
