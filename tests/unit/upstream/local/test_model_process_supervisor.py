import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import aiohttp
import msgspec
import pytest
import pytest_asyncio
import structlog
import uvloop

from tests.support import logs
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.upstream.local import TEXT_MODELS, llama_server
from umg_grpc.upstream.local.model_process_supervisor import FIRST_DELAY_SECONDS, LocalModel, ProcessEndpoint
from umg_grpc.v1 import pb

SECONDS = 30  # limit of every wait here; a start takes about one second
MODEL = TEXT_MODELS[0]

of_module = pytest.mark.asyncio(loop_scope="module")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="watches processes by /proc and pidfd")


class Message(msgspec.Struct):
    content: str


class Choice(msgspec.Struct):
    message: Message
    finish_reason: str


class Answer(msgspec.Struct):
    model: str
    choices: list[Choice]


def weights() -> Path:
    path = MODEL.weights()
    assert path is not None, MODEL.unavailable()
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def local() -> AsyncIterator[LocalModel]:
    """Yield the model of the module, whose start takes a second of processor time."""
    model = LocalModel(MODEL, weights())
    await model.start()
    yield model
    await model.close()


def body(prompt: str, tokens: int, *, stream: bool = False) -> dict[str, object]:
    return {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": tokens,
        "temperature": 0,
        "seed": 1,
        "stream": stream,
    }


async def complete_chat(endpoint: ProcessEndpoint, prompt: str, tokens: int = 8) -> Answer:
    async with (
        aiohttp.ClientSession(headers=endpoint.headers) as session,
        session.post(f"{endpoint.base_url}/chat/completions", json=body(prompt, tokens)) as response,
    ):
        assert response.status == 200, await response.text()
        return msgspec.json.decode(await response.read(), type=Answer)


def arguments(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def gone(pidfd: int) -> bool:
    return bool(select.select([pidfd], [], [], SECONDS)[0])


@of_module
async def test_the_model_starts_and_answers(local: LocalModel) -> None:
    answer = await complete_chat(await local.wait_ready(SECONDS), "Say hi.")
    assert answer.model == MODEL.model
    assert answer.choices[0].message.content.startswith("Hello")
    assert answer.choices[0].finish_reason == "length"


@of_module
async def test_an_answer_streams_in_several_reads(local: LocalModel) -> None:
    endpoint = await local.wait_ready(SECONDS)
    async with (
        aiohttp.ClientSession(headers=endpoint.headers) as session,
        session.post(f"{endpoint.base_url}/chat/completions", json=body("Count.", 8, stream=True)) as response,
    ):
        reads = [chunk async for chunk in response.content.iter_any()]
    assert len(reads) > 1  # a busy machine joins some of the 8 tokens
    assert b"".join(reads).endswith(b"data: [DONE]\n\n")


@of_module
async def test_calls_after_a_streamed_answer_do_not_meet_a_closed_connection(local: LocalModel) -> None:
    endpoint = await local.wait_ready(SECONDS)
    async with aiohttp.ClientSession(headers=endpoint.headers) as session:
        for number in range(10):
            url = f"{endpoint.base_url}/chat/completions"
            async with session.post(url, json=body("Hi", 1, stream=number % 2 == 0)) as response:
                assert response.status == 200
                await response.read()


@of_module
async def test_more_requests_than_slots_at_once_are_all_answered(local: LocalModel) -> None:
    endpoint = await local.wait_ready(SECONDS)
    answers = await asyncio.gather(*(complete_chat(endpoint, f"What is {number} plus 1?") for number in range(10)))
    assert [bool(answer.choices[0].message.content) for answer in answers] == [True] * 10


@of_module
async def test_a_call_without_the_key_is_refused(local: LocalModel) -> None:
    endpoint = await local.wait_ready(SECONDS)
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{endpoint.base_url}/chat/completions", json=body("Hi", 1)) as response,
    ):
        assert response.status == 401


@of_module
@on_linux
async def test_the_key_is_not_in_the_arguments_that_every_user_can_see(local: LocalModel) -> None:
    endpoint = await local.wait_ready(SECONDS)
    assert endpoint.api_key not in arguments(endpoint.pid)
    assert endpoint.api_key not in repr(endpoint)


