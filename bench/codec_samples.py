"""Sample bodies for the benchmark of translation: the same requests and answers in each of the text formats, as clients
and providers write them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

OURS, THEIRS = "bench-model", "bench-model-2026-05-01"
"""Ids of the model for callers and at the provider. They differ, so that bodies that are passed through are changed."""

QUESTION = "Say in one sentence what a gateway in front of several model providers is good for."
REPLY = "It gives every application one address, one key and one format, and hides which provider answers. " * 4
SYSTEM = "You are brief."
ID = "0123456789abcdef0123456789abcdef"
CREATED = 1_700_000_000

TOOLS, TURNS = 100, 60
RULES = 'Work on the repository "gateway" step by step.\n\t- Read a file before an edit: naïve edits break it.\n' * 240
DESCRIPTION = (
    "Runs one command of the repository and gives back what it printed.\n\nUsage:\n"
    '- `path` is absolute, e.g. "/srv/app/src/app.py"; relative ones are refused.\n'
) * 6
SHOWN = '    return {"status": "ok", "items": [f"{name}\\n" for name in names]}  # → as the caller knows them\n' * 105
DONE = "That was the last of the changes."
"""Text that occurs once in an agent's body, at its end."""

Json = dict[str, object]


@dataclass(frozen=True)
class Stream:
    """Provider's stream of a text, as frames."""

    opening: bytes
    deltas: list[bytes]
    """One event for each of `words`."""
    ending: bytes


@dataclass(frozen=True)
class ProviderSamples:
    """Sample bodies of the providers of one format."""

    answer: bytes
    """Answer with the text `REPLY`."""
    stream: Callable[[int], Stream]
    """Stream of the given number of words."""


@dataclass(frozen=True)
class Samples(ProviderSamples):
    """Sample bodies of the providers and callers of one format."""

    small: bytes
    """Request with a question, 0.2 KB."""
    agent: bytes
    """Request of a coding agent, 1 MB: `TOOLS` tools, and `TURNS` turns with a tool call each."""


def words(count: int) -> list[str]:
    """Return `count` words, of which a streamed answer consists."""
    return [f" word{position}" for position in range(count)]


def samples() -> dict[str, Samples]:
    """Return the samples by the name of their format."""
    return {
        "chat": Samples(_chat_answer(), _chat_stream, _chat_small(), _chat_agent()),
        "messages": Samples(_messages_answer(), _messages_stream, _messages_small(), _messages_agent()),
        "native": Samples(_native_answer(), _native_stream, _native_small(), _native_agent()),
        "responses": Samples(_responses_answer(), _responses_stream, _responses_small(), _responses_agent()),
    }


@dataclass(frozen=True)
class _Turn:
    """Turn of an agent in a conversation: its text, its tool call and the result."""

    text: str
    call_id: str
    tool: str
    arguments: Json
    result: str


def _turns() -> Iterator[_Turn]:
    for position in range(TURNS):
        edit: Json = {"text": RULES[:400]}
        arguments: Json = {"path": f"/srv/app/src/part{position}.py", "lines": [1, 400], "edit": edit}
        yield _Turn(f"Now part {position}.", f"call_{position:024}", f"tool_{position % TOOLS}", arguments, SHOWN)


def _schema(types: Callable[[str], str]) -> Json:
    """Return the schema of a tool's input. `types` converts the name of a type."""
    text: Json = {"type": types("string"), "description": DESCRIPTION[:300]}
    edit: Json = {"type": types("object"), "properties": {"text": text, "at": {"type": types("integer")}}}
    return {
        "type": types("object"),
        "properties": {
            "path": text,
            "mode": {"type": types("string"), "enum": ["read", "write", "append"], "description": DESCRIPTION[:200]},
            "lines": {"type": types("array"), "items": {"type": types("integer")}, "description": DESCRIPTION[:200]},
            "edit": edit | {"required": ["text"]},
        },
        "required": ["path"],
    }


def _tools(make: Callable[[str, Json], Json], types: Callable[[str], str] = str) -> list[Json]:
    return [make(f"tool_{position}", _schema(types)) for position in range(TOOLS)]


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _lines(events: Iterable[Json]) -> bytes:
    return b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events)


def _named(events: Iterable[Json]) -> bytes:
    return b"".join(
        f"event: {event['type']}\ndata: ".encode() + msgspec.json.encode(event) + b"\n\n" for event in events
    )


def _padding(position: int) -> str:
    """Return the padding that some providers add, so that an event's length does not reveal that of its text."""
    return ID[: 4 + position * 7 % 13]


# --- chat

_CHAT_USAGE: Json = {
    "prompt_tokens": 31,
    "completion_tokens": 100,
    "total_tokens": 131,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
}


def _chat_small() -> bytes:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    return msgspec.json.encode({"model": OURS, "messages": messages, "temperature": 0.5, "max_tokens": 200})


