"""JSON bodies of Ollama's API: fields of its document, server and clients. `None` means absent, and so does an explicit
null. Unknown members, ignored by the vendor's server, are collected to be reported.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, NonEmpty, Whole

ModelName = Annotated[str, Meta(min_length=1, max_length=512)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
TopLogprobs = Annotated[int, Meta(ge=0, le=20)]


class Options(Struct, kw_only=True):
    """Member `options`: the parameters of the model with a canonical form. All others are collected as unknown."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Whole | None = None
    seed: Whole | None = None
    num_predict: Whole | None = None
    stop: str | list[str] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None


class CalledFunction(Struct):
    """Member `function` of a tool call."""

    name: NonEmpty
    arguments: Raw = ABSENT_MEMBER  # JSON object


class ToolCall(Struct):
    """Element of `tool_calls` of a message. The clients in Python do not return its `id`."""

    function: CalledFunction
    id: str | None = None


class Message(Struct):
    """Element of `messages`."""

    role: str
    content: str | None = None
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_name: str | None = None
    name: str | None = None  # of the tool, as some clients of older servers write it
    tool_call_id: str | None = None


class FunctionTool(Struct):
    """Member `function` of a tool."""

    name: NonEmpty
    description: str | None = None
    parameters: Raw = ABSENT_MEMBER


class Tool(Struct):
    """Element of `tools`."""

    function: FunctionTool
    type: Literal["", "function"] | None = None


class SharedBody(Struct, kw_only=True):
    """Fields that the bodies of `POST /api/chat` and `POST /api/generate` share."""

    model: ModelName
    stream: bool | None = None  # true if absent
    format: Raw = ABSENT_MEMBER  # `"json"`, or a JSON schema
    options: Raw = ABSENT_MEMBER
    think: bool | Literal["low", "medium", "high", "max"] | None = None
    keep_alive: Raw = ABSENT_MEMBER  # how long the model stays in memory: seconds, or a text as `5m`
    truncate: bool | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None


class ChatBody(SharedBody, kw_only=True):
    """Body of `POST /api/chat`."""

    messages: list[Message] | None = None
    tools: list[Tool] | None = None


class KnownChatBody(ChatBody, forbid_unknown_fields=True):
    """Body of a request that rejects unknown fields; decoding it is faster, and succeeds for most bodies."""


class GenerateBody(SharedBody, kw_only=True):
    """Body of `POST /api/generate`."""

    prompt: str | None = None
    system: str | None = None
    images: list[str] | None = None
    suffix: str | None = None
    template: str | None = None
    context: list[int] | None = None
    raw: bool | None = None


class KnownGenerateBody(GenerateBody, forbid_unknown_fields=True):
    """Body of a request that rejects unknown fields; decoding it is faster, and succeeds for most bodies."""


class ShowBody(Struct):
    """Body of `POST /api/show`. `name` is the older name of `model`."""

    model: str | None = None
    name: str | None = None
