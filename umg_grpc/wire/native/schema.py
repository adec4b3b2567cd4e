"""Body of `POST /v1beta/models/{model}:generateContent` as typed structs: fields of the text document and of SDK types.

Base classes ignore unknown fields, as providers' responses need. Requests are decoded by subclasses that reject these,
so that `proto_json.read` normalizes a body in another spelling. Tools and the caller's own JSON (arguments, results,
schemas) stay raw. `None` means absent.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, NonEmpty, PositiveWhole, Whole

Penalty = Annotated[float, Meta(ge=-2, le=2)]
Budget = Annotated[int, Meta(ge=-1)] | Annotated[float, Meta(ge=-1)]  # -1: automatic
Level = Literal["THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"]
Modality = Literal["MODALITY_UNSPECIFIED", "TEXT", "IMAGE", "AUDIO", "VIDEO"]
Resolution = Literal[
    "MEDIA_RESOLUTION_UNSPECIFIED",
    "MEDIA_RESOLUTION_LOW",
    "MEDIA_RESOLUTION_MEDIUM",
    "MEDIA_RESOLUTION_HIGH",
    "MEDIA_RESOLUTION_ULTRA_HIGH",
]
Mode = Literal["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"]
Threshold = Literal[
    "HARM_BLOCK_THRESHOLD_UNSPECIFIED",
    "BLOCK_LOW_AND_ABOVE",
    "BLOCK_MEDIUM_AND_ABOVE",
    "BLOCK_ONLY_HIGH",
    "BLOCK_NONE",
    "OFF",
]
# Categories are added yearly; `upper` makes the name readable in any case, as an enum is.
Category = Annotated[str, Meta(pattern="^HARM_CATEGORY_[A-Z_]+$", extra={"upper": True})]


# --- parts


class ProviderBlob(Struct, rename="camel"):
    """Member `inlineData` of a part: bytes with their media type."""

    mime_type: str | None = None
    data: str | None = None


class ProviderFile(Struct, rename="camel"):
    """Member `fileData` of a part: address of a file."""

    mime_type: str | None = None
    file_uri: str | None = None


class ProviderCall(Struct, rename="camel"):
    """Member `functionCall` of a part."""

    name: str | None = None
    args: Raw = ABSENT_MEMBER
    id: str | None = None


class ResultPart(Struct, rename="camel"):
    """Element of `functionResponse.parts`: a medium of a tool result."""

    inline_data: ProviderBlob | None = None
    file_data: ProviderFile | None = None


class FunctionResponse(Struct, rename="camel"):
    """Member `functionResponse` of a part."""

    name: str | None = None
    response: Raw = ABSENT_MEMBER
    id: str | None = None
    parts: Sequence[ResultPart] | None = None
    will_continue: Raw = ABSENT_MEMBER
    scheduling: Raw = ABSENT_MEMBER


class PartResolution(Struct, rename="camel"):
    """Member `mediaResolution` of a part."""

    level: str | None = None


class ServerTool(Struct, rename="camel"):
    """Member `toolCall` or `toolResponse` of a part."""

    id: str | None = None
    tool_type: str | None = None
    args: Raw = ABSENT_MEMBER
    response: Raw = ABSENT_MEMBER


class ProviderPart(Struct, rename="camel"):
    """Part of a provider's response: one member for its kind, and members that all kinds may have."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: ProviderCall | None = None
    inline_data: ProviderBlob | None = None
    file_data: ProviderFile | None = None
    function_response: FunctionResponse | None = None
    executable_code: Raw = ABSENT_MEMBER
    code_execution_result: Raw = ABSENT_MEMBER
    tool_call: ServerTool | None = None
    tool_response: ServerTool | None = None
    media_resolution: PartResolution | None = None
    video_metadata: Raw = ABSENT_MEMBER
    opaque: Raw = field(name="(opaque)", default=ABSENT_MEMBER)  # a whole part of an unknown kind, set by `proto_json`


PART_KINDS = (
    *("text", "inline_data", "file_data", "function_call", "function_response"),
    *("executable_code", "code_execution_result", "tool_call", "tool_response", "opaque"),
)
"""Members that define the kind of a part; a part has exactly one of them."""


class Blob(ProviderBlob, forbid_unknown_fields=True):
    """Member `inlineData` of a part in a request: bytes with their media type."""


class FileData(ProviderFile, forbid_unknown_fields=True):
    """Member `fileData` of a part in a request: address of a file."""


class FunctionCall(ProviderCall, forbid_unknown_fields=True):
    """Member `functionCall` of a part in a request."""


class FunctionResult(FunctionResponse, forbid_unknown_fields=True):
    """Member `functionResponse` of a part in a request."""

    parts: "Sequence[FunctionResultPart] | None" = None


class FunctionResultPart(ResultPart, forbid_unknown_fields=True):
    """Element of `functionResponse.parts` of a request: a medium of a tool result."""

    inline_data: Blob | None = None
    file_data: FileData | None = None


class MediaResolution(PartResolution, forbid_unknown_fields=True):
    """Member `mediaResolution` of a part of a request."""

    level: Resolution | None = None


class ToolUse(ServerTool, forbid_unknown_fields=True):
    """Member `toolCall` or `toolResponse` of a part in a request."""


class Part(ProviderPart, forbid_unknown_fields=True):
    """Element of `parts` in a request."""

    function_call: FunctionCall | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None
    function_response: FunctionResult | None = None
    tool_call: ToolUse | None = None
    tool_response: ToolUse | None = None
    media_resolution: MediaResolution | None = None


