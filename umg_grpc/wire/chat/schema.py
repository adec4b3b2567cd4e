"""Body of `POST /v1/chat/completions` as typed structs: the text document's fields, and those of current SDK types.

Content parts, tools and tool choices stay raw: their unions grow, so each is looked up by its `type` where it is
decoded. Fields without a name here travel in the source document only. `None` is absent: an explicit null says nothing.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

from umg_grpc.wire.json import ABSENT, PositiveWhole, Whole

NonEmpty = Annotated[str, Meta(min_length=1)]
Many = Annotated[list[Raw], Meta(max_length=5000)]  # parts of a message, tools; the schema takes no more
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Level = Literal["low", "medium", "high"]
ServiceTier = Literal["auto", "default", "flex", "scale", "priority", "fast"]


class Kind(Struct):
    """Head of anything that has a type."""

    type: str | None = None


# --- messages


class GoogleContent(Struct):
    """`extra_content.google`."""

    thought_signature: str | None = None


class ExtraContent(Struct):
    """`extra_content`: where vendor G's chat endpoint puts what chat has no place for."""

    google: GoogleContent | None = None


class FunctionCall(Struct):
    """`function` of a tool call, and the older `function_call`."""

    name: str
    arguments: str | None = None


class FunctionToolCall(Struct):
    """A call of a function tool."""

    id: str
    function: FunctionCall
    extra_content: ExtraContent | None = None


class CustomCall(Struct):
    """`custom` of a tool call."""

    name: str
    input: str | None = None


class CustomToolCall(Struct):
    """A call of a custom tool."""

    id: str
    custom: CustomCall


class AudioReference(Struct):
    """An answer's sound, by id."""

    id: NonEmpty


class ChatMessage(Struct):
    """One message; which fields a role needs is checked where it is decoded."""

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


class TextPart(Struct):
    """`text`."""

    text: str


class RefusalPart(Struct):
    """`refusal`."""

    refusal: str


class ImageUrl(Struct):
    """Where an image is: http(s) or a data URL."""

    url: NonEmpty
    detail: Literal["auto", "low", "high", "original"] | None = None


class ImagePart(Struct):
    """`image_url`; the bare string is no SDK's, but usual."""

    image_url: ImageUrl | NonEmpty


class InputAudio(Struct):
    """Sound in base64."""

    data: NonEmpty
    format: Literal["wav", "mp3"]


class AudioPart(Struct):
    """`input_audio`."""

    input_audio: InputAudio


# --- tools


class FunctionDefinition(Struct):
    """`function` of a tool, and an entry of the older `functions`."""

    name: NonEmpty
    description: str | None = None
    parameters: Raw = ABSENT
    strict: bool | None = None


class FunctionTool(Struct):
    """`function`."""

    function: FunctionDefinition


class CustomDefinition(Struct):
    """`custom` of a tool."""

    name: NonEmpty
    description: str | None = None
    format: Raw = ABSENT


class CustomTool(Struct):
    """`custom`."""

    custom: CustomDefinition


class Named(Struct):
    """Something by its name."""

    name: NonEmpty


class ChosenTool(Struct):
    """A tool that is named in a choice."""

    type: str
    function: Named | None = None
    custom: Named | None = None


class AllowedTools(Struct):
    """`allowed_tools` of a tool choice."""

    mode: Literal["auto", "required"]
    tools: list[ChosenTool]


class AllowedToolsChoice(Struct):
    """`{type: allowed_tools}`."""

    allowed_tools: AllowedTools


# --- options


class StreamOptions(Struct):
    """`stream_options`."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class JsonSchema(Struct):
    """`json_schema` of a response format."""

    name: NonEmpty
    description: str | None = None
    schema: Raw = ABSENT
    strict: bool | None = None


class ResponseFormat(Struct):
    """`response_format`."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class Voice(Struct):
    """A voice of the caller's own."""

    id: NonEmpty


class Audio(Struct):
    """`audio`: how to make sound."""

    format: Literal["wav", "aac", "mp3", "flac", "opus", "pcm16"]
    voice: NonEmpty | Voice


