"""Image channels against strict providers: every protocol, its errors, several calls, tasks, streams and files of
callers.
"""

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

import pytest
from aiohttp import web

from tests.pairs.table import IMAGE_PROVIDERS, strict_fake
from tests.support.error_checks import raises_error
from tests.support.providers.images.dashscope import KEYS, DashscopeImages
from tests.support.providers.images.image_file_texts import png, text_of
from tests.support.providers.server import KEY, FakeProvider, ReceivedRequest, serve_provider
from umg_grpc.base.egress_rules import EgressRules
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.host_list_entries import parse_place
from umg_grpc.upstream.caller_url_fetch import Fetcher
from umg_grpc.upstream.http.image_generation import HttpImages
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint, RotatingEndpoints
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.response_memory_budget import ResponseBudget
from umg_grpc.v1 import pb
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS

DEADLINES = Deadlines(5, 20, 20, 20)
PNG = png("an input")
DATA = pb.ImageInput(data=PNG)


@dataclass
class Files(FakeProvider):
    """Server of the images that callers name."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.path == "/page":
            return web.Response(body=b"<html>" + b" " * 100, content_type="image/png")
        if received.path == "/large":
            return web.Response(body=PNG + bytes(21 << 20), content_type="image/png")
        return web.Response(body=PNG, content_type="application/octet-stream")


@dataclass(frozen=True)
class Made:
    """Channel to a provider, with the server of callers' images."""

    images: HttpImages
    provider: FakeProvider
    files: Files

    async def send(self, request: pb.GenerateImageRequest, seconds: float = math.inf) -> pb.ImageResult:
        return (await self.images.prepare(request, request.model).send(seconds)).result

    async def stream(self, request: pb.GenerateImageRequest) -> list[pb.ImageEvent]:
        call = self.images.prepare(request, request.model)
        async with aclosing(call.stream(math.inf)) as messages:
            return [event async for message in messages for event in message.events]


@asynccontextmanager
async def channel(
    protocol: str,
    *,
    provider: FakeProvider | None = None,
    keys: tuple[str, ...] = (KEY,),
    deadlines: Deadlines = DEADLINES,
    poll_seconds: float = 0.001,
) -> AsyncGenerator[Made, None]:
    """Yield a channel to a strict provider of the protocol."""
    codec = IMAGE_PROTOCOLS[protocol]
    if codec.tasks is not None:
        codec = replace(codec, tasks=replace(codec.tasks, poll_seconds=poll_seconds))
    fake = strict_fake(protocol)()
    async with (
        serve_provider(provider or fake) as served,
        serve_provider(Files()) as files,
        Client.opened() as client,
        Fetcher.opened(EgressRules((parse_place(files.url.removeprefix("http://")),))) as fetcher,
    ):
        endpoints = RotatingEndpoints([ProviderEndpoint(served.url + fake.base_path, {}, key) for key in keys])
        http = HttpChannel(client, endpoints, deadlines)
        yield Made(HttpImages(http, codec, fetcher, ResponseBudget()), served, files)


@dataclass(frozen=True)
class Case:
    id: str
    protocol: str
    request: pb.GenerateImageRequest
    labels: tuple[str, ...]  # texts of the returned files; addresses by their paths


