"""Chat completions of the benchmark: requests and answers, which the load and the fake provider build and check here.

The model id selects the kind of the fake provider's answer.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

PATH = "/v1/chat/completions"

SMALL = "bench-small"
"""One small JSON answer."""
LARGE = "bench-large"
"""One JSON answer of 20 KB."""
BURST = "bench-burst"
"""A stream of `CHUNKS` chunks, written at once."""
PACED = "bench-paced"
"""A stream of `CHUNKS` chunks, one every `PACE_SECONDS`."""
HELD = "bench-held"
"""A stream with a chunk every `HELD_SECONDS`, which ends at a request to the upstream's `/release`."""
SLOW = "bench-slow"
"""The same with a chunk every `SLOW_SECONDS`."""
DELAYED = "bench-delayed"
"""One small JSON answer, sent `DELAY_SECONDS` after its request."""
NEAR = "bench-near"
"""One small JSON answer, sent `NEAR_SECONDS` after its request."""
MODELS = (SMALL, LARGE, BURST, PACED, HELD, SLOW, DELAYED, NEAR)
WHOLE = frozenset({SMALL, LARGE, DELAYED, NEAR})
"""Models whose answer is not a stream."""

CHUNKS = 100
PACE_SECONDS = 0.005
HELD_SECONDS = 0.5
SLOW_SECONDS = 20.0
HELD_MODELS = {HELD: HELD_SECONDS, SLOW: SLOW_SECONDS}
"""Models whose streams end at a request to `/release`, with the seconds between two chunks."""
DELAY_SECONDS = 0.05
NEAR_SECONDS = 0.02
DELAYED_MODELS = {DELAYED: DELAY_SECONDS, NEAR: NEAR_SECONDS}
"""Models whose answer is sent some time after its request, with the seconds."""

DONE = b"data: [DONE]\n\n"
CONTENT = b'"content":" '
"""Bytes that occur once in each chunk with text, and nowhere else in a stream."""

_QUESTION = "Say in one sentence what a gateway in front of several model providers is good for."
_REPLY = "It gives every application one address, one key and one format, and hides which provider answers. " * 4
_LARGE_REPLY = _REPLY * 50
_ID = "chatcmpl-bench00000000000000000000"
_CREATED = 1_700_000_000


@runtime_checkable
class Wire(Protocol):
    """Transport of a connection, with the methods that the benchmark uses. uvloop's transports do not derive from
    asyncio's.
    """

    def write(self, data: bytes, /) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class Usage(msgspec.Struct):
    """Tokens of a call."""

    prompt_tokens: int = 31
    completion_tokens: int = CHUNKS
    total_tokens: int = 31 + CHUNKS


class _Text(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Text = msgspec.field(default_factory=_Text)
    delta: _Text = msgspec.field(default_factory=_Text)
    finish_reason: str | None = None


class _Answer(msgspec.Struct):
    model: str
    choices: list[_Choice]
    usage: Usage | None = None


class Fault(NamedTuple):
    """Reason why a response is wrong."""

    reason: str
    body: bytes

    def __str__(self) -> str:
        return f"{self.reason}: {self.body[:200]!r}"


def request_body(model: str) -> bytes:
    """Return the body of a client's request for the model."""
    messages = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": _QUESTION}]
    body: dict[str, object] = {"model": model, "messages": messages, "temperature": 0.5, "max_tokens": 200}
    if model not in WHOLE:
        body["stream"] = True
    return msgspec.json.encode(body)


def answer(model: str = SMALL) -> bytes:
    """Return the JSON answer of a model of `WHOLE`, whose answers are not streamed."""
    message = {"role": "assistant", "content": reply(model)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    head = {"id": _ID, "object": "chat.completion", "created": _CREATED, "model": model}
    return msgspec.json.encode({**head, "choices": [choice], "usage": Usage()})


def opening(model: str) -> bytes:
    """Return the first event of a stream."""
    return _event(model, {"role": "assistant", "content": ""})


def chunk(model: str, position: int) -> bytes:
    """Return the event with the word at this position."""
    return _event(model, {"content": f" {position}"})


def ending(model: str, *, usage: bool) -> list[bytes]:
    """Return the last events of a stream. `usage`: whether the token counts are among them."""
    tokens = [_frame(model, [], Usage())] if usage else []
    return [_event(model, {}, "stop"), *tokens, DONE]


def fault(model: str, body: bytes) -> Fault | None:
    """Return why the body of a response is wrong; None if it is right."""
    return _whole_fault(model, body) if model in WHOLE else _stream_fault(model, body)


def reply(model: str) -> str:
    """Return the text of the answer of a model of `WHOLE`."""
    return _LARGE_REPLY if model == LARGE else _REPLY


def _whole_fault(model: str, body: bytes) -> Fault | None:
    read = msgspec.json.decode(body, type=_Answer)
    if read.model != model or read.usage != Usage() or [c.message.content for c in read.choices] != [reply(model)]:
        return Fault("another answer than the upstream's", body)
    return None


def _stream_fault(model: str, body: bytes) -> Fault | None:
    if not body.endswith(DONE):
        return Fault("a stream without its end marker", body[-200:])
    events = [frame.removeprefix(b"data: ") for frame in body.removesuffix(DONE).split(b"\n\n")[:-1]]
    read = [msgspec.json.decode(event, type=_Answer) for event in events]
    choices = [choice for each in read for choice in each.choices]
    words = [choice.delta.content for choice in choices if choice.delta.content]
    if (
        words != [f" {i}" for i in range(len(words))]
        or not words
        or (model not in HELD_MODELS and len(words) != CHUNKS)
    ):
        return Fault(f"a stream with other chunks than the upstream's ({len(words)})", body[-200:])
    if {each.model for each in read} != {model} or [c.finish_reason for c in choices if c.finish_reason] != ["stop"]:
        return Fault("a stream of another model, or not finished", body[-200:])
    return None


def _event(model: str, delta: dict[str, str], finish: str | None = None) -> bytes:
    return _frame(model, [{"index": 0, "delta": delta, "finish_reason": finish}])


def _frame(model: str, choices: list[dict[str, object]], usage: Usage | None = None) -> bytes:
    head = {"id": _ID, "object": "chat.completion.chunk", "created": _CREATED, "model": model}
    body = {**head, "choices": choices} if usage is None else {**head, "choices": choices, "usage": usage}
    return b"data: " + msgspec.json.encode(body) + b"\n\n"
