"""Images over gRPC with the simulated provider: sizes, types, forms, groups, streams, faults and usage."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from io import BytesIO

import grpc
import pytest
import pytest_asyncio
from PIL import Image

from tests.support.gateways import Running, running
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.knowledge.families.image_model_rules import IMAGE_MODELS
from umg_grpc.v1 import pb, rpc

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG = f"""
channels:
  - name: sandbox
    protocols: [sandbox]
    pace: 0
    timeout: {{first_byte: 0.3}}
    models: [famO-5, {", ".join(IMAGE_MODELS)}]
"""
B64 = pb.IMAGE_RESPONSE_FORMAT_B64_JSON
EDITS = pb.IMAGE_OPERATION_EDIT
AUTO = pb.SEQUENTIAL_IMAGE_GENERATION_AUTO


def picture(width: int = 320, height: int = 240, file_format: str = "PNG", mode: str = "RGB") -> bytes:
    file = BytesIO()
    Image.new(mode, (width, height), "teal" if mode == "RGB" else (0, 0, 0, 0)).save(file, file_format)
    return file.getvalue()


PICTURE = pb.ImageInput(data=picture())


@dataclass(frozen=True)
class Caller:
    gateway: Running
    images: "rpc.ImageServiceAsyncStub"
    metadata: tuple[tuple[str, str], ...]

    async def make(self, **fields: object) -> pb.GenerateImageResponse:
        request = pb.GenerateImageRequest(**{"prompt": "a red kite over a lake", **fields})  # type: ignore[arg-type]
        return await self.images.GenerateImage(request, metadata=self.metadata)

    async def refusal(self, **fields: object) -> UmgError:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.make(**fields)
        return from_rpc(caught.value)

    async def stream(self, **fields: object) -> list[pb.ImageEvent]:
        request = pb.GenerateImageRequest(**{"prompt": "a red kite over a lake", **fields})  # type: ignore[arg-type]
        call = self.images.StreamGenerateImage(pb.StreamGenerateImageRequest(request=request), metadata=self.metadata)
        return [event async for message in call for event in message.events]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Caller, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("images")) as gateway:
        options = [("grpc.max_receive_message_length", -1)]
        async with grpc.aio.insecure_channel(gateway.grpc, options) as channel:
            metadata = (("authorization", f"Bearer {gateway.key}"),)
            yield Caller(gateway, rpc.ImageServiceStub(channel), metadata)


@dataclass(frozen=True)
class Size:
    id: str
    model: str
    width: int
    height: int
    file_format: str = "PNG"
    count: int = 1
    fields: dict[str, object] = field(default_factory=dict)


SIZES = [
    Size("family G, default", "famG-2.5-flash-image", 1024, 1024),
    Size("family G, a ratio", "famG-2.5-flash-image", 1344, 768, fields={"size": "16:9"}),
    Size("family G, pixels", "famG-3-pro-image-preview", 864, 1184, fields={"size": "600x800"}),
    Size("family G, a tier", "famG-3-pro-image-preview", 2048, 2048, fields={"image_size": "2K"}),
    Size("family G, by quality", "famG-3-pro-image-preview", 2048, 2048, fields={"quality": "hd"}),
    Size(
        "family G, a type and a number", "famG-2.5-flash-image", 1024, 1024, "JPEG", 3,
        fields={"output_mime_type": "image/jpeg", "n": 3},
    ),
    Size("family G, the ratio of the input", "famG-2.5-flash-image", 1184, 864, fields={"inputs": [PICTURE]}),
    Size("family A 3.0", "imgA-3-0-t2i-250415", 1512, 648, fields={"size": "1512x648", "seed": 1}),
    Size("family A 4.5", "imgA-4-5-251128", 2304, 1728, fields={"size": "2304x1728"}),
    Size("family B", "imgB-3-0-i2i-250628", 320, 240, fields={"inputs": [PICTURE]}),
    Size("family C", "imgC-1", 1536, 1024, fields={"size": "1536x1024", "n": 2}, count=2),
    Size("family C, WebP", "imgC-1-mini", 1024, 1024, "WEBP", fields={"output_mime_type": "image/webp"}),
    Size("family D", "imgD-plus", 640, 480, fields={"size": "640*480"}),
    Size(
        "family D, the last input's ratio", "imgD-edit-plus", 600, 300, count=2,
        fields={"inputs": [PICTURE, pb.ImageInput(data=picture(600, 300, "JPEG"))], "n": 2},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", SIZES, ids=lambda case: case.id)
async def test_images_have_the_requested_size_type_and_number(case: Size, caller: Caller) -> None:
    result = (await caller.make(model=case.model, response_format=B64, **case.fields)).result
    assert (result.model, len(result.images), result.usage.image_count) == (case.model, case.count, case.count)
    assert len({image.data for image in result.images}) == case.count
    for image in result.images:
        with Image.open(BytesIO(image.data)) as opened:
            assert (opened.size, opened.format) == ((case.width, case.height), case.file_format)
        assert (image.width, image.height) == (case.width, case.height)
        assert image.mime_type == f"image/{case.file_format.lower()}"


async def test_a_group_has_up_to_the_maximum_of_images(caller: Caller) -> None:
    for prompt, most, count in (("three cats", 4, 3), ("4 cats", 2, 2), ("cats", 0, 4)):
        fields = {"max_sequential_images": most} if most else {}
        result = await caller.make(
            model="imgA-4-0-250828", prompt=prompt, sequential_image_generation=AUTO, response_format=B64, **fields
        )
        assert len(result.result.images) == count


REFUSED = [
    ({"model": "imgC-1", "n": 11}, "INVALID_FIELD", "n"),
    ({"model": "imgA-3-0-t2i-250415", "inputs": [PICTURE]}, "UNSUPPORTED_FIELD", "inputs[0]"),
    ({"model": "imgB-3-0-i2i-250628"}, "MISSING_FIELD", "inputs"),
    ({"model": "imgA-4-5-251128", "optimize_prompt_mode": "fast"}, "INVALID_FIELD", "optimize_prompt_mode"),
    ({"model": "imgA-4-5-251128", "seed": -1}, "INVALID_FIELD", "seed"),
    ({"model": "imgC-1", "inputs": [pb.ImageInput(data=b"BM no image")]}, "INVALID_FIELD", "inputs[0]"),
    ({"model": "famO-5"}, "UNSUPPORTED_FIELD", "model"),
    ({"model": "none"}, "MODEL_NOT_FOUND", None),
    ({"model": "imgC-1", "prompt": None}, "MISSING_FIELD", "prompt"),
    ({"model": "imgC-1", "mask": PICTURE}, "INVALID_FIELD", "mask"),
    ({"model": "imgC-1", "operation": EDITS}, "MISSING_FIELD", "inputs"),
    ({"model": "imgC-1", "extra_json": "{broken"}, "INVALID_FIELD", "extra_json"),
    ({"model": "imgC-1", "background": "transparent", "output_mime_type": "image/jpeg"}, "INVALID_FIELD", "background"),
    ({"model": "imgC-1", "operation": pb.IMAGE_OPERATION_VARIATION}, "INVALID_FIELD", "inputs"),
]


@pytest.mark.parametrize(("fields", "name", "field"), REFUSED, ids=lambda value: str(value)[:40])
async def test_a_request_against_the_rules_is_refused_by_its_field(
    fields: dict[str, object], name: str, field: str | None, caller: Caller
) -> None:
    error = await caller.refusal(**fields)
    assert (error.name, error.metadata.get("field")) == (name, field)


FAULTS = [
    ("[[fail]]", pb.ERROR_REASON_UPSTREAM_FAILED),
    ("[[fail:429]]", pb.ERROR_REASON_UPSTREAM_RATE_LIMITED),
    ("[[fail:mid]]", pb.ERROR_REASON_UPSTREAM_FAILED),
    ("[[slow]]", pb.ERROR_REASON_UPSTREAM_TIMEOUT),
]


@pytest.mark.parametrize(("mark", "reason"), FAULTS)
async def test_a_mark_in_the_prompt_selects_a_fault(
    mark: str, reason: "pb.ErrorReason.ValueType", caller: Caller
) -> None:
    assert (await caller.refusal(model="imgC-1", prompt=f"a cat {mark}")).reason == reason


async def test_images_that_fail_are_left_out(caller: Caller) -> None:
    result = (await caller.make(model="imgC-1", prompt="cats [[fail:mid]]", n=4)).result
    assert (len(result.images), result.usage.image_count) == (2, 2)


async def test_a_stream_has_drafts_and_images(caller: Caller) -> None:
    events = await caller.stream(model="imgC-1", n=2, partial_images=2)
    kinds = [event.WhichOneof("kind") for event in events]
    assert kinds == ["started", *["partial", "partial", "completed"] * 2, "finished"]
    assert [(event.partial.image_index, event.partial.partial_index) for event in events if event.HasField("partial")] == [
        (0, 0), (0, 1), (1, 0), (1, 1),
    ]  # fmt: skip
    started = events[0].started
    assert (started.model, started.quality, started.background) == ("imgC-1", "high", "opaque")
    finished = events[-1].finished.result
    assert (finished.usage.image_count, len(finished.images), finished.quality) == (2, 0, "high")
    for event in events:
        image = event.partial.image if event.HasField("partial") else event.completed.image
        assert event.WhichOneof("kind") in {"started", "finished"} or image.WhichOneof("content") == "data"


async def test_a_stream_that_breaks_off_ends_with_the_error(caller: Caller) -> None:
    request = pb.GenerateImageRequest(model="imgC-1", prompt="cats [[fail:mid]]", n=2)
    call = caller.images.StreamGenerateImage(pb.StreamGenerateImageRequest(request=request), metadata=caller.metadata)
    kinds = []
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for message in call:
            kinds += [event.WhichOneof("kind") for event in message.events]
    assert kinds == ["started", "completed"]
    assert from_rpc(caught.value).reason == pb.ERROR_REASON_UPSTREAM_CUT
