"""Safety of healing: no text of a caller switches anything off for others, and nothing is tried twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from tests.pairs.healing.refusing_vendor import ANSWERS, STREAMED, TURN, Refusal, channels
from tests.support.gateways import Running, running
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from umg_grpc.store import open_store
from umg_grpc.store.usage_record_table import UsageRecords

UNSUPPORTED = "Unsupported parameter: '%s' is not supported with this model."
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def refusal(message: str, **members: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", **members}}


class Vendor(FakeProvider):
    """Vendor that refuses a request with the member `refused`, with the body `error`."""

    refused = "temperature"
    error: Any = refusal(UNSUPPORTED % "temperature", param="temperature", code="unsupported_parameter")
    status = 400

    def report(self, body: dict[str, Any]) -> Refusal | None:
        """Return the refusal of a public report for a body; None if there is none."""
        return None

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        body = received.json
        if (refusal := self.report(body)) is not None:
            return web.json_response(refusal.body, status=refusal.status)
        if self.refused in body:
            return web.json_response(self.error, status=self.status)
        if body.get("stream"):
            return web.Response(body=STREAMED["chat"], content_type="text/event-stream")
        return web.json_response(ANSWERS["chat"] | {"model": body["model"]})


@dataclass
class Calls:
    """Calls of one gateway in front of a vendor."""

    gateway: Running
    vendor: Vendor
    session: ClientSession

    async def chat(self, *, headers: dict[str, str] | None = None, **members: Any) -> tuple[int, int, str]:
        """Return status, number of attempts, and the fields that were left out or changed."""
        before = len(self.vendor.received)
        body = {"model": "chat-1", "messages": TURN, **members}
        async with self.session.post(f"{self.gateway.url}/v1/chat/completions", json=body, headers=headers) as response:
            await response.read()
            return response.status, len(self.vendor.received) - before, response.headers.get("x-umg-dropped", "")


@asynccontextmanager
async def calls(data: Path, vendor: Vendor, settings: str = "") -> AsyncIterator[Calls]:
    async with (
        serve_provider(vendor) as served,
        running(channels(served.url, settings=settings), data) as gateway,
        ClientSession(headers=gateway.headers) as session,
    ):
        yield Calls(gateway, vendor, session)


STRICT = {"headers": {"x-umg-strict": "true"}}
MENDED: dict[str, list[tuple[dict[str, Any], tuple[int, int, str]]]] = {
    "a mended member is left out of later calls at once": [({}, (200, 2, "temperature")), ({"temperature": 0.7}, (200, 1, "temperature"))],
    "another model of the channel is not affected": [({}, (200, 2, "temperature")), ({"model": "chat-2"}, (200, 2, "temperature"))],
    "a stream is mended before its first event": [({"stream": True}, (200, 2, "temperature")), ({"stream": True}, (200, 1, "temperature"))],
    "strict calls are not mended": [(STRICT, (400, 1, "")), ({}, (200, 2, "temperature")), (STRICT, (400, 1, ""))],
}  # fmt: skip
"""Members of consecutive calls with a refused temperature, and the outcome of each."""


@pytest.mark.parametrize("name", MENDED)
async def test_a_refused_member_is_mended_once_and_remembered(name: str, tmp_path: Path) -> None:
    async with calls(tmp_path, Vendor()) as made:
        for members, outcome in MENDED[name]:
            assert await made.chat(**{"temperature": 0.2, **members}) == outcome
        assert await made.chat(top_p=0.5) == (200, 1, "")


async def test_a_channel_with_heal_false_is_not_mended(tmp_path: Path) -> None:
    async with calls(tmp_path, Vendor(), settings=", heal: false") as made:
        assert await made.chat(temperature=0.2) == (400, 1, "")


async def test_a_translated_call_is_mended_too(tmp_path: Path) -> None:
    async with calls(tmp_path, Vendor()) as made:
        body = {"model": "chat-1", "messages": TURN, "max_tokens": 9, "temperature": 0.2}
        async with made.session.post(f"{made.gateway.url}/v1/messages", json=body) as response:
            assert (response.status, response.headers["x-umg-dropped"]) == (200, "temperature")
        assert len(made.vendor.received) == 2
        assert await made.chat(temperature=0.2) == (200, 1, "temperature")


async def test_a_call_is_mended_only_once(tmp_path: Path) -> None:
    class Insatiable(Vendor):
        async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
            member = next((name for name in ("temperature", "top_p", "seed") if name in received.json), "stop")
            return web.json_response(refusal(UNSUPPORTED % member), status=400)

    async with calls(tmp_path, Insatiable()) as made:
        members = {"temperature": 0.2, "top_p": 0.5, "seed": 7}
        assert (await made.chat(**members))[:2] == (400, 2)
        assert (await made.chat(**members))[:2] == (400, 2)  # nothing was learned from the failure


@dataclass(frozen=True)
class Crafted:
    """Refusal that repeats a text of the caller, or names a member that may not be left out."""

    id: str
    error: Any
    members: dict[str, Any]
    refused: str = "tools"
    status: int = 400


CLAIM = UNSUPPORTED % "temperature"
CRAFTED = [
    Crafted("tools may not be left out", refusal(UNSUPPORTED % "tools", param="tools", code="unsupported_parameter"), {"tools": [TOOL]}),
    Crafted("the conversation may not be left out", refusal(UNSUPPORTED % "messages"), {}, refused="messages"),
    Crafted("a member that was not sent", refusal(UNSUPPORTED % "temperature"), {"tools": [TOOL]}),
    Crafted("a quoted text of the user", refusal(f"Invalid content: '{CLAIM}'"), {"temperature": 0.2, "messages": [{"role": "user", "content": CLAIM}]}, refused="messages"),
    Crafted("a text behind a line break", refusal(f"Invalid tool description:\n{CLAIM}"), {"temperature": 0.2, "tools": [TOOL]}),
    Crafted("a name of a tool", refusal(f"tools[0].function.name: {CLAIM}"), {"temperature": 0.2, "tools": [TOOL]}),
    Crafted("an error in JSON inside the text", refusal(f'Invalid text: {{"error": {{"message": "{UNSUPPORTED % "user"}"}}}}'), {"temperature": 0.2, "user": "u", "tools": [TOOL]}),
    Crafted("the input of a violation", {"detail": [{"type": "string_type", "loc": ["body", "tools", 0], "msg": CLAIM, "input": CLAIM}]}, {"temperature": 0.2, "tools": [TOOL]}, status=422),
    Crafted("a key of the metadata as a path", {"detail": [{"type": "extra_forbidden", "loc": ["body", "metadata", "temperature"], "msg": "Extra inputs are not permitted"}]}, {"temperature": 0.2, "metadata": {"temperature": "1"}}, refused="metadata", status=422),
    Crafted("a value that no vendor accepts", refusal("Invalid value: 'x'. Supported values are: 'a'.", param="temperature", code="invalid_value"), {"temperature": 0.2}, refused="temperature"),
    Crafted("another status", refusal(CLAIM), {"temperature": 0.2}, refused="temperature", status=413),
]  # fmt: skip


@pytest.mark.parametrize("case", CRAFTED, ids=lambda case: case.id)
async def test_a_crafted_refusal_switches_nothing_off(case: Crafted, tmp_path: Path) -> None:
    vendor = Vendor()
    vendor.error, vendor.refused, vendor.status = case.error, case.refused, case.status
    async with calls(tmp_path, vendor) as made:
        status, attempts, dropped = await made.chat(**case.members)
        assert (status >= 400, attempts, dropped) == (True, 1, "")
        vendor.refused = "nothing"
        others = {"temperature": 0.5, "user": "other", "metadata": {"a": "b"}, "tools": [TOOL]}
        assert await made.chat(**others) == (200, 1, "")
        sent = vendor.received[-1].json
        assert {name: sent[name] for name in others} == others


async def test_a_refusal_that_the_request_contains_is_mended_but_not_learned(tmp_path: Path) -> None:
    """A caller whose own value is refused might quote a refusal as the whole error."""
    vendor = Vendor()
    vendor.refused, vendor.error = "user", refusal(UNSUPPORTED % "user")
    async with calls(tmp_path, vendor) as made:
        assert await made.chat(user=UNSUPPORTED % "user") == (200, 2, "user")
        vendor.refused = "nothing"
        assert await made.chat(user="another") == (200, 1, "")


async def test_an_empty_list_of_tools_is_left_out_only_for_the_call(tmp_path: Path) -> None:
    violation = {"type": "extra_forbidden", "loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}
    vendor = Vendor()
    vendor.refused, vendor.error, vendor.status = "tools", {"detail": [violation]}, 422
    async with calls(tmp_path, vendor) as made:
        assert await made.chat(tools=[]) == (200, 2, "")
        vendor.refused = "nothing"
        assert await made.chat(tools=[TOOL]) == (200, 1, "")
        assert vendor.received[-1].json["tools"] == [TOOL]


async def test_a_refusal_costs_a_retry_of_the_budget(tmp_path: Path) -> None:
    async with serve_provider(Vendor()) as vendor:
        config = channels(vendor.url).replace("budget: 1", "budget: 0")
        async with running(config, tmp_path) as gateway, ClientSession(headers=gateway.headers) as session:
            made = Calls(gateway, vendor, session)
            assert await made.chat(temperature=0.2) == (400, 1, "")


async def test_a_model_that_refuses_several_members_is_mended_in_its_first_calls(tmp_path: Path) -> None:
    members: dict[str, Any] = {
        "temperature": 0.2,
        "top_p": 0.5,
        "seed": 1,
        "presence_penalty": 1,
        "frequency_penalty": 1,
    }

    class Several(Vendor):
        refused = ""

        def report(self, body: dict[str, Any]) -> Refusal | None:
            for name in members:
                if name in body:
                    error = refusal(UNSUPPORTED % name, param=name, code="unsupported_parameter")
                    return Refusal("", "", "chat", 400, error, {}, {}, False)
            return None

    async with serve_provider(Several()) as vendor:
        config = channels(vendor.url).replace("retries: {budget: 1}\n", "")
        async with running(config, tmp_path) as gateway, ClientSession(headers=gateway.headers) as session:
            made = Calls(gateway, vendor, session)
            for name, value in members.items():
                assert await made.chat(**{name: value}) == (200, 2, name)
            assert (await made.chat(**members))[:2] == (200, 1)


async def test_quirks_of_the_operator_are_not_overridden(tmp_path: Path) -> None:
    vendor = Vendor()
    vendor.refused, vendor.error = "tools", refusal("Tool choice must be auto")
    async with calls(tmp_path, vendor, settings=", quirks: {tool_choices: all}") as made:
        assert (await made.chat(tools=[TOOL], tool_choice="required"))[:2] == (400, 1)


async def test_a_refusal_beside_reasoning_is_learned_for_calls_that_reason(tmp_path: Path) -> None:
    class Reasoning(Vendor):
        async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
            if received.json.get("reasoning_effort") == "none":
                return web.json_response(ANSWERS["chat"] | {"model": "chat-1"})
            return await super().answer(request, received)

    async with calls(tmp_path, Reasoning()) as made:
        assert await made.chat(temperature=0.2, reasoning_effort="high") == (200, 2, "temperature")
        assert await made.chat(temperature=0.2, reasoning_effort="low") == (200, 1, "temperature")
        assert await made.chat(temperature=0.2, reasoning_effort="none") == (200, 1, "")


async def test_a_refused_attempt_costs_nothing_and_is_in_the_record(tmp_path: Path) -> None:
    async with calls(tmp_path, Vendor()) as made:
        body = {"model": "chat-1", "messages": TURN, "temperature": 0.2}
        async with made.session.post(f"{made.gateway.url}/v1/chat/completions", json=body) as response:
            request_id, route = response.headers["x-request-id"], response.headers["x-umg-route"]
    assert route == "channel=chat; attempts=2; reason=chat: mended"
    store = await open_store("sqlite", tmp_path)
    try:
        [record] = await UsageRecords(store).find(request_id)
    finally:
        await store.aclose()
    assert record.details is not None
    assert [attempt.status for attempt in record.details.attempts] == [400, 200]
    assert (record.input_tokens, record.output_tokens) == (3, 2)


def two_channels(first: str, second: str) -> str:
    """Return a config with two channels of the model `chat-1`, the second one only after the first."""
    return "channels:\n" + "".join(
        f"- {{name: {name}, protocols: [chat], base_url: '{url}/v1', api_key: k, models: [chat-1], "
        f"priority: {priority}}}\n"
        for priority, (name, url) in enumerate({"first": first, "second": second}.items())
    )


async def test_a_request_is_mended_at_its_channel_before_others_of_the_same_vendor_refuse_it(tmp_path: Path) -> None:
    async with serve_provider(Vendor()) as first, serve_provider(Vendor()) as second:
        config = two_channels(first.url, second.url)
        async with running(config, tmp_path) as gateway, ClientSession(headers=gateway.headers) as session:
            body = {"model": "chat-1", "messages": TURN, "temperature": 0.2}
            async with session.post(f"{gateway.url}/v1/chat/completions", json=body) as response:
                assert response.status == 200
                assert response.headers["x-umg-dropped"] == "temperature"
                assert response.headers["x-umg-route"] == "channel=first; attempts=2; reason=first: mended"


async def test_a_refused_effort_leaves_lower_ones_to_others(tmp_path: Path) -> None:
    class Moderate(Vendor):
        async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
            if (effort := received.json.get("reasoning_effort")) in {"minimal", "xhigh"}:
                return web.json_response(refusal(f"reasoning_effort {effort} is not supported by chat-1"), status=400)
            return await super().answer(request, received)

    vendor = Moderate()
    async with calls(tmp_path, vendor) as made:
        assert await made.chat(reasoning_effort="xhigh") == (200, 2, "reasoning_effort=high")
        assert await made.chat(reasoning_effort="minimal") == (200, 1, "reasoning_effort=low")
        for effort in ("none", "low", "medium", "high"):
            assert await made.chat(reasoning_effort=effort) == (200, 1, "")
            assert vendor.received[-1].json["reasoning_effort"] == effort


async def test_a_role_that_a_violation_names_is_replaced(tmp_path: Path) -> None:
    class Validating(Vendor):
        async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
            if (first := received.json["messages"][0])["role"] == "developer":
                tags = "'system', 'user', 'assistant', 'tool'"
                message = f"Input tag 'developer' found using 'role' does not match any of the expected tags: {tags}"
                violation = {
                    "type": "union_tag_invalid",
                    "loc": ["body", "messages", 0],
                    "msg": message,
                    "input": first,
                }
                return web.json_response({"detail": [violation]}, status=422)
            return await super().answer(request, received)

    async with calls(tmp_path, Validating()) as made:
        messages = [{"role": "developer", "content": "Be brief."}, *TURN]
        assert (await made.chat(messages=messages))[:2] == (200, 2)
        assert (await made.chat(messages=messages))[:2] == (200, 1)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_call_is_mended_if_both_hedged_attempts_are_refused(tmp_path: Path, stream: bool) -> None:
    has_refused = asyncio.Event()

    class Slow(Vendor):
        async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
            await has_refused.wait()
            return await super().answer(request, received)

    class Fast(Vendor):
        async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
            has_refused.set()
            return await super().answer(request, received)

    async with serve_provider(Slow()) as first, serve_provider(Fast()) as second:
        config = two_channels(first.url, second.url) + "models: {chat-1: {hedge: 0.05}}\n"
        async with running(config, tmp_path) as gateway, ClientSession(headers=gateway.headers) as session:
            body = {"model": "chat-1", "messages": TURN, "temperature": 0.2, "stream": stream}
            async with session.post(f"{gateway.url}/v1/chat/completions", json=body) as response:
                assert response.status == 200
                assert response.headers["x-umg-dropped"] == "temperature"


async def test_a_refused_word_leaves_the_other_words_of_its_member_to_all_callers(tmp_path: Path) -> None:
    class Words(Vendor):
        refused = ""

        def report(self, body: dict[str, Any]) -> Refusal | None:
            if body.get("service_tier", "flex") == "flex":
                return None
            message = f"Unsupported value: 'service_tier' does not support '{body['service_tier']}' with this model."
            error = refusal(message, param="service_tier", code="unsupported_value")
            return Refusal("", "", "chat", 400, error, {}, {}, False)

    vendor = Words()
    async with calls(tmp_path, vendor) as made:
        assert await made.chat(service_tier="banana") == (200, 2, "service_tier")
        assert await made.chat(service_tier="flex") == (200, 1, "")
        assert vendor.received[-1].json["service_tier"] == "flex"
        assert await made.chat(service_tier="banana") == (200, 1, "service_tier")
        assert (await made.chat(service_tier="b" * 50))[:2] == (400, 1)
