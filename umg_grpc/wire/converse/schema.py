"""Structs of Converse providers' bodies and stream events, with the members that are decoded. Source: botocore 1.44.8,
bedrock-runtime (ConverseResponse, ConverseStreamOutput).
"""

from msgspec import Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER
from umg_grpc.wire.core.lenient_number_reading import Count


class CacheDetail(Struct, rename="camel"):
    """Tokens that were written to the prompt cache with one lifetime."""

    ttl: str | None = None
    input_tokens: Count = None


class TokenUsage(Struct, rename="camel"):
    """Member `usage`. Tokens of the prompt cache count in `totalTokens`, but not in `inputTokens`."""

    input_tokens: Count = None
    output_tokens: Count = None
    total_tokens: Count = None
    cache_read_input_tokens: Count = None
    cache_write_input_tokens: Count = None
    cache_details: list[CacheDetail] | None = None


class ServiceTier(Struct):
    """Member `serviceTier`."""

    type: str | None = None


class Location(Struct, rename="camel"):
    """Positions of a citation in a document or a search result."""

    document_index: int | None = None
    search_result_index: int | None = None
    start: int | None = None
    end: int | None = None


class WebLocation(Struct):
    """Page of a citation."""

    url: str | None = None


class CitationLocation(Struct, rename="camel"):
    """Union of the locations of a citation."""

    web: WebLocation | None = None
    document_char: Location | None = None
    document_page: Location | None = None
    document_chunk: Location | None = None
    search_result_location: Location | None = None


class TextMember(Struct):
    """Object with a text."""

    text: str | None = None


class Citation(Struct, rename="camel"):
    """Citation of a `citationsContent` block, or of a `citation` delta."""

    title: str | None = None
    source: str | None = None
    source_content: list[TextMember] | None = None
    location: CitationLocation | None = None


class CitationsContent(Struct):
    """Text with its citations."""

    content: list[TextMember] | None = None
    citations: list[Raw] | None = None


class ReasoningText(Struct):
    """Reasoning with its signature."""

    text: str | None = None
    signature: str | None = None


class ReasoningContent(Struct, rename="camel"):
    """Union of readable and redacted reasoning."""

    reasoning_text: ReasoningText | None = None
    redacted_content: str | None = None


class ToolUse(Struct, rename="camel"):
    """Tool call. `type`: `server_tool_use` for a tool that the provider itself runs."""

    tool_use_id: str | None = None
    name: str | None = None
    input: Raw = ABSENT_MEMBER
    type: str | None = None


class Bytes(Struct):
    """Source of a file: its bytes as base64."""

    bytes: str | None = None


class Image(Struct):
    """Image that the model made."""

    format: str | None = None
    source: Bytes | None = None


class ContentBlock(Struct, rename="camel"):
    """Union of the content blocks of a response; a block of an unknown type has none of these members."""

    text: str | None = None
    tool_use: ToolUse | None = None
    reasoning_content: ReasoningContent | None = None
    citations_content: CitationsContent | None = None
    image: Image | None = None


class Message(Struct):
    """Message of the model."""

    content: list[Raw] | None = None


class Output(Struct):
    """Member `output`."""

    message: Message | None = None


class Response(Struct, rename="camel"):
    """Body of a response of `converse`."""

    output: Output | None = None
    stop_reason: str | None = None
    usage: TokenUsage | None = None
    service_tier: ServiceTier | None = None
    trace: Raw = ABSENT_MEMBER
    additional_model_response_fields: Raw = ABSENT_MEMBER


class BlockStart(Struct, rename="camel"):
    """Union of the starts of content blocks; texts and reasoning have none."""

    tool_use: ToolUse | None = None
    image: Image | None = None


class ToolUseDelta(Struct):
    """Piece of the JSON of a tool call's input."""

    input: str | None = None


class ReasoningDelta(Struct, rename="camel"):
    """Piece of reasoning, its signature, or redacted reasoning."""

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class Delta(Struct, rename="camel"):
    """Union of the deltas of content blocks."""

    text: str | None = None
    tool_use: ToolUseDelta | None = None
    reasoning_content: ReasoningDelta | None = None
    citation: Raw = ABSENT_MEMBER
    image: Image | None = None


class Event(Struct, rename="camel"):
    """Payload of a stream event of any type; its members depend on the type."""

    content_block_index: int | None = None
    start: BlockStart | None = None
    delta: Delta | None = None
    stop_reason: str | None = None
    additional_model_response_fields: Raw = ABSENT_MEMBER
    usage: TokenUsage | None = None
    service_tier: ServiceTier | None = None
    trace: Raw = ABSENT_MEMBER
