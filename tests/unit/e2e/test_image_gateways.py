"""Images through a gateway behind a gateway (protocol `umg_images`): every family, form, stream, edit and error."""

import base64
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import aiohttp
import grpc
import pytest
import pytest_asyncio
from PIL import Image

from tests.support.gateways import KEY, Running, running
from tests.support.providers.images.image_file_texts import png
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.knowledge.families.image_model_rules import IMAGE_MODELS
from umg_grpc.v1 import pb, rpc

pytestmark = pytest.mark.asyncio(loop_scope="module")

BACK = f"""
channels:
  - {{name: sandbox, protocols: [sandbox], pace: 0, models: [{", ".join(IMAGE_MODELS)}]}}
"""
FRONT = """
channels:
  - name: gateway
    protocols: [umg_images]
    base_url: {url}/v1
    api_key: {key}
    models: [{models}]
"""
CREDENTIALS = (("authorization", f"Bearer {KEY}"),)
B64, URL = pb.IMAGE_RESPONSE_FORMAT_B64_JSON, pb.IMAGE_RESPONSE_FORMAT_URL
INPUT = png("an input", 320, 240)
DATA = pb.ImageInput(data=INPUT)


@dataclass(frozen=True)
class Gateways:
    """Gateway behind another gateway, and callers of the latter."""

    front: Running
    images: "rpc.ImageServiceAsyncStub"
    session: aiohttp.ClientSession

    async def make(self, model: str, **fields: object) -> pb.ImageResult:
        request = pb.GenerateImageRequest(model=model, **{"prompt": "a kite", **fields})  # type: ignore[arg-type]
        return (await self.images.GenerateImage(request, metadata=CREDENTIALS)).result

    async def stream(self, model: str, **fields: object) -> list[pb.ImageEvent]:
        request = pb.GenerateImageRequest(model=model, **{"prompt": "a kite", **fields})  # type: ignore[arg-type]
        call = self.images.StreamGenerateImage(pb.StreamGenerateImageRequest(request=request), metadata=CREDENTIALS)
        return [event async for message in call for event in message.events]

    async def post(self, body: dict[str, Any]) -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {KEY}"}
        async with self.session.post(f"{self.front.url}/v1/images/generations", json=body, headers=headers) as answer:
            return answer.status, await answer.json()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateways(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateways, None]:
    async with AsyncExitStack() as stack:
        back = await stack.enter_async_context(running(BACK, tmp_path_factory.mktemp("back")))
        config = FRONT.format(url=back.url, key=KEY, models=", ".join(IMAGE_MODELS))
        front = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("front")))
        options = [("grpc.max_receive_message_length", -1)]
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(front.grpc, options))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Gateways(front, rpc.ImageServiceStub(channel), session)


def inputs(model: str) -> list[pb.ImageInput]:
    return [DATA] if IMAGE_MODELS[model].min_inputs else []


@pytest.mark.parametrize("form", [URL, B64], ids=["url", "b64_json"])
@pytest.mark.parametrize("model", IMAGE_MODELS)
async def test_every_model_makes_images(
    gateways: Gateways, model: str, form: "pb.ImageResponseFormat.ValueType"
) -> None:
    image = (await gateways.make(model, response_format=form, inputs=inputs(model))).images[0]
    if IMAGE_MODELS[model].always_bytes or form == B64:
        assert image.data
    else:
        async with gateways.session.get(image.url) as file:  # a signed link, without credentials
            assert (file.status, file.content_type) == (200, "image/png")


@pytest.mark.parametrize("model", IMAGE_MODELS)
async def test_every_model_streams_images(gateways: Gateways, model: str) -> None:
    events = await gateways.stream(model, inputs=inputs(model))
    assert [event.WhichOneof("kind") for event in events] == ["started", "completed", "finished"]
    assert events[1].completed.image.data


@dataclass(frozen=True)
class Kept:
    """Request whose fields reach the gateway behind, and the expected size of its images."""

    id: str
    request: dict[str, object]
    size: tuple[int, int] | None = None
    images: int = 1


GROUP = pb.SEQUENTIAL_IMAGE_GENERATION_AUTO
EDIT, VARIATION = pb.IMAGE_OPERATION_EDIT, pb.IMAGE_OPERATION_VARIATION
TURNS = [
    pb.ImageTurn(parts=[pb.ImageTurnPart(text="a kite"), pb.ImageTurnPart(image=DATA)]),
    pb.ImageTurn(role=pb.IMAGE_TURN_ROLE_MODEL, parts=[pb.ImageTurnPart(image=DATA)]),
]


