"""Encoding of output items and of the response object for callers, for complete and for streamed responses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, json_text
from umg_grpc.wire.responses.content_parts import encode_annotations, encode_logprob
from umg_grpc.wire.responses.decode_messages import OWN_PREFIX, compaction_item, image_item, shown_state
from umg_grpc.wire.responses.echoed_request_fields import service_tier
from umg_grpc.wire.responses.encode_options import ENCRYPTED_INCLUDE
from umg_grpc.wire.responses.server_tools import SERVER_ITEMS, server_item
from umg_grpc.wire.responses.tool_calls import call_item, call_prefix
from umg_grpc.wire.responses.usage import encode_usage

SOURCES_INCLUDE = "web_search_call.action.sources"
INCOMPLETE_NAMES = {
    pb.FINISH_REASON_LENGTH: "max_output_tokens",
    pb.FINISH_REASON_CONTEXT_FULL: "max_output_tokens",
    pb.FINISH_REASON_OTHER: "max_output_tokens",  # a reason without an equivalent here: the response may be incomplete
    pb.FINISH_REASON_PAUSE: "max_output_tokens",  # the turn continues in another call
    pb.FINISH_REASON_COMPACTION: "max_output_tokens",
    pb.FINISH_REASON_CONTENT_FILTER: "content_filter",
    pb.FINISH_REASON_RECITATION: "content_filter",
    pb.FINISH_REASON_REFUSAL: "content_filter",  # without a refusal text; a response with one is complete
}
PASSED_REASONS = ("max_messages", "steered")  # a provider's own reasons, of this format
UNREADABLE_CALL = "the model made a tool call that cannot be read; try again"

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Shown:
    """Optional content that the caller gets: reasoning states, sources of searches, reasoning texts."""

    states: bool  # state of the reasoning
    sources: bool  # sources of searches
    thoughts: bool

    @classmethod
    def of(cls, request: pb.GenerateRequest) -> "Shown":
        """Return the selected content: states and sources by `include`, texts unless the summary is `none`."""
        include = set(request.include)
        return cls(ENCRYPTED_INCLUDE in include, SOURCES_INCLUDE in include, request.reasoning.summary != "none")


class Ids:
    """Ids of a response's items: the provider's or, if missing or repeated, made of response id and item index."""

    def __init__(self, response_id: str) -> None:
        self._core = "".join(filter(str.isalnum, response_id))[-32:]
        self._taken: set[str] = set()

    def item(self, prefix: str, given: str, index: int) -> str:
        """Return the item's unique id: `given`, or a new one with `prefix` if `given` is "" or already used."""
        item_id = given if given and given not in self._taken else f"{prefix}{OWN_PREFIX}{self._core}_{index}"
        self._taken.add(item_id)
        return item_id

    def call(self, call: pb.ToolCall, index: int) -> str:
        """Return the id that pairs a call with its result: the provider's, or one of response id and item index."""
        return call.call_id or f"call_{self._core}_{index}"


# --- items


def kind_of(part: pb.Part) -> str:
    """Return the kind of item for a part: `message`, `reasoning`, `call`, `server` (tool of the provider), `image`,
    `compaction`, `opaque` (raw JSON); "" for a part that this format cannot express.
    """
    if part.thought:
        return ""
    match part.WhichOneof("kind"):
        case "text" | "refusal":
            return "message"
        case "reasoning":
            return "reasoning"
        case "tool_call":
            return "call"
        case "server_tool_call" if part.server_tool_call.name in SERVER_ITEMS:
            return "server"
        case "media" if part.media.kind == pb.MEDIA_KIND_IMAGE:
            return "message" if part.media.HasField("uri") else "image"
        case "compaction":
            return "compaction"
        case "opaque" if part.opaque.format == "responses":
            return "opaque"
        case "server_tool_call" | "server_tool_result" | "media" | "opaque" | "tool_result" | None:
            return ""
        case unhandled:
            assert_never(unhandled)


