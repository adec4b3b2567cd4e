"""Samples of all options beside the conversation. One line per field."""

from tests.pairs.fidelity.sample import PNG, Area, Body, Json, config, sample

# fmt: off

# --- model and sampling

SAMPLING = (
    sample("`temperature` up to 1", "temperature", chat={"temperature": 0.5}, responses={"temperature": 0.5}, messages={"temperature": 0.5}, native=config(temperature=0.5)),
    sample("`temperature` above 1", "temperature", chat={"temperature": 1.5}, responses={"temperature": 1.5}, native=config(temperature=1.5)),
    sample("`top_p`", "top_p", chat={"top_p": 0.5}, responses={"top_p": 0.5}, messages={"top_p": 0.5}, native=config(topP=0.5)),
    sample("`top_k`", "top_k", chat={"top_k": 5}, messages={"top_k": 5}, native=config(topK=5)),
    sample("`max_output_tokens`", "max_output_tokens", chat={"max_completion_tokens": 500}, responses={"max_output_tokens": 500}, messages={"max_tokens": 500}, native=config(maxOutputTokens=500)),
    sample("`max_output_tokens` below 16", "max_output_tokens", chat={"max_tokens": 5}, messages={"max_tokens": 5}, native=config(maxOutputTokens=5)),
    sample("`stop_sequences`", "stop_sequences", chat={"stop": ["END"]}, messages={"stop_sequences": ["END"]}, native=config(stopSequences=["END"])),
    sample("`stop_sequences`, more than four", "stop_sequences", messages={"stop_sequences": list("abcde")}, native=config(stopSequences=list("abcde"))),
    sample("`candidate_count` of 1", "candidate_count", chat={"n": 1}, native=config(candidateCount=1), ignored="providers of the other formats make one candidate"),
    sample("`candidate_count` above 1", "candidate_count", chat={"n": 2}, native=config(candidateCount=2)),
    sample("`seed`", "seed", chat={"seed": 7}, native=config(seed=7)),
    sample("`presence_penalty`", "presence_penalty", chat={"presence_penalty": 0.5}, native=config(presencePenalty=0.5)),
    sample("`frequency_penalty`", "frequency_penalty", chat={"frequency_penalty": 0.5}, native=config(frequencyPenalty=0.5)),
    sample("`logit_bias`", "logit_bias", chat={"logit_bias": {"50256": -100}}),
    sample("`logprobs`", "logprobs", chat={"logprobs": True}, responses={"include": ["message.output_text.logprobs"]}, native=config(responseLogprobs=True)),
    sample("`logprobs`: false", "logprobs", chat={"logprobs": False}, native=config(responseLogprobs=False), ignored="the default of the other formats"),
    sample("`top_logprobs`", "top_logprobs", chat={"logprobs": True, "top_logprobs": 3}, responses={"include": ["message.output_text.logprobs"], "top_logprobs": 3}, native=config(responseLogprobs=True, logprobs=3)),
)

# --- the conversation as a whole

WHOLE = (
    sample("`instructions`", "instructions[0].text.text", "GenerateRequest.instructions", responses={"instructions": "Be brief."}, messages={"system": "Be brief."}, native={"systemInstruction": {"parts": [{"text": "Be brief."}]}}, elsewhere={"chat": "messages[0].parts[0].text.text"}),
    sample("`prompt_template.prompt_id`", "prompt_template.prompt_id", responses={"prompt": {"id": "pmpt_1"}}),
    sample("`prompt_template.version`", "prompt_template.version", responses={"prompt": {"id": "pmpt_1", "version": "2"}}),
    sample("`prompt_template.variables_json`", "prompt_template.variables_json", responses={"prompt": {"id": "pmpt_1", "variables": {"a": "b"}}}),
    sample("`prediction`", "prediction[0].text.text", "GenerateRequest.prediction", chat={"prediction": {"type": "content", "content": "hi"}}),
    sample("`media_detail`", "media_detail", native=config(mediaResolution="MEDIA_RESOLUTION_LOW") | {"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]}]}, elsewhere={"chat": "part.media.detail", "responses": "part.media.detail"}),
    sample("`speech_language`", "speech_language", chat={"parameters": {"asr_options": {"language": "de"}}}),
)

# --- tools

PROPERTIES: Body = {"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}, "required": ["city"]}
CLOSED: Body = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}  # fmt: skip
SUBSET: Body = {"type": "OBJECT", "properties": {"city": {"type": "STRING", "nullable": True}}}


def grouped(**options: Json) -> Body:
    """Return a function in a namespace."""
    return {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}], **options}]}


