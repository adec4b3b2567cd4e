"""Text document, "POST /v1/messages/count_tokens"; readings, 15; and native `:countTokens`."""

from typing import Any

import pytest

from tests.documents.spec.callers import NO_STRINGS, PNG, QUESTION, WEATHER, Messages, Native, Responses
from tests.support.callers.api import ApiClient, Reply
from tests.support.gateways import KEY
from umg_grpc.access.api_keys import ApiKeys

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/messages/count_tokens"
MODEL = "famC-sonnet-4-5"
TOOLS = [{"name": "get_weather", "description": "Weather", "input_schema": WEATHER}]


def request_body(**fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "Tell me of Paris"}], **fields}


def blocks(*content: Any) -> dict[str, Any]:
    return request_body(messages=[{"role": "user", "content": list(content)}])


async def count(gateway: ApiClient, body: Any) -> int:
    reply = await gateway.post(PATH, body)
    assert reply.status == 200, reply.text
    assert reply.body.keys() == {"input_tokens"}
    counted = reply.body["input_tokens"]
    assert type(counted) is int
    return counted


def error(reply: Reply, status: int) -> Any:
    """Return the error body of this operation: `{error: {message, type, code}}`."""
    assert reply.status == status, reply.text
    details = reply.body["error"]
    assert {"message", "type", "code"} <= details.keys()
    return details


async def test_count_field_model(gateway: ApiClient) -> None:
    for body in (
        {key: value for key, value in request_body().items() if key != "model"},
        request_body(model=None),
        request_body(model=5),
    ):
        assert "model" in error(await gateway.post(PATH, body), 400)["message"]
    for model in ("famO-5", "famG-2.5-pro", "famX-4"):
        assert await count(gateway, request_body(model=model)) > 0


async def test_count_field_messages(gateway: ApiClient) -> None:
    for body in (
        {"model": MODEL},
        request_body(messages=None),
        request_body(messages="x"),
        request_body(messages=[]),
        request_body(messages=[5]),
    ):
        assert "messages" in error(await gateway.post(PATH, body), 400)["message"]
    more = [*request_body()["messages"], {"role": "assistant", "content": "Gladly"}, *request_body()["messages"]]
    assert await count(gateway, request_body(messages=more)) > await count(gateway, request_body())