def _chat_agent() -> bytes:
    messages: list[Json] = [{"role": "system", "content": RULES}, {"role": "user", "content": QUESTION}]
    for turn in _turns():
        function = {"name": turn.tool, "arguments": _text(turn.arguments)}
        calls = [{"id": turn.call_id, "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": turn.text, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": turn.call_id, "content": turn.result})
    messages.append({"role": "user", "content": DONE})

    def tool(name: str, schema: Json) -> Json:
        return {"type": "function", "function": {"name": name, "description": DESCRIPTION, "parameters": schema}}

    body = {"model": OURS, "messages": messages, "tools": _tools(tool), "tool_choice": "auto", "max_tokens": 8000}
    return msgspec.json.encode(body)


def _chat_answer() -> bytes:
    message: Json = {"role": "assistant", "content": REPLY, "refusal": None, "annotations": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    head = {"id": f"chatcmpl-{ID}", "object": "chat.completion", "created": CREATED, "model": THEIRS}
    tail = {"usage": _CHAT_USAGE, "service_tier": "default", "system_fingerprint": "fp_0123456789"}
    return msgspec.json.encode({**head, "choices": [choice], **tail})


def _chat_stream(count: int) -> Stream:
    head: Json = {
        "id": f"chatcmpl-{ID}",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": THEIRS,
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
    }

    def chunk(delta: Json, position: int, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**head, "choices": [choice], "usage": None, "obfuscation": _padding(position)}

    last = _lines([chunk({}, 0, "stop"), {**head, "choices": [], "usage": _CHAT_USAGE, "obfuscation": _padding(1)}])
    return Stream(
        _lines([chunk({"role": "assistant", "content": "", "refusal": None}, 0)]),
        [_lines([chunk({"content": word}, position)]) for position, word in enumerate(words(count))],
        last + b"data: [DONE]\n\n",
    )


# --- messages

_MESSAGES_USAGE: Json = {
    "input_tokens": 31,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 1,
    "service_tier": "standard",
}


def _messages_small() -> bytes:
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": OURS, "system": SYSTEM, "messages": messages, "temperature": 0.5, "max_tokens": 200}
    return msgspec.json.encode(body)


def _messages_agent() -> bytes:
    messages: list[Json] = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
    for turn in _turns():
        call = {"type": "tool_use", "id": turn.call_id, "name": turn.tool, "input": turn.arguments}
        result = {"type": "tool_result", "tool_use_id": turn.call_id, "content": turn.result}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": turn.text}, call]})
        messages.append({"role": "user", "content": [result]})
    messages[-1]["content"] = [result, {"type": "text", "text": DONE}]

    def tool(name: str, schema: Json) -> Json:
        return {"name": name, "description": DESCRIPTION, "input_schema": schema}

    system = [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}]
    body = {"model": OURS, "max_tokens": 8000, "system": system, "messages": messages, "tools": _tools(tool)}
    return msgspec.json.encode(body)


def _messages_answer() -> bytes:
    head = {"id": f"msg_{ID}", "type": "message", "role": "assistant", "model": THEIRS}
    tail = {"stop_reason": "end_turn", "stop_sequence": None, "usage": _MESSAGES_USAGE}
    return msgspec.json.encode({**head, "content": [{"type": "text", "text": REPLY}], **tail})


def _messages_stream(count: int) -> Stream:
    head: Json = {"id": f"msg_{ID}", "type": "message", "role": "assistant", "model": THEIRS, "content": []}
    message: Json = {**head, "stop_reason": None, "stop_sequence": None, "usage": _MESSAGES_USAGE}

    def delta(word: str) -> Json:
        return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}

    started = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    ended: Json = {"stop_reason": "end_turn", "stop_sequence": None}
    return Stream(
        _named([{"type": "message_start", "message": message}, started]),
        [_named([delta(word)]) for word in words(count)],
        _named(
            [
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 100}},
                {"type": "message_stop"},
            ]
        ),
    )


# --- native


def _native_usage(output_tokens: int) -> Json:
    counts = {"promptTokenCount": 31, "candidatesTokenCount": output_tokens, "totalTokenCount": 31 + output_tokens}
    return {**counts, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 31}]}


def _native_small() -> bytes:
    contents = [{"role": "user", "parts": [{"text": QUESTION}]}]
    system, config = {"parts": [{"text": SYSTEM}]}, {"temperature": 0.5, "maxOutputTokens": 200}
    return msgspec.json.encode({"contents": contents, "systemInstruction": system, "generationConfig": config})


