"""Bodies that use nearly every field of a format, and random changes of them."""

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.documents.spec.callers import PDF, PNG, WEATHER

Path = tuple[str | int, ...]

FUNCTION = {"name": "get_weather", "description": "Weather", "parameters": WEATHER}
PICTURE = f"data:image/png;base64,{PNG}"
TOOL_QUESTION = "Ask get_weather"
PLACE = {"type": "approximate", "city": "Rome"}

CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": TOOL_QUESTION},
                {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "name": "get_weather", "content": "17 degrees"},
    ],
    "temperature": 0.5,
    "max_tokens": 500,
    "top_p": 0.5,
    "tools": [{"type": "function", "function": FUNCTION}, {"type": "custom", "custom": {"name": "free"}}],
    "tool_choice": "auto",
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": WEATHER, "strict": True}},
    "vendorn_thinking_to_content": True,
    "reasoning_effort": "low",
    "web_search_options": {"search_context_size": "low", "user_location": {"approximate": {"city": "Rome"}}},
    "stop": ["zz"],
    "n": 2,
    "logprobs": True,
    "top_logprobs": 2,
    "logit_bias": {"1": 2},
    "metadata": {"a": "b"},
    "stream_options": {"include_usage": True},
    "prompt_cache_key": "k",
}

RESPONSES: dict[str, Any] = {
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": TOOL_QUESTION},
                {"type": "input_image", "image_url": PICTURE, "detail": "low"},
                {"type": "input_file", "file_data": f"data:application/pdf;base64,{PDF}", "filename": "a.pdf"},
            ],
        },
        {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "17 degrees"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "a",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url": "https://a.example",
                            "title": "A",
                            "start_index": 0,
                            "end_index": 1,
                        }
                    ],
                }
            ],
        },
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": "https://a.example"}]},
        },
        {"type": "input_text", "text": "Go on"},
    ],
    "instructions": "Be brief",
    "max_output_tokens": 500,
    "temperature": 1,
    "top_p": 0.9,
    "reasoning": {"effort": "low", "summary": "auto"},
    "tools": [
        {"type": "function", "function": FUNCTION},
        {"type": "web_search_preview", "search_context_size": "low", "user_location": PLACE},
        {"type": "file_search"},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "max_tool_calls": 3,
    "truncation": "auto",
    "metadata": {"a": "b"},
    "user": "u",
    "text": {"format": {"type": "json_schema", "name": "n", "schema": WEATHER}, "verbosity": "low"},
    "include": ["reasoning.encrypted_content"],
    "store": False,
}

MESSAGES: dict[str, Any] = {
    "max_tokens": 2000,
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": TOOL_QUESTION, "cache_control": {"type": "ephemeral"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
                {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Rome"}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "17 degrees"}],
                    "is_error": False,
                }
            ],
        },
    ],
    "system": [{"type": "text", "text": "Be brief", "cache_control": {"type": "persistent"}}],
    "temperature": 1,
    "top_p": 0.9,
    "top_k": 5,
    "stop_sequences": ["zz"],
    "tools": [
        {"name": "get_weather", "input_schema": WEATHER},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 2, "user_location": PLACE},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "thinking": {"type": "disabled"},
    "metadata": {"user_id": "u"},
    "cache_control": {"type": "ephemeral"},
}

NATIVE: dict[str, Any] = {
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": TOOL_QUESTION},
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
                {"fileData": {"mimeType": "image/png", "fileUri": "https://a.example/a.png"}},
            ],
        },
        {"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "get_weather", "response": {"output": "17"}}}]},
    ],
    "systemInstruction": {"parts": [{"text": "Be brief"}]},
    "generationConfig": {
        "temperature": 1,
        "topP": 0.9,
        "topK": 5,
        "maxOutputTokens": 500,
        "stopSequences": ["zz"],
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}},
        "responseModalities": ["TEXT"],
        "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 100},
        "imageConfig": {"aspectRatio": "1:1", "imageSize": "1K", "imageOutputOptions": {"mimeType": "image/png"}},
    },
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}],
    "tools": [{"functionDeclarations": [FUNCTION]}, {"vendorgSearch": {}}],
    "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    "cachedContent": "cachedContents/a",
}

BODIES = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "native": NATIVE}

VALUES: tuple[Any, ...] = (
    None,
    "",
    "x",
    0,
    -1,
    1.5,
    True,
    [],
    {},
    [None],
    [{}],
    [[]],
    {"type": "x"},
    {"type": None},
    {"": ""},
    2**63,
    1e308,
    "\u0000",
    "data:,",
    {"$ref": "#/x"},
)


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """Yield every path inside a body."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*at, key)
        yield from paths(each, (*at, key))


def changed(body: dict[str, Any], random: Random) -> dict[str, Any]:
    """Return a copy in which one to three places have another value, are missing or are repeated."""
    made = copy.deepcopy(body)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        *heads, last = random.choice(list(paths(made)) or [("empty",)])
        holder: Any = made
        for key in heads:
            holder = holder[key]
        match random.choice(("replace", "replace", "replace", "remove", "repeat")):
            case "replace":
                holder[last] = copy.deepcopy(random.choice(VALUES))
            case "remove":
                holder.pop(last, None) if isinstance(holder, dict) else holder.pop(last)
            case _:
                if isinstance(holder, list):
                    holder.append(copy.deepcopy(holder[last]))
    return made
