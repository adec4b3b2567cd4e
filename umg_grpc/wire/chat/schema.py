"""Body of `POST /v1/chat/completions` as typed structs: the fields of the text document and of current SDK types.

Content parts, tools and tool choices stay raw JSON: new types appear often, so each is decoded by its `type` where it
is needed. Unknown fields are kept in the source document only. `None` means absent: an explicit null has no effect.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

from umg_grpc.wire.core.function_tool_encoding import FunctionDefinition
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, NonEmpty, PositiveWhole, Whole

Many = Annotated[list[Raw], Meta(max_length=5000)]  # parts of a message, tools; 5000 is the schema's limit
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Level = Literal["low", "medium", "high"]
ServiceTier = Literal["auto", "default", "flex", "scale", "priority", "fast"]


class Kind(Struct):
    """Member `type` of any object that has one, by which its struct is selected."""

    type: str | None = None


# --- messages


class GoogleContent(Struct):
    """Member `extra_content.google` of the request."""

    thought_signature: str | None = None


class ExtraContent(Struct):
    """Member `extra_content`, in which vendor G's chat endpoint sends fields that chat does not have."""

    google: GoogleContent | None = None


class FunctionCall(Struct):
    """Member `function` of a tool call, or the older `function_call`."""

    name: str
    arguments: str | None = None


class FunctionToolCall(Struct):
    """Call of a function tool."""

    id: str
    function: FunctionCall
    extra_content: ExtraContent | None = None
    provider_specific_fields: Raw = ABSENT_MEMBER


class CustomCall(Struct):
    """Member `custom` of a tool call."""

    name: str
    input: str | None = None


class CustomToolCall(Struct):
    """Call of a custom tool."""

    id: str
    custom: CustomCall


class AudioReference(Struct):
    """Reference to the audio of an earlier response, by id."""

    id: NonEmpty


class ChatMessage(Struct):
    """Message of the conversation; the fields that its role requires are checked where it is decoded."""

    role: str
    content: str | Many | None = None
    name: str | None = None
    tool_calls: Many | None = None
    tool_call_id: str | None = None
    function_call: FunctionCall | None = None
    refusal: str | None = None
    audio: AudioReference | None = None
    reasoning_content: str | None = None
    extra_content: ExtraContent | None = None
    reasoning: Raw = (
        ABSENT_MEMBER  # text of the reasoning beside `reasoning_details`, and `reasoning_text` beside `_opaque`
    )
    reasoning_text: Raw = ABSENT_MEMBER
    reasoning_details: Raw = (
        ABSENT_MEMBER  # reasoning state as the providers of chat return it, see `reasoning_state_members`
    )
    thinking_blocks: Raw = ABSENT_MEMBER
    reasoning_items: Raw = ABSENT_MEMBER
    reasoning_opaque: Raw = ABSENT_MEMBER
    reasoning_signature: Raw = ABSENT_MEMBER
    encrypted_content: Raw = ABSENT_MEMBER
    provider_specific_fields: Raw = ABSENT_MEMBER
    cache_control: Raw = ABSENT_MEMBER  # marks the last part of the message


class Marked(Struct, kw_only=True):
    """Base of content parts at which a cached prefix of the prompt may end."""

    prompt_cache_breakpoint: Raw = ABSENT_MEMBER
    cache_control: Raw = ABSENT_MEMBER  # the mark of the messages format, as relays of its models take it


class TextPart(Marked):
    """Content part of type `text`."""

    text: str


class RefusalPart(Struct):
    """Content part of type `refusal`."""

    refusal: str


class ImageUrl(Struct):
    """Address of an image: http(s) or a data URL."""

    url: NonEmpty
    detail: Literal["auto", "low", "high", "original"] | None = None


class ImagePart(Marked):
    """Content part of type `image_url`. Its value may be a bare string, which many clients send, though no SDK."""

    image_url: ImageUrl | NonEmpty


class InputAudio(Struct):
    """Member `input_audio` of a content part: audio in base64."""

    data: NonEmpty
    format: Literal["wav", "mp3"]


class AudioPart(Marked):
    """Content part of type `input_audio`."""

    input_audio: InputAudio


class FileSource(Struct):
    """Member `file` of a content part: the bytes of a file as a data URL or as base64, or the id of a stored file."""

    file_data: NonEmpty | None = None
    file_id: NonEmpty | None = None
    filename: str | None = None


class FilePart(Marked):
    """Content part of type `file`."""

    file: FileSource


# --- tools


class FunctionTool(Struct):
    """Tool of type `function`."""

    function: FunctionDefinition
    cache_control: Raw = ABSENT_MEMBER


class CustomDefinition(Struct):
    """Member `custom` of a tool."""

    name: NonEmpty
    description: str | None = None
    format: Raw = ABSENT_MEMBER


class CustomTool(Struct):
    """Tool of type `custom`."""

    custom: CustomDefinition
    cache_control: Raw = ABSENT_MEMBER


class Named(Struct):
    """Object of which only the member `name` is read."""

    name: NonEmpty


class ChosenTool(Struct):
    """Tool that a tool choice selects."""

    type: str
    function: Named | None = None
    custom: Named | None = None


class AllowedTools(Struct):
    """Member `allowed_tools` of a tool choice."""

    mode: Literal["auto", "required"]
    tools: list[ChosenTool]


class AllowedToolsChoice(Struct):
    """Tool choice of type `allowed_tools`."""

    allowed_tools: AllowedTools


# --- options


class StreamOptions(Struct):
    """Member `stream_options` of the request."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class JsonSchema(Struct):
    """Member `json_schema` of a response format."""

    name: NonEmpty
    description: str | None = None
    schema: Raw = ABSENT_MEMBER
    strict: bool | None = None


class ResponseFormat(Struct):
    """Member `response_format` of the request."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class Voice(Struct):
    """Voice that the caller has made."""

    id: NonEmpty


