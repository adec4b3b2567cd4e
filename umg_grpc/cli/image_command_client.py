"""Command `umg image`: generates images, saves them, and shows them in terminals that support it. File paths go to
standard output, all else to standard error, so that `umg image ... | xargs open` works.
"""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import grpc
from rich.console import Console

from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.cli.gateway_connection import GrpcTarget
from umg_grpc.cli.terminal_image_display import MAX_COLUMNS, encoder_of
from umg_grpc.v1 import pb, rpc

STANDARD_OUTPUT = "-"
FILE_EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}
MEDIA_TYPES = {f".{extension}": media_type for media_type, extension in FILE_EXTENSIONS.items()} | {
    ".jpeg": "image/jpeg"
}
MAKE_OPERATION, EDIT_OPERATION = pb.MODEL_OPERATION_GENERATE_IMAGE, pb.MODEL_OPERATION_EDIT_IMAGE


@dataclass
class ImageCommand:
    """Flags of `umg image` (the request, and how its images are saved and shown), and the files saved so far."""

    request: pb.GenerateImageRequest
    output: Path | None
    """File of the first image; None for `image` with the extension of its type, which does not replace a file."""
    shows: bool
    """Whether the images are shown in the terminal."""
    saved: list[Path] = field(default_factory=list)


def input_image(text: str) -> pb.ImageInput:
    """Return the input image of a flag's text: a URL, or a file's content. Raise OSError for an unreadable file."""
    if "://" in text:
        return pb.ImageInput(url=text)
    path = Path(text)
    return pb.ImageInput(data=path.read_bytes(), file_name=path.name)


async def make(target: GrpcTarget, command: ImageCommand, console: Console) -> None:
    """Generate images, and save each when finished. Raise UmgError, and OSError for a file that cannot be written."""
    async with target.opened() as channel:
        try:
            request = command.request
            request.model = request.model or await _first_model(channel, target, edits=bool(request.inputs))
            await _stream(channel, target, command, console)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from None


async def _first_model(channel: grpc.aio.Channel, target: GrpcTarget, *, edits: bool) -> str:
    """Return the id of the first listed model that generates images, or with `edits` one that edits images."""
    stub: rpc.ModelServiceAsyncStub = rpc.ModelServiceStub(channel)
    listed = await stub.ListModels(pb.ListModelsRequest(page_size=1000), metadata=target.credentials)
    wanted = EDIT_OPERATION if edits else MAKE_OPERATION
    for model in listed.models:
        if wanted in model.operations:
            return model.id
    raise UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, "no model of the gateway makes such images; name one with --model")


async def _stream(channel: grpc.aio.Channel, target: GrpcTarget, command: ImageCommand, console: Console) -> None:
    stub: rpc.ImageServiceAsyncStub = rpc.ImageServiceStub(channel)
    began = time.monotonic()
    call = stub.StreamGenerateImage(pb.StreamGenerateImageRequest(request=command.request), metadata=target.credentials)
    with console.status(f"{command.request.model} makes the image ...") as status:
        async for message in call:
            for event in message.events:
                match event.WhichOneof("kind"):
                    case "partial":
                        number = event.partial.partial_index + 1
                        status.update(f"{command.request.model} makes the image ... draft {number}")
                    case "completed":
                        status.stop()  # it redirects the standard output, which gets the image here
                        _save(command, event.completed.image, console)
                        status.start()
                    case "failed":
                        console.print(
                            f"image {event.failed.image_index + 1} failed: {event.failed.message}", markup=False
                        )
                    case "finished":
                        _report(event.finished.result, time.monotonic() - began, console)
                    case "started" | None:
                        pass


def _save(command: ImageCommand, image: pb.Image, console: Console) -> None:
    """Save an image, print its path, and show it. Warn if the file name has the extension of another type."""
    if command.output is not None and str(command.output) == STANDARD_OUTPUT:
        output: BinaryIO = sys.stdout.buffer
        output.write(image.data)
        output.flush()
        return
    path = _path(command, FILE_EXTENSIONS.get(image.mime_type, "bin"))
    path.write_bytes(image.data)
    if MEDIA_TYPES.get(path.suffix.lower(), image.mime_type) != image.mime_type:
        console.print(f"{path} contains {image.mime_type}; choose another type with --type", markup=False)
    command.saved.append(path)
    print(path, flush=True)
    encode = encoder_of(os.environ) if command.shows else None
    if encode is not None:
        columns = min(MAX_COLUMNS, shutil.get_terminal_size().columns)
        print(encode(image.data, columns), end="", flush=True)


def _path(command: ImageCommand, extension: str) -> Path:
    """Return the file for the next image: the one in `--output`, for further images with a number appended."""
    number = len(command.saved) + 1
    if command.output is not None:
        named = command.output
        return named if number == 1 else named.with_stem(f"{named.stem}-{number}")
    path = Path(f"image.{extension}")
    while path.exists():
        number = 2 if path.stem == "image" else int(path.stem.rpartition("-")[2]) + 1
        path = path.with_name(f"image-{number}.{extension}")
    return path


def _report(result: pb.ImageResult, seconds: float, console: Console) -> None:
    count = result.usage.image_count
    parts: Sequence[str] = (
        f"{count} image{'s' if count != 1 else ''}",
        result.size,
        result.quality,
        f"{result.usage.total_tokens} tokens" if result.usage.HasField("total_tokens") else "",
        f"{seconds:.1f} s",
    )
    console.print(f"{result.model}: {', '.join(part for part in parts if part)}", style="dim", markup=False)
