"""Members of the responses of Ollama's API (complete ones and stream lines), and the encoding of complete responses."""

from collections.abc import Callable, Sequence

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.ollama.response_items import Item, ResponseItems, is_image
from umg_grpc.wire.text_format_interface import Elapsed

DONE_REASONS = {
    pb.FINISH_REASON_LENGTH: "length",
    pb.FINISH_REASON_CONTEXT_FULL: "length",
    pb.FINISH_REASON_CONTENT_FILTER: "content_filter",
    pb.FINISH_REASON_REFUSAL: "content_filter",
    pb.FINISH_REASON_RECITATION: "content_filter",
}
"""Finish reason -> `done_reason`; `stop` for reasons not listed. Ollama has no value for filtered content, but `stop`
would hide that the response is incomplete.
"""
LOADED_REASON, UNLOADED_REASON = "load", "unload"
"""Values of `done_reason` for a request without a conversation, which loads or unloads the model."""
ZERO_DURATIONS = frozenset({b"0", b"0.0", b'"0"', b'"0s"', b'"0m"', b'"0h"'})
"""Values of `keep_alive` that unload the model."""
UNKNOWN_TIME = "1970-01-01T00:00:00Z"


Members = Callable[[Sequence[Item]], JsonObject]
"""Function that returns the members for content items; the responses of the two paths differ only by it."""


def chat_members(items: Sequence[Item]) -> JsonObject:
    """Return the members for content items at `POST /api/chat`, without images: Ollama's Python client rejects them."""
    return {"message": {"role": "assistant", **_content("content", items)}, **_logprobs(items)}


def generate_members(items: Sequence[Item]) -> JsonObject:
    """Return the members with the content of items for `POST /api/generate`."""
    image = next((item.image for item in items if item.image), "")
    return {**_content("response", items), **({"image": image} if image else {}), **_logprobs(items)}


def _content(text_name: str, items: Sequence[Item]) -> JsonObject:
    content: JsonObject = {text_name: "".join([item.text for item in items])}
    if thinking := "".join([item.thinking for item in items]):
        content["thinking"] = thinking
    if calls := [item.tool_call for item in items if item.tool_call is not None]:
        content["tool_calls"] = calls
    return content


def _logprobs(items: Sequence[Item]) -> JsonObject:
    logprobs = [entry for item in items for entry in item.logprobs or ()]
    return {"logprobs": logprobs} if logprobs else {}


class _KeepAlive(msgspec.Struct):
    keep_alive: msgspec.Raw = ABSENT_MEMBER


def head_of(model: str, create_time: str) -> JsonObject:
    """Return the members at the start of each response and stream line. `create_time`: "" if it is unknown."""
    return {"model": model, "created_at": create_time or UNKNOWN_TIME}


def end_of(items: ResponseItems, timing: JsonObject) -> JsonObject:
    """Return the members at the end of a response: the finish reason, the usage, and the durations in `timing`."""
    finished = items.finished or pb.CandidateFinished()
    reason = "content_filter" if finished.block_reason else DONE_REASONS.get(finished.finish_reason, "stop")
    usage = items.usage
    counts = {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
    return {"done": True, "done_reason": reason, **counts, **timing}


def timing_of(total: int, prompt: int = 0) -> JsonObject:
    """Return durations in nanoseconds: `total`, and `prompt` until the first output. Without a stream `prompt` is 0,
    and all of the time counts as output time.
    """
    return {
        "total_duration": total,
        "load_duration": 0,  # the gateway loads no model
        "prompt_eval_duration": prompt,
        "eval_duration": max(total - prompt, 1),  # clients divide by it
    }


def encode_response(
    members: Members, response: pb.GenerateResponse, request: pb.GenerateRequest, elapsed: Elapsed | None = None
) -> bytes:
    """Return the JSON body of a complete response. `elapsed`: returns the duration; None leaves durations out."""
    items = ResponseItems()
    content = [item for event in response_to_events(response).events for item in items.feed(event)]
    created = response.create_time.ToJsonString() if response.HasField("create_time") else ""
    timing = timing_of(elapsed()) if elapsed is not None else {}
    head = head_of(response.model or request.model, created)
    return msgspec.json.encode({**head, **members(content), **end_of(items, timing)})


def encode_loaded(members: Members, request: pb.GenerateRequest, time: str) -> bytes:
    """Return the body for a request without a conversation: it loads a model or, with `keep_alive: 0`, unloads it."""
    keep_alive = msgspec.json.decode(request.source.body, type=_KeepAlive).keep_alive
    reason = UNLOADED_REASON if bytes(keep_alive) in ZERO_DURATIONS else LOADED_REASON
    head = head_of(request.model, time)
    return msgspec.json.encode({**head, **members(()), "done": True, "done_reason": reason})


def can_express_in_chat(part: pb.Part) -> bool:
    """Return whether a response of `POST /api/chat` can contain a part."""
    return part.WhichOneof("kind") in {"text", "refusal", "reasoning", "tool_call", None}


def can_express_in_text(part: pb.Part) -> bool:
    """Return whether a response of `POST /api/generate` can contain a part."""
    return can_express_in_chat(part) or (part.HasField("media") and is_image(part.media))
