"""Decoding of the items in the input of a request, or in the output of a response, into canonical messages."""

import pybase64
from msgspec import Raw

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core import reasoning_state_conversion
from umg_grpc.wire.core.base64_media import decode_base64, sniff
from umg_grpc.wire.core.json_decoding import invalid, missing, parse
from umg_grpc.wire.core.sealed_summaries import SEALED_PREFIX
from umg_grpc.wire.core.unknown_role_messages import append_opaque_turn
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.responses import schema, typed_client_tools
from umg_grpc.wire.responses.content_parts import decode_content, decode_part
from umg_grpc.wire.responses.server_tools import decode_server_tool
from umg_grpc.wire.responses.tool_calls import decode_custom_call, decode_function_call

MESSAGE_ROLES = {
    "system": pb.ROLE_SYSTEM,
    "developer": pb.ROLE_DEVELOPER,
    "user": pb.ROLE_USER,
    "assistant": pb.ROLE_ASSISTANT,
}
ROLE_NAMES = {value: name for name, value in MESSAGE_ROLES.items()}
BARE_PARTS = ("input_text", "input_image", "input_file", "input_audio")
DECLARING_TYPES = ("additional_tools", "tool_search_output", "tool_search_call")
"""Types of items that declare tools, and of the items of the provider's own search among tools."""
COMPACTION_TRIGGER = "compaction_trigger"  # requests a summary of the conversation before it

OWN_PREFIX = "umg_"  # infix of ids that the gateway made (`rs_umg_...`); providers' ids do not have it

REDACTED_PREFIX = f"{reasoning_state_conversion.STATE_PREFIX}redacted."
"""Prefix of a shown reasoning state whose reasoning the provider hides (messages `redacted_thinking`)."""

AHEAD_PREFIX = f"{reasoning_state_conversion.STATE_PREFIX}ahead."
"""Prefix of a state in a separate item that belongs to the next item; without it, to the previous item."""


# --- caller -> canonical


