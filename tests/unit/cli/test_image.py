"""Command `umg image` as a process, against a gateway with simulated models."""

import asyncio
import base64
import os
import pty
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest
import pytest_asyncio
from PIL import Image

from tests.support.forked_umg_starts import Program, start, start_on_terminal
from tests.support.gateways import Running, running
from umg_grpc.cli.terminal_image_display import CHUNK_CHARACTERS, encoder_of, iterm, kitty

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG = """
channels:
  - name: sandbox
    protocols: [sandbox]
    models: [famO-5, imgB-3-0-i2i-250628, imgA-3-0-t2i-250415, imgC-1, famG-2.5-flash-image]
"""
SMALL = ("--model", "imgA-3-0-t2i-250415", "--size", "1280x720")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("gateway")) as made:
        yield made


@dataclass(frozen=True)
class Done:
    code: int | None
    output: bytes
    notes: str


async def umg_image(gateway: Running, folder: Path, *arguments: str, **environment: str) -> Done:
    """Run the command in the folder, with pipes."""
    variables = {**os.environ, "UMG_API_KEY": gateway.key, "TERM": "dumb", **environment}
    process = await start(("image", "--grpc", gateway.grpc, *arguments), variables, folder=folder)
    output, notes = await process.communicate()
    return Done(process.returncode, output, notes.decode())


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def size_of(file: bytes) -> tuple[str | None, tuple[int, int]]:
    with Image.open(BytesIO(file)) as opened:
        return opened.format, opened.size


async def test_an_image_is_saved_and_described(gateway: Running, tmp_path: Path) -> None:
    done = await umg_image(gateway, tmp_path, "a red kite", *SMALL, "-o", "kite.png")
    assert (done.code, done.output) == (0, b"kite.png\n"), done.notes
    assert size_of((tmp_path / "kite.png").read_bytes()) == ("PNG", (1280, 720))
    assert re.search(r"imgA-3-0-t2i-250415: 1 image, 1280x720, \d+\.\d s\n", done.notes)


async def test_several_images_are_numbered_and_nothing_is_replaced_without_a_name(
    gateway: Running, tmp_path: Path
) -> None:
    done = await umg_image(gateway, tmp_path, "kites", "--model", "imgC-1", "-n", "2", "--type", "jpeg", "-o", "k.jpg")
    assert done.output == b"k.jpg\nk-2.jpg\n", done.notes
    assert size_of((tmp_path / "k-2.jpg").read_bytes()) == ("JPEG", (1024, 1024))
    for name in ("image.png", "image-2.png", "image-3.png"):
        assert (await umg_image(gateway, tmp_path, "a kite", *SMALL)).output == f"{name}\n".encode()


async def test_the_first_model_for_the_request_is_taken_and_inputs_are_sent(gateway: Running, tmp_path: Path) -> None:
    Image.new("RGB", (300, 200), "teal").save(tmp_path / "sea.png")
    done = await umg_image(gateway, tmp_path, "a boat", "-i", "sea.png", "-o", "boat.png")
    assert done.code == 0, done.notes
    assert re.match(r"\S+: 1 image", done.notes.replace("\r", "\n").splitlines()[-1])
    edited = await umg_image(
        gateway, tmp_path, "a boat", "--model", "imgB-3-0-i2i-250628", "-i", "sea.png", "-o", "b.png"
    )
    assert edited.code == 0, edited.notes
    assert size_of((tmp_path / "b.png").read_bytes()) == ("PNG", (300, 200))


async def test_a_name_of_another_type_is_noted(gateway: Running, tmp_path: Path) -> None:
    done = await umg_image(gateway, tmp_path, "a red kite", *SMALL, "-o", "kite.jpg")
    assert (done.code, done.output) == (0, b"kite.jpg\n"), done.notes
    assert "kite.jpg contains image/png; choose another type with --type" in done.notes