class Content(Struct, forbid_unknown_fields=True, rename="camel"):
    """Element of `contents`: one message; without a role it is the user's."""

    role: str | None = None
    parts: list[Part] | None = None


# --- tools


class FunctionDeclaration(Struct, forbid_unknown_fields=True, rename="camel"):
    """Element of `functionDeclarations`: a tool that the caller runs."""

    name: NonEmpty
    description: str | None = None
    parameters: Raw = ABSENT_MEMBER
    parameters_json_schema: Raw = ABSENT_MEMBER
    response: Raw = ABSENT_MEMBER
    response_json_schema: Raw = ABSENT_MEMBER
    behavior: Raw = ABSENT_MEMBER


class GoogleSearch(Struct, forbid_unknown_fields=True, rename="camel"):
    """Member `googleSearch`, under any of its names."""

    exclude_domains: list[str] | None = None
    dynamic_retrieval_config: Raw = ABSENT_MEMBER  # of the older `googleSearchRetrieval`
    search_types: Raw = ABSENT_MEMBER
    time_range_filter: Raw = ABSENT_MEMBER
    blocking_confidence: Raw = ABSENT_MEMBER


class FunctionCallingConfig(Struct, forbid_unknown_fields=True, rename="camel"):
    """Member `toolConfig.functionCallingConfig` of the request."""

    mode: Mode | None = None
    allowed_function_names: list[NonEmpty] | None = None


class ToolConfig(Struct, forbid_unknown_fields=True, rename="camel"):
    """Member `toolConfig` of the request."""

    function_calling_config: FunctionCallingConfig | None = None
    retrieval_config: Raw = ABSENT_MEMBER
    include_server_side_tool_invocations: Raw = ABSENT_MEMBER


# --- options


class ThinkingConfig(Struct, forbid_unknown_fields=True, rename="camel"):
    """Member `generationConfig.thinkingConfig` of the request."""

    include_thoughts: bool | None = None
    thinking_budget: Budget | None = None
    thinking_level: Level | None = None


class ImageOutputOptions(Struct, forbid_unknown_fields=True, rename="camel"):
    """Member `generationConfig.imageConfig.imageOutputOptions` of the request."""

    mime_type: str | None = None


class ImageConfig(Struct, forbid_unknown_fields=True, rename="camel"):
    """Member `generationConfig.imageConfig` of the request."""

    aspect_ratio: str | None = None
    image_size: str | None = None
    image_output_options: ImageOutputOptions | None = None
    output_mime_type: str | None = None  # the SDKs' other place for it


class GenerationConfig(Struct, forbid_unknown_fields=True, rename="camel"):
    """Member `generationConfig` of the request."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[float, Meta(ge=0)] | None = None
    candidate_count: Annotated[int, Meta(ge=1, le=128)] | Annotated[float, Meta(ge=1, le=128)] | None = None
    max_output_tokens: PositiveWhole | None = None
    stop_sequences: list[NonEmpty] | None = None
    seed: Whole | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    response_logprobs: bool | None = None
    logprobs: Annotated[int, Meta(ge=0, le=20)] | Annotated[float, Meta(ge=0, le=20)] | None = None
    response_mime_type: str | None = None
    response_schema: Raw = ABSENT_MEMBER
    response_json_schema: Raw = ABSENT_MEMBER
    response_modalities: list[Modality] | None = None
    media_resolution: Resolution | None = None
    speech_config: Raw = ABSENT_MEMBER
    thinking_config: ThinkingConfig | None = None
    image_config: ImageConfig | None = None


class SafetySetting(Struct, forbid_unknown_fields=True, rename="camel"):
    """Element of `safetySettings`: the threshold of one safety filter."""

    category: Category
    threshold: Threshold
    method: Raw = ABSENT_MEMBER


class GenerateBody(Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Body of `:generateContent`. Its model is in the path; a model in the body must be the same."""

    contents: Annotated[list[Content], Meta(min_length=1)]
    system_instruction: Content | None = None
    generation_config: GenerationConfig | None = None
    tools: list[dict[str, Raw]] | None = None
    tool_config: ToolConfig | None = None
    safety_settings: list[SafetySetting] | None = None
    cached_content: str | None = None
    labels: Annotated[dict[str, str], Meta(max_length=64)] | None = None
    service_tier: str | None = None
    store: bool | None = None
    model: str | None = None


class CountBody(Struct, rename="camel"):
    """Body of `:countTokens` that contains a whole request."""

    generate_content_request: Raw = ABSENT_MEMBER
    snake_request: Raw = field(name="generate_content_request", default=ABSENT_MEMBER)


class VoiceName(Struct, rename="camel", forbid_unknown_fields=True):
    """Member `prebuiltVoiceConfig` of a voice."""

    voice_name: str | None = None


class VoiceConfig(Struct, rename="camel", forbid_unknown_fields=True):
    """Member `voiceConfig` of a speaker."""

    prebuilt_voice_config: VoiceName | None = None


class SpeechConfig(Struct, rename="camel", forbid_unknown_fields=True):
    """Member `generationConfig.speechConfig`, with the fields that other formats also have."""

    voice_config: VoiceConfig | None = None
    language_code: Raw = ABSENT_MEMBER
    multi_speaker_voice_config: Raw = ABSENT_MEMBER


Declarations = list[FunctionDeclaration]
