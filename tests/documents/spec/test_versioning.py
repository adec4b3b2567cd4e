"""Text document: "What the service does", "Versioning" and "Limits"."""

import pytest

from tests.documents.spec.callers import Chat, Messages, Native, Responses, lasting
from tests.support.callers.api import ApiClient

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_overview_one_json_body_or_a_stream(
    chat: Chat, responses: Responses, messages: Messages, native: Native, gateway: ApiClient
) -> None:
    for face in (chat, responses, messages, native):
        reply = await face.post()
        assert reply.status == 200
        assert reply.headers["content-type"].startswith("application/json")
        assert face.text(reply.body)
        assert face.streamed_text(await face.stream()) == face.text(reply.body)


async def test_overview_native_streams_by_its_path_not_by_its_body(native: Native) -> None:
    assert native.text(await native.answer({"stream": True}))


async def test_overview_bodies_are_json(chat: Chat, gateway: ApiClient) -> None:
    body = chat.body()
    for content_type in ("application/json", "application/json; charset=utf-8"):
        headers = {**gateway.server.headers, "content-type": content_type}
        assert (await gateway.send("POST", chat.path, body, headers=headers)).status == 200
    headers = {**gateway.server.headers, "content-type": "text/plain"}
    reply = await gateway.send("POST", chat.path, body, headers=headers)
    assert "application/json" in chat.error(reply, 415)["message"]


async def test_overview_the_caller_picks_the_model_by_id_and_the_format_by_path(gateway: ApiClient) -> None:
    turns = [{"role": "user", "content": "Hi"}]
    body = {"model": "famR-1", "messages": turns, "input": turns, "max_tokens": 100}
    chat, responses, messages = [
        (await gateway.post(path, body)).body for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages")
    ]
    assert (chat["object"], responses["object"], messages["type"]) == ("chat.completion", "response", "message")
    assert {chat["model"], responses["model"], messages["model"]} == {"famR-1"}


async def test_versioning_other_operations_live_under_v1_only(gateway: ApiClient, chat: Chat) -> None:
    for path in (
        "/v1beta/chat/completions",
        "/v1beta/responses",
        "/v1beta/messages",
        "/v1beta/embeddings",
        "/v1beta/rerank",
        "/v2/messages",
        "/v2/embeddings",
    ):
        assert (await gateway.post(path, chat.body())).status == 404


async def test_versioning_unknown_query_parameters_are_ignored(
    gateway: ApiClient, chat: Chat, responses: Responses, messages: Messages, native: Native
) -> None:
    for face in (chat, responses, messages, native):
        usual = lasting(await face.answer())
        for query in ("beta=true", "x=1&x=2&stream=true", "alt=media"):
            reply = await gateway.post(f"{face.path}?{query}", face.body())
            assert reply.status == 200
            assert lasting(reply.body) == usual


async def test_limits_prompt_cache_minimum_sizes(messages: Messages) -> None:
    """Check sizes just below and above the minimum, measured in the tokens that the response itself counts."""
    for model, least in (("famC-sonnet-4-5", 1024), ("famG-2.5-flash", 2048), ("famO-5-mini", 2048)):
        for size, cached in ((least - 40, 0), (least + 40, least)):
            system = [{"type": "text", "text": "word " * size, "cache_control": {"type": "ephemeral"}}]
            usage = (await messages.answer({"system": system}, model=model))["usage"]
            assert usage["cache_creation_input_tokens"] >= cached
            assert bool(usage["cache_creation_input_tokens"]) is bool(cached), (model, size)
