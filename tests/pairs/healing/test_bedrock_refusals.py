"""Refusals of Bedrock's Converse in the words of public reports: each is mended in the same call, and remembered."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from tests.pairs.healing.refusing_vendor import BODIES, TURN, path_of, values_at
from tests.support.gateways import running
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider

Json = dict[str, Any]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOOL = {"name": "f", "input_schema": {"type": "object", "additionalProperties": False}}
CALL = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
SHOWN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
ANSWER = {
    "output": {"message": {"role": "assistant", "content": [{"toolUse": {"toolUseId": "b", "name": "f", "input": {"x": 1}}}]}},
    "stopReason": "tool_use",
    "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5},
}  # fmt: skip


def results(*after: Json, content: object = "1") -> list[Json]:
    """Return a conversation that ends with the result of a tool and the blocks `after`."""
    result = {"type": "tool_result", "tool_use_id": "a", "content": content}
    return [*TURN, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [result, *after]}]


def refuses(path: str) -> Callable[[Json, str], bool]:
    return lambda body, _: bool(values_at(body, path))


def mixes_results(body: Json, path: str) -> bool:
    kinds = [{kind for block in turn["content"] for kind in block} for turn in body["messages"]]
    return any("toolResult" in each and len(each) > 1 for each in kinds)


@dataclass(frozen=True)
class Case:
    """A refusal of a report, the vendor's rule, and the request of a caller that provokes it."""

    id: str
    message: str
    source: str
    is_refused: Callable[[Json, str], bool]
    body: Json
    dropped: str = ""


CASES = [
    Case(
        id="a stream with tools",
        message="This model doesn't support tool use in streaming mode.",
        source="earendil-works/pi#3739",
        is_refused=lambda body, path: "toolConfig" in body and path.endswith("-stream"),
        body={"tools": [TOOL], "stream": True},
    ),
    Case(
        id="stop sequences",
        message="This model doesn't support the stopSequences field. Remove stopSequences and try again.",
        source="langgenius/dify-official-plugins#1767",
        is_refused=refuses("inferenceConfig.stopSequences"),
        body={"stop_sequences": ["\n"]},
        dropped="stop_sequences=by the gateway",
    ),
    Case(
        id="a forced tool",
        message="This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try again.",
        source="strands-agents/harness-sdk#1241",
        is_refused=refuses("toolConfig.toolChoice"),
        body={"tools": [TOOL], "tool_choice": {"type": "any"}},
        dropped="tool_choice=auto",
    ),
    Case(
        id="a strict tool",
        message="The model returned the following errors: tools.0.custom.strict: Extra inputs are not permitted",
        source="BerriAI/litellm#31582",
        is_refused=refuses("toolConfig.tools.toolSpec.strict"),
        body={"tools": [TOOL | {"strict": True}]},
        dropped="tools.strict=false",
    ),
    Case(
        id="a temperature of a model that chooses it",
        message="The model returned the following errors: `temperature` is deprecated for this model.",
        source="UKGovernmentBEIS/inspect_ai#3721",
        is_refused=refuses("inferenceConfig.temperature"),
        body={"temperature": 0.2},
        dropped="temperature",
    ),
    Case(
        id="a text beside the result of a tool",
        message="messages.2.content: Conversation blocks and tool result blocks cannot be provided in the same turn.",
        source="browser-use/browser-use#710",
        is_refused=mixes_results,
        body={"tools": [TOOL], "messages": results({"type": "text", "text": "And now?"})},
        dropped="messages=an assistant's turn between",
    ),
    Case(
        id="an image in the result of a tool",
        message="This model doesn't support the image field for user messages. Remove image and try again.",
        source="anomalyco/opencode#49443",
        is_refused=refuses("messages.content.toolResult.content.image"),
        body={"tools": [TOOL], "messages": results(content=[SHOWN])},
    ),
]  # fmt: skip


class Bedrock(FakeProvider):
    """Vendor of Converse with the rule of a case."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._case = case

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if self._case.is_refused(received.json, received.path):
            headers = {"x-amzn-ErrorType": "ValidationException:http://internal.amazon.com/coral/"}
            return web.json_response({"message": self._case.message}, status=400, headers=headers)
        return web.json_response(ANSWER)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_refusal_of_bedrock_is_mended_and_remembered(case: Case, tmp_path: Path) -> None:
    config = "retries: {budget: 1}\nchannels:\n- {name: main, protocols: [converse], base_url: '%s', api_key: k, models: [m]}\n"
    async with (
        serve_provider(Bedrock(case)) as served,
        running(config % served.url, tmp_path) as gateway,
        ClientSession(headers=gateway.headers) as session,
    ):
        body = {"model": "m", **BODIES["messages"], **case.body}
        for attempts in (2, 1):
            before = len(served.received)
            async with session.post(gateway.url + path_of("messages", "m"), json=body) as response:
                answer = await response.text()
                assert response.status == 200, answer
                assert len(served.received) - before == attempts
                assert response.headers.get("x-umg-dropped", "") == case.dropped
                assert '"tool_use"' in answer


class Slow(FakeProvider):
    """Vendor of Converse whose complete response is late for the first bytes of a stream."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        await asyncio.sleep(0.4)
        return web.json_response(ANSWER)


async def test_a_complete_response_for_a_stream_has_the_time_of_a_complete_response(tmp_path: Path) -> None:
    config = (
        "channels:\n- {name: main, protocols: [converse], base_url: '%s', api_key: k, models: [m],"
        " timeout: {first_byte: 0.1}, quirks: {streams_tools: false}}\n"
    )
    async with (
        serve_provider(Slow()) as served,
        running(config % served.url, tmp_path) as gateway,
        ClientSession(headers=gateway.headers) as session,
    ):
        body = {"model": "m", **BODIES["messages"], "tools": [TOOL], "stream": True}
        async with session.post(gateway.url + path_of("messages", "m"), json=body) as response:
            answer = await response.text()
            assert (response.status, "message_stop" in answer) == (200, True), answer
