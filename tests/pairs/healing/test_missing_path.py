"""Fallback to another protocol of a channel at whose path for a format nothing is served."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from tests.pairs.healing.refusing_vendor import ANSWERS, PATHS, STREAMED, TURN
from tests.support.gateways import Running, running
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from umg_grpc.cli import model_route_explanation
from umg_grpc.cli.text_tables import Form
from umg_grpc.config import parse

CHAT, RESPONSES, MESSAGES = PATHS["chat"], PATHS["responses"], PATHS["messages"]
MISSING = "{} (the model has no {})"


@dataclass(kw_only=True)
class Vendor(FakeProvider):
    """Vendor that answers some paths by a 404."""

    missing: frozenset[str] = frozenset({RESPONSES})
    body: str = '{"detail":"Not Found"}'
    content_type: str = "application/json"
    status: int = 404

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.path in self.missing:
            return web.Response(status=self.status, text=self.body, content_type=self.content_type)
        if received.json.get("stream"):
            return web.Response(body=STREAMED["chat"], content_type="text/event-stream")
        protocol = next(name for name, path in PATHS.items() if path == received.path)
        return web.json_response(ANSWERS[protocol] | {"model": received.json["model"]})


@dataclass
class Calls:
    """Calls of one gateway in front of a vendor."""

    gateway: Running
    vendor: Vendor
    session: ClientSession

    async def call(self, path: str = RESPONSES, headers: dict[str, str] | None = None, **members: Any) -> "Outcome":
        before = len(self.vendor.received)
        prompt = {"input": TURN, "store": False} if path == RESPONSES else {"messages": TURN, "max_tokens": 99}
        body = {"model": "m-1", **prompt, **members}
        async with self.session.post(self.gateway.url + path, json=body, headers=headers) as response:
            await response.read()
            _, _, protocol = response.headers.get("x-umg-route", "").partition("; protocol=")
            called = [received.path for received in self.vendor.received[before:]]
            return Outcome(response.status, called, protocol)


@dataclass(frozen=True)
class Outcome:
    """Outcome of a call: the status for the caller, the called paths, and the protocol that the route names."""

    status: int
    paths: list[str] = field(default_factory=list)
    protocol: str = ""


def config(url: str, protocols: str = "chat, responses, messages", settings: str = "", models: str = "'m-*'") -> str:
    return (
        f"retries: {{budget: 1}}\nchannels:\n- {{name: main, protocols: [{protocols}], base_url: '{url}/v1', "
        f"api_key: k, models: [{models}]{settings}}}\n"
    )


@asynccontextmanager
async def calls(data: Path, vendor: Vendor, **options: str) -> AsyncIterator[Calls]:
    async with (
        serve_provider(vendor) as served,
        running(config(served.url, **options), data) as gateway,
        ClientSession(headers=gateway.headers) as session,
    ):
        yield Calls(gateway, vendor, session)


async def test_a_call_falls_back_to_the_next_protocol_and_later_calls_take_it_at_once(tmp_path: Path) -> None:
    async with calls(tmp_path, Vendor()) as made:
        chat = MISSING.format("chat", "responses")
        assert await made.call() == Outcome(200, [RESPONSES, CHAT], chat)
        assert await made.call() == Outcome(200, [CHAT], chat)
        assert await made.call(MESSAGES) == Outcome(200, [MESSAGES])
        assert await made.call(CHAT) == Outcome(200, [CHAT])


async def test_a_stream_falls_back_before_its_first_event(tmp_path: Path) -> None:
    async with calls(tmp_path, Vendor()) as made:
        assert (await made.call(stream=True)).paths == [RESPONSES, CHAT]
        assert (await made.call(stream=True)).paths == [CHAT]


async def test_a_call_falls_back_as_often_as_the_channel_has_protocols(tmp_path: Path) -> None:
    vendor = Vendor(missing=frozenset({RESPONSES, MESSAGES}))
    async with calls(tmp_path, vendor, protocols="messages, responses, chat") as made:
        assert (await made.call()).paths == [RESPONSES, MESSAGES, CHAT]
        assert (await made.call()).paths == [CHAT]
        assert (await made.call(MESSAGES)).paths == [CHAT]


async def test_the_channel_is_not_paused_by_a_missing_path(tmp_path: Path) -> None:
    async with calls(tmp_path, Vendor(), models="m-1") as made:
        assert (await made.call()).paths == [RESPONSES, CHAT]
        assert (await made.call(MESSAGES)).status == 200
        async with made.session.get(made.gateway.url + "/metrics") as response:
            states = [line for line in (await response.text()).splitlines() if line.startswith("umg_channel_state")]
        assert states == ['umg_channel_state{channel="main",model="m-1"} 0.0']


@dataclass(frozen=True)
class Refusal:
    """Answer with status 404, and whether it is about the path."""

    id: str
    body: str
    is_path: bool
    content_type: str = "application/json"


REFUSALS = [
    Refusal("FastAPI", '{"detail":"Not Found"}', True),
    Refusal("an empty body", "", True, "text/plain"),
    Refusal("Go", "404 page not found", True, "text/plain"),
    Refusal("a page", "<html><head><title>404 Not Found</title></head></html>", True, "text/html"),
    Refusal("a code of OpenAI", '{"error":{"message":"Invalid URL (POST /v1/responses)","type":"invalid_request_error","param":null,"code":null}}', True),
    Refusal("a code of Groq", '{"error":{"message":"Unknown request URL: POST /openai/v1/responses.","type":"invalid_request_error","code":"unknown_url"}}', True),
    Refusal("a model of OpenAI", '{"error":{"message":"The model `m-1` does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}', False),
    Refusal("a model of Anthropic", '{"type":"error","error":{"type":"not_found_error","message":"model: m-1"}}', False),
    Refusal("a model of Moonshot", '{"error":{"message":"Not found the model m-1 or Permission denied","type":"resource_not_found_error"}}', False),
    Refusal("an earlier response", '{"error":{"message":"Previous response with id \'resp_1\' not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}', False),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
async def test_only_a_404_about_the_path_falls_back(case: Refusal, tmp_path: Path) -> None:
    async with calls(tmp_path, Vendor(body=case.body, content_type=case.content_type)) as made:
        outcome = await made.call()
        assert outcome.paths == ([RESPONSES, CHAT] if case.is_path else [RESPONSES])
        assert (outcome.status == 200) == case.is_path


async def test_nothing_is_learned_if_the_model_is_not_served_in_the_other_protocol(tmp_path: Path) -> None:
    async with calls(tmp_path, Vendor(missing=frozenset({RESPONSES, CHAT})), protocols="chat, responses") as made:
        assert (await made.call()).paths == [RESPONSES, CHAT]


KEPT: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "a channel with heal false": ({"settings": ", heal: false"}, {}),
    "a channel of one protocol": ({"protocols": "responses"}, {}),
    "a strict call": ({}, {"headers": {"x-umg-strict": "true"}}),
    "a call that no other format expresses": ({"settings": ", shared_objects: true"}, {"prompt": {"id": "pmpt_1"}}),
}


@pytest.mark.parametrize("name", KEPT)
async def test_a_call_without_another_protocol_keeps_the_answer_of_its_own(name: str, tmp_path: Path) -> None:
    options, call = KEPT[name]
    async with calls(tmp_path, Vendor(), **options) as made:
        assert (await made.call(**call)).paths == [RESPONSES]


async def test_a_call_that_no_other_format_expresses_goes_to_the_next_channel(tmp_path: Path) -> None:
    async with serve_provider(Vendor()) as first, serve_provider(Vendor(missing=frozenset())) as second:
        channels = [
            f"- {{name: {name}, protocols: [chat, responses], base_url: '{url}/v1', api_key: k, models: [m-1], "
            f"priority: {priority}, shared_objects: true}}\n"
            for name, url, priority in (("first", first.url, 1), ("second", second.url, 2))
        ]
        async with (
            running("channels:\n" + "".join(channels), tmp_path) as gateway,
            ClientSession(headers=gateway.headers) as session,
        ):
            body = {"model": "m-1", "input": TURN, "store": False, "prompt": {"id": "pmpt_1"}}
            async with session.post(gateway.url + RESPONSES, json=body) as response:
                assert response.status == 200
        assert [[each.path for each in vendor.received] for vendor in (first, second)] == [[RESPONSES], [RESPONSES]]


async def test_the_missing_path_is_shown_and_forgotten_by_the_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with calls(tmp_path, Vendor()) as made:
        assert (await made.call()).paths == [RESPONSES, CHAT]
    text = parse(config("http://127.0.0.1:1"), "umg.yaml", {})
    await model_route_explanation.explain(text, tmp_path, "m-1", "", "", {}, Form.TABLE)
    assert "m-1 at main (responses), path: remove responses from its protocols" in capsys.readouterr().out
    await model_route_explanation.forget(text, tmp_path, "m-1")
    async with calls(tmp_path, Vendor()) as made:
        assert (await made.call()).paths == [RESPONSES, CHAT]