async def test_count_field_messages_has_the_shape_of_messages(gateway: ApiClient, messages: Messages) -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Rome"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "17 degrees"}
    spoken = [
        *request_body()["messages"],
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    assert await count(gateway, request_body(messages=spoken)) > await count(gateway, request_body())
    reminded = [*request_body()["messages"], {"role": "system", "content": "Be brief, whatever is asked."}]
    assert await count(gateway, request_body(messages=reminded)) > await count(gateway, request_body())
    reply = await gateway.post(PATH, request_body(messages=[{"role": "robot", "content": "x"}]))
    assert "messages[0].role" in error(reply, 400)["message"]


async def test_count_field_system(gateway: ApiClient) -> None:
    plain = await count(gateway, request_body())
    by_string = await count(gateway, request_body(system="Speak like a sailor"))
    assert by_string > plain
    assert await count(gateway, request_body(system=[{"type": "text", "text": "Speak like a sailor"}])) == by_string
    assert await count(gateway, request_body(system=None)) == plain
    for wrong in (5, True, {"text": "x"}):
        assert "system" in error(await gateway.post(PATH, request_body(system=wrong)), 400)["message"]


async def test_count_field_tools(gateway: ApiClient) -> None:
    plain = await count(gateway, request_body())
    assert await count(gateway, request_body(tools=TOOLS)) > plain
    assert await count(gateway, request_body(tools=None)) == plain
    for wrong in ("x", 5, {"name": "x"}):
        assert "tools" in error(await gateway.post(PATH, request_body(tools=wrong)), 400)["message"]


async def test_count_rule_no_model_is_called(gateway: ApiClient) -> None:
    """Check with the simulated provider, which would fail if it were called."""
    failing = request_body(messages=[{"role": "user", "content": "[[fail]]"}])
    assert await count(gateway, failing) > 0
    assert (await gateway.post("/v1/messages", {**failing, "max_tokens": 5})).status == 502


async def test_count_rule_no_quota_is_consumed(gateway: ApiClient) -> None:
    _, secret = await ApiKeys(gateway.server.service.store).create("two a minute", requests_per_minute=2)
    key = {"authorization": f"Bearer {secret}"}
    for _ in range(5):
        assert (await gateway.post(PATH, request_body(), key)).status == 200
    body = request_body(max_tokens=5)
    assert [(await gateway.post("/v1/messages", body, key)).status for _ in range(3)] == [200, 200, 429]
    assert (await gateway.post(PATH, request_body(), key)).status == 200


async def test_count_rule_output_parameters_are_not_counted(gateway: ApiClient) -> None:
    plain = await count(gateway, request_body())
    more = {"max_tokens": 5000, "temperature": 0.5, "top_p": 0.5, "top_k": 5, "stop_sequences": ["x"], "stream": True}
    assert await count(gateway, request_body(**more, metadata={"user_id": "u"}, thinking={"type": "disabled"})) == plain


async def test_count_rule_each_image_is_about_1000(gateway: ApiClient) -> None:
    text = {"type": "text", "text": "Tell me of Paris"}
    inline = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    linked = {"type": "image", "source": {"type": "url", "url": "https://pictures.example/a.png"}}
    plain = await count(gateway, blocks(text))
    for images in ([inline], [linked], [inline, linked], [inline] * 3):
        assert await count(gateway, blocks(text, *images)) == plain + 1000 * len(images)


async def test_count_errors_have_the_body_of_this_operation(gateway: ApiClient) -> None:
    assert MODEL not in (unknown := error(await gateway.post(PATH, request_body(model="famC-9")), 404)["message"])
    assert "famC-9" in unknown
    for headers in ({}, {"authorization": "Bearer sk-nobody"}, {"x-api-key": "sk-nobody"}):
        assert error(await gateway.post(PATH, request_body(), headers), 401)["code"] == "invalid_api_key"
    malformed = await gateway.send("POST", PATH, data=b"{")
    assert error(malformed, 400)
    assert error(await gateway.get(PATH), 405)


async def test_count_takes_the_sdks_query_and_key(gateway: ApiClient) -> None:
    reply = await gateway.post(f"{PATH}?beta=true", request_body(), {"x-api-key": KEY})
    assert reply.body == {"input_tokens": await count(gateway, request_body())}


async def test_count_native_count_tokens(gateway: ApiClient, native: Native) -> None:
    async def total(body: Any) -> int:
        reply = await gateway.post(native.of("famG-2.5-pro", "countTokens"), body)
        assert reply.status == 200, reply.text
        return int(reply.body["totalTokens"])

    plain = await total(native.body())
    larger = native.body({"systemInstruction": {"parts": [{"text": "Speak like a sailor"}]}})
    assert await total(larger) > plain
    for name in ("generateContentRequest", "generate_content_request"):
        assert await total({name: {"model": "models/famG-2.5-pro", **larger}}) == await total(larger)
    image = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    with_image = [{"role": "user", "parts": [{"text": "Tell me of Paris"}, image]}]
    assert await total({"contents": with_image}) == plain + 1000
    assert await total(native.body(text="[[fail]]")) > 0
    for body in ({}, {"contents": 5}):
        reply = await gateway.post(native.of("famG-2.5-pro", "countTokens"), body)
        assert "contents" in native.error(reply, 400)["message"]
    unknown = await gateway.post(native.of("famG-9", "countTokens"), native.body())
    assert native.error(unknown, 404)["status"] == "NOT_FOUND"


async def test_count_responses_input_tokens(gateway: ApiClient, responses: Responses) -> None:
    path = "/v1/responses/input_tokens"
    plain = (await gateway.post(path, responses.body())).body["input_tokens"]
    parts = [
        {"type": "input_text", "text": "Tell me of Paris"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
    ]
    with_image = responses.body({"input": [{"role": "user", "content": parts}]})
    assert (await gateway.post(path, with_image)).body["input_tokens"] == plain + 1000
    tool = {"type": "function", "name": "get_weather", "parameters": WEATHER}
    declared = (await gateway.post(path, responses.body({"tools": [tool]}))).body["input_tokens"]
    items = [{"type": "additional_tools", "role": "developer", "tools": [tool]}, {"role": "user", "content": QUESTION}]
    by_item = (await gateway.post(path, responses.body({"input": items}))).body["input_tokens"]
    assert 0 <= by_item - declared < 10, "the tools are counted once"
    for wrong in NO_STRINGS:
        reply = await gateway.post(path, responses.body({"instructions": wrong}))
        assert responses.error(reply, 400)["param"] == "instructions"
