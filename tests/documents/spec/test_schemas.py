"""A JSON schema with a malformed keyword is a 400 that names the keyword by its path in the caller's format."""

import pytest

from tests.documents.spec.callers import Chat, Messages, Native, Responses

pytestmark = pytest.mark.asyncio(loop_scope="module")

BAD = {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": -1e308}}, "required": ["a"]}
ENDLESS = {"type": "array", "items": {"$ref": "#/$defs/x"}, "minItems": 500, "uniqueItems": True, "$defs": {"x": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"n": {"$ref": "#/$defs/x"}}}]}}}  # fmt: skip
INSIDE = ".properties.a.multipleOf"


async def test_chat_names_a_malformed_keyword(chat: Chat) -> None:
    for schema, inside in ((BAD, INSIDE), (ENDLESS, "")):
        value = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
        await chat.refuses("response_format", value, named=f"response_format.json_schema.schema{inside}")
    tools = [{"type": "function", "function": {"name": "f", "parameters": BAD}}]
    await chat.refuses(
        "tools", tools, named=f"tools[0].function.parameters{INSIDE}", fields={"tool_choice": "required"}
    )


async def test_responses_names_a_malformed_keyword(responses: Responses) -> None:
    for schema, inside in ((BAD, INSIDE), (ENDLESS, "")):
        value = {"format": {"type": "json_schema", "name": "n", "schema": schema}}
        await responses.refuses("text", value, named=f"text.format.schema{inside}")
    tools = [{"type": "function", "name": "f", "parameters": BAD}]
    await responses.refuses("tools", tools, named=f"tools[0].parameters{INSIDE}", fields={"tool_choice": "required"})


async def test_messages_names_a_malformed_keyword(messages: Messages) -> None:
    tools = [{"name": "f", "input_schema": BAD}]
    await messages.refuses(
        "tools", tools, named=f"tools[0].input_schema{INSIDE}", fields={"tool_choice": {"type": "any"}}
    )


async def test_native_names_the_schema(native: Native) -> None:
    config = {"responseMimeType": "application/json"}
    await native.refuses(
        "generationConfig", config | {"responseJsonSchema": BAD}, named="generationConfig.responseSchema"
    )
