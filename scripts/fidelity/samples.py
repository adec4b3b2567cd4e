"""One least body per face for each field of a request: what is measured."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | None | list[Json] | dict[str, Json]"
Body: TypeAlias = "dict[str, Json]"

FORMATS = ("chat", "responses", "messages", "native")
ASKED = "hi"

# What every body has, so that it is one.
LEAST: Mapping[str, Body] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": ASKED}]},
    "responses": {"model": "m", "input": [{"role": "user", "content": ASKED}]},
    "messages": {"model": "m", "max_tokens": 9000, "messages": [{"role": "user", "content": ASKED}]},
    "native": {"contents": [{"role": "user", "parts": [{"text": ASKED}]}]},
}


@dataclass(frozen=True)
class Sample:
    """A field, and how each face says it."""

    row: str
    """Its name in the table."""
    path: str
    """Where its value stands in the canonical request; `part.x` is the first part that has an `x`."""
    covers: tuple[str, ...]
    """Canonical homes of docs/fields.md that it measures."""
    bodies: Mapping[str, Body]
    """By face: the fields of its body beside the least."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """By target: the path where the same value then stands instead."""
    instead: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By target: (path, value) of what says the same in other words there, with no loss."""
    ignored: str = ""
    """Why a target may be told nothing of it, and its caller nothing of that."""


@dataclass(frozen=True)
class Alone:
    """A field that only one format has and that has no canonical home."""

    face: str
    row: str
    body: Body
    ignored: str = ""
    """As of `Sample`."""


@dataclass(frozen=True)
class Area:
    """A table of the page."""

    title: str
    samples: tuple[Sample, ...]


def _sample(row: str, path: str, covers: str = "", *, also: str = "", **options: object) -> Sample:
    """With the bodies of the faces that `options` name. `covers` is by default the path below GenerateRequest."""
    bodies = {name: options.pop(name) for name in FORMATS if name in options}
    names = (covers or f"GenerateRequest.{path}", *also.split())
    return Sample(row, path, names, bodies, **options)  # type: ignore[arg-type]


def _config(**options: Json) -> Body:
    return {"generationConfig": options}


def _user(*parts: Json) -> Iterator[tuple[str, Body]]:
    raise NotImplementedError


# --- model and sampling

SAMPLING = (
    _sample("`temperature` up to 1", "temperature", chat={"temperature": 0.5}, responses={"temperature": 0.5}, messages={"temperature": 0.5}, native=_config(temperature=0.5)),
    _sample("`temperature` above 1", "temperature", chat={"temperature": 1.5}, responses={"temperature": 1.5}, native=_config(temperature=1.5)),
    _sample("`top_p`", "top_p", chat={"top_p": 0.5}, responses={"top_p": 0.5}, messages={"top_p": 0.5}, native=_config(topP=0.5)),
    _sample("`top_k`", "top_k", chat={"top_k": 5}, messages={"top_k": 5}, native=_config(topK=5)),
    _sample("`max_output_tokens`", "max_output_tokens", chat={"max_completion_tokens": 500}, responses={"max_output_tokens": 500}, messages={"max_tokens": 500}, native=_config(maxOutputTokens=500)),
    _sample("`max_output_tokens` below 16", "max_output_tokens", chat={"max_tokens": 5}, messages={"max_tokens": 5}, native=_config(maxOutputTokens=5)),
    _sample("`stop_sequences`", "stop_sequences", chat={"stop": ["END"]}, messages={"stop_sequences": ["END"]}, native=_config(stopSequences=["END"])),
    _sample("`stop_sequences`, more than four", "stop_sequences", messages={"stop_sequences": list("abcde")}, native=_config(stopSequences=list("abcde"))),
    _sample("`candidate_count` of 1", "candidate_count", chat={"n": 1}, native=_config(candidateCount=1)),
    _sample("`candidate_count` above 1", "candidate_count", chat={"n": 2}, native=_config(candidateCount=2)),
    _sample("`seed`", "seed", chat={"seed": 7}, native=_config(seed=7)),
    _sample("`presence_penalty`", "presence_penalty", chat={"presence_penalty": 0.5}, native=_config(presencePenalty=0.5)),
    _sample("`frequency_penalty`", "frequency_penalty", chat={"frequency_penalty": 0.5}, native=_config(frequencyPenalty=0.5)),
    _sample("`logit_bias`", "logit_bias", chat={"logit_bias": {"50256": -100}}),
    _sample("`logprobs`", "logprobs", chat={"logprobs": True}, responses={"include": ["message.output_text.logprobs"]}, native=_config(responseLogprobs=True)),
    _sample("`top_logprobs`", "top_logprobs", chat={"logprobs": True, "top_logprobs": 3}, responses={"include": ["message.output_text.logprobs"], "top_logprobs": 3}, native=_config(responseLogprobs=True, logprobs=3)),
)

