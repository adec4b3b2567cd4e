"""A provider's response object and its items: provider -> canonical, for whole answers and streamed ones alike.

The structs are what providers send, who differ: whatever is not needed may be absent or null.
"""

import msgspec
from msgspec import Raw, Struct

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.arguments import Arguments, arguments_text
from umg_grpc.wire.counts import Count, count
from umg_grpc.wire.json import ABSENT
from umg_grpc.wire.provider_errors import as_error, is_error, unreadable
from umg_grpc.wire.responses import client_tools, schema
from umg_grpc.wire.responses.content import decode_annotation
from umg_grpc.wire.responses.errors import failure
from umg_grpc.wire.responses.items import decode_item, decode_reasoning
from umg_grpc.wire.responses.usage import ProviderUsage, decode_usage

INCOMPLETE = {"max_output_tokens": pb.FINISH_REASON_LENGTH, "content_filter": pb.FINISH_REASON_CONTENT_FILTER}
FUNCTION_CALLS = ("function_call", "custom_tool_call")
CALLS = (*FUNCTION_CALLS, *client_tools.CALLS)


class IncompleteDetails(Struct):
    """`incomplete_details`."""

    reason: str | None = None


class Head(Struct, kw_only=True):
    """What a response object has beside its output."""

    id: str | None = None
    created_at: Count = None
    completed_at: Count = None
    model: str | None = None
    status: str | None = None
    error: Raw = ABSENT
    incomplete_details: IncompleteDetails | None = None
    usage: ProviderUsage | None = None
    service_tier: str | None = None


class ProviderResponse(Head, kw_only=True):
    """A response object, as far as it is decoded."""

    output: list[Raw] | None = None


class SeenContent(Struct):
    """What a part of a passed-on item is looked at for."""

    type: str | None = None


class SeenItem(Struct):
    """What a passed-on item is looked at for."""

    type: str | None = None
    content: list[SeenContent] | None = None


class PassedResponse(Head, kw_only=True):
    """A response object that is passed on."""

    output: list[SeenItem] | None = None


class Logprob(Struct):
    """An entry of `logprobs`."""

    token: str | None = None
    logprob: float | None = None
    bytes: list[int] | None = None
    top_logprobs: "list[Logprob] | None" = None


class ContentPart(Struct):
    """A part of a message."""

    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    annotations: list[Raw] | None = None
    logprobs: list[Logprob] | None = None


class ProviderMessage(Struct):
    """An item of type `message`."""

    id: str | None = None
    phase: str | None = None
    content: list[ContentPart] | None = None


class ProviderCall(Struct):
    """An item of type `function_call` or `custom_tool_call`."""

    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: Arguments = None
    input: str | None = None


CALL = msgspec.json.Decoder(ProviderCall)
MESSAGE = msgspec.json.Decoder(ProviderMessage)
REASONING = msgspec.json.Decoder(schema.ReasoningItem)
KIND = msgspec.json.Decoder(schema.Kind)
SEEN = msgspec.json.Decoder(SeenItem)


def check_status(head: Head) -> None:
    """Raises UmgError for a response that failed, or that is not finished."""
    if head.status in ("failed", "cancelled") or (head.status is None and is_error(head.error)):
        raise failure(as_error(msgspec.json.decode(head.error) if is_error(head.error) else None))
    if head.status in ("queued", "in_progress"):
        raise unreadable()


def decode_head(head: Head, target: pb.GenerateResponse | pb.GenerationStarted) -> None:
    """Id, time and service tier."""
    target.response_id = head.id or ""
    if head.created_at:
        target.create_time.seconds = count(head.created_at)
    target.service_tier = head.service_tier or ""


def decode_finish(head: Head, calls: bool, refused: bool, target: pb.Candidate | pb.CandidateFinished) -> None:
    """Why the answer stopped. `calls`, `refused`: whether it holds calls, or a refusal in words."""
    reason = head.incomplete_details.reason if head.incomplete_details else None
    if head.status == "incomplete":
        target.finish_reason = INCOMPLETE.get(reason or "max_output_tokens", pb.FINISH_REASON_OTHER)
        if reason and reason not in INCOMPLETE:
            target.provider_reason = reason
    elif calls:
        target.finish_reason = pb.FINISH_REASON_TOOL_CALLS
    else:
        target.finish_reason = pb.FINISH_REASON_REFUSAL if refused else pb.FINISH_REASON_STOP


def decode_used(head: Head, searches: int, target: pb.GenerateResponse | pb.GenerateEvent) -> bool:
    """Fills in the usage; whether there is one."""
    if head.usage is None or not head.usage.is_whole:
        return False
    decode_usage(head.usage, searches, target.usage)
    return True


def decode_output_item(raw: Raw, message: pb.Message) -> None:
    """Adds the parts of an output item. Raises UmgError(UPSTREAM_FAILED), ValueError."""
    kind = KIND.decode(raw).type or ""
    if kind == "message":
        _decode_message(MESSAGE.decode(raw), message)
    elif kind == "reasoning":
        decode_reasoning(REASONING.decode(raw), message.parts.add(), shown=False)
    elif kind in FUNCTION_CALLS:
        _decode_call(CALL.decode(raw), message.parts.add().tool_call, custom=kind == "custom_tool_call")
    else:
        try:
            decode_item(raw, kind, message, "output")
        except UmgError:
            raise unreadable() from None  # the provider's item, not the caller's


def _decode_message(item: ProviderMessage, message: pb.Message) -> None:
    for content in item.content or ():
        part = message.parts.add(message_id=item.id or "", phase=item.phase or "")
        if content.type == "refusal":
            part.refusal.text = content.refusal or ""
        else:
            part.text.text = content.text or ""
            part.text.citations.extend(map(decode_annotation, content.annotations or ()))
            part.text.logprobs.extend(map(decode_logprob, content.logprobs or ()))


def _decode_call(item: ProviderCall, call: pb.ToolCall, *, custom: bool) -> None:
    call.item_id, call.call_id, call.name = item.id or "", item.call_id or "", item.name or ""
    call.namespace = item.namespace or ""
    if custom:
        call.text = item.input or ""
    else:
        call.arguments_json = arguments_text(item.arguments)


def decode_logprob(entry: Logprob) -> pb.TokenLogprob:
    """The likelihood of one token."""
    decoded = pb.TokenLogprob(token=entry.token or "")
    if entry.logprob is not None:
        decoded.logprob = entry.logprob
    if entry.bytes is not None:
        decoded.token_bytes = bytes(entry.bytes)
    decoded.alternatives.extend(decode_logprob(other) for other in entry.top_logprobs or ())
    return decoded
