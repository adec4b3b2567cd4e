"""Refusals that a provider states as the first event of a stream, behind the status 200: they are mended as others are.

Sources: langchain-ai/langchain-aws#415 (`validationException` of ConverseStream with the errors of the model), BerriAI/litellm#5592.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from tests.pairs.healing.refusing_vendor import BODIES, STREAMED, path_of, values_at
from tests.support.gateways import running
from tests.support.providers.aws_event_stream import event, exception
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider

STREAM = (
    event("messageStart", {"role": "assistant"})
    + event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hello"}})
    + event("contentBlockStop", {"contentBlockIndex": 0})
    + event("messageStop", {"stopReason": "end_turn"})
    + event("metadata", {"usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}})
)
DEPRECATED = "The model returned the following errors: `temperature` is deprecated for this model."
UNSUPPORTED = "Unsupported parameter: 'temperature' is not supported with this model."
REJECTED = {"error": {"message": UNSUPPORTED, "type": "invalid_request_error", "code": 400}}


@dataclass(frozen=True)
class Case:
    """Protocol of a provider, the member that it refuses, its refusal, and a stream of it."""

    id: str
    protocol: str
    member: str
    refusal: bytes
    stream: bytes
    content_type: str = "text/event-stream"


CASES = [
    Case(
        id="converse",
        protocol="converse",
        member="inferenceConfig.temperature",
        refusal=exception("validationException", DEPRECATED),
        stream=STREAM,
        content_type="application/vnd.amazon.eventstream",
    ),
    Case(
        id="chat of a relay",
        protocol="chat",
        member="temperature",
        refusal=b"data: " + json.dumps(REJECTED).encode() + b"\n\n",
        stream=STREAMED["chat"],
    ),
]


class Provider(FakeProvider):
    """Provider that refuses a member in its stream."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._case = case

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        body: dict[str, Any] = received.json
        refused = bool(values_at(body, self._case.member))
        return web.Response(
            body=self._case.refusal if refused else self._case.stream, content_type=self._case.content_type
        )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_refusal_at_the_beginning_of_a_stream_is_mended_and_remembered(case: Case, tmp_path: Path) -> None:
    config = (
        "retries: {budget: 1}\nchannels:\n- {name: main, protocols: [%s], base_url: '%s', api_key: k, models: [m]}\n"
    )
    async with (
        serve_provider(Provider(case)) as served,
        running(config % (case.protocol, served.url), tmp_path) as gateway,
        ClientSession(headers=gateway.headers) as session,
    ):
        body = {"model": "m", **BODIES["messages"], "stream": True, "temperature": 0.2}
        for attempts in (2, 1):
            before = len(served.received)
            async with session.post(gateway.url + path_of("messages", "m"), json=body) as response:
                answer = await response.text()
                assert (response.status, response.headers.get("x-umg-dropped")) == (200, "temperature"), answer
                assert len(served.received) - before == attempts
                assert "message_stop" in answer
