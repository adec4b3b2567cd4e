"""The official openai SDK, unmodified, against the video-object entry with simulated models."""

from collections.abc import AsyncGenerator
from io import BytesIO
from pathlib import Path

import av
import httpx2
import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from tests.support.gateways import KEY, Running, running
from tests.support.images import picture

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning"),  # of the vendor; other providers serve it
]

MODEL = "vidA-2"
CONFIG = f"""
channels:
  - name: sandbox
    protocols: [sandbox]
    models: [{MODEL}]
"""
STALLED, FAILING = "a boat [[slow]]", "a boat [[fail]]"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("videos")) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(gateway: Running) -> AsyncGenerator[AsyncOpenAI, None]:
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=KEY) as sdk:
        yield sdk


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def video(client: AsyncOpenAI) -> openai.types.Video:
    return await client.videos.create_and_poll(
        model=MODEL, prompt="a boat", seconds="4", size="1280x720", input_reference=("a.png", picture("PNG"))
    )


async def test_a_video_is_created_and_polled(video: openai.types.Video) -> None:
    assert (video.object, video.status, video.progress, video.error) == ("video", "completed", 100, None)
    assert (video.model, video.seconds, video.size) == (MODEL, "4", "1280x720")
    assert video.completed_at is not None
    assert video.expires_at is not None
    assert video.created_at <= video.completed_at < video.expires_at


async def test_its_content_is_downloaded(client: AsyncOpenAI, video: openai.types.Video, tmp_path: Path) -> None:
    content = await client.videos.download_content(video.id)
    file = tmp_path / "video.mp4"
    file.write_bytes(content.content)
    with av.open(BytesIO(file.read_bytes())) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (1280, 720)


async def test_it_is_remixed(client: AsyncOpenAI, video: openai.types.Video) -> None:
    remix = await client.videos.remix(video.id, prompt=STALLED)
    assert (remix.status, remix.remixed_from_video_id) == ("queued", video.id)
    assert (await client.videos.retrieve(remix.id)).remixed_from_video_id == video.id


async def test_videos_are_listed_over_pages(client: AsyncOpenAI, video: openai.types.Video) -> None:
    made = [(await client.videos.create(model=MODEL, prompt=f"{STALLED} {number}")).id for number in range(3)]
    found = [item.id async for item in client.videos.list(limit=2)]
    assert found[:3] == made[::-1]
    assert video.id in found
    assert [item.id async for item in client.videos.list(limit=2, order="asc")] == found[::-1]


async def test_a_finished_video_is_deleted(client: AsyncOpenAI) -> None:
    failed = await client.videos.create_and_poll(model=MODEL, prompt=FAILING)
    assert failed.error is not None
    assert (failed.status, failed.error.code) == ("failed", "task_failed")
    deleted = await client.videos.delete(failed.id)
    assert (deleted.id, deleted.deleted, deleted.object) == (failed.id, True, "video.deleted")
    with pytest.raises(openai.NotFoundError):
        await client.videos.retrieve(failed.id)


async def test_the_content_of_an_unfinished_video_is_an_error(client: AsyncOpenAI) -> None:
    made = await client.videos.create(model=MODEL, prompt=STALLED)
    with pytest.raises(openai.BadRequestError, match=r"queued|in_progress"):
        await client.videos.download_content(made.id)


async def test_a_wrong_value_is_an_error_that_names_the_field(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.videos.create(model=MODEL, prompt="a boat", seconds="5")  # type: ignore[arg-type]
    assert caught.value.param == "seconds"
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        await client.videos.create(model="no-such-model", prompt="a boat")


async def test_extra_fields_of_the_sdk_are_rebuilt(client: AsyncOpenAI) -> None:
    extra = {"metadata": {"list": ["x"], "deep": {"a": "1"}}}
    assert (await client.videos.create(model=MODEL, prompt=STALLED, extra_body=extra)).status == "queued"


async def test_operations_that_are_not_served_are_json_errors(client: AsyncOpenAI, video: openai.types.Video) -> None:
    for call in (
        client.videos.edit(prompt="p", video=("a.mp4", b"x")),
        client.videos.extend(prompt="p", seconds="4", video=("a.mp4", b"x")),
        client.videos.create_character(name="n", video=("a.mp4", b"x")),
    ):
        with pytest.raises(openai.NotFoundError, match="does not serve"):
            await call


async def test_a_repetition_by_the_sdk_is_the_same_task(gateway: Running) -> None:
    class LosesAnswers(httpx2.AsyncBaseTransport):
        """Transport that loses the first answer of each client, so that the SDK repeats the request."""

        def __init__(self) -> None:
            self.inner = httpx2.AsyncHTTPTransport()
            self.sent = 0

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            self.sent += 1
            response = await self.inner.handle_async_request(request)
            if self.sent > 1:
                return response
            await response.aread()
            await response.aclose()
            raise httpx2.ReadError("the response was lost")

        async def aclose(self) -> None:
            await self.inner.aclose()

    transport = LosesAnswers()
    prompt = f"{STALLED} once"
    async with AsyncOpenAI(
        base_url=f"{gateway.url}/v1", api_key=KEY, http_client=httpx2.AsyncClient(transport=transport)
    ) as sdk:
        made = await sdk.videos.create(model=MODEL, prompt=prompt)
        newest = (await sdk.videos.list(limit=2)).data
    assert (transport.sent, newest[0].id) == (3, made.id)
    assert newest[1].id != made.id
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=KEY) as sdk:
        assert (await sdk.videos.create(model=MODEL, prompt=prompt)).id != made.id
