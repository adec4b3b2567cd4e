"""Images through the service by strict providers of every protocol: every family, its form of delivery, its errors,
failover and usage.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import grpc
import pytest
import pytest_asyncio

from tests.pairs.table import IMAGE_PROVIDERS, strict_fake
from tests.support.gateways import KEY, Running, running
from tests.support.providers.images.image_file_texts import png, text_of
from tests.support.providers.server import KEY as PROVIDER_KEY
from tests.support.providers.server import FakeProvider, serve_provider
from umg_grpc.knowledge.families.image_model_rules import IMAGE_MODELS
from umg_grpc.v1 import pb, rpc

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROTOCOLS = {
    "famG": "native_images",
    "imgA": "ark_images",
    "imgB": "ark_images",
    "imgC": "images",
    "imgD": "dashscope_images",
}
"""Family -> the protocol of its provider."""
CHANNEL = """
  - name: {protocol}
    protocols: [{protocol}]
    base_url: {url}
    api_key: {key}
    models: [{models}]
"""
B64, URL = pb.IMAGE_RESPONSE_FORMAT_B64_JSON, pb.IMAGE_RESPONSE_FORMAT_URL
DATA = pb.ImageInput(data=png("an input"))


@dataclass(frozen=True)
class Served:
    gateway: Running
    images: "rpc.ImageServiceAsyncStub"
    providers: dict[str, FakeProvider]

    async def make(self, model: str, **fields: object) -> pb.GenerateImageResponse:
        request = pb.GenerateImageRequest(model=model, **{"prompt": "a", **fields})  # type: ignore[arg-type]
        return await self.images.GenerateImage(request, metadata=CREDENTIALS)

    async def stream(self, model: str, **fields: object) -> list[pb.ImageEvent]:
        request = pb.GenerateImageRequest(model=model, **{"prompt": "a", **fields})  # type: ignore[arg-type]
        call = self.images.StreamGenerateImage(pb.StreamGenerateImageRequest(request=request), metadata=CREDENTIALS)
        return [event async for message in call for event in message.events]


CREDENTIALS = (("authorization", f"Bearer {KEY}"),)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with AsyncExitStack() as stack:
        providers, entries = dict[str, FakeProvider](), ""
        for protocol in IMAGE_PROVIDERS:
            fake = strict_fake(protocol)
            providers[protocol] = provider = await stack.enter_async_context(serve_provider(fake()))
            models = [model for model, row in IMAGE_MODELS.items() if PROTOCOLS[row.family] == protocol]
            url = provider.url + fake.base_path
            entries += CHANNEL.format(protocol=protocol, url=url, key=PROVIDER_KEY, models=", ".join(models))
        gateway = await stack.enter_async_context(running("channels:" + entries, tmp_path_factory.mktemp("images")))
        options = [("grpc.max_receive_message_length", -1)]
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(gateway.grpc, options))
        yield Served(gateway, rpc.ImageServiceStub(channel), providers)


@pytest.mark.parametrize("form", [URL, B64], ids=["url", "b64_json"])
@pytest.mark.parametrize("model", IMAGE_MODELS)
async def test_every_model_delivers_its_form(
    served: Served, model: str, form: "pb.ImageResponseFormat.ValueType"
) -> None:
    rules = IMAGE_MODELS[model]
    inputs = [DATA] if rules.min_inputs else []
    image = (await served.make(model, response_format=form, inputs=inputs)).result.images[0]
    expected = "data" if rules.always_bytes or form == B64 else "url"
    assert image.WhichOneof("content") == expected
    if expected == "data":
        assert image.mime_type == "image/png"
        assert text_of(image.data).startswith(("a", "/files/0"))
    refused = served.providers[PROTOCOLS[rules.family]].refusals
    assert not refused, refused


@pytest.mark.parametrize("model", IMAGE_MODELS)
async def test_every_model_streams_bytes(served: Served, model: str) -> None:
    rules = IMAGE_MODELS[model]
    events = await served.stream(model, inputs=[DATA] if rules.min_inputs else [])
    kinds = [event.WhichOneof("kind") for event in events]
    assert kinds == ["started", "completed", "finished"]
    assert events[1].completed.image.data
    assert events[2].finished.result.usage.image_count == 1


async def test_fields_that_a_provider_does_not_take_are_listed(served: Served) -> None:
    request = pb.GenerateImageRequest(model="famG-3-pro-image-preview", prompt="a", output_mime_type="image/jpeg")
    call = served.images.GenerateImage(request, metadata=CREDENTIALS)
    assert (await call).result.images
    assert dict(await call.initial_metadata())["x-umg-dropped"] == "output_mime_type"
