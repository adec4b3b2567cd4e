"""Body of `POST /v1/messages` as typed structs: the text document's fields, and those of current SDK types.

Content blocks and tools stay raw JSON: new types appear often, so each is decoded by its `type` where it is needed.
Fields without a name here are kept in the source document only. `None` means absent: so does an explicit null.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, NonEmpty, PositiveWhole, Whole

Position = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Kind(Struct):
    """Member `type` of any object that has one, by which its struct is selected."""

    type: str | None = None


class CacheControl(Struct):
    """Member `cache_control`: a prompt cache mark. The type `persistent`, which only the gateway's specification has,
    means `ephemeral` with a `ttl` of an hour.
    """

    type: Literal["ephemeral", "persistent"]
    ttl: Literal["5m", "1h"] | None = None


class Marked(Struct, kw_only=True):
    """Base of blocks and tools that may have a cache mark (`cache_control`)."""

    cache_control: CacheControl | None = None


# --- content blocks


class TextBlock(Marked):
    """Content block of type `text`."""

    text: str
    citations: list[Raw] | None = None


class Base64Source(Struct):
    """Member `source` of type `base64`."""

    data: str
    media_type: str | None = None


class TextSource(Struct):
    """Member `source` of type `text`."""

    data: str
    media_type: str | None = None


class UrlSource(Struct):
    """Member `source` of type `url`."""

    url: NonEmpty


class FileSource(Struct):
    """Member `source` of type `file`."""

    file_id: NonEmpty


class ContentSource(Struct):
    """Member `source` of type `content`."""

    content: str | list[Raw]


class ImageBlock(Marked):
    """Content block of type `image`."""

    source: Raw


class CitationsConfig(Struct):
    """Member `citations` of a document."""

    enabled: bool | None = None


class DocumentBlock(Marked):
    """Content block of type `document`."""

    source: Raw
    title: str | None = None
    context: str | None = None
    citations: CitationsConfig | None = None


class SearchResultBlock(Marked):
    """Content block of type `search_result`."""

    source: str
    title: str
    content: list[Raw]
    citations: CitationsConfig | None = None


class ThinkingBlock(Struct):
    """Content block of type `thinking`: reasoning with its signature."""

    thinking: str
    signature: str | None = None


class RedactedThinkingBlock(Struct):
    """Content block of type `redacted_thinking`."""

    data: NonEmpty


class ToolUseBlock(Marked):
    """Content block of type `tool_use`."""

    id: str
    name: str
    input: Raw


class ToolResultBlock(Marked):
    """Content block of type `tool_result`."""

    tool_use_id: str
    content: str | list[Raw] | None = None
    is_error: bool | None = None


class ToolReferenceBlock(Marked):
    """Content block of type `tool_reference`: a tool found by a search among tools, in the search's result."""

    tool_name: str


class ServerToolUseBlock(Marked):
    """Content block of type `server_tool_use`."""

    id: str
    name: str
    input: Raw


class ServerToolResultBlock(Marked):
    """Content block of type `web_search_tool_result`, and result blocks of the provider's other tools."""

    tool_use_id: str
    content: Raw


class WebSearchResult(Struct):
    """Entry of a `web_search_tool_result`."""

    url: str
    title: str | None = None
    encrypted_content: str | None = None
    page_age: str | None = None


class WebSearchError(Struct):
    """Content `web_search_tool_result_error` of a failed search."""

    error_code: str


class Query(Struct):
    """Member `input` of a search call."""

    query: str | None = None


class Citation(Struct):
    """Citation of any type. The decoder checks which fields the type needs."""

    type: str
    cited_text: str | None = None
    title: str | None = None
    document_title: str | None = None
    url: str | None = None
    encrypted_index: str | None = None
    document_index: Position | None = None
    search_result_index: Position | None = None
    file_id: str | None = None
    source: str | None = None
    start_char_index: Position | None = None
    end_char_index: Position | None = None
    start_page_number: Position | None = None
    end_page_number: Position | None = None
    start_block_index: Position | None = None
    end_block_index: Position | None = None


class Turn(Struct):
    """Element of `messages`: one message of the conversation. The decoder checks which roles need content."""

    role: str
    content: str | list[Raw] | None = None


# --- tools


class ToolHead(Struct):
    """Members of a tool by which its kind is recognised."""

    type: str | None = None
    name: str | None = None


class FunctionTool(Marked):
    """Item of `tools`: a tool that the caller runs."""

    name: NonEmpty
    input_schema: Raw
    description: str | None = None
    strict: bool | None = None
    input_examples: Raw = ABSENT_MEMBER
    eager_input_streaming: Raw = ABSENT_MEMBER


class UserLocation(Struct):
    """Member `user_location` of a web search."""

    type: Literal["approximate"] | None = None
    country: str | None = None
    region: str | None = None
    city: str | None = None
    timezone: str | None = None


class WebSearchTool(Marked):
    """Item of `tools` of type `web_search_20250305`."""

    max_uses: PositiveWhole | None = None
    user_location: UserLocation | None = None
    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None


class ToolChoice(Struct):
    """Member `tool_choice` of the request."""

    type: Literal["auto", "any", "tool", "none"]
    name: NonEmpty | None = None
    disable_parallel_tool_use: bool | None = None


# --- other fields


class Thinking(Struct):
    """Member `thinking` of the body."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: Whole | None = None
    display: str | None = None


class OutputFormat(Struct):
    """Member `output_config.format`, or the older `output_format`."""

    type: Literal["json_schema"]
    schema: Raw


class OutputConfig(Struct):
    """Member `output_config` of the request."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: OutputFormat | None = None


class Thread(Struct):
    """Member `thread` of the request."""

    type: str | None = None
    previous_message_id: Annotated[str, Meta(max_length=512)] | None = None


class CountRequest(Struct, kw_only=True):
    """Body of `POST /v1/messages/count_tokens`. Options of the output are accepted and ignored."""

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    messages: list[Turn]  # at least one turn, unless a thread is continued
    system: str | list[Raw] | None = None
    tools: list[Raw] | None = None
    context_management: Raw = ABSENT_MEMBER


class MessagesRequest(CountRequest, kw_only=True):
    """Body of `POST /v1/messages`."""

    max_tokens: PositiveWhole
    stream: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[float, Meta(ge=0)] | None = None
    stop_sequences: list[NonEmpty] | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None
    cache_control: CacheControl | None = None
    metadata: dict[str, Raw] | None = None
    service_tier: str | None = None
    mcp_servers: Raw = ABSENT_MEMBER
    container: Raw = ABSENT_MEMBER
    thread: Thread | None = None
    betas: Raw = ABSENT_MEMBER


class KnownMessagesRequest(MessagesRequest, forbid_unknown_fields=True):
    """Body of `POST /v1/messages` that may not have unknown fields. Most bodies have none; decoding fails otherwise."""
