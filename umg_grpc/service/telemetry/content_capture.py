"""Content of prompts and responses in spans, if the operator enables it, redacted by a function of the operator."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, assert_never

import msgspec
import structlog

from umg_grpc.base.errors import UmgError
from umg_grpc.service.telemetry.span_attributes import Attributes, finish_reason
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.stream_aggregator import (
    FrameAggregator,
    ResponseAggregator,
    StreamAggregator,
    read_whole_response,
)

CAPTURE_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""OpenTelemetry's environment variable that enables the content of messages in spans."""
ENABLING_VALUES = frozenset({"true", "span_only", "span_and_event"})
REDACT_VARIABLE = "UMG_TELEMETRY_REDACT"
"""Variable with the operator's redaction function (`MODULE:FUNCTION`), which returns a text without its secrets."""
MAX_TEXT_CHARACTERS = 8192
"""Maximum characters of one text in a span; the rest is cut off."""
MAX_MESSAGES = 100
"""Maximum number of messages of a prompt in a span; the newest ones are recorded."""
MAX_RESPONSE_BYTES = 64 * 2**10
"""Maximum bytes of a response that are decoded for a span, since this happens in the event loop."""

Redact: TypeAlias = Callable[[str], str]
Json: TypeAlias = dict[str, Any]

logger = structlog.get_logger()


class ContentCapture:
    """Encoder of prompts and responses as attributes of spans. `redact`: the operator's redaction function, called with
    each text. If the function raises an exception, the content is left out of the span.
    """

    def __init__(self, redact: Redact | None = None) -> None:
        self._redact = redact

    def attributes(
        self, request: pb.GenerateRequest, response: pb.GenerateResponse | ResponseAggregator | None
    ) -> Attributes:
        """Return the messages of a request and of its response as attributes of a span. The values are JSON texts;
        there are no attributes after an error, which is logged. `response`: the response, or the aggregator of its
        stream.
        """
        try:
            found = {"gen_ai.input.messages": [self._message(each) for each in request.messages[-MAX_MESSAGES:]]}
            if request.instructions:
                found["gen_ai.system_instructions"] = self._parts(request.instructions)
            if response is not None:
                whole = response.response() if isinstance(response, ResponseAggregator) else _decoded(request, response)
                found["gen_ai.output.messages"] = [self._candidate(each) for each in whole.candidates]
            return {name: msgspec.json.encode(value).decode() for name, value in found.items()}
        except Exception as error:
            logger.warning("the content of a span is left out", error=type(error).__name__)  # its text may be content
            return {}

    def _candidate(self, candidate: pb.Candidate) -> Json:
        return {**self._message(candidate.message), "finish_reason": finish_reason(candidate.finish_reason)}

    def _message(self, message: pb.Message) -> Json:
        role = pb.Role.Name(message.role).removeprefix("ROLE_").lower()
        return {"role": role, "parts": self._parts(message.parts)}

    def _parts(self, parts: Iterable[pb.Part]) -> list[Json]:
        return [self._part(part) for part in parts]

    def _part(self, part: pb.Part) -> Json:
        """Return a part of a message as OpenTelemetry's conventions encode it; without text, only its kind."""
        match part.WhichOneof("kind"):
            case "text":
                return {"type": "text", "content": self._text(part.text.text)}
            case "refusal":
                return {"type": "text", "content": self._text(part.refusal.text)}
            case "reasoning":
                content = "\n".join([*part.reasoning.texts, *part.reasoning.summaries])
                return {"type": "reasoning", "content": self._text(content)}
            case "tool_call":
                call = part.tool_call
                arguments = self._text(call.arguments_json or call.text)
                return {"type": "tool_call", "id": call.call_id, "name": call.name, "arguments": arguments}
            case "tool_result":
                result = part.tool_result
                text = result.result_json or "\n".join(each.text.text for each in result.parts)
                return {"type": "tool_call_response", "id": result.call_id, "result": self._text(text)}
            case "media" | "server_tool_call" | "server_tool_result" | "opaque" | "compaction" as kind:
                return {"type": kind}
            case None:
                return {"type": "unknown"}
            case unhandled:
                assert_never(unhandled)

    def _text(self, text: str) -> str:
        return (text if self._redact is None else self._redact(text))[:MAX_TEXT_CHARACTERS]


def aggregator_of(request: pb.GenerateRequest, first: pb.StreamGenerateResponse) -> ResponseAggregator:
    """Return an aggregator that collects the response from a stream. `first`: first message of the stream."""
    if first.source_frames:
        return FrameAggregator(TEXT_FORMATS[request.source.format], request, MAX_RESPONSE_BYTES)
    return StreamAggregator(MAX_RESPONSE_BYTES)


def open_capture(environment: Mapping[str, str]) -> ContentCapture | None:
    """Return the encoder of content that the environment enables; None by default. Raise UmgError(INVALID_FIELD) for a
    redaction function that cannot be imported, because content must not be recorded unredacted.
    """
    if environment.get(CAPTURE_VARIABLE, "").lower() not in ENABLING_VALUES:
        return None
    return ContentCapture(_hook(named) if (named := environment.get(REDACT_VARIABLE, "")) else None)


def _hook(named: str) -> Redact:
    """Import the operator's redaction function. `named`: `MODULE:FUNCTION`. Raise UmgError(INVALID_FIELD)."""
    module, _, name = named.partition(":")
    try:
        hook: Redact = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        expected = "expected MODULE:FUNCTION, a function from text to text"
        message = f"{REDACT_VARIABLE}: {expected}, but {named} is not there: {error}"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=REDACT_VARIABLE) from None
    return hook


def _decoded(request: pb.GenerateRequest, response: pb.GenerateResponse) -> pb.GenerateResponse:
    if not response.source.body or len(response.source.body) > MAX_RESPONSE_BYTES:
        return response
    return read_whole_response(TEXT_FORMATS[response.source.format], request, response)