def has_state(part: pb.Part, shown: Shown) -> bool:
    """Return whether a part's state becomes a `reasoning` item: the caller gets states, and the part's item has no
    field for it. It precedes a tool call, but follows any other part, whose state is known only at its end.
    """
    return shown.states and part.HasField("state") and not part.HasField("reasoning")


def image_text(media: pb.MediaPart) -> str:
    """Return a Markdown image for an image that has only a URL, since image items contain bytes."""
    return f"![image]({media.uri})"


def text_content(text: str, annotations: list[object], logprobs: list[JsonObject]) -> JsonObject:
    """Return a content part of type `output_text` with its encoded annotations and log probabilities."""
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": logprobs}


def refusal_content(text: str) -> JsonObject:
    """Encode a `refusal` part."""
    return {"type": "refusal", "refusal": text}


def message_item(item_id: str, status: str, phase: str, content: list[JsonObject]) -> JsonObject:
    """Return an item of type `message`. `phase`: the provider's mark of commentary or final response, "" if there is
    none.
    """
    item: JsonObject = {"id": item_id, "type": "message", "status": status, "role": "assistant", "content": content}
    if phase:
        item["phase"] = phase
    return item


def reasoning_item(item_id: str, thoughts: Sequence[str], state: str) -> JsonObject:
    """Return a `reasoning` item with texts as summaries, which clients display, and `state` as `encrypted_content`."""
    item: JsonObject = {
        "id": item_id,
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text} for text in thoughts],
    }
    if state:
        item["encrypted_content"] = state
    return item


@dataclass(frozen=True)
class _OpenMessage:
    """Item of type `message` to which the next parts of the response are added if they have the same message id."""

    message_id: str
    item: JsonObject
    content: list[JsonObject]  # of the item


def encode_output(
    parts: Sequence[pb.Part], request: pb.GenerateRequest, response_id: str, incomplete: bool
) -> list[object]:
    """Return the parts of a response as `output`. Consecutive texts of a message become one item; parts that the format
    cannot express are left out. `incomplete`: whether the response broke off in its last item.
    """
    shown, ids, items = Shown.of(request), Ids(response_id), list[object]()
    results = {part.server_tool_result.call_id: part.server_tool_result for part in parts}
    kinds = [kind_of(part) for part in parts]
    last = max((position for position, kind in enumerate(kinds) if kind), default=-1)
    message: _OpenMessage | None = None
    for position, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
        status = "incomplete" if incomplete and position == last else "completed"
        if kind == "message":
            if message is None or message.message_id != part.message_id:
                content = list[JsonObject]()
                item_id = ids.item("msg_", part.message_id, len(items))
                message = _OpenMessage(part.message_id, message_item(item_id, status, part.phase, content), content)
                items.append(message.item)
            message.content.append(_content(part))
            message.item["status"] = status
        elif kind:
            message = None
            if kind == "call" and has_state(part, shown):
                state = shown_state(part, ahead=True)
                items.append(reasoning_item(ids.item("rs_", "", len(items)), (), state))
            items.append(_item(part, kind, ids, len(items), status, shown, results))
        if kind not in ("", "call") and has_state(part, shown):
            message = None
            items.append(reasoning_item(ids.item("rs_", "", len(items)), (), shown_state(part)))
    return items


def _content(part: pb.Part) -> JsonObject:
    if part.HasField("refusal"):
        return refusal_content(part.refusal.text)
    if part.HasField("media"):
        return text_content(image_text(part.media), [], [])
    logprobs = [encode_logprob(entry) for entry in part.text.logprobs]
    return text_content(part.text.text, encode_annotations(part.text), logprobs)