G, A, B, C, D = "famG-3-pro-image-preview", "imgA-4-0-250828", "imgB-3-0-i2i-250628", "imgC-1", "imgD-edit-plus"
B64 = pb.IMAGE_RESPONSE_FORMAT_B64_JSON
GROUP = pb.SEQUENTIAL_IMAGE_GENERATION_AUTO
CASES = [
    Case("text", "images", pb.GenerateImageRequest(model=C, prompt="a", n=2, quality="low"), ("a #0", "a #1")),
    Case("an image", "images", pb.GenerateImageRequest(model=C, prompt="a", inputs=[DATA]), ("a + 1 #0",)),
    Case(
        "images and a mask",
        "images",
        pb.GenerateImageRequest(
            model=C, operation=pb.IMAGE_OPERATION_EDIT, prompt="a", inputs=[DATA, DATA], mask=DATA, n=2
        ),
        ("a + 3 #0", "a + 3 #1"),
    ),
    Case(
        "a variation",
        "images",
        pb.GenerateImageRequest(model=C, operation=pb.IMAGE_OPERATION_VARIATION, inputs=[DATA]),
        ("a variation #0",),
    ),
    Case("text", "native_images", pb.GenerateImageRequest(model=G, prompt="a", image_size="2K"), ("a",)),
    Case("several images", "native_images", pb.GenerateImageRequest(model=G, prompt="a", n=7), ("a",) * 7),
    Case(
        "turns and images",
        "native_images",
        pb.GenerateImageRequest(
            model=G,
            turns=[
                pb.ImageTurn(parts=[pb.ImageTurnPart(text="a"), pb.ImageTurnPart(image=DATA)]),
                pb.ImageTurn(role=pb.IMAGE_TURN_ROLE_MODEL, parts=[pb.ImageTurnPart(image=DATA)]),
            ],
            prompt="b",
            inputs=[DATA],
            size="1920x1080",
        ),
        ("a\nb + 3",),
    ),
    Case("text", "ark_images", pb.GenerateImageRequest(model=A, prompt="a"), ("/files/0.jpeg",)),
    Case(
        "a group as bytes",
        "ark_images",
        pb.GenerateImageRequest(model=A, prompt="a", sequential_image_generation=GROUP, response_format=B64),
        ("a #0", "a #1", "a #2", "a #3"),
    ),
    Case(
        "a group with failures",
        "ark_images",
        pb.GenerateImageRequest(model=A, prompt="a [[some]]", sequential_image_generation=GROUP, response_format=B64),
        ("a [[some]] #0", "a [[some]] #2"),
    ),
    Case(
        "an edit on family B",
        "ark_images",
        pb.GenerateImageRequest(
            model=B,
            prompt="a",
            inputs=[pb.ImageInput(url="https://files.example/1.png")],
            guidance_scale=5.5,
            seed=7,
            response_format=B64,
        ),
        ("a #0",),
    ),
    Case(
        "images",
        "dashscope_images",
        pb.GenerateImageRequest(
            model=D, prompt="a", inputs=[DATA, pb.ImageInput(url="https://files.example/1.png")], n=2, seed=7
        ),
        ("/files/0.png", "/files/1.png"),
    ),
    Case(
        "a task",
        "dashscope_images",
        pb.GenerateImageRequest(model="imgD-task", prompt="a", n=2, size="1328*1328", negative_prompt="b"),
        ("/files/0.png", "/files/1.png"),
    ),
    Case(
        "a task with a failed image",
        "dashscope_images",
        pb.GenerateImageRequest(model="imgD-task", prompt="a [[some]]", n=2),
        ("/files/0.png",),
    ),
]


def labels(images: list[pb.Image]) -> tuple[str, ...]:
    return tuple(
        text_of(image.data) if image.data else "/" + image.url.split("/", 3)[3].partition("?")[0] for image in images
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.protocol}: {case.id}")
async def test_images_are_made_by_every_protocol(case: Case) -> None:
    async with channel(case.protocol) as made:
        result = await made.send(case.request)
    assert made.provider.refusals in ([], ["current user api does not support synchronous calls."])
    assert labels(list(result.images)) == case.labels
    assert result.usage.image_count == len(case.labels)
    assert result.model == case.request.model
    assert result.HasField("create_time")


STREAMED = [case for case in CASES if case.request.operation != pb.IMAGE_OPERATION_VARIATION]


@pytest.mark.parametrize("case", STREAMED, ids=lambda case: f"{case.protocol}: {case.id}")
async def test_a_stream_has_the_images_of_the_whole_answer(case: Case) -> None:
    async with channel(case.protocol) as made:
        events = await made.stream(case.request)
    kinds = [event.WhichOneof("kind") for event in events]
    assert (kinds[0], kinds[-1]) == ("started", "finished")
    finished = [event.completed for event in events if event.HasField("completed")]
    ordered = sorted(finished, key=lambda completed: completed.image_index)
    assert labels([completed.image for completed in ordered]) == case.labels
    assert len({completed.image_index for completed in finished}) == len(finished)
    result = events[-1].finished.result
    assert (result.usage.image_count, list(result.images)) == (len(case.labels), [])
    assert result.HasField("create_time")