def functions(**options: Json) -> dict[str, Body]:
    """Return one function, as each face declares it."""
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


def without(bodies: dict[str, Body], *faces: str) -> dict[str, Body]:
    return {face: body for face, body in bodies.items() if face not in faces}


def tools(**more: Body) -> dict[str, Body]:
    """Return by face a body with two functions `f` and `g` and the given fields."""
    declared: list[Body] = [{"name": name, "description": name, "parameters": PROPERTIES} for name in ("f", "g")]
    bodies: dict[str, Body] = {
        "chat": {"tools": [{"type": "function", "function": each} for each in declared]},
        "responses": {"tools": [{"type": "function", **each} for each in declared]},
        "messages": {"tools": [{"name": each["name"], "input_schema": PROPERTIES} for each in declared]},
        "native": {
            "tools": [
                {
                    "functionDeclarations": [
                        {"name": each["name"], "parametersJsonSchema": PROPERTIES} for each in declared
                    ]
                }
            ]
        },
    }
    return {face: bodies[face] | body for face, body in more.items()}


def calling(mode: str, *names: str) -> Body:
    return {
        "toolConfig": {
            "functionCallingConfig": {"mode": mode} | ({"allowedFunctionNames": list(names)} if names else {})
        }
    }


def place(**options: Json) -> dict[str, Body]:
    location: Body = {"type": "approximate", **options}
    return {
        "responses": {"tools": [{"type": "web_search", "user_location": location}]},
        "messages": {"tools": [{"type": "web_search_20250305", "name": "web_search", "user_location": location}]},
    }


def searched(**options: Json) -> Body:
    return {"tools": [{"type": "web_search", **options}]}


def searching(**options: Json) -> Body:
    return {"tools": [{"type": "web_search_20250305", "name": "web_search", **options}]}


