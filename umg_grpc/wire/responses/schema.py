"""Body of `POST /v1/responses` as typed structs: the fields of the text document and of current SDK types.

Items, content parts, tools and tool choices stay raw: vendors add types, so each is decoded where it is used, by its
`type`. Unknown fields are kept only in the source document. `None` means absent: an explicit null has no effect.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, NonEmpty, PositiveWhole

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Level = Literal["low", "medium", "high"]
ServiceTier = Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"]


class Kind(Struct):
    """Member `type` of any object that has one, by which its struct is selected."""

    type: str | None = None


# --- content parts


class Marked(Struct, kw_only=True):
    """Base of content parts that may end a cached prefix."""

    prompt_cache_breakpoint: Raw = ABSENT_MEMBER


class TextPart(Marked):
    """Content part of type `input_text` or `summary_text`."""

    text: str


class OutputText(Struct):
    """Content part of type `output_text`, in a message of the assistant."""

    text: str
    annotations: list[Raw] | None = None


class RefusalPart(Struct):
    """Content part of type `refusal`."""

    refusal: str


class ImagePart(Marked):
    """Content part of type `input_image`: an address or data URL, or the id of a file."""

    image_url: NonEmpty | None = None
    file_id: NonEmpty | None = None
    detail: Literal["auto", "low", "high", "original"] | None = None


class FilePart(Marked):
    """Content part of type `input_file`: a data URL (or bare base64), an address, or the id of a file."""

    file_data: NonEmpty | None = None
    file_url: NonEmpty | None = None
    file_id: NonEmpty | None = None
    filename: str | None = None
    detail: Literal["auto", "low", "high"] | None = None


class InputAudio(Struct):
    """Member `input_audio` of a content part: audio in base64."""

    data: NonEmpty
    format: Literal["wav", "mp3"]


class AudioPart(Marked):
    """Content part of type `input_audio`."""

    input_audio: InputAudio


# --- items


class ItemHead(Struct):
    """Members by which an item is recognised: its type, else the role of a message or the id of a reference."""

    type: str | None = None
    role: str | None = None
    id: str | None = None


Content = Annotated[list[Raw], Meta(max_length=5000)]


class MessageItem(Struct):
    """Item of type `message`, which may be left out."""

    role: str
    content: str | Content
    id: str | None = None
    phase: str | None = None


class FunctionCall(Struct):
    """Item of type `function_call`."""

    call_id: str
    name: str
    arguments: str | None = None
    id: str | None = None
    namespace: str | None = None


class CustomCall(Struct):
    """Item of type `custom_tool_call`."""

    call_id: str
    name: str
    input: str | None = None
    id: str | None = None
    namespace: str | None = None


class CallOutput(Struct):
    """Item of type `function_call_output` or `custom_tool_call_output`."""

    output: str | Content
    call_id: str | None = None
    name: str | None = None
    id: str | None = None


class Piece(Struct):
    """Element of `summary` or `content` in a reasoning item: one text."""

    text: str = ""


class ReasoningItem(Struct):
    """Item of type `reasoning`. `summary` is mandatory in the SDK types; without it nothing is summarised."""

    id: str | None = None
    summary: list[Piece] | None = None
    content: list[Piece] | None = None
    encrypted_content: str | None = None


class CompactionItem(Struct):
    """Item of type `compaction`: a sealed summary of the conversation before it."""

    encrypted_content: str | None = None
    id: str | None = None


class SearchSource(Struct):
    """Element of `action.sources` of a web search."""

    url: str | None = None


class SearchAction(Struct):
    """Member `action` of a `web_search_call`, with the fields that are decoded."""

    type: str | None = None
    query: str | None = None
    queries: list[str] | None = None
    sources: list[SearchSource] | None = None


class ToolItem(Struct):
    """Item of a tool that the provider ran: `web_search_call`, `file_search_call`, `code_interpreter_call`."""

    id: str | None = None
    status: str | None = None
    action: Raw = ABSENT_MEMBER
    queries: list[str] | None = None
    results: Raw = ABSENT_MEMBER
    code: str | None = None
    container_id: str | None = None
    outputs: Raw = ABSENT_MEMBER


class AdditionalTools(Struct):
    """Item of type `additional_tools`: tools that are declared in the middle of a conversation."""

    tools: list[Raw]


class ImageItem(Struct):
    """Item of type `image_generation_call`."""

    id: str | None = None
    result: str | None = None


# --- tools


class NestedFunction(Struct):
    """Function tool, or choice of one, with its fields in `function`, as the gateway's specification also allows."""

    function: Raw = ABSENT_MEMBER


