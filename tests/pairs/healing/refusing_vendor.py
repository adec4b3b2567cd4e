"""Vendor that refuses requests with the literal bodies of public reports while the refused member is there."""

import re
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from tests.support.providers.server import FakeProvider, ReceivedRequest


class Refusal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A refusal of a public report."""

    source: str
    """Number of the report, from which `body` or, in the vendor's envelope, its message was copied."""
    vendor: str
    protocol: str
    status: int
    body: Any
    refused: dict[str, Any]
    """Rule of the vendor: `member` of the body, refused while it is there, or while another condition holds."""
    sent: dict[str, Any]
    """Members of the request that provokes it."""
    held_out: bool
    """Whether the table of wordings was written without it: every third."""


REFUSALS = msgspec.json.decode((Path(__file__).parent / "refusals.json").read_bytes(), type=list[Refusal])


def values_at(body: object, path: str) -> list[Any]:
    """Return the values at a dotted path, in each element of the lists on the way."""
    if isinstance(body, list):
        return [found for element in body for found in values_at(element, path)]
    name, _, rest = path.partition(".")
    if not isinstance(body, dict) or name not in body:
        return []
    return values_at(body[name], rest) if rest else [body[name]]


def is_refused(rule: dict[str, Any], body: dict[str, Any]) -> bool:
    """Return whether a vendor with the rule refuses a body."""
    values = values_at(body, rule["member"])
    match rule:
        case {"above": limit}:
            return any(value > limit for value in values)
        case {"only": accepted}:
            is_off = "unless_off" in rule and body.get("thinking") == {"type": "disabled"}
            return not is_off and any(value not in accepted for value in values)
        case {"value": refused}:
            return refused in values
        case {"beside": other}:
            return bool(values and values_at(body, other))
        case {"pattern": pattern}:
            return not all(re.fullmatch(pattern, value) for value in values)
        case {"open_object": True}:
            return any(schema.get("additionalProperties") is not False for schema in values)
        case _:
            return bool(values)


class RefusingVendor(FakeProvider):
    """Vendor of four formats, whose model `<protocol>-<index>` has the rule of this row of the reports."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        body, path = received.json, received.path
        model = body["model"] if "model" in body else path.rpartition("/")[2].partition(":")[0]
        refusal = self.refusal(model, body)
        if refusal is not None:
            return web.json_response(refusal.body, status=refusal.status)
        if body.get("stream"):
            return web.Response(body=STREAMED[model.partition("-")[0]], content_type="text/event-stream")
        return web.json_response(ANSWERS[model.partition("-")[0]] | {"model": model})

    def refusal(self, model: str, body: dict[str, Any]) -> Refusal | None:
        """Return the refusal of a request; None if it is accepted."""
        refusal = REFUSALS[int(model.rpartition("-")[2])]
        return refusal if is_refused(refusal.refused, body) else None


CHOICE = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
CHUNK = {
    "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
}  # fmt: skip
TEXT = {"type": "output_text", "text": "Hello", "annotations": []}
ANSWERS: dict[str, dict[str, Any]] = {
    "chat": {"id": "c", "object": "chat.completion", "created": 1, "choices": [CHOICE], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}},
    "responses": {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]}], "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}},
    "messages": {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 2}},
    "native": {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello"}]}, "finishReason": "STOP", "index": 0}], "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}},
}  # fmt: skip
STREAMED = {"chat": b"data: " + msgspec.json.encode(CHUNK) + b"\n\ndata: [DONE]\n\n"}

TURN = [{"role": "user", "content": "Hi"}]
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": TURN},
    "responses": {"input": TURN, "store": False},
    "messages": {"messages": TURN, "max_tokens": 99},
    "native": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


def path_of(protocol: str, model: str) -> str:
    """Return the path of a call in a format."""
    return PATHS.get(protocol) or f"/v1beta/models/{model}:generateContent"


def channels(url: str, *, settings: str = "") -> str:
    """Return a config with a channel of each format, named like it, at a vendor. `settings`: further ones of each."""
    bases = {"native": f"{url}/v1beta", "messages": url}
    return "retries: {budget: 1}\nchannels:\n" + "".join(
        f"- {{name: {name}, protocols: [{name}], base_url: '{bases.get(name, url + '/v1')}', api_key: k, "
        f"models: ['{name}-*']{settings}}}\n"
        for name in BODIES
    )
