"""Decoding of a provider's response object and output items. Fields that are not needed may be absent or null."""

import msgspec
from msgspec import Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.charged_service_tiers import charged_tier
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER
from umg_grpc.wire.core.lenient_number_reading import Count, set_time
from umg_grpc.wire.core.logprobs import Logprob, decode_logprob
from umg_grpc.wire.errors.provider_errors import as_error, is_error, unreadable
from umg_grpc.wire.responses import schema
from umg_grpc.wire.responses.content_parts import decode_annotation
from umg_grpc.wire.responses.decode_messages import decode_item, decode_reasoning
from umg_grpc.wire.responses.errors import failure
from umg_grpc.wire.responses.tool_calls import FUNCTION_CALLS, decode_provider_call
from umg_grpc.wire.responses.usage import ProviderUsage, decode_usage

INCOMPLETE_REASONS = {"max_output_tokens": pb.FINISH_REASON_LENGTH, "content_filter": pb.FINISH_REASON_CONTENT_FILTER}


class IncompleteDetails(Struct):
    """Member `incomplete_details`."""

    reason: str | None = None


class Head(Struct, kw_only=True):
    """Members of a response object other than its output."""

    id: str | None = None
    created_at: Count = None
    completed_at: Count = None
    model: str | None = None
    status: str | None = None
    error: Raw = ABSENT_MEMBER
    incomplete_details: IncompleteDetails | None = None
    usage: ProviderUsage | None = None
    service_tier: str | None = None


class ProviderResponse(Head, kw_only=True):
    """Response object of a provider, with the fields that are decoded."""

    output: list[Raw] | None = None


class SeenContent(Struct):
    """Content part of a passed-through item, of which the gateway reads the type only."""

    type: str | None = None


class SeenItem(Struct):
    """Item of a passed-through response, of which the gateway decodes the type, and the types of its content parts."""

    type: str | None = None
    content: list[SeenContent] | None = None


class PassedResponse(Head, kw_only=True):
    """Response object that is passed through, of whose items the gateway decodes only the types."""

    output: list[SeenItem] | None = None


class ContentPart(Struct):
    """Content part of an output item of type `message`."""

    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    annotations: list[Raw] | None = None
    logprobs: list[Logprob] | None = None


class ProviderMessage(Struct):
    """Item of type `message` of a provider."""

    id: str | None = None
    phase: str | None = None
    content: list[ContentPart] | None = None


MESSAGE_DECODER = msgspec.json.Decoder(ProviderMessage)
REASONING_DECODER = msgspec.json.Decoder(schema.ReasoningItem)
KIND_DECODER = msgspec.json.Decoder(schema.Kind)


def check_status(head: Head) -> None:
    """Raise UmgError if the response failed (reason by its error's code) or is not finished (UPSTREAM_FAILED)."""
    if head.status in ("failed", "cancelled") or (head.status is None and is_error(head.error)):
        error = failure(as_error(msgspec.json.decode(head.error) if is_error(head.error) else None))
        used = pb.GenerateResponse()
        raise error.with_usage(used.usage if decode_used(head, 0, used) else None)
    if head.status in ("queued", "in_progress"):
        raise unreadable()


def decode_head(head: Head, target: pb.GenerateResponse | pb.GenerationStarted) -> None:
    """Copy id, creation time and service tier of a response object to a canonical message."""
    target.response_id = head.id or ""
    set_time(head.created_at, target.create_time)
    target.service_tier = head.service_tier or ""


def decode_finish(head: Head, calls: bool, refused: bool, target: pb.Candidate | pb.CandidateFinished) -> None:
    """Set the finish reason: why the response is incomplete, else TOOL_CALLS (`calls`), REFUSAL (`refused`) or STOP."""
    reason = head.incomplete_details.reason if head.incomplete_details else None
    if head.status == "incomplete":
        target.finish_reason = INCOMPLETE_REASONS.get(reason or "max_output_tokens", pb.FINISH_REASON_OTHER)
        if reason and reason not in INCOMPLETE_REASONS:
            target.provider_reason = reason
    elif calls:
        target.finish_reason = pb.FINISH_REASON_TOOL_CALLS
    else:
        target.finish_reason = pb.FINISH_REASON_REFUSAL if refused else pb.FINISH_REASON_STOP


def decode_used(head: Head, searches: int, target: pb.GenerateResponse | pb.GenerateEvent) -> bool:
    """Set the usage of `target`, with the number of `searches`. Without a token count return False and set nothing."""
    if head.usage is None or not decode_usage(head.usage, searches, target):
        return False
    if charged := charged_tier(head.service_tier):
        target.usage.service_tier = charged
    return True


def decode_output_item(raw: Raw, message: pb.Message) -> None:
    """Append a provider's output item to the parts. Raise UmgError(UPSTREAM_FAILED) or ValueError if it is broken."""
    kind = KIND_DECODER.decode(raw).type or ""
    if kind == "message":
        _decode_message(MESSAGE_DECODER.decode(raw), message)
    elif kind == "reasoning":
        decode_reasoning(REASONING_DECODER.decode(raw), message.parts.add(), shown=False)
    elif kind in FUNCTION_CALLS:
        decode_provider_call(raw, message.parts.add().tool_call, custom=kind == "custom_tool_call")
    else:
        try:
            decode_item(raw, kind, message, "output")
        except UmgError:
            raise unreadable() from None  # the item is the provider's, not the caller's


def _decode_message(item: ProviderMessage, message: pb.Message) -> None:
    for content in item.content or ():
        part = message.parts.add(message_id=item.id or "", phase=item.phase or "")
        if content.type == "refusal":
            part.refusal.text = content.refusal or ""
        else:
            part.text.text = content.text or ""
            part.text.citations.extend(map(decode_annotation, content.annotations or ()))
            part.text.logprobs.extend(map(decode_logprob, content.logprobs or ()))