class CustomTool(Struct):
    """Tool of type `custom`."""

    name: NonEmpty
    description: str | None = None
    format: Raw = ABSENT_MEMBER


class NamespaceTool(Struct):
    """Tool of type `namespace`: functions and custom tools of one group."""

    name: NonEmpty
    tools: list[Raw]
    description: str | None = None


class UserLocation(Struct):
    """Member `user_location` of a web search tool."""

    type: Literal["approximate"] | None = None
    country: str | None = None
    region: str | None = None
    city: str | None = None
    timezone: str | None = None


class SearchFilters(Struct):
    """Member `filters` of a web search."""

    allowed_domains: list[str] | None = None


class WebSearchTool(Struct):
    """Tool of type `web_search`, `web_search_preview` or a dated form of these."""

    type: str
    search_context_size: Level | None = None
    user_location: UserLocation | None = None
    filters: SearchFilters | None = None


class FileSearchTool(Struct):
    """Tool of type `file_search`. The document requires nothing beyond the type."""

    vector_store_ids: list[str] | None = None
    max_num_results: Annotated[int, Meta(ge=1, le=50)] | Annotated[float, Meta(ge=1, le=50)] | None = None
    ranking_options: Raw = ABSENT_MEMBER
    filters: Raw = ABSENT_MEMBER


class Named(Struct):
    """Object of which only the member `name` is read."""

    name: NonEmpty


class AllowedTool(Struct):
    """Element of a list of allowed tools, flat or nested."""

    type: str
    name: NonEmpty | None = None
    function: Named | None = None


class AllowedTools(Struct):
    """Tool choice of type `allowed_tools`; in chat's form it is below a member `allowed_tools`."""

    mode: Literal["auto", "required"]
    tools: list[AllowedTool]


class NestedAllowedTools(Struct):
    """Tool choice of type `allowed_tools` with the other members below a member of that name."""

    allowed_tools: Raw = ABSENT_MEMBER


# --- options


class Reasoning(Struct):
    """Member `reasoning` of the request. An empty object means the effort `medium`."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed", "none"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None  # the older name
    context: str | None = None
    mode: str | None = None


class TextFormat(Struct):
    """Member `text.format`, flat."""

    type: Literal["text", "json_object", "json_schema"]
    name: NonEmpty | None = None
    schema: Raw = ABSENT_MEMBER
    description: str | None = None
    strict: bool | None = None


class TextOptions(Struct):
    """Member `text` of the request."""

    format: TextFormat | None = None
    verbosity: Level | None = None


class Prompt(Struct):
    """Member `prompt` of the request."""

    id: NonEmpty
    version: str | None = None
    variables: Raw = ABSENT_MEMBER


class Conversation(Struct):
    """Member `conversation` as an object."""

    id: NonEmpty


class StreamOptions(Struct):
    """Member `stream_options` of the request."""

    include_obfuscation: bool | None = None


Label = Annotated[str, Meta(max_length=512)]


class Prompting(Struct, kw_only=True):
    """Members of a body that form the prompt, both in a request for a response and in one for a token count."""

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    input: str | Annotated[list[Raw], Meta(max_length=20000)] | None = None
    instructions: str | None = None
    tools: Annotated[list[Raw], Meta(max_length=5000)] | None = None
    tool_choice: Raw = ABSENT_MEMBER
    parallel_tool_calls: bool | None = None
    reasoning: Reasoning | None = None
    text: TextOptions | None = None
    truncation: Literal["auto", "disabled"] | None = None
    previous_response_id: NonEmpty | None = None
    conversation: NonEmpty | Conversation | None = None


class ResponsesRequest(Prompting, kw_only=True):
    """Body of `POST /v1/responses`."""

    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_output_tokens: PositiveWhole | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | Annotated[float, Meta(ge=0, le=20)] | None = None
    max_tool_calls: PositiveWhole | None = None
    store: bool | None = None
    background: bool | None = None
    include: list[str] | None = None
    metadata: Annotated[dict[Annotated[str, Meta(max_length=64)], Label], Meta(max_length=16)] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    prompt: Prompt | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: Raw = ABSENT_MEMBER
    prompt_cache_retention: str | None = None
    moderation: Raw = ABSENT_MEMBER
    context_management: Raw = ABSENT_MEMBER


class KnownResponsesRequest(ResponsesRequest, forbid_unknown_fields=True):
    """Body of a request without unknown fields, as most bodies are; decoding fails on an unknown one."""