class InputDecoder:
    """Decoder of the items of one `input`, in order, into messages. Raise UmgError with the path of the field.

    Each item becomes a message. But consecutive content parts without an item become one user message, and an item with
    only the reasoning state of another item, which has no field for it, sets the state of that item's part.
    """

    def __init__(self, request: pb.GenerateRequest, notes: RequestNotes) -> None:
        self._request = request
        self._messages = request.messages
        self._notes = notes
        self._turn: pb.Message | None = None  # of the bare parts just before
        self._last_model_part: pb.Part | None = None  # last part of the model, if it is just before
        self._ahead: pb.Part | None = None  # part with the state for the next item
        self._trigger = ""  # path of the item that requests a summary
        self.added: list[tuple[Raw, str]] = []  # tools that items declare, each with the path of its declaration

    def decode(self, items: str | list[Raw]) -> None:
        if isinstance(items, str):
            self._messages.add(role=pb.ROLE_USER).parts.add().text.text = items
            return
        for index, raw in enumerate(items):
            self._item(raw, f"input[{index}]")
        self._apply_state(None)
        if self._trigger:
            if self._trigger != f"input[{len(items) - 1}]":
                raise not_last(self._trigger)
            self._request.compaction.SetInParent()

    def _item(self, raw: Raw, at: str) -> None:  # noqa: PLR0912 - one case a kind
        head = parse(schema.ItemHead, raw, at)
        if head.type in BARE_PARTS:
            self._apply_state(None)
            if self._turn is None:
                self._turn = self._messages.add(role=pb.ROLE_USER)
            decode_part(raw, self._turn, at)
            self._last_model_part = None
            return
        self._turn = None
        match head.type or ("message" if head.role is not None else None):
            case "message" if head.role is not None and head.role not in MESSAGE_ROLES:
                self._apply_state(None)
                self._last_model_part = None
                append_opaque_turn(self._request, self._notes, raw, head.role, f"{at}.role")
            case "message":
                self._message(parse(schema.MessageItem, raw, at), f"{at}.content")
            case kind if kind in typed_client_tools.TOOLS_BY_OUTPUT and self._client_result(raw, kind, at):
                pass
            case kind if kind in DECLARING_TYPES and self._add_declared_tools(raw, kind, at):
                pass
            case "function_call_output" | "custom_tool_call_output":
                self._result(parse(schema.CallOutput, raw, at), at, custom=head.type == "custom_tool_call_output")
            case "reasoning":
                self._reasoning(parse(schema.ReasoningItem, raw, at))
            case "compaction" if self._add_summary(raw, at):
                pass
            case kind if kind == COMPACTION_TRIGGER:
                if self._trigger:
                    raise not_last(self._trigger)
                self._trigger = at
            case None if head.id is None:
                raise missing(f"{at}.type")
            case kind:  # all other types are decoded on their own, unknown ones as raw JSON
                message = pb.Message(role=pb.ROLE_ASSISTANT)
                decode_item(raw, kind or "item_reference", message, at)
                self._add(message)
                if message.parts[0].HasField("opaque"):
                    self._notes.opaque_paths[f"messages[{len(self._messages) - 1}].parts[0]"] = at

    def _tools(self, raw: Raw, at: str) -> list[tuple[Raw, str]]:
        tools = parse(schema.AdditionalTools, raw, at).tools
        return [(tool, f"{at}.tools[{index}]") for index, tool in enumerate(tools)]

    def _add_declared_tools(self, raw: Raw, kind: str, at: str) -> bool:
        """Add the tools that an item declares to `added`, and the item to the messages as raw JSON."""
        if kind == "tool_search_call":
            if typed_client_tools.decode_call(raw, kind, pb.Part(), at):
                return False
        else:
            self.added += self._tools(raw, at)
        message = pb.Message()
        _add_opaque(raw, kind, message)
        message.parts[0].opaque.handling = pb.OPAQUE_HANDLING_CARRIED
        self._add(message)
        self._notes.opaque_paths[f"messages[{len(self._messages) - 1}].parts[0]"] = at
        return True

    def _client_result(self, raw: Raw, kind: str, at: str) -> bool:
        """Add the result of a tool that has a type but no schema (a shell), and that the caller ran, as a message."""
        part = pb.Part()
        if not typed_client_tools.decode_output(raw, kind, part.tool_result, at):
            return False
        self._apply_state(None)
        if kind == "tool_search_output":
            self.added += self._tools(raw, at)
        self._messages.add(role=pb.ROLE_TOOL, parts=[part])
        self._last_model_part = None
        return True

    def _add_summary(self, raw: Raw, at: str) -> bool:
        item = parse(schema.CompactionItem, raw, at)
        if item.encrypted_content is None or not item.encrypted_content.startswith(SEALED_PREFIX):
            return False
        self._apply_state(None)
        self._last_model_part = None
        index, part = len(self._messages), self._messages.add(role=pb.ROLE_USER).parts.add()
        part.compaction.encrypted_content, part.compaction.item_id = item.encrypted_content, item.id or ""
        self._notes.compactions.append(index)
        self._notes.opaque_paths[f"messages[{index}].parts[0]"] = at
        return True

    def _apply_state(self, part: pb.Part | None) -> None:
        """Set the reasoning state that an earlier item contained, if any, on the part of the item that follows it."""
        waiting, self._ahead = self._ahead, None
        if waiting is None:
            return
        if part is None:
            self._messages.add(role=pb.ROLE_ASSISTANT, parts=[waiting])
        else:
            part.state.CopyFrom(waiting.state)

    def _add(self, message: pb.Message) -> None:
        first = message.parts[0]
        if first.HasField("opaque"):
            message.role = pb.ROLE_UNSPECIFIED
        self._apply_state(first if first.HasField("tool_call") else None)
        self._messages.append(message)
        self._last_model_part = self._messages[-1].parts[0]

    def _message(self, item: schema.MessageItem, at: str) -> None:
        self._apply_state(None)
        message = self._messages.add(role=MESSAGE_ROLES[item.role])
        message.message_id, message.phase = item.id or "", item.phase or ""
        decode_content(item.content, message, at)
        for position, part in enumerate(message.parts):
            if part.HasField("opaque"):
                self._notes.opaque_paths[f"messages[{len(self._messages) - 1}].parts[{position}]"] = f"{at}[{position}]"
        self._last_model_part = message.parts[-1] if item.role == "assistant" and message.parts else None

    def _result(self, item: schema.CallOutput, at: str, *, custom: bool) -> None:
        if item.call_id is None and item.name is None:
            raise missing(f"{at}.call_id")
        self._apply_state(None)
        result = self._messages.add(role=pb.ROLE_TOOL).parts.add().tool_result
        result.call_id, result.name, result.item_id = item.call_id or "", item.name or "", item.id or ""
        result.custom = custom
        if item.output != "":
            decode_content(item.output, result, f"{at}.output")
        self._last_model_part = None

    def _reasoning(self, item: schema.ReasoningItem) -> None:
        part = pb.Part()
        decode_reasoning(item, part, shown=True)
        bare = part.state.format == "native" and not (part.reasoning.texts or part.reasoning.summaries)
        if bare and (item.encrypted_content or "").startswith(AHEAD_PREFIX):
            self._apply_state(None)
            self._ahead = part
        elif bare and self._last_model_part is not None:
            self._last_model_part.state.CopyFrom(part.state)
        else:
            self._add(pb.Message(role=pb.ROLE_ASSISTANT, parts=[part]))