def transparent() -> bytes:
    """Return a PNG file with a transparent half."""
    file, picture = BytesIO(), Image.new("RGBA", (320, 240), (0, 0, 0, 255))
    picture.paste((0, 0, 0, 0), (0, 0, 160, 240))
    picture.save(file, "PNG")
    return file.getvalue()


MASK = pb.ImageInput(data=transparent())
KEPT = [
    Kept("n and quality", {"model": "imgC-1", "n": 2, "size": "1024x1536", "quality": "low"}, (1024, 1536), 2),
    Kept("an edit", {"model": "imgC-1", "operation": EDIT, "inputs": [DATA, DATA], "size": "1536x1024"}, (1536, 1024)),
    Kept("an edit with a mask", {"model": "imgC-1", "operation": EDIT, "inputs": [DATA], "mask": MASK}),
    Kept("a variation", {"model": "imgC-1", "prompt": None, "operation": VARIATION, "inputs": [DATA], "n": 2}, None, 2),
    Kept("a ratio and a tier", {"model": "famG-3-pro-image-preview", "aspect_ratio": "16:9", "image_size": "2K"}, (2688, 1536)),
    Kept("turns", {"model": "famG-2.5-flash-image", "turns": TURNS, "n": 2, "temperature": 1.0}, None, 2),
    Kept("a group", {"model": "imgA-4-5-251128", "sequential_image_generation": GROUP, "max_sequential_images": 1, "seed": 3}, (2048, 2048)),
    Kept("an edit of a group", {"model": "imgA-4-0-250828", "operation": EDIT, "inputs": [DATA], "optimize_prompt_mode": "fast"}),
    Kept("guidance", {"model": "imgB-3-0-i2i-250628", "inputs": [DATA], "guidance_scale": 3.0, "watermark": True}),
    Kept("parameters", {"model": "imgD-edit-plus", "inputs": [DATA], "n": 2, "size": "512*640", "negative_prompt": "b", "prompt_extend": False}, (512, 640), 2),
    Kept("an edit by parameters", {"model": "imgD-edit-plus", "operation": EDIT, "inputs": [DATA], "size": "512*640"}, (512, 640)),
]  # fmt: skip


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.id)
async def test_fields_reach_the_gateway_behind(gateways: Gateways, case: Kept) -> None:
    fields: dict[str, Any] = {"prompt": "a kite", "response_format": B64, **case.request}
    request = pb.GenerateImageRequest(**fields)
    call = gateways.images.GenerateImage(request, metadata=CREDENTIALS)
    result = (await call).result
    assert "x-umg-dropped" not in dict(await call.initial_metadata())
    assert len(result.images) == result.usage.image_count == case.images
    if case.size is not None:
        assert [(image.width, image.height) for image in result.images] == [case.size] * case.images


async def test_drafts_groups_and_usage_are_streamed(gateways: Gateways) -> None:
    events = await gateways.stream("imgC-1", partial_images=2)
    kinds = [event.WhichOneof("kind") for event in events]
    assert kinds == ["started", "partial", "partial", "completed", "finished"]
    assert events[-1].finished.result.usage.output_tokens > 0
    events = await gateways.stream("imgA-4-0-250828", sequential_image_generation=GROUP, max_sequential_images=4)
    images = [event.completed.image_index for event in events if event.HasField("completed")]
    assert images == list(range(len(images)))
    assert events[-1].finished.result.usage.image_count == len(images) >= 1


async def test_usage_in_tokens_passes_through(gateways: Gateways) -> None:
    assert (await gateways.make("imgC-1")).usage.output_tokens > 0


async def test_the_documented_envelope_is_made_again(gateways: Gateways) -> None:
    body = {"model": "imgA-4-0-250828", "prompt": "a kite", "response_format": "b64_json"}
    status, answer = await gateways.post(body)
    assert (status, answer["code"]) == (200, 200)
    assert base64.b64decode(answer["data"]["data"][0]["b64_json"]).startswith(b"\x89PNG")
    message = {"role": "user", "content": [{"text": "a kite"}]}
    status, answer = await gateways.post({"model": "imgD-plus", "input": {"messages": [message]}, "parameters": {}})
    assert (status, list(answer["data"]["data"][0])) == (200, ["url"])


@pytest.mark.parametrize(
    ("mark", "reason", "code"),
    [
        ("[[fail]]", "UPSTREAM_FAILED", grpc.StatusCode.UNAVAILABLE),
        ("[[fail:429]]", "UPSTREAM_RATE_LIMITED", grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
)
async def test_an_error_of_the_gateway_behind_is_one_of_the_provider(
    gateways: Gateways, mark: str, reason: str, code: grpc.StatusCode
) -> None:
    for call in (gateways.make, gateways.stream):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call("imgC-1", prompt=f"a kite {mark}")
        assert (from_rpc(caught.value).name, caught.value.code()) == (reason, code)
