"""Rules of the strict fake provider of native generate: the body by the vendor's types, and the rules beyond
the types.
"""

import re
import warnings
from typing import Any, Optional

from google.genai import types
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from tests.support.providers.common import IMAGES, media_of
from tests.support.providers.scenarios import Media
from tests.support.providers.server import ReceivedRequest, RefusedError

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
MEDIA = (*(kind for kind in IMAGES if kind != "image/gif"), "application/pdf", "text/plain", "audio/wav", "audio/mp3")
KINDS = ("text", "inline_data", "file_data", "function_call", "function_response", "executable_code")
KINDS += ("code_execution_result", "tool_call", "tool_response")
# Fields of the types that only the vendor's cloud has; its SDK does not send them to this API.
CLOUD_ONLY = {
    types.Tool: ("retrieval", "enterprise_web_search", "parallel_ai_search", "exa_ai_search"),
    types.SafetySetting: ("method",),
    types.Blob: ("display_name",),
    types.FileData: ("display_name",),
    types.GenerationConfig: ("routing_config", "model_selection_config", "audio_timestamp"),
    types.FunctionCall: ("partial_args", "will_continue"),
}

_Base: Any = types.Content.__base__


class Config(types.GenerationConfig):
    """`generationConfig` as it is sent: the package has the image options only in the config of its own call."""

    image_config: Optional[types.ImageConfig] = None  # noqa: UP045


class Request(_Base):
    """The body of `:generateContent`. The package has no type for it: its call takes contents and config separately."""

    contents: list[types.Content]
    system_instruction: Optional[types.Content] = None  # noqa: UP045
    generation_config: Optional[Config] = None  # noqa: UP045
    tools: Optional[list[types.Tool]] = None  # noqa: UP045
    tool_config: Optional[types.ToolConfig] = None  # noqa: UP045
    safety_settings: Optional[list[types.SafetySetting]] = None  # noqa: UP045
    cached_content: Optional[str] = None  # noqa: UP045
    labels: Optional[dict[str, str]] = None  # noqa: UP045
    service_tier: Optional[types.ServiceTier] = None  # noqa: UP045
    store: Optional[bool] = None  # noqa: UP045


def parsed(received: ReceivedRequest) -> Request:
    """Return the body of a request, checked by its types. Raise RefusedError with the API's own message."""
    assert received.json is not None  # the property raises for a body that is no JSON
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the package warns of unknown enum values
            return Request.model_validate_json(received.body)
    except UserWarning as warning:
        raise RefusedError(f"Invalid value: {warning}") from warning
    except ValidationError as error:
        first = error.errors()[0]
        *above, name = [str(step) if isinstance(step, int) else to_camel(step) for step in first["loc"]]
        at = ".".join(above)
        if first["type"] == "extra_forbidden":
            message = (
                f"Invalid JSON payload received. Unknown name \"{first['loc'][-1]}\" at '{at}': Cannot find field."
            )
            raise RefusedError(message, at) from error
        if first["type"] == "missing":
            raise RefusedError(f"* GenerateContentRequest.{name}: {name} is not specified") from error
        raise RefusedError(f"Invalid value at '{at}.{name}': {first['msg']}") from error


def judge_position(value: Any) -> None:
    """Raise RefusedError for fields of the types that belong to another API than this one."""
    if isinstance(value, list):
        for each in value:
            judge_position(each)
    elif isinstance(value, _Base):
        for kind, names in CLOUD_ONLY.items():
            for name in names if isinstance(value, kind) else ():
                if getattr(value, name) is not None:
                    raise RefusedError(
                        f'Invalid JSON payload received. Unknown name "{to_camel(name)}": Cannot find field.'
                    )
        for name in type(value).model_fields:
            judge_position(getattr(value, name))


def judge_config(config: Config) -> None:
    thinking = config.thinking_config
    if thinking and thinking.thinking_budget is not None and thinking.thinking_level is not None:
        raise RefusedError("You can only set only one of thinking budget and thinking level.")
    if config.response_schema is not None and config.response_json_schema is not None:
        raise RefusedError("Only one of response_schema and response_json_schema may be set.")
    schema = config.response_schema or config.response_json_schema
    if schema is not None and config.response_mime_type not in ("application/json", "text/x.enum"):
        raise RefusedError("response_mime_type must be application/json or text/x.enum where a response schema is set.")
    _judge_schema(config.response_schema, "generation_config.response_schema")
    for name, high in (("temperature", 2), ("top_p", 1), ("candidate_count", 8)):
        if not 0 <= (getattr(config, name) or 0) <= high:
            raise RefusedError(f"Invalid value at 'generation_config.{name}': must be in the range [0.0, {high}.0].")
    if config.logprobs is not None and not config.response_logprobs:
        raise RefusedError("logprobs needs response_logprobs.")