def not_last(at: str) -> UmgError:
    """Return the error for an item that requests a summary but is not last. `at`: path of the item."""
    return invalid(at, f"`{COMPACTION_TRIGGER}` must be the final item of `input`, and may occur once; send it last")


# --- caller or provider -> canonical


def decode_item(raw: Raw, kind: str, message: pb.Message, at: str) -> None:
    """Decode an item other than a message or reasoning; an unknown type as raw JSON. Raise UmgError with the path."""
    match kind:
        case "function_call":
            decode_function_call(raw, message, at)
        case "custom_tool_call":
            decode_custom_call(raw, message, at)
        case _ if kind in typed_client_tools.TOOLS_BY_CALL and typed_client_tools.decode_call(
            raw, kind, part := pb.Part(), at
        ):
            message.parts.append(part)
        case "web_search_call" | "file_search_call" | "code_interpreter_call":
            decode_server_tool(raw, kind, message, at)
        case "image_generation_call":
            image = parse(schema.ImageItem, raw, at)
            if image.result:
                media = message.parts.add().media
                media.kind, media.media_id = pb.MEDIA_KIND_IMAGE, image.id or ""
                media.data = decode_base64(image.result, f"{at}.result")
                media.mime_type = sniff(media.data) or "image/png"
            else:
                _add_opaque(raw, kind, message)
        case _:  # types grow with the format: an unknown one is kept as raw JSON
            _add_opaque(raw, kind, message)


def decode_reasoning(item: schema.ReasoningItem, part: pb.Part, *, shown: bool) -> None:
    """Decode a reasoning item. `shown`: a caller sent it as this gateway encoded it, with a state of any format, and
    with reasoning of another format in the summary, which clients display.
    """
    thoughts = part.reasoning
    thoughts.SetInParent()
    thoughts.item_id = item.id or ""
    thoughts.texts.extend(piece.text for piece in item.content or ())
    if text := item.encrypted_content:
        if shown:
            thoughts.redacted = text.startswith(REDACTED_PREFIX)
            part.state.CopyFrom(read_state(text))
        else:
            # state that `response.mark_states` marked when it was passed through, read from frames that were kept
            part.state.format, part.state.data = (
                "responses",
                text.removeprefix(f"{reasoning_state_conversion.STATE_PREFIX}responses."),
            )
    ours = thoughts.item_id.startswith(f"rs_{OWN_PREFIX}") and not part.HasField("state")
    foreign = ours or part.state.format not in ("", "responses")
    summary = [piece.text for piece in item.summary or ()]
    (thoughts.texts if shown and foreign else thoughts.summaries).extend(summary)


def _add_opaque(raw: Raw, kind: str, message: pb.Message) -> None:
    opaque = message.parts.add().opaque
    opaque.format, opaque.type, opaque.json = "responses", kind, str(raw, "utf-8")


# --- canonical -> caller or provider


def reasoning_item(part: pb.Part, item_id: str, *, shown: bool) -> dict[str, object]:
    """Return a `reasoning` item without state. `shown`: the summary, which clients display, has all texts."""
    thoughts = part.reasoning
    texts = [*thoughts.texts, *thoughts.summaries] if shown else thoughts.summaries
    item: dict[str, object] = {
        "id": item_id,
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text} for text in texts],
    }
    if thoughts.texts and not shown:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in thoughts.texts]
    return item


def shown_state(part: pb.Part, *, ahead: bool = False) -> str:
    """Return a part's state as `encrypted_content`. `ahead`: it is in a separate item before the item of the part."""
    marks = (AHEAD_PREFIX if ahead else "") + (REDACTED_PREFIX if part.reasoning.redacted else "")
    return marks + reasoning_state_conversion.show(part.state, "responses")


def read_state(text: str) -> pb.ReasoningState:
    """Return the reasoning state in a caller's `encrypted_content`, with the format of the provider that created it."""
    return reasoning_state_conversion.read(text.removeprefix(AHEAD_PREFIX).removeprefix(REDACTED_PREFIX), "responses")


def compaction_item(encrypted_content: str, item_id: str) -> dict[str, object]:
    """Return a sealed summary as an item of type `compaction`."""
    return {"id": item_id, "type": "compaction", "encrypted_content": encrypted_content}


def image_item(media: pb.MediaPart, item_id: str) -> dict[str, object]:
    """Return an image that the model generated as an item of type `image_generation_call`, with its bytes in base64."""
    return {
        "id": item_id,
        "type": "image_generation_call",
        "status": "completed",
        "result": pybase64.b64encode_as_string(media.data),
    }
