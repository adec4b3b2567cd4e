"""Every request that google-genai can write is accepted on a native channel: every field and enum value of its request
types, written by the SDK itself, which refuses fields that only another product of the vendor takes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from tests.world.sdk_types.provider import answering_provider
from tests.world.sdk_types.test_accepted import gateway_to
from tests.world.sdk_types.walk import Walker

# raised by the SDK's own client
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

SAMPLES: Mapping[str, Any] = {
    "args": {},
    "category": "HARM_CATEGORY_HARASSMENT",
    "data": b"\x89PNG\r\n\x1a\n",
    "file_uri": "https://files.example/a.png",
    "mime_type": "image/png",
    "model": "m",
    "parameters_json_schema": {"type": "object"},
    "response": {"output": "x"},
    "response_json_schema": {"type": "object"},
    "response_mime_type": "application/json",
    "response_modalities": ["TEXT"],
    "role": "user",
    "thinking_budget": 128,
    "threshold": "OFF",
}
COMPLETIONS: Mapping[str, Mapping[str, Any]] = {
    "Blob": {"mime_type": "image/png", "data": b"\x89PNG\r\n\x1a\n"},
    "Content": {"role": "user", "parts": [{"text": "x"}]},
    "ExecutableCode": {"language": "PYTHON", "code": "x"},
    "FileData": {"file_uri": "https://files.example/a.png", "mime_type": "image/png"},
    "FunctionCall": {"name": "f"},
    "FunctionDeclaration": {"name": "f"},
    "FunctionResponse": {"name": "f", "response": {}},
    "FunctionResponseBlob": {"mime_type": "image/png", "data": b"\x89PNG\r\n\x1a\n"},
    "FunctionResponseFileData": {"file_uri": "https://files.example/a.png", "mime_type": "image/png"},
    "FunctionResponsePart": {"inline_data": {"mime_type": "image/png", "data": b"\x89PNG\r\n\x1a\n"}},
    "SafetySetting": {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"},
    "ToolCall": {"tool_type": "GOOGLE_SEARCH_WEB"},
    "ToolResponse": {"tool_type": "GOOGLE_SEARCH_WEB"},
}
REPLACED: Mapping[str, Any] = {
    "tools": list[types.Tool],
    "system_instruction": str,  # its parts are those of a turn
    "response_schema": types.Schema,
    "speech_config": types.SpeechConfig,
}
HELPERS = frozenset({"http_options", "should_return_http_response", "automatic_function_calling"})
"""Fields of the config that the SDK does not send."""
BESIDE = frozenset({"thought", "thought_signature", "media_resolution", "video_metadata"})
"""Fields that a part has beside its content."""
FEWEST = 400
"""Approximate number of requests that the SDK wrote when this was written: the walk must not lose requests unnoticed.
"""


@dataclass(frozen=True)
class Call:
    path: str
    arguments: Mapping[str, Any]


def calls() -> Iterator[Call]:
    for one in Walker(SAMPLES, COMPLETIONS).variants(types.Part):
        part = one.value if one.value.keys() - BESIDE else {**one.value, "text": "x"}
        yield Call(f"part{one.path}", {"contents": [{"role": "user", "parts": [part]}]})
    for role in ("user", "model"):
        yield Call(f"role={role}", {"contents": [{"role": role, "parts": [{"text": "x"}]}]})
    for one in Walker(SAMPLES, COMPLETIONS, REPLACED).variants(types.GenerateContentConfig):
        if one.value.keys() & HELPERS:
            continue
        config = dict(one.value)
        if "tool_config" in config:  # a tool choice is refused without tools
            config["tools"] = [{"function_declarations": [{"name": "f"}]}]
        yield Call(f"config{one.path}", {"contents": "x", "config": config})


async def test_every_body_of_the_sdk_reaches_a_native_provider(tmp_path: Path) -> None:
    wrong, written = list[str](), 0
    async with answering_provider() as provider, gateway_to(provider, "native", tmp_path) as gateway:
        direct = genai.Client(api_key="k", http_options={"base_url": provider.url})
        through = genai.Client(api_key=gateway.key, http_options={"base_url": gateway.url})
        for call in calls():
            try:
                await direct.aio.models.generate_content(model="m", **call.arguments)
            except ValueError:  # the SDK writes the field only for another product, or requires it in another form
                continue
            written += 1
            try:
                await through.aio.models.generate_content(model="m", **call.arguments)
            except errors.APIError as error:
                wrong.append(f"{call.path}: {error}")
                continue
            sent, arrived = (request.json for request in provider.received[-2:])
            if arrived != sent:
                wrong.append(f"{call.path}: {sent} arrived as {arrived}")
        await direct.aio.aclose()
        await through.aio.aclose()
    assert wrong == [], "\n".join(wrong)
    assert written > FEWEST
