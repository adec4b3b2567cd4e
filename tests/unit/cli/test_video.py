"""Commands `umg video` and `umg tasks`, as processes, at a gateway with the simulated provider."""

import asyncio
import os
import pty
import signal
from collections.abc import AsyncGenerator
from io import BytesIO
from pathlib import Path

import av
import grpc
import pytest
import pytest_asyncio
from PIL import Image

from tests.support.forked_umg_starts import Program, start_on_terminal
from tests.support.gateways import KEY, Running, running
from tests.support.processes import run
from umg_grpc.cli.video_command_client import VideoOptions, medium
from umg_grpc.config import parse
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.video.video_request_checks import check

MODELS = "vidA-2, vidC2.5-i2v-preview, vidG-H3, famX-4"
CONFIG = f"channels:\n  - {{name: sandbox, protocols: [sandbox], models: [{MODELS}]}}\n"
SECONDS = 60

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("gateway")) as made:
        yield made


async def umg(gateway: Running, *arguments: str) -> tuple[int, str, str]:
    return await run(*arguments, "--grpc", gateway.grpc, environment={"UMG_API_KEY": KEY})


def size_of(file: Path) -> tuple[int, int]:
    with av.open(BytesIO(file.read_bytes())) as opened:
        return opened.streams.video[0].width, opened.streams.video[0].height


async def create(gateway: Running, prompt: str) -> str:
    async with grpc.aio.insecure_channel(gateway.grpc) as channel:
        request = pb.CreateVideoTaskRequest(model="vidA-2", parameters=pb.VideoParameters(prompt=prompt))
        stub = rpc.VideoServiceStub(channel)
        return (await stub.CreateVideoTask(request, metadata=[*gateway.headers.items()])).task.task_id


async def test_a_video_is_made_and_saved(gateway: Running, tmp_path: Path) -> None:
    file = tmp_path / "out.mp4"
    code, out, err = await umg(gateway, "video", "a fox", "--model", "vidA-2", "-o", str(file), "--size", "1280x720")
    assert (code, out) == (0, f"{file}\n"), err
    assert size_of(file) == (1280, 720)
    assert err.startswith("task task_")
    assert [line for line in err.splitlines() if line in {"queued", "running", "succeeded"}][-1] == "succeeded"
    assert not file.with_name("out.mp4.part").exists()


async def test_an_image_is_the_first_frame_and_the_entry_is_that_of_the_model(gateway: Running, tmp_path: Path) -> None:
    picture, file = tmp_path / "red.png", tmp_path / "out.mp4"
    Image.new("RGB", (320, 180), (200, 30, 30)).save(picture)
    made = await umg(gateway, "video", "red", "--model", "vidG-H3", "--image", str(picture), "-o", str(file))
    assert made[0] == 0, made[2]
    assert size_of(file) == (1366, 768)
    with av.open(str(file)) as opened:
        red, green, _ = next(opened.decode(video=0)).to_image().resize((1, 1)).getpixel((0, 0))
    assert red > 2 * green


async def test_a_video_that_fails_has_a_reason_and_no_file(gateway: Running, tmp_path: Path) -> None:
    file = tmp_path / "out.mp4"
    code, out, err = await umg(gateway, "video", "a fox [[fail]]", "--model", "vidA-2", "-o", str(file))
    assert (code, out, file.exists()) == (1, "", False)
    assert err.splitlines()[-1].startswith("umg: the task failed: a simulated failure")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["video", "a fox", "--model", "none"], "none"),
        (["video", "a fox", "--model", "vidA-2", "--seconds", "5"], "duration_seconds"),
        (["tasks", "show", "task_unknown"], "task_unknown"),
    ],
)
async def test_a_call_that_fails_has_one_line(gateway: Running, arguments: list[str], text: str) -> None:
    code, out, err = await umg(gateway, *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1), err
    assert err.startswith("umg: ")
    assert text in err


async def test_wrong_flags_are_refused(gateway: Running) -> None:
    for arguments in (["video", "a", "--image", "/none.png"], ["tasks", "list", "--state", "lost"]):
        assert (await umg(gateway, *arguments))[0] == 2


