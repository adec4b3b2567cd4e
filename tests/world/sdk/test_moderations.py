"""The official openai SDK, unmodified, judges contents by the gateway: simulated, and by a provider that takes the
requests and sends the responses of the SDK's own types.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, get_args

import aiohttp
import grpc
import openai
import pytest
import pytest_asyncio
from aiohttp import web
from openai.types import ModerationCreateParams, ModerationCreateResponse
from openai.types.moderation import Categories
from openai.types.moderation_model import ModerationModel
from pydantic import TypeAdapter, ValidationError

from tests.support.gateways import Running, running
from tests.support.serving import serving
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.v1 import pb, rpc

pytestmark = pytest.mark.asyncio(loop_scope="module")

PARAMS = TypeAdapter(ModerationCreateParams)
CATEGORIES = [field.alias or name for name, field in Categories.model_fields.items()]
IMAGE: Any = {"type": "image_url", "image_url": {"url": "https://pictures.test/a.png"}}
TEXT: Any = {"type": "text", "text": "a bad thing"}
MISTRAL_TOKENS = 2_000_000


async def judge(request: web.Request) -> web.Response:
    """Judge texts with "bad" as violence, as a provider with the SDK's types does."""
    body = await request.json()
    try:
        PARAMS.validate_python(body, strict=True)
    except ValidationError as error:
        return web.json_response({"error": {"message": str(error), "type": "invalid_request_error"}}, status=400)
    if body["model"] not in {name for choice in get_args(ModerationModel) for name in get_args(choice) or (choice,)}:
        return web.json_response({"error": {"message": "no such model", "code": "model_not_found"}}, status=404)
    given = body["input"]
    contents = [given] if isinstance(given, str) or isinstance(given[0], dict) else given
    results = [
        {
            "flagged": "bad" in str(content),
            "categories": {name: name == "violence" and "bad" in str(content) for name in CATEGORIES},
            "category_scores": dict.fromkeys(CATEGORIES, 0.5),
            "category_applied_input_types": {name: ["text"] for name in CATEGORIES},
        }
        for content in contents
    ]
    sent = {"id": "modr-1", "model": body["model"], "results": results}
    ModerationCreateResponse.model_validate(sent)
    return web.json_response(sent)


async def classify(request: web.Request) -> web.Response:
    """Judge as Mistral does: without `flagged`, with the tokens."""
    body = await request.json()
    results = [{"categories": {"pii": True}, "category_scores": {"pii": 0.9}} for _ in body["input"]]
    usage = {"prompt_tokens": MISTRAL_TOKENS, "completion_tokens": 0, "total_tokens": MISTRAL_TOKENS}
    return web.json_response({"id": "mod-1", "model": body["model"], "results": results, "usage": usage})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    app = web.Application()
    app.router.add_post("/v1/moderations", judge)
    app.router.add_post("/mistral/v1/moderations", classify)
    async with serving(app) as url:
        config = f"""
channels:
  - {{name: openai, provider: openai, base_url: '{url}/v1', api_key: k, models: [omni-moderation-latest]}}
  - {{name: mistral, provider: mistral, base_url: '{url}/mistral/v1', api_key: k, models: [mistral-moderation-2603]}}
  - {{name: sandbox, protocols: [sandbox], models: [simulated]}}
models:
  simulated: {{capabilities: {{operations: [moderate]}}, price: {{request: 0}}}}
  mistral-moderation-2603: {{price: {{input: 0.1}}}}
"""
        async with running(config, tmp_path_factory.mktemp("moderations")) as made:
            yield made


def client_of(gateway: Running, key: str = "") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=key or gateway.key, base_url=f"{gateway.url}/v1", max_retries=0)


@pytest.mark.parametrize("content", ["a bad thing", ["a bad thing"], [TEXT, IMAGE]], ids=["text", "texts", "parts"])
async def test_a_content_is_judged_by_a_provider(content: Any, gateway: Running) -> None:
    async with client_of(gateway) as client:
        response = await client.moderations.create(input=content)
    (result,) = response.results
    assert (response.id, response.model) == ("modr-1", "omni-moderation-latest")
    assert (result.flagged, result.categories.violence, result.categories.sexual_minors) == (True, True, False)
    assert result.category_scores.self_harm_intent == 0.5
    assert result.category_applied_input_types.violence == ["text"]


async def test_each_text_has_a_result_and_the_blocking_client_reads_them(gateway: Running) -> None:
    def judged() -> list[bool]:
        with openai.OpenAI(api_key=gateway.key, base_url=f"{gateway.url}/v1") as client:
            response = client.moderations.create(input=["fine", "bad"], model="omni-moderation-latest")
            return [result.flagged for result in response.results]

    assert await asyncio.to_thread(judged) == [False, True]


async def test_the_simulated_provider_flags_the_categories_that_a_text_names(gateway: Running) -> None:
    texts = ["a", "[[flag:hate/threatening]]"]
    async with client_of(gateway) as client:
        first, second = (await client.moderations.create(input=texts, model="simulated")).results
    assert (first.flagged, second.flagged) == (False, True)
    assert second.categories.hate_threatening
    assert not second.categories.hate


@dataclass(frozen=True)
class Refused:
    id: str
    options: dict[str, Any]
    error: type[openai.APIStatusError]
    field: str | None


REFUSED = (
    Refused("an empty list", {"input": []}, openai.BadRequestError, "input"),
    Refused("an unknown part", {"input": [{"type": "audio"}]}, openai.BadRequestError, "input[0].type"),
    Refused("an unknown model", {"input": "a", "model": "none"}, openai.NotFoundError, None),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_a_refusal_names_the_field(case: Refused, gateway: Running) -> None:
    async with client_of(gateway) as client:
        with pytest.raises(case.error) as refused:
            await client.moderations.create(**case.options)
    assert refused.value.param == case.field


async def test_the_grpc_face_judges_too(gateway: Running) -> None:
    content = pb.ModerationInput(parts=[pb.ModerationPart(text="bad")])
    metadata = (("authorization", f"Bearer {gateway.key}"),)
    async with grpc.aio.insecure_channel(gateway.grpc) as channel:
        stub = rpc.ModerationServiceStub(channel)
        request = pb.ModerateRequest(model="omni-moderation-latest", inputs=[content, content])
        response = await stub.Moderate(request, metadata=metadata)
        assert [result.flagged for result in response.results] == [True, True]
        assert len(response.results[0].categories) == len(CATEGORIES)
        assert not response.HasField("source")


async def test_free_models_serve_keys_with_a_budget_and_tokens_are_charged(gateway: Running) -> None:
    key, secret = await ApiKeys(gateway.service.store).create("budget", budget_micro_credits=1_000_000)
    async with client_of(gateway, secret) as client:
        await client.moderations.create(input="a")
        response = await client.moderations.create(input=["a"], model="mistral-moderation-2603")
    assert response.results[0].flagged
    records = await _records(gateway, key.key_id, 2)
    costs = {record["model"]: record["micro_credits"] for record in records}
    assert costs == {"omni-moderation-latest": 0, "mistral-moderation-2603": 200_000}


async def _records(gateway: Running, key: str, count: int) -> list[dict[str, Any]]:
    """Return the records of a key once there are as many: they are written in the background."""
    async with aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session, asyncio.timeout(60):
        while True:
            async with session.get("/admin/v1/requests", params={"key_ids": key}) as response:
                if len(records := (await response.json())["records"]) >= count:
                    return list(records)
            await asyncio.sleep(0.02)