def _judge_schema(schema: types.Schema | None, at: str) -> None:
    if schema is None:
        return
    kind = schema.type and schema.type.value
    if kind == "ARRAY" and schema.items is None:
        raise RefusedError(f"* GenerateContentRequest.{at}.items: missing field.")
    if kind == "OBJECT" and not schema.properties:
        raise RefusedError(f"* GenerateContentRequest.{at}.properties: should be non-empty for OBJECT type")
    if schema.enum is not None and kind != "STRING":
        raise RefusedError(f"* GenerateContentRequest.{at}.enum: only allowed for STRING type")
    if kind == "STRING" and schema.format not in (None, "enum", "date-time"):
        raise RefusedError(
            f"* GenerateContentRequest.{at}.format: only 'enum' and 'date-time' are supported for STRING type"
        )
    for name in schema.required or ():
        if name not in (schema.properties or {}):
            raise RefusedError(f"* GenerateContentRequest.{at}.required: property is not defined: {name}")
    for name, inner in (schema.properties or {}).items():
        _judge_schema(inner, f"{at}.properties[{name}]")
    for place, inner in enumerate(schema.any_of or ()):
        _judge_schema(inner, f"{at}.any_of[{place}]")
    _judge_schema(schema.items, f"{at}.items")


def functions_of(request: Request) -> list[types.FunctionDeclaration]:
    return [one for tool in request.tools or () for one in tool.function_declarations or ()]


def judge_tools(request: Request) -> None:
    names = []
    for declared in functions_of(request):
        if not NAME.fullmatch(declared.name or ""):
            raise RefusedError(
                "* GenerateContentRequest.tools[0].function_declarations.name: Invalid function name. Must start with a "
                "letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), "
                "or dashes (-), with a maximum length of 64."
            )
        if declared.name in names:
            raise RefusedError(f"Duplicate function declaration found: {declared.name}")
        if declared.parameters is not None and declared.parameters_json_schema is not None:
            raise RefusedError("Only one of parameters and parameters_json_schema may be set.")
        _judge_schema(declared.parameters, "tools[0].function_declarations.parameters")
        names.append(declared.name)
    config = request.tool_config and request.tool_config.function_calling_config
    if config is None:
        return
    if not names:
        raise RefusedError("Function calling config is set without function_declarations.")
    mode = config.mode.value if config.mode else "AUTO"
    if config.allowed_function_names and mode not in ("ANY", "VALIDATED"):
        raise RefusedError("allowed_function_names should be set only when function calling mode is ANY.")
    if missing := [name for name in config.allowed_function_names or () if name not in names]:
        raise RefusedError(f"allowed_function_names: {missing[0]} is not declared.")


def is_question(content: types.Content) -> bool:
    """Return whether the content is the user's and holds no tool results: it begins a new turn."""
    return content.role != "model" and not any(part.function_response for part in content.parts or ())


def judge_contents(contents: list[types.Content], *, alternates: bool) -> None:
    if not contents:
        raise RefusedError("* GenerateContentRequest.contents: contents is not specified")
    calls: list[types.Part] = []
    for index, content in enumerate(contents):
        at = f"contents[{index}]"
        if content.role not in (None, "user", "model"):
            raise RefusedError("Please use a valid role: user, model.")
        if alternates and index and (content.role or "user") == (contents[index - 1].role or "user"):
            raise RefusedError("Please ensure that multiturn requests alternate between user and model.")
        if not content.parts:
            raise RefusedError(f"* GenerateContentRequest.{at}.parts: contents.parts must not be empty.")
        for place, part in enumerate(content.parts):
            _judge_part(part, f"{at}.parts[{place}]", content.role == "model")
        results = [part for part in content.parts if part.function_response]
        if len(results) != len(calls):
            raise RefusedError(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        paired(calls, results)
        calls = [part for part in content.parts if part.function_call]
        if calls and index == 0:
            raise RefusedError(
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
            )
    if calls:
        raise RefusedError("Please ensure that function response turn comes immediately after a function call turn.")


def _judge_part(part: types.Part, at: str, model: bool) -> None:
    kinds = [name for name in KINDS if getattr(part, name) is not None]
    if len(kinds) != 1:
        raise RefusedError(
            f"* GenerateContentRequest.{at}.data: required oneof field 'data' must have one initialized field"
        )
    if part.function_response and model:
        raise RefusedError("Please ensure that function response turn comes immediately after a function call turn.")
    if part.function_call and not model:
        raise RefusedError(
            "Please ensure that function call turn comes immediately after a user turn or a function response turn."
        )
    for called, name in ((part.function_call, "function_call"), (part.function_response, "function_response")):
        if called and not called.name:
            raise RefusedError(f"* GenerateContentRequest.{at}.{name}.name: Name cannot be empty.")
    if part.function_response and part.function_response.response is None:
        raise RefusedError(f"* GenerateContentRequest.{at}.function_response.response: must be set")
    medium_of(part, at)


def medium_of(part: types.Part, at: str) -> Media | None:
    if part.inline_data:
        return media_of(part.inline_data.mime_type or "", part.inline_data.data or b"", MEDIA, at)
    if part.file_data:
        return Media(address=part.file_data.file_uri or "")
    return None


def paired(calls: list[types.Part], results: list[types.Part]) -> list[tuple[types.Part, types.Part]]:
    """Return each call with its result: by the id where both have one, else by name and order. Raise RefusedError."""
    left, pairs = list(results), []
    for call in calls:
        wanted = call.function_call
        for result in left:
            given = result.function_response
            same = given.id == wanted.id if given.id and wanted.id else given.name == wanted.name
            if same and given.name == wanted.name:
                pairs.append((call, result))
                left.remove(result)
                break
        else:
            raise RefusedError(f"No function response for the call of {wanted.name} (id {wanted.id}).")
    return pairs