class Prediction(Struct):
    """`prediction`."""

    type: Literal["content"]
    content: str | list[TextPart]


class Thinking(Struct):
    """`thinking` (family famR). `budget_tokens` is not in the document, but usual."""

    type: Literal["enabled", "disabled"]
    budget_tokens: Whole | None = None


class Place(Struct):
    """Roughly where the user is."""

    country: str | None = None
    region: str | None = None
    city: str | None = None
    timezone: str | None = None


class UserLocation(Struct):
    """`user_location`."""

    approximate: Place
    type: Literal["approximate"] | None = None


class WebSearchOptions(Struct):
    """`web_search_options`."""

    search_context_size: Level | None = None
    user_location: UserLocation | None = None


class SearchParameters(Struct):
    """`search_parameters` (family famX)."""

    mode: Literal["off", "auto", "on"] | None = None
    return_citations: bool | None = None
    sources: Raw = ABSENT  # these four are not in the document, but that family's own
    from_date: Raw = ABSENT
    to_date: Raw = ABSENT
    max_search_results: Raw = ABSENT


class SearchRange(Struct):
    """`parameters.search_options` (family famQ)."""

    region: str | None = None
    recency_days: Annotated[int, Meta(ge=0, le=2**31 - 1)] | Annotated[float, Meta(ge=0, le=2**31 - 1)] | None = None


class SpeechOptions(Struct):
    """`parameters.asr_options` (family famQ)."""

    language: str | None = None


class Parameters(Struct):
    """`parameters` (family famQ)."""

    incremental_output: bool | None = None
    enable_search: bool | None = None
    search_options: SearchRange | None = None
    asr_options: SpeechOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None


class ThinkingConfig(Struct):
    """`thinking_config`, whose siblings spell it in camel case: both are read."""

    thinking_budget: Whole | None = None
    include_thoughts: bool | None = None
    thinking_level: str | None = None
    camel_budget: Whole | None = field(name="thinkingBudget", default=None)
    camel_thoughts: bool | None = field(name="includeThoughts", default=None)
    camel_level: str | None = field(name="thinkingLevel", default=None)


class VendorG(Struct):
    """`extra_body.vendorg`, `extra_body.google`, or the same where an SDK merged `extra_body` into the body."""

    thinking_config: ThinkingConfig | None = None
    camel_config: ThinkingConfig | None = field(name="thinkingConfig", default=None)
    tools: Annotated[list[dict[str, Raw]], Meta(max_length=100)] | None = None


class ExtraBody(Struct):
    """`extra_body` as a literal key."""

    vendorg: VendorG | None = None
    google: VendorG | None = None


class GenerationConfig(Struct):
    """`generationConfig`."""

    camel_config: ThinkingConfig | None = field(name="thinkingConfig", default=None)
    thinking_config: ThinkingConfig | None = None


Penalty = Annotated[float, Meta(ge=-2, le=2)]
Label = Annotated[str, Meta(max_length=512)]


class ChatRequest(Struct, kw_only=True):
    """The body."""

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=20000)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_completion_tokens: PositiveWhole | None = None
    max_tokens: PositiveWhole | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[float, Meta(ge=0)] | None = None  # an extension that many providers read
    n: Annotated[int, Meta(ge=1, le=128)] | Annotated[float, Meta(ge=1, le=128)] | None = None
    stop: NonEmpty | Annotated[list[NonEmpty], Meta(max_length=4)] | None = None
    seed: Whole | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: dict[str, Annotated[float, Meta(ge=-100, le=100)]] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | Annotated[float, Meta(ge=0, le=20)] | None = None
    tools: Many | None = None
    tool_choice: Raw = ABSENT
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
    prompt_cache_options: Raw = ABSENT
    prompt_cache_retention: str | None = None
    moderation: Raw = ABSENT


class KnownChatRequest(ChatRequest, forbid_unknown_fields=True):
    """The body when it has no field beyond those."""
