"""Body of Cohere's `POST /v2/chat` (cohere 7.3.1, `v2/client.py`). `None` means absent; so does an explicit null."""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.core.function_tool_encoding import FunctionDefinition
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, NonEmpty, PositiveWhole

Content = str | list[Raw] | None


class Kind(Struct):
    """Any object of a union, of which only the type is read."""

    type: str | None = None


class TextContent(Struct):
    """Part of type `text`."""

    text: str


class ThinkingContent(Struct):
    """Part of type `thinking` of an assistant's message."""

    thinking: str


class ImageUrl(Struct):
    """Member `image_url` of an image: an address or a data URL."""

    url: NonEmpty
    detail: Literal["auto", "low", "high"] | None = None


class ImageContent(Struct):
    """Part of type `image_url`."""

    image_url: ImageUrl


class Document(Struct):
    """Document that the model may cite."""

    data: Raw
    id: str | None = None


class DocumentContent(Struct):
    """Part of type `document` of a tool's result, which is kept as raw JSON."""

    document: Raw


class CalledFunction(Struct):
    """Member `function` of a tool call."""

    name: NonEmpty
    arguments: str = ""


class ToolCall(Struct):
    """Tool call of an assistant's message."""

    id: NonEmpty
    function: CalledFunction
    type: Literal["function"] = "function"


class ChatMessage(Struct):
    """Element of `messages`, of any role."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Content = None
    tool_calls: list[ToolCall] | None = None
    tool_plan: str | None = None
    tool_call_id: NonEmpty | None = None
    citations: Raw = ABSENT_MEMBER  # of an earlier response, where they belong to its text


class FunctionTool(Struct):
    """Element of `tools`."""

    function: FunctionDefinition
    type: Literal["function"] = "function"


class CitationOptions(Struct):
    """Member `citation_options`."""

    mode: Literal["ENABLED", "DISABLED", "FAST", "ACCURATE", "OFF"] | None = None


class ResponseFormat(Struct):
    """Member `response_format`."""

    type: Literal["text", "json_object"]
    json_schema: Raw = ABSENT_MEMBER
    schema: Raw = ABSENT_MEMBER  # as `json_schema` was named in the first version (cohere 7.3.1)


class Thinking(Struct):
    """Member `thinking`."""

    type: Literal["enabled", "disabled"]
    token_budget: PositiveWhole | None = None


Unit = Annotated[float, Meta(ge=0, le=1)]
Seed = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
MostLikely = Annotated[int, Meta(ge=0, le=500)] | Annotated[float, Meta(ge=0, le=500)]
Priority = Annotated[int, Meta(ge=0, le=999)] | Annotated[float, Meta(ge=0, le=999)]


class ChatRequest(Struct, kw_only=True):
    """Body of `POST /v2/chat`."""

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=20000)]
    stream: bool | None = None
    tools: list[FunctionTool] | None = None
    strict_tools: bool | None = None
    tool_choice: Literal["REQUIRED", "NONE"] | None = None
    documents: list[Raw] | None = None
    citation_options: CitationOptions | None = None
    response_format: ResponseFormat | None = None
    safety_mode: Literal["CONTEXTUAL", "STRICT", "OFF"] | None = None
    max_tokens: PositiveWhole | None = None
    stop_sequences: list[NonEmpty] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    seed: Seed | None = None
    k: MostLikely | None = None
    p: Unit | None = None
    frequency_penalty: Unit | None = None
    presence_penalty: Unit | None = None
    logprobs: bool | None = None
    thinking: Thinking | None = None
    priority: Priority | None = None


class KnownChatRequest(ChatRequest, forbid_unknown_fields=True):
    """Body that rejects unknown members at its top level; decoding it succeeds for most bodies."""
