"""Strict fake provider of the images format (reference, 11): accepts only requests of the SDK's own types."""

import base64
import json
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from openai.types.image_edit_params import ImageEditParamsNonStreaming, ImageEditParamsStreaming
from openai.types.image_generate_params import ImageGenerateParamsNonStreaming, ImageGenerateParamsStreaming

from tests.support.providers.common import bracketed, compact
from tests.support.providers.images.image_file_texts import FormPart, check_file, form_of, png
from tests.support.providers.server import KEY, RETRY_SECONDS, FakeProvider, Json, ReceivedRequest, RefusedError
from tests.support.providers.typed_dict_validation import Leniency, check

SIZES = ("1024x1024", "1536x1024", "1024x1536", "auto")
FILES = ("image", "image[]", "mask")
WHOLE = ("n", "output_compression", "partial_images")
USAGE = {
    "input_tokens": 50,
    "input_tokens_details": {"text_tokens": 10, "image_tokens": 40},
    "output_tokens": 4160,
    "total_tokens": 4210,
}


def takes_size(model: str, size: str) -> bool:
    """Return whether a model makes images of a size: from the second generation on any one in steps of 16 pixels."""
    if size in SIZES or not model.startswith("gpt-image-2"):
        return size in SIZES
    width, _, height = size.partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        return False
    long, short = max(int(width), int(height)), min(int(width), int(height))
    return long % 16 == short % 16 == 0 and long <= min(3 * short, 3840) and 655_360 <= long * short <= 8_294_400


@dataclass(kw_only=True)
class OpenaiImages(FakeProvider):
    """Strict provider of the images format (see the module). A prompt with `[[blocked]]` is refused, one with
    `[[limited]]` meets the rate limit.
    """

    base_path = "/v1"

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.headers.get("authorization") != f"Bearer {KEY}":
            raise RefusedError(f"Incorrect API key provided: {KEY}.", code="invalid_api_key", status=401)
        match (received.method, received.path):
            case ("POST", "/v1/images/generations"):
                body = self._json(received)
                return await self._made(request, body, body["prompt"], "image_generation")
            case ("POST", "/v1/images/edits"):
                body, files = self._form(received)
                self._check(body | {"image": b""}, ImageEditParamsNonStreaming, ImageEditParamsStreaming)
                label = f"{body['prompt']} + {len(files)}"
                return await self._made(request, body, label, "image_edit")
            case ("POST", "/v1/images/variations"):
                body, files = self._form(received)
                if set(body) - {"model", "n", "size", "response_format", "user"} or len(files) != 1:
                    raise RefusedError("Unknown parameter.")
                return await self._made(request, body, "a variation", "")
            case _:
                raise RefusedError("Invalid URL", code="unknown_url", status=404)

    def _json(self, received: ReceivedRequest) -> Json:
        if received.headers.get("content-type") != "application/json":
            raise RefusedError("Unsupported content type.", status=415)
        body = received.json
        self._check(body, ImageGenerateParamsNonStreaming, ImageGenerateParamsStreaming)
        return body

    def _form(self, received: ReceivedRequest) -> tuple[Json, list[FormPart]]:
        """Return the scalar fields of a form with their types, and its files."""
        body, files = dict[str, Any](), list[FormPart]()
        for part in form_of(received):
            if part.name in FILES:
                check_file(part)
                files.append(part)
                continue
            text = part.data.decode()
            if part.name in body or part.file_name is not None:
                raise RefusedError(f"Duplicate parameter: '{part.name}'.", part.name)
            body[part.name] = int(text) if part.name in WHOLE else {"true": True, "false": False}.get(text, text)
        names = [file.name for file in files if file.name != "mask"]
        if not names or (len(names) > 1) != (names[0] == "image[]") or len(names) > 16:
            raise RefusedError("Invalid value for 'image'.", "image")
        return body, files

    def _check(self, body: Json, plain: Any, streaming: Any) -> None:
        types = streaming if body.get("stream") is True else plain
        known = {key: value for key, value in body.items() if key != "image"}
        problem = check(known, types, Leniency({types.__name__: frozenset({"image"})}, {}))
        if problem is not None:
            raise RefusedError(problem.message, bracketed(problem.path), "invalid_value")
        if "response_format" in body:
            raise RefusedError("Unknown parameter: 'response_format'.", "response_format", "unknown_parameter")
        if not 1 <= body.get("n", 1) <= 10 or not takes_size(str(body.get("model", "")), body.get("size", "auto")):
            raise RefusedError("Invalid value.", "size", "invalid_value")
        if body.get("partial_images") is not None and not body.get("stream"):
            raise RefusedError("'partial_images' needs a stream.", "partial_images")
        if not body["prompt"]:
            raise RefusedError("A prompt is required.", "prompt", "missing_required_parameter")
        if "[[blocked]]" in body["prompt"]:
            raise RefusedError("Your request was rejected by the safety system.", code="moderation_blocked")
        if "[[limited]]" in body["prompt"]:
            raise RefusedError("Rate limit reached.", code="rate_limit_exceeded", status=429)

    async def _made(self, request: web.Request, body: Json, label: str, kind: str) -> web.StreamResponse:
        width, height = map(int, (body.get("size") or "1024x1024").replace("auto", "1024x1024").split("x"))
        files = [base64.b64encode(png(f"{label} #{at}", width, height)).decode() for at in range(body.get("n", 1))]
        facts = {
            "size": f"{width}x{height}",
            "quality": body.get("quality", "high"),
            "background": body.get("background", "opaque"),
            "output_format": body.get("output_format", "png"),
        }
        if not kind:
            return web.json_response({"created": 1767323045, "data": [{"b64_json": each} for each in files]})
        if not body.get("stream"):
            data = [{"b64_json": each} for each in files]
            return web.json_response({"created": 1767323045, "data": data, **facts, "usage": USAGE})
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for each in files:
            for draft in range(body.get("partial_images", 0)):
                partial = {"type": f"{kind}.partial_image", "partial_image_index": draft, "b64_json": each}
                await response.write(event({**partial, "created_at": 1767323045, **facts}))
            completed = {"type": f"{kind}.completed", "b64_json": each, "created_at": 1767323050}
            await response.write(event({**completed, **facts, "usage": USAGE}))
        return response

    def refuse(self, refused: RefusedError) -> web.StreamResponse:
        kind = "image_generation_user_error" if refused.code == "moderation_blocked" else "invalid_request_error"
        error = {"message": refused.message, "type": kind, "param": refused.at, "code": refused.code}
        headers = {"retry-after": RETRY_SECONDS} if refused.status == 429 else None
        return web.json_response({"error": error}, status=refused.status, headers=headers)


def event(value: Json) -> bytes:
    return f"event: {value['type']}\ndata: {compact(json.loads(json.dumps(value)))}\n\n".encode()