def stored(**options: Json) -> Body:
    return {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"], **options}]}


def allowed(mode: str, *names: str, nested: bool) -> Body:
    listed: list[Json] = [
        {"type": "function", "function": {"name": name}} if nested else {"type": "function", "name": name}
        for name in names
    ]
    allowed: Body = {"mode": mode, "tools": listed}
    return {
        "tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}
        if nested
        else {"type": "allowed_tools", **allowed}
    }


SEARCH_TYPE = "Tool.web_search.declared_type"
FUNCTION = "tools[0].function"

TOOLS = (
    sample("function `name`", f"{FUNCTION}.name", "Tool.function.name", also="GenerateRequest.tools", **functions()),
    sample("function `description`", f"{FUNCTION}.description", "Tool.function.description", **functions(description="Does f")),
    sample("function `parameters_json`", f"{FUNCTION}.parameters_json", "Tool.function.parameters_json", **functions()),
    sample("function without parameters", f"{FUNCTION}.name", "Tool.function.parameters_json", chat={"tools": [{"type": "function", "function": {"name": "f"}}]}, responses={"tools": [{"type": "function", "name": "f"}]}, native={"tools": [{"functionDeclarations": [{"name": "f"}]}]}),
    sample("function `native_schema`", f"{FUNCTION}.parameters_json", "Tool.function.native_schema", native={"tools": [{"functionDeclarations": [{"name": "f", "parameters": SUBSET}]}]}, ignored="written as JSON schema that allows the same values"),
    sample("function `strict`", f"{FUNCTION}.strict", "Tool.function.strict", **without(functions(strict=True), "native")),
    sample("a name that the target does not allow", f"{FUNCTION}.name", "Tool.function.name", native={"tools": [{"functionDeclarations": [{"name": "a.b:c", "parametersJsonSchema": PROPERTIES}]}]}, instead=dict.fromkeys(("chat", "responses", "messages"), (f"{FUNCTION}.name", "a_b_c"))),
    sample("`face_hints.legacy_functions`", "face_hints.legacy_functions", "FaceHints.legacy_functions", also="GenerateRequest.face_hints", chat={"functions": [{"name": "f", "parameters": PROPERTIES}]}, ignored="an older spelling of the same tools, which the response has too"),
    sample("custom `name`", "tools[0].custom.name", "Tool.custom.name", chat={"tools": [{"type": "custom", "custom": {"name": "c"}}]}, responses={"tools": [{"type": "custom", "name": "c"}]}, elsewhere={"messages": f"{FUNCTION}.name", "native": f"{FUNCTION}.name"}),
    sample("custom `description`", "tools[0].custom.description", "Tool.custom.description", chat={"tools": [{"type": "custom", "custom": {"name": "c", "description": "Does c"}}]}, responses={"tools": [{"type": "custom", "name": "c", "description": "Does c"}]}, elsewhere={"messages": f"{FUNCTION}.description", "native": f"{FUNCTION}.description"}),
    sample("custom `format_json`", "tools[0].custom.format_json", "Tool.custom.format_json", chat={"tools": [{"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}}}]}, responses={"tools": [{"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}}]}),
    sample("`namespace`", "tools[0].namespace.name", "Tool.namespace", also="ToolNamespace.name", responses=grouped(), instead=dict.fromkeys(("chat", "messages", "native"), ("tools[0].function.name", "n__f"))),
    sample("`namespace.description`", "tools[0].namespace.description", "ToolNamespace.description", responses=grouped(description="adds"), instead=dict.fromkeys(("chat", "messages", "native"), ("tools[0].function.description", "n: adds"))),
    sample("a tool of the caller with a type (`declared`)", "tools[0].function.declared.type", "Tool.function.declared", responses={"tools": [{"type": "apply_patch"}]}, instead=dict.fromkeys(("chat", "messages", "native"), ("tools[0].function.name", "apply_patch"))),
    sample("a hosted tool that the model may do without", "tools[0].opaque.handling", "OPAQUE_HANDLING_OPTIONAL", also="Part.opaque.handling", responses={"tools": [{"type": "image_generation"}]}, named=("image_generation",)),
    sample("web search", "tools[0].web_search", SEARCH_TYPE, responses=searched(), messages=searching(), native={"tools": [{"googleSearch": {}}]}, instead={"chat": ("search", "set")}),
    sample("web search `context_size`", "tools[0].web_search.context_size", "Tool.web_search.context_size", responses=searched(search_context_size="high"), elsewhere={"chat": "search.context_size"}, named=("search_context_size",)),
    sample("web search `user_location.country`", "tools[0].web_search.user_location.country", "UserLocation.country", also="Tool.web_search.user_location", elsewhere={"chat": "search.user_location.country"}, **place(country="CH")),
    sample("web search `user_location.region`", "tools[0].web_search.user_location.region", "UserLocation.region", elsewhere={"chat": "search.user_location.region"}, **place(region="Uri")),
    sample("web search `user_location.city`", "tools[0].web_search.user_location.city", "UserLocation.city", elsewhere={"chat": "search.user_location.city"}, **place(city="Altdorf")),
    sample("web search `user_location.timezone`", "tools[0].web_search.user_location.timezone", "UserLocation.timezone", elsewhere={"chat": "search.user_location.timezone"}, **place(timezone="Europe/Zurich")),
    sample("web search `max_uses`", "tools[0].web_search.max_uses", "Tool.web_search.max_uses", messages=searching(max_uses=3)),
    sample("web search `allowed_domains`", "tools[0].web_search.allowed_domains", "Tool.web_search.allowed_domains", responses=searched(filters={"allowed_domains": ["a.example"]}), messages=searching(allowed_domains=["a.example"])),
    sample("web search `blocked_domains`", "tools[0].web_search.blocked_domains", "Tool.web_search.blocked_domains", messages=searching(blocked_domains=["a.example"]), native={"tools": [{"googleSearch": {"excludeDomains": ["a.example"]}}]}),
    sample("file search `vector_store_ids`", "tools[0].file_search.vector_store_ids", "Tool.file_search.vector_store_ids", responses=stored()),
    sample("file search `max_results`", "tools[0].file_search.max_results", "Tool.file_search.max_results", responses=stored(max_num_results=3)),
    sample("file search `options_json`", "tools[0].file_search.options_json", "Tool.file_search.options_json", responses=stored(ranking_options={"score_threshold": 0.5})),
    sample("any other tool (`opaque`)", "tools[0].opaque.type", "Tool.opaque", responses={"tools": [{"type": "mcp", "server_label": "a", "server_url": "https://a.example"}]}, messages={"tools": [{"type": "bash_20250124", "name": "bash"}]}, native={"tools": [{"codeExecution": {}}]}),
    sample("tool `cache_control`", "tools[0].cache_control.ttl", "Tool.cache_control", messages=functions(cache_control={"type": "ephemeral", "ttl": "1h"})["messages"]),
    sample("`tool_choice`: auto", "tool_choice.mode", "TOOL_CHOICE_MODE_AUTO", also="GenerateRequest.tool_choice ToolChoice.mode", **tools(chat={"tool_choice": "auto"}, responses={"tool_choice": "auto"}, messages={"tool_choice": {"type": "auto"}}, native=calling("AUTO"))),
    sample("`tool_choice`: none", "tool_choice.mode", "TOOL_CHOICE_MODE_NONE", **tools(chat={"tool_choice": "none"}, responses={"tool_choice": "none"}, messages={"tool_choice": {"type": "none"}}, native=calling("NONE"))),
    sample("`tool_choice`: any tool must be called", "tool_choice.mode", "TOOL_CHOICE_MODE_REQUIRED", **tools(chat={"tool_choice": "required"}, responses={"tool_choice": "required"}, messages={"tool_choice": {"type": "any"}}, native=calling("ANY"))),
    sample("`tool_choice`: one tool must be called", "tool_choice.names", "ToolChoice.names", **tools(chat={"tool_choice": {"type": "function", "function": {"name": "g"}}}, responses={"tool_choice": {"type": "function", "name": "g"}}, messages={"tool_choice": {"type": "tool", "name": "g"}}, native=calling("ANY", "g"))),
    sample("`tool_choice`: one of some must be called", "tool_choice.names", "ToolChoice.names", also="ToolChoice.allowed_tools", **tools(chat=allowed("required", "f", "g", nested=True), responses=allowed("required", "f", "g", nested=False), native=calling("ANY", "f", "g")), instead={"messages": ("tools[].function.name", "f g")}),
    sample("`tool_choice`: one of some may be called", "tool_choice.names", "ToolChoice.allowed_tools", **tools(chat=allowed("auto", "f", nested=True), responses=allowed("auto", "f", nested=False), native=calling("AUTO", "f")), instead={"messages": ("tools[].function.name", "f"), "native": ("tools[].function.name", "f")}),
    sample("`tool_choice`: validated", "tool_choice.mode", "TOOL_CHOICE_MODE_VALIDATED", **tools(native=calling("VALIDATED"))),
    sample("`tool_choice`: a tool of the provider (`opaque`)", "tool_choice.opaque.type", "ToolChoice.opaque", responses={"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}], "tool_choice": {"type": "file_search"}}),
    sample("`parallel_tool_calls`: false", "parallel_tool_calls", **tools(chat={"parallel_tool_calls": False}, responses={"parallel_tool_calls": False}, messages={"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}})),
    sample("`parallel_tool_calls`: true", "parallel_tool_calls", **tools(chat={"parallel_tool_calls": True}, responses={"parallel_tool_calls": True}, messages={"tool_choice": {"type": "auto", "disable_parallel_tool_use": False}}), ignored="the only behaviour of native"),
    sample("`max_tool_calls`", "max_tool_calls", responses={"max_tool_calls": 3}),
    sample("`search`", "search", "GenerateRequest.search", chat={"web_search_options": {}}, instead={"responses": ("tools[].web_search.declared_type", "web_search"), "messages": ("tools[].web_search.declared_type", "web_search_20250305"), "native": ("tools[].web_search.declared_type", "googleSearch")}),
    sample("`search.mode`: off", "search.mode", "SearchOptions.mode", also="SEARCH_MODE_OFF", chat={"search_parameters": {"mode": "off"}}, ignored="no provider of the other formats searches by default"),
    sample("`search.mode`: auto", "search.mode", "SEARCH_MODE_AUTO", chat={"search_parameters": {"mode": "auto"}}, instead={"responses": ("tools[].web_search.declared_type", "web_search"), "messages": ("tools[].web_search.declared_type", "web_search_20250305"), "native": ("tools[].web_search.declared_type", "googleSearch")}),
    sample("`search.mode`: on", "search.mode", "SEARCH_MODE_ON", chat={"search_parameters": {"mode": "on"}}, instead={"responses": ("tools[].web_search.declared_type", "web_search"), "messages": ("tools[].web_search.declared_type", "web_search_20250305"), "native": ("tools[].web_search.declared_type", "googleSearch")}),
    sample("`search.context_size`", "search.context_size", "SearchOptions.context_size", chat={"web_search_options": {"search_context_size": "high"}}, elsewhere={"responses": "tools[0].web_search.context_size"}, named=("search_context_size",)),
    sample("`search.user_location`", "search.user_location.city", "SearchOptions.user_location", chat={"web_search_options": {"user_location": {"type": "approximate", "approximate": {"city": "Altdorf"}}}}, elsewhere={"responses": "tools[0].web_search.user_location.city", "messages": "tools[0].web_search.user_location.city"}),
    sample("`search.return_citations`: false", "search.return_citations", "SearchOptions.return_citations", chat={"search_parameters": {"mode": "on", "return_citations": False}}),
    sample("`search.region`", "search.region", "SearchOptions.region", chat={"parameters": {"enable_search": True, "search_options": {"region": "CN"}}}),
    sample("`search.recency_days`", "search.recency_days", "SearchOptions.recency_days", chat={"parameters": {"enable_search": True, "search_options": {"recency_days": 3}}}),
)

# --- reasoning


def thinks(**options: Json) -> Body:
    return config(thinkingConfig=options)


def google(**options: Json) -> Body:
    return {"extra_body": {"google": {"thinking_config": options}}}


REASONING = (
    sample("`mode`: disabled", "reasoning.mode", "REASONING_MODE_DISABLED", also="GenerateRequest.reasoning ReasoningOptions.mode", chat={"thinking": {"type": "disabled"}}, messages={"thinking": {"type": "disabled"}}, instead={"responses": ("reasoning.effort", "none"), "native": ("reasoning.budget_tokens", "0")}),
    sample("`mode`: enabled", "reasoning.mode", "REASONING_MODE_ENABLED", chat={"thinking": {"type": "enabled"}}),
    sample("`mode`: adaptive", "reasoning.mode", "REASONING_MODE_ADAPTIVE", messages={"thinking": {"type": "adaptive"}}, instead={"native": ("reasoning.budget_tokens", "-1")}),
    sample("`mode`: between_tools", "reasoning.mode", "REASONING_MODE_BETWEEN_TOOLS", messages={"thinking": {"type": "between_tools"}}),
    sample("`face_hints.enable_thinking`", "reasoning.mode", "FaceHints.enable_thinking", chat={"enable_thinking": True}),
    sample("`budget_tokens` above 0", "reasoning.budget_tokens", "ReasoningOptions.budget_tokens", chat=google(thinking_budget=2000), messages={"thinking": {"type": "enabled", "budget_tokens": 2000}}, native=thinks(thinkingBudget=2000)),
    sample("`budget_tokens` of 0", "reasoning.budget_tokens", "ReasoningOptions.budget_tokens", chat=google(thinking_budget=0), native=thinks(thinkingBudget=0), instead={"messages": ("reasoning.mode", "1"), "responses": ("reasoning.effort", "none"), "chat": ("reasoning.effort", "none")}),
    sample("`budget_tokens` of -1", "reasoning.budget_tokens", "ReasoningOptions.budget_tokens", chat=google(thinking_budget=-1), native=thinks(thinkingBudget=-1), instead={"messages": ("reasoning.mode", "3")}),
    *(
        sample(
            f"`effort`: {effort}",
            "reasoning.effort",
            "ReasoningOptions.effort",
            chat={"reasoning_effort": effort},
            responses={"reasoning": {"effort": effort}},
            instead={"messages": ("reasoning.mode", "1"), "native": ("reasoning.budget_tokens", "0")}
            if effort == "none"
            else {},
        )
        for effort in ("none", "minimal", "low", "medium", "high", "xhigh")
    ),
    sample("`effort`, of a messages body", "reasoning.effort", "ReasoningOptions.effort", messages={"output_config": {"effort": "high"}}),
    sample("`level`: low", "reasoning.level", "ReasoningOptions.level", chat={"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}, native=thinks(thinkingLevel="LOW"), elsewhere={"chat": "reasoning.effort", "responses": "reasoning.effort"}),
    sample("`level`: high", "reasoning.level", "ReasoningOptions.level", chat={"generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH"}}}, native=thinks(thinkingLevel="HIGH"), elsewhere={"chat": "reasoning.effort", "responses": "reasoning.effort"}),
    sample("`include_thoughts`: true", "reasoning.include_thoughts", "ReasoningOptions.include_thoughts", chat=google(include_thoughts=True, thinking_budget=2000), native=thinks(includeThoughts=True, thinkingBudget=2000), instead={"responses": ("reasoning.summary", "auto"), "messages": ("reasoning.mode", "2")}),
    sample("`summary`: auto", "reasoning.summary", "ReasoningOptions.summary", responses={"reasoning": {"effort": "high", "summary": "auto"}}, instead={"native": ("reasoning.include_thoughts", "True")}),
    sample("`summary`: detailed", "reasoning.summary", "ReasoningOptions.summary", responses={"reasoning": {"effort": "high", "summary": "detailed"}}, instead={"native": ("reasoning.include_thoughts", "True")}),
    sample("`display`: omitted", "reasoning.display", "ReasoningOptions.display", messages={"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}}, ignored="native shows thoughts only on request"),
    sample("`face_hints.thinking_to_content`", "face_hints.thinking_to_content", "FaceHints.thinking_to_content", chat={"vendorn_thinking_to_content": True}, ignored="the gateway encodes the response in this way, for every provider"),
)

# --- form of the response


def schema(**options: Json) -> dict[str, Body]:
    described: Body = {"name": "city", "schema": CLOSED, **options}
    return {
        "chat": {"response_format": {"type": "json_schema", "json_schema": described}},
        "responses": {"text": {"format": {"type": "json_schema", **described}}},
    }


SCHEMA = "response_format.json_schema"
FORM = (
    sample("`response_format`: text", "response_format.text", "ResponseFormat.text", also="GenerateRequest.response_format", chat={"response_format": {"type": "text"}}, responses={"text": {"format": {"type": "text"}}}, native=config(responseMimeType="text/plain"), ignored="every response is text by default"),
    sample("`response_format`: json", "response_format.json", "ResponseFormat.json", chat={"response_format": {"type": "json_object"}}, responses={"text": {"format": {"type": "json_object"}}}, native=config(responseMimeType="application/json")),
    sample("`json_schema.schema_json`", f"{SCHEMA}.schema_json", "ResponseFormat.json_schema.schema_json", **schema(), messages={"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}}, native=config(responseMimeType="application/json", responseJsonSchema=CLOSED)),
    sample("`json_schema.schema_json`: minLength", f"{SCHEMA}.schema_json", "ResponseFormat.json_schema.schema_json", **schema(schema=PROPERTIES), messages={"output_config": {"format": {"type": "json_schema", "schema": PROPERTIES}}}, native=config(responseMimeType="application/json", responseJsonSchema=PROPERTIES), named=("minLength",)),
    sample("`json_schema.native_schema`", f"{SCHEMA}.schema_json", "ResponseFormat.json_schema.native_schema", native=config(responseMimeType="application/json", responseSchema=SUBSET), ignored="written as JSON schema that allows the same values"),
    sample("`json_schema.name`", f"{SCHEMA}.name", "ResponseFormat.json_schema.name", **schema()),
    sample("`json_schema.description`", f"{SCHEMA}.description", "ResponseFormat.json_schema.description", **schema(description="A city")),
    sample("`json_schema.strict`: true", f"{SCHEMA}.strict", "ResponseFormat.json_schema.strict", **schema(strict=True), ignored="messages enforces every schema"),
    sample("`enum_text`", "response_format.enum_text.schema_json", "ResponseFormat.enum_text", native=config(responseMimeType="text/x.enum", responseSchema={"type": "STRING", "enum": ["a", "b"]})),
    sample("`verbosity`", "verbosity", chat={"verbosity": "low"}, responses={"text": {"verbosity": "low"}}),
    sample("`output_modalities`: text", "output_modalities", chat={"modalities": ["text"]}, native=config(responseModalities=["TEXT"]), ignored="every response is text by default"),
    sample("`output_modalities`: image", "output_modalities", native=config(responseModalities=["TEXT", "IMAGE"])),
    sample("`output_modalities`: audio", "output_modalities", chat={"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "mp3"}}, native=config(responseModalities=["AUDIO"])),
    sample("`image_output.aspect_ratio`", "image_output.aspect_ratio", native=config(imageConfig={"aspectRatio": "16:9"})),
    sample("`image_output.image_size`", "image_output.image_size", native=config(imageConfig={"imageSize": "2K"})),
    sample("`image_output.mime_type`", "image_output.mime_type", native=config(imageConfig={"imageOutputOptions": {"mimeType": "image/png"}})),
    sample("`audio_output.format`", "audio_output.format", chat={"audio": {"voice": "alloy", "format": "mp3"}}),
    sample("`audio_output.voice_json`", "audio_output.voice_json", chat={"audio": {"voice": "alloy", "format": "mp3"}}, native=config(responseModalities=["AUDIO"], speechConfig={"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}})),
)

# --- continuation, storage, cache, safety

ENVELOPE_KEYS = (
    sample("`conversation_id`", "conversation_id", responses={"conversation": "conv_1"}),
    sample("`store`: true", "store", chat={"store": True}, responses={"store": True}, native={"store": True}, ignored="the gateway itself stores the responses of callers of this format"),
    sample("`store`: false", "store", chat={"store": False}, responses={"store": False}, native={"store": False}, ignored="providers of the other formats store nothing"),
    sample("`include`: reasoning.encrypted_content", "include", responses={"include": ["reasoning.encrypted_content"]}, ignored="providers of the other formats always return their state"),
    sample("`include`: any other", "include", responses={"include": ["file_search_call.results"]}),
    sample("`truncation`: auto", "truncation", also="TRUNCATION_AUTO", responses={"truncation": "auto"}, ignored="the gateway leaves out the oldest turns after an overflow"),
    sample("`truncation`: disabled", "truncation", also="TRUNCATION_DISABLED", responses={"truncation": "disabled"}, ignored="the only behaviour of the other formats"),
    sample("`cached_content`", "cached_content", native={"cachedContent": "cachedContents/1"}),
    sample("`cache_control`", "cache_control.ttl", "GenerateRequest.cache_control", also="CacheControl.ttl CACHE_TTL_ONE_HOUR", messages={"cache_control": {"type": "ephemeral", "ttl": "1h"}}, elsewhere={"converse": "part.cache_control.ttl"}),
    sample("`cache_control` for five minutes", "cache_control.ttl", "CACHE_TTL_FIVE_MINUTES", messages={"cache_control": {"type": "ephemeral", "ttl": "5m"}}, elsewhere={"converse": "part.cache_control.ttl"}),
    sample("`prompt_cache_key`", "prompt_cache_key", chat={"prompt_cache_key": "k"}, responses={"prompt_cache_key": "k"}),
    sample("`prompt_cache_options_json`", "prompt_cache_options_json", chat={"prompt_cache_options": {"mode": "explicit"}}, responses={"prompt_cache_options": {"mode": "explicit"}}),
    sample("`prompt_cache_retention`", "prompt_cache_retention", chat={"prompt_cache_retention": "24h"}, responses={"prompt_cache_retention": "24h"}),
    sample("`safety_settings.category`", "safety_settings[0].category", "SafetySetting.category", also="GenerateRequest.safety_settings", native={"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]}),
    sample("`safety_settings.threshold`", "safety_settings[0].threshold", "SafetySetting.threshold", native={"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]}),
    sample("`moderation_json`", "moderation_json", chat={"moderation": {"model": "omni"}}, responses={"moderation": {"model": "omni"}}),
    sample("`metadata`", "metadata", chat={"metadata": {"a": "b"}}, responses={"metadata": {"a": "b"}}, native={"labels": {"a": "b"}}),
    sample("`user`", "user", chat={"user": "u"}, responses={"user": "u"}, messages={"metadata": {"user_id": "u"}}),
    sample("`safety_identifier`", "safety_identifier", chat={"safety_identifier": "u"}, responses={"safety_identifier": "u"}),
    sample("`service_tier`: auto", "service_tier", chat={"service_tier": "auto"}, responses={"service_tier": "auto"}, messages={"service_tier": "auto"}),
    sample("`service_tier`: flex", "service_tier", chat={"service_tier": "flex"}, responses={"service_tier": "flex"}, native={"serviceTier": "flex"}),
    sample("`service_tier`: standard_only", "service_tier", messages={"service_tier": "standard_only"}),
    sample("`face_hints.include_usage`", "face_hints.include_usage", "FaceHints.include_usage", chat={"stream": True, "stream_options": {"include_usage": True}}, ignored="the gateway requests usage from every chat provider, and the others always report it"),
    sample("`include_obfuscation`: true", "include_obfuscation", chat={"stream": True, "stream_options": {"include_obfuscation": True}}, responses={"stream": True, "stream_options": {"include_obfuscation": True}}, ignored="padding, which is not part of the response"),
    sample("`incremental_output`: true", "incremental_output", chat={"parameters": {"incremental_output": True}}, ignored="the form of every stream"),
    sample("`incremental_output`: false", "incremental_output", chat={"parameters": {"incremental_output": False}}),
)

OPTIONS = (
    Area("Model and sampling", SAMPLING),
    Area("The conversation as a whole", WHOLE),
    Area("Tools", TOOLS),
    Area("Reasoning", REASONING),
    Area("Form of the response", FORM),
    Area("Continuation, storage, cache, safety, transport", ENVELOPE_KEYS),
)
