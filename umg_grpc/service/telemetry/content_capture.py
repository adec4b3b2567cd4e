"""Content of prompts and answers in spans, where the operator enables it, redacted by the operator's hook."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, assert_never

import msgspec
import structlog

from umg_grpc.errors import UmgError
from umg_grpc.service.telemetry.span_attributes import Attributes, finish_reason
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS
from umg_grpc.wire.core.stream_aggregator import AnswerAggregator, FrameAggregator, StreamAggregator, read_answer

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Variable of OpenTelemetry that enables the content of spans."""
ENABLING = frozenset({"true", "span_only", "span_and_event"})
REDACT = "UMG_TELEMETRY_REDACT"
"""Variable with the redaction hook, as `MODULE:FUNCTION`."""
MAX_TEXT_CHARACTERS = 8192
"""Longest text of a span; the rest is cut off."""
MAX_MESSAGES = 100
"""Most messages of a prompt in a span, the newest ones."""
MAX_ANSWER_BYTES = 64 * 2**10
"""Most bytes of an answer that are decoded for a span, in the event loop."""

Redact: TypeAlias = Callable[[str], str]
Json: TypeAlias = dict[str, Any]

logger = structlog.get_logger()


class ContentCapture:
    """Encoder of the content of calls for their spans. A failure, also of the hook, leaves the content out and affects
    no call.
    """

    def __init__(self, redact: Redact | None = None) -> None:
        self._redact = redact

    def attributes(
        self, request: pb.GenerateRequest, answer: pb.GenerateResponse | AnswerAggregator | None
    ) -> Attributes:
        """Return the content of a request and of its answer, if there is one, as attributes of a span."""
        try:
            found = {"gen_ai.input.messages": [self._message(each) for each in request.messages[-MAX_MESSAGES:]]}
            if request.instructions:
                found["gen_ai.system_instructions"] = self._parts(request.instructions)
            if answer is not None:
                whole = answer.response() if isinstance(answer, AnswerAggregator) else _decoded(request, answer)
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
        """Return a part of a message as the conventions encode it; only the kind of a part that is not text."""
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
            case "media" | "server_tool_call" | "server_tool_result" | "opaque" as kind:
                return {"type": kind}
            case None:
                return {"type": "unknown"}
            case unhandled:
                assert_never(unhandled)

    def _text(self, text: str) -> str:
        """Return the redacted text, cut to the maximum length afterwards: a cut before could hide a secret from the
        hook.
        """
        return (text if self._redact is None else self._redact(text))[:MAX_TEXT_CHARACTERS]


def aggregator_of(request: pb.GenerateRequest, first: pb.StreamGenerateResponse) -> AnswerAggregator:
    """Return an aggregator for the stream that begins with this message."""
    if first.source_frames:
        return FrameAggregator(FORMATS[request.source.format], request, MAX_ANSWER_BYTES)
    return StreamAggregator(MAX_ANSWER_BYTES)


def open_capture(environment: Mapping[str, str]) -> ContentCapture | None:
    """Return the content capture that the environment configures; None (the default) if it configures none. Raise
    UmgError(INVALID_FIELD) for a hook that cannot be imported, since content must not be recorded without redaction.
    """
    if environment.get(CAPTURE, "").lower() not in ENABLING:
        return None
    return ContentCapture(_hook(named) if (named := environment.get(REDACT, "")) else None)


def _hook(named: str) -> Redact:
    module, _, name = named.partition(":")
    try:
        hook: Redact = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"{REDACT}: expected MODULE:FUNCTION, a function from text to text, but {named} is not there: {error}"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=REDACT) from None
    return hook


def _decoded(request: pb.GenerateRequest, answer: pb.GenerateResponse) -> pb.GenerateResponse:
    """Return the response with its candidates, which after passthrough are decoded from the provider's own body."""
    if not answer.source.body or len(answer.source.body) > MAX_ANSWER_BYTES:
        return answer
    return read_answer(FORMATS[answer.source.format], request, answer)