async def test_an_image_is_written_to_standard_output(gateway: Running, tmp_path: Path) -> None:
    done = await umg_image(gateway, tmp_path, "a kite", *SMALL, "-o", "-")
    assert size_of(done.output) == ("PNG", (1280, 720))
    assert files_in(tmp_path) == []


FAILURES = [
    (("a kite", "--model", "none"), 1, "umg: The model `none` does not exist"),
    (("a kite", "--model", "imgC-1", "-n", "11"), 1, "umg: `n`: this model makes 1 to 10 images"),
    (("a kite [[fail]]", *SMALL), 1, "umg: the provider failed"),
    (("a kite", "-i", "missing.png"), 2, "missing.png: No such file or directory"),
    (("a kite", "--mask", "hole.png"), 2, "Invalid value for --mask: hole.png: No such file or directory"),
    (("a kite", *SMALL, "-o", "no/folder.png"), 1, "umg: no/folder.png: No such file or directory"),
]


@pytest.mark.parametrize(("arguments", "code", "notes"), FAILURES, ids=lambda value: str(value)[:30])
async def test_a_failure_states_the_reason(
    arguments: tuple[str, ...], code: int, notes: str, gateway: Running, tmp_path: Path
) -> None:
    done = await umg_image(gateway, tmp_path, *arguments, COLUMNS="200")
    assert done.code == code, done.notes
    assert notes in done.notes
    assert files_in(tmp_path) == []


async def test_a_terminal_shows_progress_and_the_image(gateway: Running, tmp_path: Path) -> None:
    primary, secondary = pty.openpty()
    environment = {**os.environ, "UMG_API_KEY": gateway.key, "TERM": "xterm-kitty"}
    arguments = ("image", "a kite", *SMALL, "--grpc", gateway.grpc)
    process = await start_on_terminal(secondary, Program(arguments, environment, tmp_path))
    os.close(secondary)
    shown = await asyncio.to_thread(read_all, primary)
    assert await process.wait() == 0
    assert b"makes the image" in shown
    [*pieces] = re.findall(rb"\x1b_G[^;]*;([A-Za-z0-9+/=]*)\x1b\\", shown)
    assert base64.b64decode(b"".join(pieces)) == (tmp_path / "image.png").read_bytes()


def read_all(descriptor: int) -> bytes:
    found = bytearray()
    try:
        while piece := os.read(descriptor, 1 << 16):
            found += piece
    except OSError:  # the command has ended
        pass
    finally:
        os.close(descriptor)
    return bytes(found)


@pytest.mark.parametrize(
    ("environment", "encoder"),
    [
        ({"TERM": "xterm-kitty"}, kitty),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, kitty),
        ({"TERM_PROGRAM": "ghostty"}, kitty),
        ({"TERM_PROGRAM": "iTerm.app"}, iterm),
        ({"TERM_PROGRAM": "WezTerm"}, iterm),
        ({"LC_TERMINAL": "iTerm2"}, iterm),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux"}, None),
        ({}, None),
    ],
)
async def test_the_protocol_is_that_of_the_terminal(environment: dict[str, str], encoder: object) -> None:
    assert encoder_of(environment) is encoder


async def test_pictures_are_encoded_in_the_protocols() -> None:
    file = BytesIO()
    Image.new("RGB", (64, 64), "red").save(file, "JPEG")
    jpeg = file.getvalue()
    assert iterm(jpeg, 40).startswith(f"\x1b]1337;File=inline=1;size={len(jpeg)};width=40;preserveAspectRatio=1:/9j/")
    large = os.urandom(CHUNK_CHARACTERS)
    commands = kitty(b"\x89PNG" + large, 40).split("\x1b\\")
    assert [command.partition(";")[0] for command in commands[:2]] == ["\x1b_Ga=T,f=100,c=40,m=1", "\x1b_Gm=0"]
    assert kitty(jpeg, 40).partition(";")[2].startswith("iVBORw0KGgo")  # converted to PNG