def _item(
    part: pb.Part, kind: str, ids: Ids, index: int, status: str, shown: Shown, results: dict[str, pb.ServerToolResult]
) -> object:
    match kind:
        case "reasoning":
            thoughts = [*part.reasoning.texts, *part.reasoning.summaries] if shown.thoughts else []
            state = shown_state(part) if shown.states and part.HasField("state") else ""
            item_id = ids.item("rs_", part.reasoning.item_id, index)
            return reasoning_item(item_id, [text for text in thoughts if text], state)
        case "call":
            call = part.tool_call
            text = call.text if call.HasField("text") else call.arguments_json or "{}"
            return call_item(
                ids.item(call_prefix(call), call.item_id, index), ids.call(call, index), status, call, text
            )
        case "server":
            tool = part.server_tool_call
            item_id = ids.item(SERVER_ITEMS[tool.name][1], tool.call_id, index)
            return server_item(item_id, tool, results.get(tool.call_id), sources=shown.sources)
        case "image":
            return image_item(part.media, ids.item("ig_", part.media.media_id, index))
        case "compaction":
            return compaction_item(part.compaction.encrypted_content, ids.item("cmp_", part.compaction.item_id, index))
        case _:  # opaque
            return json_text(part.opaque.json, "opaque.json")


# --- the object


@dataclass(frozen=True)
class Ending:
    """Status of a response (`completed`, `incomplete`, `failed`), the reason if incomplete, the error if it failed."""

    status: str = "completed"
    reason: str = ""  # why it is incomplete
    code: str = ""  # why it failed
    message: str = ""


def ending_of(finished: pb.Candidate | pb.CandidateFinished, refused: bool) -> Ending:
    """Return the status of a finished candidate. `refused`: it has a refusal text, which makes it complete."""
    if finished.finish_reason == pb.FINISH_REASON_MALFORMED_CALL:
        return Ending("failed", code="server_error", message=UNREADABLE_CALL)
    if finished.provider_reason in PASSED_REASONS:
        return Ending("incomplete", finished.provider_reason)
    if finished.finish_reason == pb.FINISH_REASON_REFUSAL and refused:
        return Ending()
    if reason := INCOMPLETE_NAMES.get(finished.finish_reason):
        return Ending("incomplete", reason)
    return Ending()


def ending_of_response(response: pb.GenerateResponse) -> Ending:
    """Return the status of a complete response: the stored one, else by the first candidate's reason or the block."""
    if response.HasField("failure"):
        return Ending("failed", code=response.failure.code or "server_error", message=response.failure.message)
    if response.status not in ("", "completed", "incomplete"):
        return Ending(response.status, code="server_error" if response.status == "failed" else "")
    if response.block_reason and not response.candidates:
        return Ending("incomplete", "content_filter")
    candidate = response.candidates[0] if response.candidates else pb.Candidate()
    return ending_of(candidate, any(part.HasField("refusal") for part in candidate.message.parts))


def completed_at(response: pb.GenerateResponse, ending: Ending) -> int | None:
    """Return the completion time of a response in Unix seconds; None if it is not recorded or not `completed`."""
    noted = response.HasField("complete_time") and ending.status == "completed"
    return response.complete_time.seconds if noted else None


Head = pb.GenerateResponse | pb.GenerationStarted


def response_object(
    head: Head, ending: Ending, output: bytes, usage: pb.Usage | None, completed_at: int | None, echo: bytes
) -> bytes:
    """Return the JSON of a response object. `output`: JSON array. `usage`: None if not known yet. `completed_at`: Unix
    seconds, None if not completed. `echo`: result of `encode_echo`.
    """
    members: JsonObject = {
        "id": head.response_id,
        "object": "response",
        "created_at": head.create_time.seconds,
        "status": ending.status,
        "completed_at": completed_at,
        "error": {"code": ending.code, "message": ending.message} if ending.code else None,
        "incomplete_details": {"reason": ending.reason} if ending.reason else None,
        "model": head.model,
        "usage": encode_usage(usage) if usage is not None else None,
        "service_tier": service_tier(head.service_tier),
    }
    return b'%b,"output":%b,%b}' % (_encode(members)[:-1], output, echo)