async def test_tasks_are_listed_shown_watched_and_cancelled(gateway: Running, tmp_path: Path) -> None:
    task_id = await create(gateway, "an otter")
    code, out, _ = await umg(gateway, "tasks", "list")
    [line] = [line for line in out.splitlines() if task_id in line]
    assert (code, "vidA-2" in line, "an otter" in line) == (0, True, True)
    code, out, _ = await umg(gateway, "tasks", "watch", task_id, "-o", str(tmp_path / "a.mp4"))
    assert (code, size_of(tmp_path / "a.mp4")) == (0, (720, 1280))
    code, out, _ = await umg(gateway, "tasks", "show", task_id)
    shown = {name: value.strip() for name, _, value in (line.strip().partition(" ") for line in out.splitlines())}
    assert (code, shown["state"], shown["parameters.prompt"]) == (0, "succeeded", "an otter")
    assert "/files/" in shown["results[0].url"]
    code, _, err = await umg(gateway, "tasks", "cancel", task_id)
    assert (code, "nothing to cancel" in err) == (1, True)
    code, out, _ = await umg(gateway, "tasks", "list", "--state", "succeeded", "--all", "--limit", "1")
    assert (code, "succeeded" in out, "running" in out) == (0, True, False)


async def test_a_queued_task_is_cancelled(gateway: Running) -> None:
    task_id = await create(gateway, "a crab [[slow]]")
    code, out, err = await umg(gateway, "tasks", "cancel", task_id)
    if code == 0:  # else the machine was so slow that the task had started, maybe since the last poll
        assert out == f"{task_id}: cancelled\n"
    else:
        assert "the task is running" in err or "its provider cannot cancel it now" in err


async def test_ctrl_c_leaves_the_task_running_and_the_note_has_the_way_back(gateway: Running, tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    arguments = ("video", "a crab [[slow]]", "--model", "vidA-2", "--grpc", gateway.grpc, "-o", "c.mp4")
    environment = {**os.environ, "UMG_API_KEY": KEY, "TERM": "xterm", "COLUMNS": "100"}
    process = await start_on_terminal(end, Program(arguments, environment, tmp_path))
    os.close(end)
    loop, seen = asyncio.get_running_loop(), ""
    async with asyncio.timeout(SECONDS):
        while "running" not in seen:
            seen += (await loop.run_in_executor(None, os.read, terminal, 4096)).decode(errors="replace")
        process.send_signal(signal.SIGINT)
        while f"-o c.mp4 --grpc {gateway.grpc}" not in seen:
            seen += (await loop.run_in_executor(None, os.read, terminal, 4096)).decode(errors="replace")
        assert await process.wait() == 130
    os.close(terminal)
    task_id = seen.partition("umg tasks watch ")[2].split()[0]
    code, out, _ = await umg(gateway, "tasks", "show", task_id)
    assert (code, "running" in out) == (0, True)
    assert "%" in seen  # the progress bar


async def test_notifications_that_are_not_delivered_are_listed(tmp_path: Path) -> None:
    config = tmp_path / "umg.yaml"
    config.write_text(CONFIG + "egress: {allow: ['127.0.0.1:1'], http: true}\n")
    async with (
        running(parse(config.read_text(), "umg.yaml", {}), tmp_path / "data") as made,
        grpc.aio.insecure_channel(made.grpc) as channel,
    ):
        stub, metadata = rpc.VideoServiceStub(channel), [*made.headers.items()]
        wanted = pb.CreateVideoTaskRequest(
            model="vidA-2", parameters=pb.VideoParameters(prompt="[[fail]]"), callback_url="http://127.0.0.1:1/hook"
        )
        task = (await stub.CreateVideoTask(wanted, metadata=metadata)).task
        async for _ in stub.WatchVideoTask(pb.WatchVideoTaskRequest(task_id=task.task_id), metadata=metadata):
            pass
        code, out, err = await run("tasks", "callbacks", "--config", str(config), "--data", str(tmp_path / "data"))
    assert (code, err) == (0, "")
    assert task.task_id in out
    assert "http://127.0.0.1:1/hook" in out


# --- requests


async def test_a_request_has_the_entry_and_the_required_parameters_of_its_model(tmp_path: Path) -> None:
    model = pb.Model(id="my-model", family="vidG")
    options = VideoOptions("a fox", None, [medium("https://a.example/1.png")], medium("https://a.example/2.png"))
    options.parameters(aspect_ratio="1:1", seed=None)
    request = options.request(model)
    assert (request.entry, request.parameters.resolution, request.parameters.duration_seconds) == (7, "768P", 5)
    assert [each.role for each in request.parameters.media] == [1, 2]
    assert not request.parameters.HasField("seed")
    check(request, "vidG")
    assert VideoOptions("a", "m").request(pb.Model(id="m")).entry == pb.VIDEO_ENTRY_UNIFIED
