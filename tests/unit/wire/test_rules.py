"""Accepted bodies keep the rules of the schema, so that the service does not refuse them afterwards."""

import json

import pytest

from tests.unit.wire.bodies import Bodies
from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.wire import TEXT_FACES
from umg_grpc.wire.chat import schema as chat
from umg_grpc.wire.cohere import schema as cohere
from umg_grpc.wire.core.function_tool_encoding import FunctionDefinition
from umg_grpc.wire.messages import schema as messages
from umg_grpc.wire.native import schema as native
from umg_grpc.wire.ollama import schema as ollama
from umg_grpc.wire.responses import schema as responses

TURN = {"role": "user", "content": "Hi"}
OF_OLLAMA = (ollama.Options, ollama.FunctionTool)
BODIES = {
    "chat": Bodies(
        chat.ChatRequest,
        {"model": "m", "messages": [TURN]},
        {
            "text": chat.TextPart,
            "image_url": chat.ImagePart,
            "input_audio": chat.AudioPart,
            "refusal": chat.RefusalPart,
            "function": chat.FunctionTool,
            "custom": chat.CustomTool,
            "new": chat.Kind,
            "allowed_tools": chat.AllowedToolsChoice,
        },
        (chat.FunctionToolCall, chat.CustomToolCall, chat.ChosenTool),
    ),
    "messages": Bodies(
        messages.MessagesRequest,
        {"model": "m", "messages": [TURN], "max_tokens": 9},
        {
            "text": messages.TextBlock,
            "image": messages.ImageBlock,
            "document": messages.DocumentBlock,
            "thinking": messages.ThinkingBlock,
            "redacted_thinking": messages.RedactedThinkingBlock,
            "tool_use": messages.ToolUseBlock,
            "tool_result": messages.ToolResultBlock,
            "server_tool_use": messages.ServerToolUseBlock,
            "search_result": messages.SearchResultBlock,
            "web_search_tool_result": messages.ServerToolResultBlock,
            "new": messages.Kind,
            "base64": messages.Base64Source,
            "url": messages.UrlSource,
            "file": messages.FileSource,
            "content": messages.ContentSource,
            "web_search_result": messages.WebSearchResult,
            "custom": messages.FunctionTool,
            "web_search_20250305": messages.WebSearchTool,
        },
        (messages.FunctionTool, messages.Citation),
    ),
    "native": Bodies(
        native.GenerateBody,
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        plain=(native.FunctionDeclaration, native.GoogleSearch, native.SpeechConfig),
    ),
    "responses": Bodies(
        responses.ResponsesRequest,
        {"model": "m", "input": [TURN]},
        {
            "message": responses.MessageItem,
            "function_call": responses.FunctionCall,
            "function_call_output": responses.CallOutput,
            "custom_tool_call": responses.CustomCall,
            "reasoning": responses.ReasoningItem,
            "web_search_call": responses.ToolItem,
            "new": responses.Kind,
            "image_generation_call": responses.ImageItem,
            "input_text": responses.TextPart,
            "output_text": responses.OutputText,
            "refusal": responses.RefusalPart,
            "input_file": responses.FilePart,
            "input_image": responses.ImagePart,
            "input_audio": responses.AudioPart,
            "function": FunctionDefinition,
            "custom": responses.CustomTool,
            "web_search": responses.WebSearchTool,
            "file_search": responses.FileSearchTool,
            "allowed_tools": responses.AllowedTools,
        },
        (responses.NestedFunction, responses.MessageItem),
    ),
    "ollama_chat": Bodies(ollama.ChatBody, {"model": "m", "messages": [TURN]}, plain=OF_OLLAMA),
    "ollama_generate": Bodies(ollama.GenerateBody, {"model": "m", "prompt": "Hi"}, plain=OF_OLLAMA),
    "cohere": Bodies(
        cohere.ChatRequest,
        {"model": "m", "messages": [TURN]},
        {
            "text": cohere.TextContent,
            "thinking": cohere.ThinkingContent,
            "image_url": cohere.ImageContent,
            "document": cohere.DocumentContent,
        },
        (cohere.Document, FunctionDefinition),
    ),
}


def test_every_format_is_tried() -> None:
    assert BODIES.keys() == TEXT_FACES.keys()


@pytest.mark.parametrize("name", BODIES)
def test_the_body_that_is_right_is_accepted(name: str) -> None:
    assert kept(name, BODIES[name].right)


@pytest.mark.parametrize("name", BODIES)
def test_an_accepted_body_satisfies_the_rules(name: str) -> None:
    accepted = sum(kept(name, body) for body in BODIES[name].some())
    assert accepted > 100  # otherwise nothing was tested


def kept(name: str, body: object) -> bool:
    """Return whether the body is accepted; if so, check that it keeps the rules."""
    try:
        request = TEXT_FACES[name].decode_request(json.dumps(body).encode(), {}, "m").canonical
    except UmgError:
        return False
    check(request)
    return True