async def test_drafts_are_streamed() -> None:
    async with channel("images") as made:
        events = await made.stream(pb.GenerateImageRequest(model=C, prompt="a", partial_images=2))
    assert [event.WhichOneof("kind") for event in events] == ["started", "partial", "partial", "completed", "finished"]
    assert events[2].partial.partial_index == 1


# --- errors


@dataclass(frozen=True)
class Refused:
    protocol: str
    prompt: str
    reason: "pb.ErrorReason.ValueType"
    failure: Failure
    model: str = "m"


BLOCKED, LIMITED = pb.ERROR_REASON_CONTENT_BLOCKED, pb.ERROR_REASON_UPSTREAM_RATE_LIMITED
REFUSED = [
    Refused("images", "[[blocked]]", BLOCKED, Failure.CALLER),
    Refused("images", "[[limited]]", LIMITED, Failure.OVERLOADED),
    Refused("native_images", "[[blocked]]", BLOCKED, Failure.CALLER),
    Refused("native_images", "[[no image]]", pb.ERROR_REASON_UPSTREAM_FAILED, Failure.TRANSIENT),
    Refused("ark_images", "[[blocked]]", BLOCKED, Failure.CALLER),
    Refused("ark_images", "[[limited]]", LIMITED, Failure.OVERLOADED),
    Refused("ark_images", "[[none]]", BLOCKED, Failure.CALLER),
    Refused("dashscope_images", "[[blocked]]", BLOCKED, Failure.CALLER),
    Refused("dashscope_images", "[[200]]", BLOCKED, Failure.CALLER),
    Refused("dashscope_images", "[[limited]]", LIMITED, Failure.OVERLOADED),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.protocol}: {case.prompt}")
async def test_a_refusal_is_classified_whether_streamed_or_not(case: Refused) -> None:
    request = pb.GenerateImageRequest(model=case.model, prompt=case.prompt)
    async with channel(case.protocol) as made:
        for call in (made.send, made.stream):
            with raises_error(reason=case.reason, failure=case.failure):
                await call(request)


@pytest.mark.parametrize("protocol", IMAGE_PROVIDERS)
async def test_a_rejected_key_is_no_fault_of_the_caller(protocol: str) -> None:
    async with channel(protocol, keys=("sk-other",)) as made:
        with pytest.raises(UmgError) as caught:
            await made.send(pb.GenerateImageRequest(model="m", prompt="a"))
    assert (caught.value.reason, caught.value.failure) == (pb.ERROR_REASON_UPSTREAM_FAILED, Failure.DOWN)
    assert "sk-other" not in caught.value.message


# --- several calls


async def test_calls_that_fail_are_left_out_of_several_images() -> None:
    request = pb.GenerateImageRequest(model=G, prompt="a [[some]]", n=6)
    async with channel("native_images") as made:
        result = await made.send(request)
        assert (len(result.images), result.usage.image_count) == (4, 4)
        assert result.usage.output_tokens == 4 * 1290
        events = await made.stream(request)
    kinds = [event.WhichOneof("kind") for event in events]
    assert (kinds.count("completed"), kinds.count("failed"), kinds[0], kinds[-1]) == (4, 2, "started", "finished")
    positions = [event.failed.image_index for event in events if event.HasField("failed")]
    positions += [event.completed.image_index for event in events if event.HasField("completed")]
    assert sorted(positions) == list(range(6))


async def test_a_caller_that_leaves_ends_the_calls_of_all_images() -> None:
    entered, left = asyncio.Semaphore(0), asyncio.Semaphore(0)

    class Slow(FakeProvider):
        async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
            entered.release()
            try:
                await asyncio.Event().wait()
            finally:
                left.release()
            raise AssertionError

    async with channel("native_images", provider=Slow()) as made:
        calling = asyncio.create_task(made.send(pb.GenerateImageRequest(model=G, prompt="a", n=9)))
        for _ in range(4):
            await entered.acquire()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        for _ in range(4):
            await left.acquire()
    assert len(made.provider.received) == 4


