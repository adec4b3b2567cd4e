"""All vendors as one server: it is the proxy of the channels, so that they have the vendors' own addresses, and it
refuses the requests that the judge refuses.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from tests.pairs.vendors.judge import refusal
from tests.support.providers.server import FakeProvider, ReceivedRequest, RefusedError

PROTOCOLS = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "messages",
    ":generateContent": "native",
    ":streamGenerateContent": "native",
}
"""End of a path -> protocol."""
MODEL = re.compile(r"/models/([^/:]+):")
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "ok", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
}
WHOLE: Mapping[str, object] = {
    "chat": {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    },
    "responses": RESPONSE,
    "messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "native": {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    },
}
"""Protocol -> answer. A vendor may answer a streamed request by it, too."""


@dataclass(kw_only=True)
class Vendors(FakeProvider):
    """Server of the vendors with these hosts."""

    hosts: Mapping[str, str]
    """Host -> vendor."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        vendor = self.hosts[request.headers["host"]]
        path = urlsplit(str(request.url)).path
        protocol = next(name for end, name in PROTOCOLS.items() if path.endswith(end))
        found = MODEL.search(path)
        model = found[1] if found else received.json["model"]
        refused = refusal(vendor, model, protocol, received.body, received.headers)
        if refused is not None:
            self.refusals.append(refused.message)
            return web.Response(status=refused.status, body=refused.body, content_type="application/json")
        return web.Response(body=msgspec.json.encode(WHOLE[protocol]), content_type="application/json")

    def refuse(self, refused: RefusedError) -> web.Response:
        return web.Response(status=refused.status, text=refused.message)
