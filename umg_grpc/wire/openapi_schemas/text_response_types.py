"""Types of the responses and events of the text formats, for the OpenAPI document. Lists whose elements have many kinds
are open, and so is every object: providers add members.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER

Count = Annotated[int, Meta(ge=0)]

# --- chat


class ChatUsage(Struct, kw_only=True):
    """Token usage of a call in the chat format."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count


class ChatMessage(Struct, kw_only=True):
    """Message of the model in a chat response."""

    role: str
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[Raw] | None = None
    annotations: list[Raw] | None = None


class ChatChoice(Struct, kw_only=True):
    """Choice of a chat response: one of its `n` candidates."""

    index: Count
    message: ChatMessage
    finish_reason: str | None = None
    """`stop`, `length`, `tool_calls`, `content_filter` or a reason of the provider's own."""


class ChatCompletion(Struct, kw_only=True):
    """Response of `POST /v1/chat/completions`."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None


class ChatChunk(Struct, kw_only=True):
    """Event of a chat stream; the stream ends with the text `[DONE]` as data instead of an event."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[Raw]
    usage: ChatUsage | None = None


# --- responses


class Response(Struct, kw_only=True):
    """Response object of the responses format. It repeats the options of its request."""

    id: str
    object: Literal["response"]
    created_at: float
    status: str | None = None
    model: str
    output: list[Raw]
    error: Raw = ABSENT_MEMBER
    usage: Raw = ABSENT_MEMBER


class Compacted(Struct, kw_only=True):
    """Compacted conversation of the responses format: the turns of the user, then one item with the summary."""

    id: str
    object: Literal["response.compaction"]
    created_at: float
    output: list[Raw]
    usage: Raw = ABSENT_MEMBER


class ResponseEvent(Struct, kw_only=True):
    """Event of a stream of the responses format."""

    type: str
    sequence_number: Count


class InputItems(Struct, kw_only=True):
    """Page of the input items of a stored response; `first_id` and `last_id` are null for an empty page."""

    object: Literal["list"]
    data: list[Raw]
    first_id: str | None
    last_id: str | None
    has_more: bool


# --- messages


class MessagesUsage(Struct, kw_only=True):
    """Token usage of a call in the messages format."""

    input_tokens: Count
    output_tokens: Count


class Message(Struct, kw_only=True):
    """Response of `POST /v1/messages`."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[Raw]
    stop_reason: str | None
    stop_sequence: str | None = None
    usage: MessagesUsage


class MessageEvent(Struct, kw_only=True):
    """Event of a stream of the messages format."""

    type: str


# --- Cohere


class CohereTokens(Struct, kw_only=True):
    """Tokens of a call in Cohere's format."""

    input_tokens: Count
    output_tokens: Count


class CohereUsage(Struct, kw_only=True):
    """Token usage of a call in Cohere's format."""

    billed_units: CohereTokens
    tokens: CohereTokens
    cached_tokens: Count


class CohereMessage(Struct, kw_only=True):
    """Message of a response in Cohere's format."""

    role: Literal["assistant"]
    content: list[Raw] | None = None
    tool_calls: list[Raw] | None = None
    citations: list[Raw] | None = None


class CohereResponse(Struct, kw_only=True):
    """Response of `POST /v2/chat`."""

    id: str
    finish_reason: Literal["COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "TIMEOUT"]
    message: CohereMessage
    usage: CohereUsage | None = None
    logprobs: list[Raw] | None = None


class CohereEvent(Struct, kw_only=True):
    """Event of a stream of Cohere's format."""

    type: str
    id: str | None = None
    index: Count | None = None
    delta: Raw = ABSENT_MEMBER


# --- native


class NativeResponse(Struct, rename="camel", kw_only=True):
    """Response of `:generateContent`, and of each element of the stream of `:streamGenerateContent`."""

    candidates: list[Raw] | None = None
    prompt_feedback: Raw = ABSENT_MEMBER
    usage_metadata: Raw = ABSENT_MEMBER
    model_version: str | None = None
    response_id: str | None = None


# --- Ollama's API


class OllamaMessage(Struct, kw_only=True):
    """Message of the model in a response of `POST /api/chat`."""

    role: Literal["assistant"]
    content: str
    thinking: str | None = None
    tool_calls: list[Raw] | None = None


class OllamaResponse(Struct, kw_only=True):
    """Members that the responses of both text paths share. A stream has its counts and durations (in nanoseconds) in
    the last line.
    """

    model: str
    created_at: str
    done: bool
    done_reason: str | None = None
    """`stop`, `length`, `content_filter`, or `load` and `unload` for a request without a conversation."""
    total_duration: Count | None = None
    load_duration: Count | None = None
    prompt_eval_count: Count | None = None
    prompt_eval_duration: Count | None = None
    eval_count: Count | None = None
    eval_duration: Count | None = None
    logprobs: list[Raw] | None = None


class OllamaChat(OllamaResponse, kw_only=True):
    """Response of `POST /api/chat`, and line of its stream."""

    message: OllamaMessage


class OllamaGenerated(OllamaResponse, kw_only=True):
    """Response of `POST /api/generate`, and line of its stream."""

    response: str
    thinking: str | None = None
    tool_calls: list[Raw] | None = None
    image: str | None = None


class OllamaVersion(Struct, kw_only=True):
    """Response of `GET /api/version`."""

    version: str