@of_module
async def test_a_killed_child_breaks_its_stream_and_another_answers_the_next_call(local: LocalModel) -> None:
    first = await local.wait_ready(SECONDS)
    async with (
        aiohttp.ClientSession(headers=first.headers) as session,
        session.post(f"{first.base_url}/chat/completions", json=body("Tell a story.", 3000, stream=True)) as response,
    ):
        await response.content.readany()
        os.kill(first.pid, signal.SIGKILL)
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()
    second = await local.wait_ready(SECONDS, after=first)
    assert (second.pid != first.pid, second.api_key != first.api_key) == (True, True)
    assert (await complete_chat(second, "Hi")).choices[0].message.content


@of_module
async def test_signals_that_a_whole_service_gets_leave_the_child_to_the_gateway(local: LocalModel) -> None:
    endpoint = await local.wait_ready(SECONDS)
    os.kill(endpoint.pid, signal.SIGINT)
    os.kill(endpoint.pid, signal.SIGTERM)
    assert (await complete_chat(endpoint, "Hi")).choices[0].message.content
    assert local.endpoint == endpoint


async def test_closing_leaves_no_process_and_no_endpoint() -> None:
    local = LocalModel(MODEL, weights())
    await local.start()
    endpoint = await local.wait_ready(SECONDS)
    await local.close()
    with pytest.raises(ProcessLookupError):
        os.kill(endpoint.pid, 0)
    assert local.endpoint is None


async def test_closing_while_the_model_still_loads_ends_the_child() -> None:
    local = LocalModel(MODEL, weights())
    await local.start()
    with pytest.raises(UmgError):
        await local.wait_ready(0.05)  # the child is being started
    async with asyncio.timeout(SECONDS):
        await local.close()
    assert local.endpoint is None


async def test_closing_a_model_that_was_never_started_does_nothing() -> None:
    await LocalModel(MODEL, weights()).close()


async def test_weights_that_cannot_be_read_are_logged_with_the_reason_and_tried_again_ever_more_slowly(
    tmp_path: Path,
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"this is no model")
    ends: asyncio.Queue[tuple[float, str]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def watch(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        if "last_words" in event:
            ends.put_nowait((loop.time(), str(event["last_words"])))
        raise structlog.DropEvent

    structlog.configure(processors=[watch])
    local = LocalModel(MODEL, broken)
    try:
        await local.start()
        async with asyncio.timeout(SECONDS):
            times, words = zip(*[await ends.get() for _ in range(4)], strict=True)
        with pytest.raises(UmgError) as caught:
            await local.wait_ready(0)
    finally:
        await local.close()
        logs.configure()
    assert (caught.value.reason, caught.value.failure) == (pb.ERROR_REASON_UNAVAILABLE, Failure.NOT_SENT)
    assert all("broken.gguf" in word for word in words), words
    gaps = [later - earlier for earlier, later in pairwise(times)]
    shortest = [0.75 * FIRST_DELAY_SECONDS * 2**attempt for attempt in range(3)]  # a quarter less or more at random
    assert [gap > least for gap, least in zip(gaps, shortest, strict=True)] == [True] * 3


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_it_runs_on_either_event_loop(run: Callable[[Awaitable[None]], None]) -> None:
    async def scenario() -> None:
        local = LocalModel(MODEL, weights())
        await local.start()
        first = await local.wait_ready(SECONDS)
        os.kill(first.pid, signal.SIGKILL)
        await complete_chat(await local.wait_ready(SECONDS, after=first), "Hi", 1)
        await local.close()

    run(scenario())


@on_linux
def test_the_child_does_not_outlive_a_gateway_that_was_killed() -> None:
    command = [sys.executable, str(Path(__file__).with_name("parent.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = next(int(line.split()[1]) for line in parent.stdout if line.startswith("pid "))
        child = os.pidfd_open(pid)
        try:
            parent.kill()
            assert gone(child)
        finally:
            os.close(child)


def test_the_child_ends_with_its_stdin_even_where_the_kernel_has_no_other_sign() -> None:
    settings = llama_server.ProcessSettings(
        weights=str(weights()), model=MODEL.model, api_key="key", slots=1, slot_context=256, threads=1
    )
    command = [sys.executable, "-m", llama_server.__name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(settings) + b"\n")
        process.stdin.flush()
        assert msgspec.json.decode(process.stdout.readline())["port"] > 0
        process.stdin.close()
        assert process.wait(SECONDS) == 0
