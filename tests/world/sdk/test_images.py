"""The official SDKs, unmodified, make, edit and stream images through the gateway."""

import base64
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from typing import Any

import aiohttp
import openai
import pytest
import pytest_asyncio
from google import genai
from google.genai import types
from openai import AsyncOpenAI

from tests.documents.spec.image_callers import (
    A3,
    A40,
    D_EDIT,
    MINI,
    PROMPT,
    TALL,
    WIDE,
    B,
    C,
    G,
    data_url,
    kind_of,
    pixels_of,
    structured,
)
from tests.support.gateways import Running, running
from tests.support.images import mask_of
from tests.world.sdk.node_runner import Node
from umg_grpc.knowledge.families.image_model_rules import IMAGE_MODELS

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # google's SDK subclasses the session of aiohttp
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

CONFIG = f"""
channels:
  - {{name: images, protocols: [sandbox], pace: 0, models: [{", ".join(IMAGE_MODELS)}]}}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("images")) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(gateway: Running) -> AsyncGenerator[AsyncOpenAI, None]:
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as sdk:
        yield sdk


def files(answer: Any) -> list[bytes]:
    return [base64.b64decode(item.b64_json) for item in answer.data]


# --- openai


async def test_openai_generates(client: AsyncOpenAI) -> None:
    answer = await client.images.generate(model=C, prompt=PROMPT, n=2, size="1536x1024", quality="low")
    assert [pixels_of(file) for file in files(answer)] == [(1536, 1024)] * 2
    assert answer.created > 0
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert (answer.quality, answer.size, answer.output_format) == ("low", "1536x1024", "png")


async def test_openai_is_given_addresses(client: AsyncOpenAI) -> None:
    answer = await client.images.generate(model=A3, prompt=PROMPT, size="1024x1024", n=1)
    assert answer.data is not None
    [item] = answer.data
    assert item.url is not None
    async with aiohttp.ClientSession() as session, session.get(item.url) as response:
        assert pixels_of(await response.read()) == (1024, 1024)
    answer = await client.images.generate(model=A3, prompt=PROMPT, response_format="b64_json")
    assert len(files(answer)) == 1


async def test_openai_reaches_every_family_by_an_extra_body(client: AsyncOpenAI) -> None:
    extra: dict[str, dict[str, Any]] = {
        G: {"image_size": "2K", "mime_type": "image/jpeg"},
        A40: {"sequential_image_generation": "auto", "sequential_image_generation_options": {"max_images": 2}},
        B: {"image": data_url(), "guidance_scale": 5},
        C: {"images": [data_url()], "input_fidelity": "high"},
    }
    for model, body in extra.items():
        answer = await client.images.generate(model=model, prompt=PROMPT, response_format="b64_json", extra_body=body)
        assert files(answer)
    body = structured({"image": data_url()}) | {"prompt": None}
    answer = await client.images.generate(model=D_EDIT, prompt=PROMPT, response_format="b64_json", extra_body=body)
    assert files(answer)


async def test_openai_edits(client: AsyncOpenAI) -> None:
    one = await client.images.edit(model=C, prompt=PROMPT, image=("a.png", WIDE, "image/png"))
    two = await client.images.edit(model=C, prompt=PROMPT, image=[("a.png", WIDE, "image/png"), ("b.jpg", TALL)])
    mask = ("m.png", mask_of(WIDE), "image/png")
    masked = await client.images.edit(model=C, prompt=PROMPT, image=("a.png", WIDE), mask=mask, n=1)
    assert len({files(answer)[0] for answer in (one, two, masked)}) == 3


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")
async def test_openai_makes_variations(client: AsyncOpenAI) -> None:
    answer = await client.images.create_variation(model=C, image=("a.png", WIDE), n=2, response_format="b64_json")
    assert len(files(answer)) == 2


async def test_openai_streams(client: AsyncOpenAI) -> None:
    stream = await client.images.generate(model=MINI, prompt=PROMPT, stream=True, partial_images=2)
    events = [event async for event in stream]
    kinds = ["image_generation.partial_image"] * 2 + ["image_generation.completed"]
    assert [event.type for event in events] == kinds
    assert all(kind_of(base64.b64decode(event.b64_json)) == "PNG" for event in events)
    last = events[-1]
    assert last.type == "image_generation.completed"
    assert last.usage.output_tokens > 0
    edits = await client.images.edit(model=C, prompt=PROMPT, image=("a.png", WIDE), stream=True, partial_images=1)
    assert [event.type async for event in edits] == ["image_edit.partial_image", "image_edit.completed"]


async def test_openai_raises_its_own_errors(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await client.images.generate(model=C, prompt=PROMPT, n=11)
    assert (refused.value.param, refused.value.code) == ("n", "invalid_value")
    with pytest.raises(openai.NotFoundError):
        await client.images.generate(model="imgZ", prompt=PROMPT)
    with pytest.raises(openai.RateLimitError):
        await client.images.generate(model=C, prompt=f"{PROMPT} [[fail:429]]")
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="none").images.generate(model=C, prompt=PROMPT)
    with pytest.raises(openai.APIError):
        stream = await client.images.generate(model=C, prompt="cats [[fail:mid]]", n=2, stream=True)
        [_ async for _ in stream]


# --- google-genai


async def test_google_makes_and_edits_images(gateway: Running) -> None:
    options = types.HttpOptions(base_url=gateway.url, api_version="v1beta")
    sdk = genai.Client(api_key=gateway.key, http_options=options)
    try:
        picture = types.Part.from_bytes(data=WIDE, mime_type="image/png")
        config = types.GenerateContentConfig(response_modalities=["IMAGE"])
        for contents in ([PROMPT], [PROMPT, picture]):
            answer = await sdk.aio.models.generate_content(model=G, contents=contents, config=config)
            [part] = [part for part in answer.parts or () if part.inline_data]
            assert part.inline_data is not None
            assert kind_of(part.inline_data.data or b"") == "PNG"
    finally:
        await sdk.aio.aclose()
        sdk.close()


# --- the SDKs of JavaScript


@dataclass(frozen=True)
class Job:
    id: str
    model: str
    prompt: str = PROMPT
    n: int | None = None
    size: str | None = None
    images: tuple[str, ...] | None = None
    streamed: bool = False

    @property
    def json(self) -> dict[str, Any]:
        return asdict(self)


INPUTS = tuple(base64.b64encode(data).decode() for data in (WIDE, TALL))
GENERATE = [Job("one", C), Job("two of a size", C, n=2, size="1024x1536")]
NODE_JOBS: dict[str, list[Job]] = {
    "openai": [*GENERATE, Job("edit", C, images=INPUTS), Job("stream", C, streamed=True)],
    "ai-openai": [*GENERATE, Job("another family", A3), Job("edit", C, images=INPUTS)],
    "ai-openai-compatible": [*GENERATE, Job("another family", A3), Job("edit", C, images=INPUTS)],
    "google": [Job("native", G), Job("native edit", G, images=INPUTS[:1])],
    "ai-google": [Job("native", G)],
}


@pytest.mark.parametrize("sdk", NODE_JOBS)
async def test_javascript_makes_images(sdk: str, node: Node, gateway: Running) -> None:
    jobs = NODE_JOBS[sdk]
    found = await node.run("images.mjs", jobs, root=gateway.url, key=gateway.key, sdk=sdk)
    for job in jobs:
        answer = found[job.id]
        assert "error" not in answer, (job.id, answer)
        made = [base64.b64decode(text) for text in answer["images"]]
        assert len(made) == (2 if job.streamed else job.n or 1)
        assert all(kind_of(file) == "PNG" for file in made)
        if job.size is not None:
            assert {pixels_of(file) for file in made} == {(1024, 1536)}
        if job.streamed:
            assert answer["kinds"] == ["image_generation.partial_image", "image_generation.completed"]


@pytest.mark.parametrize("sdk", ["openai", "ai-openai", "ai-openai-compatible"])
async def test_javascript_raises_its_own_errors(sdk: str, node: Node, gateway: Running) -> None:
    jobs = [Job("no such model", "imgZ"), Job("wrong size", C, size="1x1")]
    found = await node.run("images.mjs", jobs, root=gateway.url, key=gateway.key, sdk=sdk)
    statuses = {name: answer["error"]["status"] for name, answer in found.items()}
    assert statuses == {"no such model": 404, "wrong size": 400}
    assert "imgZ" in found["no such model"]["error"]["message"]
