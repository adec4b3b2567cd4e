"""Simulated image models: channel operation that returns real image files of the requested size and type."""

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from umg_grpc.knowledge.families.image_model_rules import (
    RATIO_PIXELS,
    SIZE_TIERS,
    ImageRules,
    family_row,
    is_grouped,
    max_images,
    nearest_ratio_of,
    placed_images,
    requested_pixels,
    tier_of,
)
from umg_grpc.upstream.response_memory_budget import ResponseBudget
from umg_grpc.v1 import pb
from umg_grpc.wire.core.image_file_headers import PNG_TYPE, read_header
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.images.providers.request_encoding import extra_fields
from umg_grpc.wire.text_format_interface import BIG_BYTES
from umg_sandbox import image_drawing, simulated_faults
from umg_sandbox.image_drawing import PILLOW_FORMATS, Drawing
from umg_sandbox.image_usage import usage_of
from umg_sandbox.input_images import InputImage
from umg_sandbox.simulated_faults import SimulatedDeadlines

CONCURRENT_DRAWINGS = 2
"""Maximum number of images that a channel draws at once; each takes up to a second of CPU and about 100 MB."""
DEFAULT_EDGE = 1024
"""Edge in pixels of a square image if neither the request nor an input image determines the size."""
MAX_EDGE = 4096
"""Longest edge in pixels of an image whose size an input image determines."""
BYTES_PER_PIXEL = 0.25
"""Estimated bytes of a drawn file for each pixel, for the memory budget."""
VARIATION_PROMPT = "A variation of the image"

_NUMBER = re.compile(r"(?<![\w.])[1-9](?![\w.])")
_NUMBER_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4}
_PIXELS = re.compile(r"([1-9][0-9]{0,4})[x*]([1-9][0-9]{0,4})", re.ASCII)


class SandboxImages:
    """Image generation by simulated models. Equal requests give equal images. Input images at URLs are not downloaded:
    a placeholder is drawn. Marks in the prompt select a fault: `[[fail]]` (500), `[[fail:429]]`, `[[slow]]`, and
    `[[fail:mid]]`, with which a stream breaks off and the second half of several images fails.
    """

    def __init__(self, budget: ResponseBudget, *, first_byte_seconds: float = 60, total_seconds: float = 300) -> None:
        """Create the image generation of a channel. `budget`: memory for large responses; `first_byte_seconds`,
        `total_seconds`: time limits of a call, of which the mark `[[slow]]` exceeds the first.
        """
        self.budget = budget
        self.deadlines = SimulatedDeadlines(first_byte_seconds, total_seconds)
        self.slots = asyncio.Semaphore(CONCURRENT_DRAWINGS)

    def is_slow(self, size: int) -> bool:
        return size >= BIG_BYTES

    def prepare(
        self, request: pb.GenerateImageRequest, model: str, notes: RequestNotes = NO_NOTES
    ) -> "SandboxImageCall":
        report = Report()
        for name in extra_fields(request):
            report.drop(name)
        notes.report_uncarried(report)
        return SandboxImageCall(self, request, _plan(request, model), report)


@dataclass(frozen=True)
class SandboxImageCall:
    """Simulated image call that is ready to be drawn."""

    upstream: SandboxImages
    request: pb.GenerateImageRequest
    drawings: Sequence[Drawing]
    report: Report

    async def send(self, seconds: float) -> pb.GenerateImageResponse:
        mark, drawings = await self._begin(seconds), self.drawings
        if mark == simulated_faults.CUT_MARK:
            drawings = drawings[: len(drawings) // 2]
            if not drawings:
                raise simulated_faults.failed()
        async with self._deadline(seconds):
            images = [await self._draw(drawing) for drawing in drawings]
        return pb.GenerateImageResponse(result=self._result(images))

    async def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateImageResponse, None]:
        mark = await self._begin(seconds)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(seconds, self.upstream.deadlines.total)
        planned = self._result([], 0)
        started = pb.ImageStarted(quality=planned.quality, background=planned.background)
        yield _message(pb.ImageEvent(started=started))
        done = 0
        for index, drawing in enumerate(self.drawings):
            if mark == simulated_faults.CUT_MARK and index >= len(self.drawings) // 2:
                raise simulated_faults.cut()
            for draft in range(self.request.partial_images):
                async with self._deadline(deadline - loop.time()):
                    image = await self._draw(drawing, draft)
                yield _message(
                    pb.ImageEvent(partial=pb.ImagePartial(image_index=index, partial_index=draft, image=image))
                )
            async with self._deadline(deadline - loop.time()):
                image = await self._draw(drawing)
            done += 1
            yield _message(pb.ImageEvent(completed=pb.ImageCompleted(image_index=index, image=image)))
        result = self._result([], done)
        yield _message(pb.ImageEvent(finished=pb.ImageFinished(result=result)))

    async def _begin(self, seconds: float) -> str:
        mark = simulated_faults.mark(_words(self.request))
        await simulated_faults.raise_early(mark, seconds, self.upstream.deadlines)
        return mark

    @asynccontextmanager
    async def _deadline(self, seconds: float) -> AsyncGenerator[None, None]:
        """Return a context manager that raises the timeout error at the caller's or the channel's deadline."""
        total = self.upstream.deadlines.total
        try:
            async with asyncio.timeout(max(0.0, min(seconds, total))):
                yield
        except TimeoutError:
            raise simulated_faults.late("total", callers=seconds <= total) from None

    async def _draw(self, drawing: Drawing, draft: int | None = None) -> pb.Image:
        pixels = drawing.width * drawing.height
        await self.upstream.budget.hold(int(pixels * BYTES_PER_PIXEL))
        async with self.upstream.slots:
            data = await asyncio.to_thread(image_drawing.draw, drawing, draft)
        image = pb.Image(data=data, mime_type=drawing.mime_type, width=drawing.width, height=drawing.height)
        if self.request.response_modalities == "image-text":
            image.revised_prompt = f"A simulated image: {drawing.prompt}"
        return image

    def _result(self, images: Sequence[pb.Image], count: int | None = None) -> pb.ImageResult:
        first, rules = self.drawings[0], family_row(self.drawings[0].model)
        result = pb.ImageResult(
            images=images,
            usage=usage_of(self.request, rules, first, len(images) if count is None else count),
            size=f"{first.width}x{first.height}",
        )
        if rules is not None and rules.default_quality:
            result.quality = self.request.quality or rules.default_quality
            result.background = "transparent" if first.transparent else "opaque"
            result.output_mime_type = first.mime_type
        return result


