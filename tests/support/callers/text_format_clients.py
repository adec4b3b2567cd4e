"""Plain HTTP clients of the text formats, as functions of their bodies."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.support.callers import (
    chat_http_client,
    cohere_http_client,
    messages_http_client,
    native_http_client,
    ollama_http_client,
    responses_http_client,
)
from tests.support.callers.format_free_answers import Answer
from tests.support.callers.requests import Json, Request, Turn


def events(stream: bytes) -> list[Json]:
    """Return the JSON of the data lines of a stream, without its end marker."""
    return [
        json.loads(line[5:])
        for line in stream.decode().split("\n")
        if line.startswith("data:") and line != "data: [DONE]"
    ]


@dataclass(frozen=True)
class TextClient:
    """Text format as a plain HTTP client uses it: paths, and functions for its bodies."""

    path: Callable[[str, bool], str]  # (model, whether the response is streamed) -> path
    credentials: Callable[[str], dict[str, str]]  # key -> headers
    encode: Callable[[Request, str, Turn | None], Json]
    aggregate: Callable[[list[Json]], Json]  # events of a stream -> the response, as clients aggregate it
    turn: Callable[[Json], Turn]
    streaming: Json  # fields of a body that select a streamed answer
    error_fields: tuple[set[str], set[str]]  # members of the body, of its error; none of an error that is a text
    whole: Json = field(default_factory=dict)  # fields of a body that select a response that is not streamed
    read: Callable[[Json], Answer] | None = None
    """Reader of a response; None for a format that providers have, too, which the gateway's own decoder reads."""
    pieces: Callable[[bytes], list[Json]] = events  # stream -> its events, or its lines
    stream_type: str = "text/event-stream"
    uncarried: str = ""
    """Fields of each body that no provider has, as `x-umg-dropped` reports them."""

    def body(self, request: Request, model: str, previous: Turn | None = None, *, stream: bool = False) -> Json:
        """Return the body of a request. `previous`: the response whose tool calls the caller has run."""
        return self.encode(request, model, previous) | (self.streaming if stream else self.whole)

    def is_error(self, body: bytes) -> bool:
        value, (outer, inner) = json.loads(body), self.error_fields
        if not inner:
            return set(value) == outer and isinstance(value["error"], str)
        return set(value) == outer and inner <= set(value["error"]) <= inner | {"details"}


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


OPENAI_ERROR = ({"error"}, {"message", "type", "param", "code"})
CHAT = TextClient(
    lambda *_: "/v1/chat/completions",
    bearer,
    chat_http_client.encode_request,
    chat_http_client.aggregate,
    chat_http_client.turn_of,
    {"stream": True, "stream_options": {"include_usage": True}},
    OPENAI_ERROR,
)
RESPONSES = TextClient(
    lambda *_: "/v1/responses",
    bearer,
    responses_http_client.encode_request,
    responses_http_client.aggregate,
    responses_http_client.turn_of,
    {"stream": True},
    OPENAI_ERROR,
)
MESSAGES = TextClient(
    lambda *_: "/v1/messages",
    lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
    messages_http_client.encode_request,
    messages_http_client.aggregate,
    messages_http_client.turn_of,
    {"stream": True},
    ({"type", "error", "request_id"}, {"type", "message"}),
)
COHERE = TextClient(
    lambda *_: "/v2/chat",
    bearer,
    cohere_http_client.encode_request,
    cohere_http_client.aggregate,
    cohere_http_client.turn_of,
    {"stream": True},
    ({"message", "error"}, {"message", "type", "param", "code"}),
    read=cohere_http_client.answer_of,
)
OLLAMA_CHAT = TextClient(
    lambda *_: "/api/chat",
    bearer,
    ollama_http_client.encode_chat,
    ollama_http_client.aggregate,
    ollama_http_client.turn_of,
    {},
    ({"error"}, set()),
    {"stream": False},
    read=ollama_http_client.answer_of,
    pieces=ollama_http_client.lines,
    stream_type="application/x-ndjson",
    uncarried="options.num_ctx, keep_alive",
)
OLLAMA_GENERATE = replace(OLLAMA_CHAT, path=lambda *_: "/api/generate", encode=ollama_http_client.encode_generate)
NATIVE = TextClient(
    native_http_client.path,
    lambda key: {"x-goog-api-key": key},
    native_http_client.encode_request,
    native_http_client.aggregate,
    native_http_client.turn_of,
    {},
    ({"error"}, {"code", "message", "status"}),
)
