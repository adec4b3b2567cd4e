"""Continuation and look-up of responses: text document, `previous_response_id`; readings, 13; the paths that unmodified
SDKs call.
"""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.documents.spec.callers import WEATHER, Responses, lasting
from tests.support.callers.api import ApiClient
from tests.support.gateways import SANDBOX, running
from tests.support.polling import pause
from umg_grpc.access.api_keys import ApiKeys

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def other_key(gateway: ApiClient) -> AsyncGenerator[str, None]:
    _, secret = await ApiKeys(gateway.server.service.store).create("another caller")
    yield secret


async def test_stored_get_returns_the_response(responses: Responses, gateway: ApiClient) -> None:
    for fields in (
        {},
        {"instructions": "Be brief", "temperature": 0.5, "metadata": {"a": "b"}, "tools": [{"type": "file_search"}]},
    ):
        made = await responses.answer(fields)
        found = await gateway.get(f"/v1/responses/{made['id']}")
        assert found.status == 200
        assert found.body == made


async def test_stored_get_returns_a_streamed_response(responses: Responses, gateway: ApiClient) -> None:
    frames = await responses.stream({"reasoning": {"effort": "high", "summary": "detailed"}})
    made = frames[-1].data["response"]
    assert (await gateway.get(f"/v1/responses/{made['id']}")).body == made


async def test_stored_input_items(responses: Responses, gateway: ApiClient) -> None:
    spoken = [{"role": role, "content": role} for role in ("user", "assistant", "user")]
    first = await responses.answer(text="Before")
    made = await responses.answer({"input": spoken, "previous_response_id": first["id"]})
    path = f"/v1/responses/{made['id']}/input_items"
    listed = (await gateway.get(f"{path}?order=asc")).body
    assert listed["object"] == "list"
    assert [(item["role"], item["content"][0]["text"]) for item in listed["data"]] == [
        (turn["role"], turn["content"]) for turn in spoken
    ]
    ids = [item["id"] for item in listed["data"]]
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == (ids[0], ids[-1], False)
    newest_first = (await gateway.get(path)).body
    assert [item["id"] for item in newest_first["data"]] == ids[::-1]
    page = (await gateway.get(f"{path}?order=asc&limit=1")).body
    assert ([item["id"] for item in page["data"]], page["has_more"]) == (ids[:1], True)
    rest = (await gateway.get(f"{path}?order=asc&after={ids[0]}")).body
    assert [item["id"] for item in rest["data"]] == ids[1:]
    for query, named in (
        ("limit=0", "limit"), ("limit=x", "limit"), ("order=sideways", "order"), ("after=x", "after: there is no item 'x'"),
    ):  # fmt: skip
        assert named in responses.error(await gateway.get(f"{path}?{query}"), 400)["message"]


async def test_stored_delete(responses: Responses, gateway: ApiClient) -> None:
    made = await responses.answer()
    path = f"/v1/responses/{made['id']}"
    deleted = await gateway.send("DELETE", path)
    assert (deleted.status, deleted.body) == (200, {"id": made["id"], "object": "response", "deleted": True})
    for reply in (
        await gateway.get(path),
        await gateway.send("DELETE", path),
        await gateway.get(f"{path}/input_items"),
    ):
        assert made["id"] in responses.error(reply, 404)["message"]
    assert responses.error(await responses.post({"previous_response_id": made["id"]}), 404)


async def test_stored_cancel_is_for_responses_under_way(responses: Responses, gateway: ApiClient) -> None:
    made = await responses.answer()
    assert responses.error(await gateway.post(f"/v1/responses/{made['id']}/cancel", {}), 400)["message"]
    assert responses.error(await gateway.post("/v1/responses/resp_unknown/cancel", {}), 404)["message"]


async def test_stored_unknown_ids_are_not_found(responses: Responses, gateway: ApiClient) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/input_items")):
        reply = await gateway.send(method, f"/v1/responses/resp_unknown{path}")
        assert "resp_unknown" in responses.error(reply, 404)["message"]
    reply = await responses.post({"previous_response_id": "resp_unknown"})
    assert responses.error(reply, 404)["param"] == "previous_response_id"
    streamed = await responses.post({"previous_response_id": "resp_unknown", "stream": True})
    assert responses.error(streamed, 404)["param"] == "previous_response_id"


async def test_stored_another_callers_key_finds_nothing(
    responses: Responses, gateway: ApiClient, other_key: str
) -> None:
    made = await responses.answer()
    other = {"authorization": f"Bearer {other_key}"}
    for method, path in (("GET", ""), ("GET", "/input_items"), ("DELETE", ""), ("POST", "/cancel")):
        reply = await gateway.send(method, f"/v1/responses/{made['id']}{path}", headers=other)
        assert responses.error(reply, 404), path
    reply = await responses.post({"previous_response_id": made["id"]}, key=other_key)
    assert responses.error(reply, 404)["param"] == "previous_response_id"
    assert (await gateway.get(f"/v1/responses/{made['id']}")).status == 200


async def test_stored_store_false_is_not_stored(responses: Responses, gateway: ApiClient) -> None:
    made = await responses.answer({"store": False})
    assert made["store"] is False
    received = (await responses.stream({"store": False}))[-1].data["response"]
    for response_id in (made["id"], received["id"]):
        assert responses.error(await gateway.get(f"/v1/responses/{response_id}"), 404)
        assert responses.error(await responses.post({"previous_response_id": response_id}), 404)