class Audio(Struct):
    """Member `audio`: format and voice of the audio output."""

    format: Literal["wav", "aac", "mp3", "flac", "opus", "pcm16"]
    voice: NonEmpty | Voice


class Prediction(Struct):
    """Member `prediction` of the request: predicted output."""

    type: Literal["content"]
    content: str | list[TextPart]


class Thinking(Struct):
    """Member `thinking` (model family famR). Clients send `budget_tokens`, though the gateway's specification does not
    have it.
    """

    type: Literal["enabled", "disabled"]
    budget_tokens: Whole | None = None


class ApproximateLocation(Struct):
    """Approximate location of the user."""

    country: str | None = None
    region: str | None = None
    city: str | None = None
    timezone: str | None = None


class UserLocation(Struct):
    """Member `user_location` of the request."""

    approximate: ApproximateLocation
    type: Literal["approximate"] | None = None


class WebSearchOptions(Struct):
    """Member `web_search_options` of the request."""

    search_context_size: Level | None = None
    user_location: UserLocation | None = None


class SearchParameters(Struct):
    """Member `search_parameters` (model family famX)."""

    mode: Literal["off", "auto", "on"] | None = None
    return_citations: bool | None = None
    sources: Raw = ABSENT_MEMBER  # these four are not in the document, but belong to that family
    from_date: Raw = ABSENT_MEMBER
    to_date: Raw = ABSENT_MEMBER
    max_search_results: Raw = ABSENT_MEMBER


class SearchRange(Struct):
    """Member `parameters.search_options` (model family famQ)."""

    region: str | None = None
    recency_days: Annotated[int, Meta(ge=0, le=2**31 - 1)] | Annotated[float, Meta(ge=0, le=2**31 - 1)] | None = None


class SpeechOptions(Struct):
    """Member `parameters.asr_options` for speech recognition (model family famQ)."""

    language: str | None = None


class Parameters(Struct):
    """Member `parameters` (model family famQ)."""

    incremental_output: bool | None = None
    enable_search: bool | None = None
    search_options: SearchRange | None = None
    asr_options: SpeechOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None


class ThinkingConfig(Struct):
    """Member `thinking_config`; its fields are accepted in snake case and in camel case."""

    thinking_budget: Whole | None = None
    include_thoughts: bool | None = None
    thinking_level: str | None = None
    camel_budget: Whole | None = field(name="thinkingBudget", default=None)
    camel_thoughts: bool | None = field(name="includeThoughts", default=None)
    camel_level: str | None = field(name="thinkingLevel", default=None)


class VendorG(Struct):
    """Vendor G's member of a chat body: `extra_body.vendorg` or `extra_body.google`, or at the top level where an SDK
    merged `extra_body`.
    """

    thinking_config: ThinkingConfig | None = None
    camel_config: ThinkingConfig | None = field(name="thinkingConfig", default=None)
    tools: Annotated[list[dict[str, Raw]], Meta(max_length=100)] | None = None


class ExtraBody(Struct):
    """Member `extra_body`, where a caller sends it as a member and no SDK merges it into the body."""

    vendorg: VendorG | None = None
    google: VendorG | None = None


class GenerationConfig(Struct):
    """Member `generationConfig` of the request, as vendor G's clients send it."""

    camel_config: ThinkingConfig | None = field(name="thinkingConfig", default=None)
    thinking_config: ThinkingConfig | None = None


Penalty = Annotated[float, Meta(ge=-2, le=2)]
Label = Annotated[str, Meta(max_length=512)]


class ChatRequest(Struct, kw_only=True):
    """Body of `POST /v1/chat/completions`."""

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=20000)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_completion_tokens: PositiveWhole | None = None
    max_tokens: PositiveWhole | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[float, Meta(ge=0)] | None = None  # an extension that many providers accept
    n: Annotated[int, Meta(ge=1, le=128)] | Annotated[float, Meta(ge=1, le=128)] | None = None
    stop: NonEmpty | Annotated[list[NonEmpty], Meta(max_length=4)] | None = None
    seed: Whole | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: dict[str, Annotated[float, Meta(ge=-100, le=100)]] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | Annotated[float, Meta(ge=0, le=20)] | None = None
    tools: Many | None = None
    tool_choice: Raw = ABSENT_MEMBER
    parallel_tool_calls: bool | None = None
    functions: Annotated[list[FunctionDefinition], Meta(max_length=5000)] | None = None
    function_call: Literal["none", "auto"] | Named | None = None
    response_format: ResponseFormat | None = None
    modalities: list[Literal["text", "audio", "image"]] | None = None
    audio: Audio | None = None
    prediction: Prediction | None = None
    reasoning_effort: Effort | None = None
    verbosity: Level | None = None
    web_search_options: WebSearchOptions | None = None
    search_parameters: SearchParameters | None = None
    thinking: Thinking | None = None
    enable_thinking: bool | None = None
    parameters: Parameters | None = None
    vendorn_thinking_to_content: bool | None = None
    extra_body: ExtraBody | None = None
    vendorg: VendorG | None = None
    google: VendorG | None = None
    generation_config: GenerationConfig | None = field(name="generationConfig", default=None)
    store: bool | None = None
    metadata: Annotated[dict[Annotated[str, Meta(max_length=64)], Label], Meta(max_length=16)] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: Raw = ABSENT_MEMBER
    prompt_cache_retention: str | None = None
    moderation: Raw = ABSENT_MEMBER


class KnownChatRequest(ChatRequest, forbid_unknown_fields=True):
    """Body that may not have unknown fields. Most bodies have none; decoding fails otherwise."""