# --- tasks


async def test_a_model_that_takes_tasks_only_is_remembered() -> None:
    async with channel("dashscope_images") as made:
        for _ in range(2):
            await made.send(pb.GenerateImageRequest(model="imgD-task", prompt="a"))
    paths = [received.path.rpartition("/")[2] for received in made.provider.received]
    assert paths == ["generation", "image-synthesis", "t-0", "t-0", "t-0", "image-synthesis", "t-1", "t-1", "t-1"]


@dataclass(frozen=True)
class Submitted:
    """Model of the vendor, and the paths of its calls before the queries of a task."""

    id: str
    inputs: tuple[pb.ImageInput, ...]
    paths: tuple[str, ...]


SUBMITTED = [
    Submitted("wan2.2-t2i-flash", (), ("text2image/image-synthesis",)),
    Submitted("wan2.6-t2i", (), ("multimodal-generation/generation",)),
    Submitted("wan2.7-image-pro", (DATA, DATA), ("multimodal-generation/generation",)),
    Submitted("wan2.7-image-task", (DATA,), ("multimodal-generation/generation", "image-generation/generation")),
    Submitted("qwen-image-3.0", (DATA, DATA, DATA), ("multimodal-generation/generation",)),
]


@pytest.mark.parametrize("case", SUBMITTED, ids=lambda case: case.id)
async def test_the_id_of_a_model_selects_the_path_and_a_bare_request_has_no_parameters(case: Submitted) -> None:
    async with channel("dashscope_images") as made:
        result = await made.send(pb.GenerateImageRequest(model=case.id, prompt="a", inputs=case.inputs))
    sent = [received for received in made.provider.received if received.method == "POST"]
    assert [received.path.removeprefix("/api/v1/services/aigc/") for received in sent] == list(case.paths)
    assert [received.json["parameters"] for received in sent] == [{}] * len(sent)
    assert labels(list(result.images)) == ("/files/0.png",)


async def test_a_task_is_queried_with_the_key_that_created_it() -> None:
    async with channel("dashscope_images", keys=KEYS) as made:
        for _ in range(3):
            assert (await made.send(pb.GenerateImageRequest(model="imgD-task", prompt="a"))).images


async def test_a_failed_task_is_its_error() -> None:
    async with channel("dashscope_images", provider=DashscopeImages(states=("RUNNING", "FAILED"))) as made:
        with pytest.raises(UmgError) as caught:
            await made.send(pb.GenerateImageRequest(model="imgD-task", prompt="a"))
    assert (caught.value.reason, caught.value.failure) == (BLOCKED, Failure.CALLER)


@pytest.mark.parametrize(
    ("callers", "failure"), [(0.2, None), (math.inf, Failure.AMBIGUOUS)], ids=["the caller's", "the channel's"]
)
async def test_a_task_that_does_not_end_is_given_up_at_the_deadline(callers: float, failure: Failure | None) -> None:
    own = DEADLINES if callers < math.inf else Deadlines(5, 0.2, 0.2, 0.2)
    slow = DashscopeImages(states=("RUNNING", "LATER_WORD"))
    async with channel("dashscope_images", provider=slow, deadlines=own) as made:
        with pytest.raises(UmgError) as caught:
            await made.send(pb.GenerateImageRequest(model="imgD-task", prompt="a"), callers)
    reason = pb.ERROR_REASON_UPSTREAM_TIMEOUT if failure else pb.ERROR_REASON_DEADLINE_EXCEEDED
    assert (caught.value.reason, caught.value.failure) == (reason, failure)