def _message(event: pb.ImageEvent) -> pb.StreamGenerateImageResponse:
    return pb.StreamGenerateImageResponse(events=[event])


def _plan(request: pb.GenerateImageRequest, model: str) -> list[Drawing]:
    rules, inputs = family_row(model), _inputs(request)
    mime_type = request.output_mime_type or PNG_TYPE
    if mime_type not in PILLOW_FORMATS:
        raise invalid("output_mime_type", f"expected one of {', '.join(PILLOW_FORMATS)}; send one of them")
    width, height = _pixels(request, rules, inputs)
    watermark = request.watermark if request.HasField("watermark") else rules is not None and rules.default_watermark
    count = _count(request)
    drawing = Drawing(
        model=model,
        prompt=_words(request) or VARIATION_PROMPT,
        width=width,
        height=height,
        mime_type=mime_type,
        quality=request.output_compression_percent if request.HasField("output_compression_percent") else None,
        transparent=request.background == "transparent",
        seed=request.seed if request.HasField("seed") else None,
        count=count,
        inputs=inputs,
        base=-1 if rules is not None and rules.family == "imgD" else 0,
        mask=InputImage("mask", data=request.mask.data, url=request.mask.url) if request.HasField("mask") else None,
        watermark=watermark,
    )
    return [replace(drawing, index=index) for index in range(count)]


def _words(request: pb.GenerateImageRequest) -> str:
    """Return the prompt of a request. If it is missing, return the text of the last message that has a text."""
    if request.prompt:
        return request.prompt
    for turn in reversed(request.turns):
        if words := "\n".join(part.text for part in turn.parts if part.text):
            return words
    return ""


def _inputs(request: pb.GenerateImageRequest) -> tuple[InputImage, ...]:
    return tuple(InputImage(path, data=image.data, url=image.url) for path, image in placed_images(request))


def _count(request: pb.GenerateImageRequest) -> int:
    """Return the number of images to draw; for a group of images the first number in the prompt, or the maximum."""
    most = max_images(request)
    if not is_grouped(request):
        return most
    words = _words(request)
    if (number := _NUMBER.search(words)) is not None:
        return min(int(number[0]), most)
    named = (_NUMBER_WORDS.get(word) for word in words.lower().split())
    return min(next((count for count in named if count is not None), most), most)


def _pixels(
    request: pb.GenerateImageRequest, rules: ImageRules | None, inputs: Sequence[InputImage]
) -> tuple[int, int]:
    """Return (width, height) of the images: as requested, else of the last input image, else square."""
    if (requested := requested_pixels(request, rules)) is not None:
        return requested
    if (written := _PIXELS.fullmatch(request.size)) is not None:
        return int(written[1]), int(written[2])
    width = height = DEFAULT_EDGE
    if inputs and (last := inputs[-1]).data:
        header = read_header(last.data, last.field)
        width, height = header.width, header.height
    if rules is not None and rules.sizes is RATIO_PIXELS:
        wide, high = RATIO_PIXELS[nearest_ratio_of(width, height)]
        return wide * SIZE_TIERS[tier_of(request)], high * SIZE_TIERS[tier_of(request)]
    return _of_ratio(width, height)


def _of_ratio(width: int, height: int) -> tuple[int, int]:
    """Return (width, height) in pixels with this ratio: the same numbers if usable, else about a megapixel."""
    if min(width, height) >= DEFAULT_EDGE // 8 and max(width, height) <= MAX_EDGE:
        return width, height
    scale = DEFAULT_EDGE / math.sqrt(width * height)
    return _edge(width * scale), _edge(height * scale)


def _edge(length: float) -> int:
    return min(MAX_EDGE, max(16, round(length)))