async def test_stored_store_false_may_continue_a_stored_response(responses: Responses, gateway: ApiClient) -> None:
    first = await responses.answer(text="My dog is called Rex")
    last = await responses.answer({"previous_response_id": first["id"], "store": False}, text="And?")
    assert "Rex" in responses.text(last)
    assert (await gateway.get(f"/v1/responses/{last['id']}")).status == 404


async def test_stored_instructions_are_not_inherited(responses: Responses) -> None:
    first = await responses.answer({"instructions": "Speak like a sailor"})
    assert "sailor" in responses.text(first)
    second = await responses.answer({"previous_response_id": first["id"]}, text="Go on")
    assert second["instructions"] is None
    assert "My instructions begin" not in responses.text(second)
    third = await responses.answer({"previous_response_id": first["id"], "instructions": "Speak like a poet"})
    assert "poet" in responses.text(third)
    assert "sailor" not in responses.text(third).partition("My instructions begin")[2].partition("\n")[0]


async def test_stored_conversations_branch(responses: Responses) -> None:
    root = await responses.answer(text="My dog is called Rex")
    left = await responses.answer({"previous_response_id": root["id"]}, text="It is brown")
    right = await responses.answer({"previous_response_id": root["id"]}, text="It is white")
    for body in (left, right):
        assert "turn 2" in responses.text(body)
    last = await responses.answer({"previous_response_id": left["id"]}, text="Which colour?")
    assert "turn 3" in responses.text(last)


async def test_stored_a_streamed_response_is_continued(responses: Responses) -> None:
    response_id = (await responses.stream(text="My dog is called Rex"))[-1].data["response"]["id"]
    assert "Rex" in responses.text(await responses.answer({"previous_response_id": response_id}, text="And?"))


async def test_stored_continues_on_a_model_of_another_family(responses: Responses) -> None:
    first = await responses.answer({"reasoning": {"effort": "high"}}, text="My dog is called Rex", model="famO-5")
    for model in ("famG-2.5-pro", "famC-sonnet-4-5", "famR-1"):
        body = await responses.answer({"previous_response_id": first["id"]}, text="And?", model=model)
        assert "you began with: My dog is called Rex" in responses.text(body)


async def test_stored_a_call_is_answered_in_a_continuation(responses: Responses) -> None:
    tools = [{"type": "function", "name": "get_weather", "parameters": WEATHER}]
    first = await responses.answer({"tools": tools}, text="Ask get_weather of Rome")
    call_id = responses.items(first, "function_call")[0]["call_id"]
    result = {"type": "function_call_output", "call_id": call_id, "output": "17 degrees"}
    body = await responses.answer({"previous_response_id": first["id"], "input": [result], "tools": tools})
    assert "The tool get_weather gave: 17 degrees" in responses.text(body)


async def test_stored_usage_counts_the_whole_context(responses: Responses) -> None:
    first = await responses.answer()
    second = await responses.answer({"previous_response_id": first["id"]})
    assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"] + first["usage"]["output_tokens"]


async def test_stored_responses_survive_a_restart(tmp_path: Path) -> None:
    async with aiohttp.ClientSession() as session:
        async with running(SANDBOX, tmp_path) as before:
            first = await Responses(ApiClient(before, session)).answer(text="My dog is called Rex")
        async with running(SANDBOX, tmp_path) as after:
            gateway = ApiClient(after, session)
            responses = Responses(gateway)
            assert (await gateway.get(f"/v1/responses/{first['id']}")).body == first
            body = await responses.answer({"previous_response_id": first["id"]}, text="And?")
            assert "you began with: My dog is called Rex" in responses.text(body)


async def test_stored_responses_expire_after_their_lifetime(tmp_path: Path) -> None:
    config = SANDBOX + "responses: {ttl: 1}\n"
    async with running(config, tmp_path) as short, aiohttp.ClientSession() as session:
        gateway = ApiClient(short, session)
        responses = Responses(gateway)
        made = await responses.answer()
        path = f"/v1/responses/{made['id']}"
        assert (await gateway.get(path)).status == 200
        async with asyncio.timeout(60):
            while (await gateway.get(path)).status == 200:
                await pause()
        assert responses.error(await gateway.get(path), 404)
        assert responses.error(await responses.post({"previous_response_id": made["id"]}), 404)


async def test_stored_nothing_where_the_operator_disables_storage(tmp_path: Path) -> None:
    config = SANDBOX + "responses: {enabled: false}\n"
    async with running(config, tmp_path) as forgetful, aiohttp.ClientSession() as session:
        gateway = ApiClient(forgetful, session)
        responses = Responses(gateway)
        made = await responses.answer()
        assert made["store"] is False
        assert responses.error(await gateway.get(f"/v1/responses/{made['id']}"), 404)
        assert responses.error(await responses.post({"previous_response_id": made["id"]}), 404)


async def test_stored_answers_do_not_differ_from_those_not_stored(responses: Responses) -> None:
    stored, passing = await responses.answer(), await responses.answer({"store": False})
    assert lasting({**stored, "store": None}) == lasting({**passing, "store": None})