def _native_agent() -> bytes:
    contents: list[Json] = [{"role": "user", "parts": [{"text": QUESTION}]}]
    for turn in _turns():
        call = {"id": turn.call_id, "name": turn.tool, "args": turn.arguments}
        result = {"id": turn.call_id, "name": turn.tool, "response": {"output": turn.result}}
        contents.append({"role": "model", "parts": [{"text": turn.text}, {"functionCall": call}]})
        contents.append({"role": "user", "parts": [{"functionResponse": result}]})
    contents.append({"role": "user", "parts": [{"text": DONE}]})

    def tool(name: str, schema: Json) -> Json:
        return {"name": name, "description": DESCRIPTION, "parameters": schema}

    tools = [{"functionDeclarations": _tools(tool, str.upper)}]
    system, config = {"parts": [{"text": RULES}]}, {"maxOutputTokens": 8000}
    body = {"contents": contents, "systemInstruction": system, "tools": tools, "generationConfig": config}
    return msgspec.json.encode(body)


def _native_chunk(text: str, output_tokens: int, finish: str | None = None) -> Json:
    candidate: Json = {"content": {"parts": [{"text": text}], "role": "model"}}
    if finish is not None:
        candidate["finishReason"] = finish
    candidate["index"] = 0
    usage = _native_usage(output_tokens)
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": THEIRS, "responseId": ID}


def _native_answer() -> bytes:
    return msgspec.json.format(msgspec.json.encode(_native_chunk(REPLY, 100, "STOP")))


def _native_stream(count: int) -> Stream:
    """Return a stream whose lines end in CRLF, and whose events each have the usage so far."""
    return Stream(
        b"",
        [
            _lines([_native_chunk(word, position + 1)]).replace(b"\n", b"\r\n")
            for position, word in enumerate(words(count))
        ],
        _lines([_native_chunk("", count, "STOP")]).replace(b"\n", b"\r\n"),
    )


# --- responses

_RESPONSES_USAGE: Json = {
    "input_tokens": 31,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 100,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 131,
}


def _responses_small() -> bytes:
    body = {"model": OURS, "instructions": SYSTEM, "input": QUESTION, "temperature": 0.5, "max_output_tokens": 200}
    return msgspec.json.encode(body)


def _responses_agent() -> bytes:
    def message(role: str, kind: str, text: str) -> Json:
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    items: list[Json] = [message("user", "input_text", QUESTION)]
    for turn in _turns():
        items.append(message("assistant", "output_text", turn.text))
        call = {"call_id": turn.call_id, "name": turn.tool, "arguments": _text(turn.arguments)}
        items.append({"type": "function_call", **call})
        items.append({"type": "function_call_output", "call_id": turn.call_id, "output": turn.result})
    items.append(message("user", "input_text", DONE))

    def tool(name: str, schema: Json) -> Json:
        return {"type": "function", "name": name, "description": DESCRIPTION, "strict": False, "parameters": schema}

    head = {"model": OURS, "instructions": RULES, "store": False, "max_output_tokens": 8000}
    return msgspec.json.encode({**head, "tools": _tools(tool), "tool_choice": "auto", "input": items})


def _response(status: str, output: list[Json], usage: Json | None) -> Json:
    return {
        "id": f"resp_{ID}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": SYSTEM,
        "max_output_tokens": 200,
        "model": THEIRS,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": True,
        "temperature": 0.5,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage,
        "metadata": {},
    }


def _output_text(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _message(status: str, content: list[Json]) -> Json:
    return {"id": f"msg_{ID}", "type": "message", "status": status, "role": "assistant", "content": content}


def _responses_answer() -> bytes:
    whole = _response("completed", [_message("completed", [_output_text(REPLY)])], _RESPONSES_USAGE)
    return msgspec.json.encode(whole)


def _responses_stream(count: int) -> Stream:
    place: Json = {"item_id": f"msg_{ID}", "output_index": 0, "content_index": 0}
    text = "".join(words(count))

    def event(number: int, kind: str, fields: Json) -> Json:
        return {"type": f"response.{kind}", "sequence_number": number, **fields}

    def delta(position: int, word: str) -> Json:
        fields = {**place, "delta": word, "logprobs": [], "obfuscation": _padding(position)}
        return event(4 + position, "output_text.delta", fields)

    done = _message("completed", [_output_text(text)])
    opening = [
        event(0, "created", {"response": _response("in_progress", [], None)}),
        event(1, "in_progress", {"response": _response("in_progress", [], None)}),
        event(2, "output_item.added", {"output_index": 0, "item": _message("in_progress", [])}),
        event(3, "content_part.added", {**place, "part": _output_text("")}),
    ]
    ending = [
        event(4 + count, "output_text.done", {**place, "text": text, "logprobs": []}),
        event(5 + count, "content_part.done", {**place, "part": _output_text(text)}),
        event(6 + count, "output_item.done", {"output_index": 0, "item": done}),
        event(7 + count, "completed", {"response": _response("completed", [done], _RESPONSES_USAGE)}),
    ]
    deltas = [_named([delta(position, word)]) for position, word in enumerate(words(count))]
    return Stream(_named(opening), deltas, _named(ending))