# --- the conversation as a whole

WHOLE = (
    _sample("`instructions`", "instructions[0].text.text", "GenerateRequest.instructions", responses={"instructions": "Be brief."}, messages={"system": "Be brief."}, native={"systemInstruction": {"parts": [{"text": "Be brief."}]}}, elsewhere={"chat": "messages[0].parts[0].text.text"}),
    _sample("`prompt_template.prompt_id`", "prompt_template.prompt_id", responses={"prompt": {"id": "pmpt_1"}}),
    _sample("`prompt_template.version`", "prompt_template.version", responses={"prompt": {"id": "pmpt_1", "version": "2"}}),
    _sample("`prompt_template.variables_json`", "prompt_template.variables_json", responses={"prompt": {"id": "pmpt_1", "variables": {"a": "b"}}}),
    _sample("`prediction`", "prediction[0].text.text", "GenerateRequest.prediction", chat={"prediction": {"type": "content", "content": "hi"}}),
    _sample("`media_detail`", "media_detail", native=_config(mediaResolution="MEDIA_RESOLUTION_LOW")),
    _sample("`speech_language`", "speech_language", chat={"parameters": {"asr_options": {"language": "de"}}}),
)

# --- tools

PROPERTIES: Body = {"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}, "required": ["city"]}
SUBSET: Body = {"type": "OBJECT", "properties": {"city": {"type": "STRING", "nullable": True}}}


def _functions(**options: Json) -> dict[str, Body]:
    """One function, as each face declares it."""
    plain: Body = {"name": "f", "parameters": PROPERTIES, **options}
    input_schema: Body = {"name": "f", "input_schema": plain.pop("parameters"), **options}
    json_schema: Body = {"name": "f", "parametersJsonSchema": input_schema["input_schema"], **options}
    plain["parameters"] = input_schema["input_schema"]
    return {
        "chat": {"tools": [{"type": "function", "function": plain}]},
        "responses": {"tools": [{"type": "function", **plain}]},
        "messages": {"tools": [input_schema]},
        "native": {"tools": [{"functionDeclarations": [json_schema]}]},
    }


def _without(bodies: dict[str, Body], *faces: str) -> dict[str, Body]:
    return {face: body for face, body in bodies.items() if face not in faces}


def _tools(**more: Body) -> dict[str, Body]:
    """Two functions `f` and `g`, and by face what else the body says."""
    declared: list[Body] = [{"name": name, "description": name, "parameters": PROPERTIES} for name in ("f", "g")]
    said: dict[str, Body] = {
        "chat": {"tools": [{"type": "function", "function": each} for each in declared]},
        "responses": {"tools": [{"type": "function", **each} for each in declared]},
        "messages": {"tools": [{"name": each["name"], "input_schema": PROPERTIES} for each in declared]},
        "native": {"tools": [{"functionDeclarations": [{"name": each["name"], "parametersJsonSchema": PROPERTIES} for each in declared]}]},
    }
    return {face: said[face] | body for face, body in more.items()}


def _calling(mode: str, *names: str) -> Body:
    return {"toolConfig": {"functionCallingConfig": {"mode": mode} | ({"allowedFunctionNames": list(names)} if names else {})}}


def _place(**options: Json) -> dict[str, Body]:
    location: Body = {"type": "approximate", **options}
    return {
        "responses": {"tools": [{"type": "web_search", "user_location": location}]},
        "messages": {"tools": [{"type": "web_search_20250305", "name": "web_search", "user_location": location}]},
    }


def _searched(**options: Json) -> Body:
    return {"tools": [{"type": "web_search", **options}]}


def _searching(**options: Json) -> Body:
    return {"tools": [{"type": "web_search_20250305", "name": "web_search", **options}]}


def _stored(**options: Json) -> Body:
    return {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"], **options}]}


def _allowed(mode: str, *names: str, nested: bool) -> Body:
    listed: list[Json] = [{"type": "function", "function": {"name": name}} if nested else {"type": "function", "name": name} for name in names]
    allowed: Body = {"mode": mode, "tools": listed}
    return {"tool_choice": {"type": "allowed_tools", "allowed_tools": allowed} if nested else {"type": "allowed_tools", **allowed}}


SEARCH_TYPE = "Tool.web_search.declared_type"
FUNCTION = "tools[0].function"

TOOLS = (
    _sample("function `name`", f"{FUNCTION}.name", "Tool.function.name", also="GenerateRequest.tools", **_functions()),
    _sample("function `description`", f"{FUNCTION}.description", "Tool.function.description", **_functions(description="Does f")),
    _sample("function `parameters_json`", f"{FUNCTION}.parameters_json", "Tool.function.parameters_json", **_functions()),
    _sample("function without parameters", f"{FUNCTION}.parameters_json", "Tool.function.parameters_json", chat={"tools": [{"type": "function", "function": {"name": "f"}}]}, responses={"tools": [{"type": "function", "name": "f"}]}, native={"tools": [{"functionDeclarations": [{"name": "f"}]}]}),
    _sample("function `native_schema`", f"{FUNCTION}.parameters_json", "Tool.function.native_schema", native={"tools": [{"functionDeclarations": [{"name": "f", "parameters": SUBSET}]}]}, ignored="written as JSON schema that allows the same values"),
    _sample("function `strict`", f"{FUNCTION}.strict", "Tool.function.strict", **_without(_functions(strict=True), "native")),
    _sample("a name that the target does not allow", f"{FUNCTION}.name", "Tool.function.name", native={"tools": [{"functionDeclarations": [{"name": "a.b:c", "parametersJsonSchema": PROPERTIES}]}]}, ignored="renamed on the way there, and back in the answer"),
    _sample("`legacy_functions`", "legacy_functions", chat={"functions": [{"name": "f", "parameters": PROPERTIES}]}, ignored="the older spelling of the same tools; the answer is in it"),
    _sample("custom `name`", "tools[0].custom.name", "Tool.custom.name", chat={"tools": [{"type": "custom", "custom": {"name": "c"}}]}, responses={"tools": [{"type": "custom", "name": "c"}]}, elsewhere={"messages": f"{FUNCTION}.name", "native": f"{FUNCTION}.name"}),
    _sample("custom `description`", "tools[0].custom.description", "Tool.custom.description", chat={"tools": [{"type": "custom", "custom": {"name": "c", "description": "Does c"}}]}, responses={"tools": [{"type": "custom", "name": "c", "description": "Does c"}]}, elsewhere={"messages": f"{FUNCTION}.description", "native": f"{FUNCTION}.description"}),
    _sample("custom `format_json`", "tools[0].custom.format_json", "Tool.custom.format_json", chat={"tools": [{"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}}}]}, responses={"tools": [{"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}}]}),
    _sample("web search", "tools[0].web_search", SEARCH_TYPE, responses=_searched(), messages=_searching(), native={"tools": [{"googleSearch": {}}]}),
    _sample("web search `context_size`", "tools[0].web_search.context_size", "Tool.web_search.context_size", responses=_searched(search_context_size="high")),
    _sample("web search `user_location.country`", "tools[0].web_search.user_location.country", "UserLocation.country", also="Tool.web_search.user_location", **_place(country="CH")),
    _sample("web search `user_location.region`", "tools[0].web_search.user_location.region", "UserLocation.region", **_place(region="Uri")),
    _sample("web search `user_location.city`", "tools[0].web_search.user_location.city", "UserLocation.city", **_place(city="Altdorf")),
    _sample("web search `user_location.timezone`", "tools[0].web_search.user_location.timezone", "UserLocation.timezone", **_place(timezone="Europe/Zurich")),
    _sample("web search `max_uses`", "tools[0].web_search.max_uses", "Tool.web_search.max_uses", messages=_searching(max_uses=3)),
    _sample("web search `allowed_domains`", "tools[0].web_search.allowed_domains", "Tool.web_search.allowed_domains", responses=_searched(filters={"allowed_domains": ["a.example"]}), messages=_searching(allowed_domains=["a.example"])),
    _sample("web search `blocked_domains`", "tools[0].web_search.blocked_domains", "Tool.web_search.blocked_domains", messages=_searching(blocked_domains=["a.example"]), native={"tools": [{"googleSearch": {"excludeDomains": ["a.example"]}}]}),
    _sample("file search `vector_store_ids`", "tools[0].file_search.vector_store_ids", "Tool.file_search.vector_store_ids", responses=_stored()),
    _sample("file search `max_results`", "tools[0].file_search.max_results", "Tool.file_search.max_results", responses=_stored(max_num_results=3)),
    _sample("file search `options_json`", "tools[0].file_search.options_json", "Tool.file_search.options_json", responses=_stored(ranking_options={"score_threshold": 0.5})),
    _sample("any other tool (`opaque`)", "tools[0].opaque.type", "Tool.opaque", responses={"tools": [{"type": "mcp", "server_label": "a", "server_url": "https://a.example"}]}, messages={"tools": [{"type": "bash_20250124", "name": "bash"}]}, native={"tools": [{"codeExecution": {}}]}),
    _sample("tool `cache_control`", "tools[0].cache_control.ttl", "Tool.cache_control", messages=_functions(cache_control={"type": "ephemeral", "ttl": "1h"})["messages"]),
    _sample("`tool_choice`: auto", "tool_choice.mode", "TOOL_CHOICE_MODE_AUTO", also="GenerateRequest.tool_choice ToolChoice.mode", **_tools(chat={"tool_choice": "auto"}, responses={"tool_choice": "auto"}, messages={"tool_choice": {"type": "auto"}}, native=_calling("AUTO"))),
    _sample("`tool_choice`: none", "tool_choice.mode", "TOOL_CHOICE_MODE_NONE", **_tools(chat={"tool_choice": "none"}, responses={"tool_choice": "none"}, messages={"tool_choice": {"type": "none"}}, native=_calling("NONE"))),
    _sample("`tool_choice`: any tool must be called", "tool_choice.mode", "TOOL_CHOICE_MODE_REQUIRED", **_tools(chat={"tool_choice": "required"}, responses={"tool_choice": "required"}, messages={"tool_choice": {"type": "any"}}, native=_calling("ANY"))),
    _sample("`tool_choice`: one tool must be called", "tool_choice.names", "ToolChoice.names", **_tools(chat={"tool_choice": {"type": "function", "function": {"name": "g"}}}, responses={"tool_choice": {"type": "function", "name": "g"}}, messages={"tool_choice": {"type": "tool", "name": "g"}}, native=_calling("ANY", "g"))),
    _sample("`tool_choice`: one of some must be called", "tool_choice.names", "ToolChoice.names", also="ToolChoice.allowed_tools", **_tools(chat=_allowed("required", "f", "g", nested=True), responses=_allowed("required", "f", "g", nested=False), native=_calling("ANY", "f", "g")), instead={"messages": ("tools[].function.name", "f g")}),
    _sample("`tool_choice`: one of some may be called", "tool_choice.names", "ToolChoice.allowed_tools", **_tools(chat=_allowed("auto", "f", nested=True), responses=_allowed("auto", "f", nested=False), native=_calling("AUTO", "f")), instead={"messages": ("tools[].function.name", "f")}),
    _sample("`tool_choice`: validated", "tool_choice.mode", "TOOL_CHOICE_MODE_VALIDATED", **_tools(native=_calling("VALIDATED"))),
    _sample("`tool_choice`: a tool of the provider (`opaque`)", "tool_choice.opaque.type", "ToolChoice.opaque", responses={"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}], "tool_choice": {"type": "file_search"}}),
    _sample("`parallel_tool_calls`: false", "parallel_tool_calls", **_tools(chat={"parallel_tool_calls": False}, responses={"parallel_tool_calls": False}, messages={"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}})),
    _sample("`parallel_tool_calls`: true", "parallel_tool_calls", **_tools(chat={"parallel_tool_calls": True}, responses={"parallel_tool_calls": True}, messages={"tool_choice": {"type": "auto", "disable_parallel_tool_use": False}})),
    _sample("`max_tool_calls`", "max_tool_calls", responses={"max_tool_calls": 3}),
    _sample("`search`", "search", "GenerateRequest.search", chat={"web_search_options": {}}, instead={"responses": ("tools[].web_search.declared_type", "web_search"), "messages": ("tools[].web_search.declared_type", "web_search_20250305"), "native": ("tools[].web_search.declared_type", "googleSearch")}),
    _sample("`search.mode`: off", "search.mode", "SearchOptions.mode", chat={"search_parameters": {"mode": "off"}}),
    _sample("`search.mode`: auto", "search.mode", "SearchOptions.mode", chat={"search_parameters": {"mode": "auto"}}, instead={"responses": ("tools[].web_search.declared_type", "web_search"), "messages": ("tools[].web_search.declared_type", "web_search_20250305"), "native": ("tools[].web_search.declared_type", "googleSearch")}),
    _sample("`search.context_size`", "search.context_size", "SearchOptions.context_size", chat={"web_search_options": {"search_context_size": "high"}}, elsewhere={"responses": "tools[0].web_search.context_size"}),
    _sample("`search.user_location`", "search.user_location.city", "SearchOptions.user_location", chat={"web_search_options": {"user_location": {"type": "approximate", "approximate": {"city": "Altdorf"}}}}, elsewhere={"responses": "tools[0].web_search.user_location.city", "messages": "tools[0].web_search.user_location.city"}),
    _sample("`search.return_citations`: false", "search.return_citations", "SearchOptions.return_citations", chat={"search_parameters": {"mode": "on", "return_citations": False}}),
    _sample("`search.region`", "search.region", "SearchOptions.region", chat={"parameters": {"enable_search": True, "search_options": {"region": "CN"}}}),
    _sample("`search.recency_days`", "search.recency_days", "SearchOptions.recency_days", chat={"parameters": {"enable_search": True, "search_options": {"recency_days": 3}}}),
)

# --- reasoning


def _thinks(**options: Json) -> Body:
    return _config(thinkingConfig=options)


def _google(**options: Json) -> Body:
    return {"extra_body": {"google": {"thinking_config": options}}}


REASONING = (
    _sample("`mode`: disabled", "reasoning.mode", "REASONING_MODE_DISABLED", also="GenerateRequest.reasoning ReasoningOptions.mode", chat={"thinking": {"type": "disabled"}}, messages={"thinking": {"type": "disabled"}}, instead={"responses": ("reasoning.effort", "none"), "native": ("reasoning.budget_tokens", "0")}),
    _sample("`mode`: enabled", "reasoning.mode", "REASONING_MODE_ENABLED", chat={"thinking": {"type": "enabled"}}),
    _sample("`mode`: adaptive", "reasoning.mode", "REASONING_MODE_ADAPTIVE", messages={"thinking": {"type": "adaptive"}}, instead={"native": ("reasoning.budget_tokens", "-1")}),
    _sample("`mode`: between_tools", "reasoning.mode", "REASONING_MODE_BETWEEN_TOOLS", messages={"thinking": {"type": "between_tools"}}),
    _sample("`declared_as_enable_thinking`", "reasoning.mode", "ReasoningOptions.declared_as_enable_thinking", chat={"enable_thinking": True}),
    _sample("`budget_tokens` above 0", "reasoning.budget_tokens", "ReasoningOptions.budget_tokens", chat=_google(thinking_budget=2000), messages={"thinking": {"type": "enabled", "budget_tokens": 2000}}, native=_thinks(thinkingBudget=2000)),
    _sample("`budget_tokens` of 0", "reasoning.budget_tokens", "ReasoningOptions.budget_tokens", chat=_google(thinking_budget=0), native=_thinks(thinkingBudget=0), instead={"messages": ("reasoning.mode", "1"), "responses": ("reasoning.effort", "none"), "chat": ("reasoning.effort", "none")}),
    _sample("`budget_tokens` of -1", "reasoning.budget_tokens", "ReasoningOptions.budget_tokens", chat=_google(thinking_budget=-1), native=_thinks(thinkingBudget=-1), instead={"messages": ("reasoning.mode", "3")}),
    *(
        _sample(f"`effort`: {effort}", "reasoning.effort", "ReasoningOptions.effort", chat={"reasoning_effort": effort}, responses={"reasoning": {"effort": effort}}, instead={"messages": ("reasoning.mode", "1"), "native": ("reasoning.budget_tokens", "0")} if effort == "none" else {})
        for effort in ("none", "minimal", "low", "medium", "high", "xhigh")
    ),
    _sample("`effort`, as messages says it", "reasoning.effort", "ReasoningOptions.effort", messages={"output_config": {"effort": "high"}}),
    _sample("`level`: low", "reasoning.level", "ReasoningOptions.level", chat={"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}, native=_thinks(thinkingLevel="LOW")),
    _sample("`level`: high", "reasoning.level", "ReasoningOptions.level", chat={"generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH"}}}, native=_thinks(thinkingLevel="HIGH")),
    _sample("`include_thoughts`: true", "reasoning.include_thoughts", "ReasoningOptions.include_thoughts", chat=_google(include_thoughts=True, thinking_budget=2000), native=_thinks(includeThoughts=True, thinkingBudget=2000), instead={"responses": ("reasoning.summary", "auto"), "messages": ("reasoning.mode", "2")}),
    _sample("`summary`: auto", "reasoning.summary", "ReasoningOptions.summary", responses={"reasoning": {"effort": "high", "summary": "auto"}}, instead={"native": ("reasoning.include_thoughts", "True")}),
    _sample("`summary`: detailed", "reasoning.summary", "ReasoningOptions.summary", responses={"reasoning": {"effort": "high", "summary": "detailed"}}, instead={"native": ("reasoning.include_thoughts", "True")}),
    _sample("`display`: omitted", "reasoning.display", "ReasoningOptions.display", messages={"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}}),
    _sample("`thinking_to_content`", "thinking_to_content", chat={"vendorn_thinking_to_content": True}, ignored="the gateway writes the answer so, whoever gives it"),
)

# --- form of the answer


def _schema(**options: Json) -> dict[str, Body]:
    described: Body = {"name": "city", "schema": PROPERTIES, **options}
    return {
        "chat": {"response_format": {"type": "json_schema", "json_schema": described}},
        "responses": {"text": {"format": {"type": "json_schema", **described}}},
    }


SCHEMA = "response_format.json_schema"
FORM = (
    _sample("`response_format`: text", "response_format.text", "ResponseFormat.text", also="GenerateRequest.response_format", chat={"response_format": {"type": "text"}}, responses={"text": {"format": {"type": "text"}}}, native=_config(responseMimeType="text/plain"), ignored="what every answer is"),
    _sample("`response_format`: json", "response_format.json", "ResponseFormat.json", chat={"response_format": {"type": "json_object"}}, responses={"text": {"format": {"type": "json_object"}}}, native=_config(responseMimeType="application/json")),
    _sample("`json_schema.schema_json`", f"{SCHEMA}.schema_json", "ResponseFormat.json_schema.schema_json", **_schema(), messages={"output_config": {"format": {"type": "json_schema", "schema": PROPERTIES}}}, native=_config(responseMimeType="application/json", responseJsonSchema=PROPERTIES)),
    _sample("`json_schema.native_schema`", f"{SCHEMA}.schema_json", "ResponseFormat.json_schema.native_schema", native=_config(responseMimeType="application/json", responseSchema=SUBSET), ignored="written as JSON schema that allows the same values"),
    _sample("`json_schema.name`", f"{SCHEMA}.name", "ResponseFormat.json_schema.name", **_schema()),
    _sample("`json_schema.description`", f"{SCHEMA}.description", "ResponseFormat.json_schema.description", **_schema(description="A city")),
    _sample("`json_schema.strict`: true", f"{SCHEMA}.strict", "ResponseFormat.json_schema.strict", **_schema(strict=True), ignored="every schema is held to there"),
    _sample("`enum_text`", "response_format.enum_text.schema_json", "ResponseFormat.enum_text", native=_config(responseMimeType="text/x.enum", responseSchema={"type": "STRING", "enum": ["a", "b"]})),
    _sample("`verbosity`", "verbosity", chat={"verbosity": "low"}, responses={"text": {"verbosity": "low"}}),
    _sample("`output_modalities`: text", "output_modalities", chat={"modalities": ["text"]}, native=_config(responseModalities=["TEXT"]), ignored="what every answer is"),
    _sample("`output_modalities`: image", "output_modalities", native=_config(responseModalities=["TEXT", "IMAGE"])),
    _sample("`output_modalities`: audio", "output_modalities", chat={"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "mp3"}}, native=_config(responseModalities=["AUDIO"])),
    _sample("`image_output.aspect_ratio`", "image_output.aspect_ratio", native=_config(imageConfig={"aspectRatio": "16:9"})),
    _sample("`image_output.image_size`", "image_output.image_size", native=_config(imageConfig={"imageSize": "2K"})),
    _sample("`image_output.mime_type`", "image_output.mime_type", native=_config(imageConfig={"imageOutputOptions": {"mimeType": "image/png"}})),
    _sample("`audio_output.format`", "audio_output.format", chat={"audio": {"voice": "alloy", "format": "mp3"}}),
    _sample("`audio_output.voice_json`", "audio_output.voice_json", chat={"audio": {"voice": "alloy", "format": "mp3"}}, native=_config(speechConfig={"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}})),
)

# --- continuation, storage, cache, safety

AROUND = (
    _sample("`previous_response_id`", "previous_response_id", responses={"previous_response_id": "resp_1"}, ignored="the gateway sends the conversation itself"),
    _sample("`conversation_id`", "conversation_id", responses={"conversation": "conv_1"}),
    _sample("`store`: true", "store", chat={"store": True}, responses={"store": True}, native={"store": True}),
    _sample("`store`: false", "store", chat={"store": False}, responses={"store": False}, native={"store": False}, ignored="nothing is stored there"),
    _sample("`include`: reasoning.encrypted_content", "include", responses={"include": ["reasoning.encrypted_content"]}),
    _sample("`include`: any other", "include", responses={"include": ["file_search_call.results"]}),
    _sample("`truncation`: auto", "truncation", responses={"truncation": "auto"}),
    _sample("`truncation`: disabled", "truncation", responses={"truncation": "disabled"}, ignored="what every other format does"),
    _sample("`cached_content`", "cached_content", native={"cachedContent": "cachedContents/1"}),
    _sample("`cache_control`", "cache_control.ttl", "GenerateRequest.cache_control", also="CacheControl.ttl", messages={"cache_control": {"type": "ephemeral", "ttl": "1h"}}),
    _sample("`prompt_cache_key`", "prompt_cache_key", chat={"prompt_cache_key": "k"}, responses={"prompt_cache_key": "k"}),
    _sample("`prompt_cache_options_json`", "prompt_cache_options_json", chat={"prompt_cache_options": {"mode": "explicit"}}, responses={"prompt_cache_options": {"mode": "explicit"}}),
    _sample("`prompt_cache_retention`", "prompt_cache_retention", chat={"prompt_cache_retention": "24h"}, responses={"prompt_cache_retention": "24h"}),
    _sample("`safety_settings.category`", "safety_settings[0].category", "SafetySetting.category", also="GenerateRequest.safety_settings", native={"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]}),
    _sample("`safety_settings.threshold`", "safety_settings[0].threshold", "SafetySetting.threshold", native={"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]}),
    _sample("`moderation_json`", "moderation_json", chat={"moderation": {"model": "omni"}}, responses={"moderation": {"model": "omni"}}),
    _sample("`metadata`", "metadata", chat={"metadata": {"a": "b"}}, responses={"metadata": {"a": "b"}}, native={"labels": {"a": "b"}}),
    _sample("`user`", "user", chat={"user": "u"}, responses={"user": "u"}, messages={"metadata": {"user_id": "u"}}),
    _sample("`safety_identifier`", "safety_identifier", chat={"safety_identifier": "u"}, responses={"safety_identifier": "u"}),
    _sample("`service_tier`: auto", "service_tier", chat={"service_tier": "auto"}, responses={"service_tier": "auto"}, messages={"service_tier": "auto"}),
    _sample("`service_tier`: flex", "service_tier", chat={"service_tier": "flex"}, responses={"service_tier": "flex"}, native={"serviceTier": "flex"}),
    _sample("`service_tier`: standard_only", "service_tier", messages={"service_tier": "standard_only"}),
    _sample("`include_usage`", "include_usage", chat={"stream": True, "stream_options": {"include_usage": True}}, ignored="every provider is asked for it, and the others always tell it"),
    _sample("`include_obfuscation`: true", "include_obfuscation", chat={"stream": True, "stream_options": {"include_obfuscation": True}}, responses={"stream": True, "stream_options": {"include_obfuscation": True}}),
    _sample("`incremental_output`: true", "incremental_output", chat={"parameters": {"incremental_output": True}}, ignored="how every stream is"),
    _sample("`incremental_output`: false", "incremental_output", chat={"parameters": {"incremental_output": False}}),
)
