"""Continued responses: by the provider's id where it is stored there, else from the conversation that is stored here."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI
from openai.types.responses import Response

from tests.support.gateways import SANDBOX, Running, channel, running
from umg_grpc.wire import TEXT_FORMATS

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = "famO-5"
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}
RESULT = "18 degrees and a light breeze"
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@dataclass(frozen=True)
class Chain:
    """Gateway whose provider is another gateway."""

    outer: AsyncOpenAI
    inner: AsyncOpenAI


def client(gateway: Running) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0)


@asynccontextmanager
async def outer_gateway(inner: Running, data: Path) -> AsyncGenerator[Running, None]:
    config = "channels:\n" + "".join(
        channel(name, name, f"{inner.url}/v1", f"via-{name}", MODEL, "famO") for name in TEXT_FORMATS
    )
    async with running(config, data) as outer:
        yield outer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chain(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Chain, None]:
    data = tmp_path_factory.mktemp("chain")
    async with (
        running(SANDBOX, data / "inner") as inner,
        outer_gateway(inner, data / "outer") as outer,
        client(outer) as near,
        client(inner) as far,
    ):
        yield Chain(near, far)


async def call(sdk: AsyncOpenAI, model: str, stream: bool = False, **fields: object) -> Response:
    request_fields = {"model": model, "input": "Call get_weather.", "tools": [TOOL], **fields}
    if not stream:
        return await sdk.responses.create(**request_fields)
    async with sdk.responses.stream(**request_fields) as events:
        return await events.get_final_response()


def result_of(response: Response) -> list[dict[str, object]]:
    (made,) = [item for item in response.output if item.type == "function_call"]
    return [{"type": "function_call_output", "call_id": made.call_id, "output": RESULT}]


@both_ways
@pytest.mark.parametrize("after", TEXT_FORMATS)
@pytest.mark.parametrize("before", TEXT_FORMATS)
async def test_a_response_is_continued_on_any_channel(chain: Chain, before: str, after: str, stream: bool) -> None:
    first = await call(chain.outer, f"via-{before}", stream, reasoning={"effort": "low"})
    second = await call(
        chain.outer, f"via-{after}", stream, input=result_of(first), previous_response_id=first.id, tools=[TOOL]
    )
    assert RESULT in second.output_text
    assert second.previous_response_id == first.id


@both_ways
async def test_a_response_that_its_provider_no_longer_has_is_continued_from_the_store(
    chain: Chain, stream: bool
) -> None:
    first = await call(chain.outer, "via-responses", stream)
    await chain.inner.responses.delete(first.id)
    second = await call(chain.outer, "via-responses", stream, input=result_of(first), previous_response_id=first.id)
    assert RESULT in second.output_text
    third = await call(chain.outer, "via-responses", stream, input="And now?", previous_response_id=second.id)
    assert third.output_text


@pytest.mark.parametrize(
    ("item", "place"),
    [
        (
            {"role": "user", "content": [{"type": "input_text", "text": "b"}, {"type": "hologram"}]},
            "input[1].content[1]",
        ),
        ({"role": "critic", "content": "b"}, "input[1].role"),
        ({"type": "hologram"}, "input[1]"),
    ],
    ids=["a part", "a role", "an item"],
)
async def test_an_error_names_the_path_in_the_new_input(chain: Chain, item: object, place: str) -> None:
    first = await call(chain.outer, "via-chat")
    with pytest.raises(openai.BadRequestError) as caught:
        await call(
            chain.outer,
            "via-chat",
            input=[{"role": "user", "content": "a"}, item],
            previous_response_id=first.id,
        )
    assert caught.value.param == place


async def test_a_passed_through_response_is_returned_as_its_provider_sent_it(chain: Chain) -> None:
    made = await call(chain.outer, "via-responses", metadata={"trip": "7"})
    found = await chain.outer.responses.retrieve(made.id)
    assert found.model_dump() == made.model_dump()


@both_ways
async def test_stored_responses_survive_a_restart(tmp_path: Path, stream: bool) -> None:
    async with running(SANDBOX, tmp_path / "inner") as inner:
        async with outer_gateway(inner, tmp_path / "outer") as outer, client(outer) as sdk:
            first = await call(sdk, "via-messages", stream, reasoning={"effort": "low"})
        async with outer_gateway(inner, tmp_path / "outer") as outer, client(outer) as sdk:
            second = await call(
                sdk,
                "via-messages",
                stream,
                input=result_of(first),
                previous_response_id=first.id,
                reasoning={"effort": "low"},
            )
            assert RESULT in second.output_text