async def test_failed_queries_of_a_task_are_repeated() -> None:
    class Shaky(DashscopeImages):
        async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
            if received.method == "GET" and len(self.received) % 2:
                return web.json_response({"code": "Throttling", "message": "Slow down."}, status=429)
            return await super().answer(request, received)

    async with channel("dashscope_images", provider=Shaky()) as made:
        assert (await made.send(pb.GenerateImageRequest(model="imgD-task", prompt="a"))).images


@pytest.mark.parametrize(
    "answers",
    [
        [(404, {"code": "NotFound", "message": "The task does not exist."})] * 3,
        [(200, {"output": {"task_status": "SUCCEEDED"}})] * 2,
        [(502, {}), (200, {"code": "success", "data": {"status": "NOT_START"}})],
    ],
    ids=["a new task is not known yet", "its images are not there yet", "a relay's own words"],
)
async def test_a_task_is_queried_on_until_it_has_images(answers: list[tuple[int, dict[str, object]]]) -> None:
    class Slow(DashscopeImages):
        async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
            if received.method == "GET" and answers:
                status, body = answers.pop()
                return web.json_response(body, status=status)
            return await super().answer(request, received)

    async with channel("dashscope_images", provider=Slow()) as made:
        assert (await made.send(pb.GenerateImageRequest(model="imgD-task", prompt="a"))).images
    assert not answers


async def test_a_task_is_not_created_for_input_images() -> None:
    async with channel("dashscope_images") as made:
        with pytest.raises(UmgError) as caught:
            await made.send(pb.GenerateImageRequest(model="imgD-task", prompt="a", inputs=[DATA]))
    assert (caught.value.failure, len(made.provider.received)) == (Failure.DOWN, 1)


# --- files of callers


def named(files: Files, path: str = "/1.png") -> pb.ImageInput:
    return pb.ImageInput(url=files.url + path)


@pytest.mark.parametrize("protocol", ["images", "native_images"])
async def test_an_address_is_fetched_for_a_provider_that_takes_bytes(protocol: str) -> None:
    async with channel(protocol) as made:
        request = pb.GenerateImageRequest(
            model=G,
            prompt="a",
            inputs=[named(made.files)],
            turns=[pb.ImageTurn(parts=[pb.ImageTurnPart(image=named(made.files))])],
        )
        assert labels(list((await made.send(request)).images))[0].startswith("a + 2")
        assert made.provider.refusals == []
        assert [received.path for received in made.files.received] == ["/1.png", "/1.png"]
        assert request.inputs[0].url  # the request itself is not changed


@pytest.mark.parametrize("protocol", ["ark_images", "dashscope_images"])
async def test_an_address_is_passed_to_a_provider_that_fetches_it(protocol: str) -> None:
    async with channel(protocol) as made:
        await made.send(pb.GenerateImageRequest(model=D, prompt="a", inputs=[named(made.files)]))
        assert made.files.received == []
        assert made.files.url in str(made.provider.last)


@pytest.mark.parametrize("protocol", IMAGE_PROVIDERS)
@pytest.mark.parametrize("url", ["https://10.0.0.1/1.png", "ftp://files.example/1.png", "https://localhost/1.png"])
async def test_an_address_that_the_guard_refuses_is_an_error_before_the_call(protocol: str, url: str) -> None:
    async with channel(protocol) as made:
        with pytest.raises(UmgError) as caught:
            await made.send(pb.GenerateImageRequest(model=D, prompt="a", inputs=[DATA, pb.ImageInput(url=url)]))
    assert (caught.value.reason, caught.value.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, "inputs[1].url")
    assert (made.provider.received, caught.value.failure) == ([], None)


@pytest.mark.parametrize(("path", "problem"), [("/page", "not an image"), ("/large", "larger than 20 MiB")])
async def test_a_file_that_is_no_image_or_too_large_is_an_error_before_the_call(path: str, problem: str) -> None:
    async with channel("native_images") as made:
        with pytest.raises(UmgError) as caught:
            await made.send(pb.GenerateImageRequest(model=G, prompt="a", inputs=[named(made.files, path)]))
    assert problem in caught.value.message
    assert (caught.value.reason, caught.value.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, "inputs[0].url")
    assert made.provider.received == []
