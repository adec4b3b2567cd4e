"""Strict fake provider of the Ark format of images (reference, 10)."""

import base64
import re
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.support.providers import ark_sdk
from tests.support.providers.images.image_file_texts import png
from tests.support.providers.images.openai import event
from tests.support.providers.server import KEY, FakeProvider, Json, ReceivedRequest, RefusedError

SIZE = re.compile(r"(\d{3,4})x(\d{3,4})")
SMALLEST = "1024x1024"
GROUPS = ("sequential_image_generation", "sequential_image_generation_options", "optimize_prompt_options")


@dataclass(kw_only=True)
class ArkImages(FakeProvider):
    """Strict provider of the Ark format (see the module). A prompt with `[[blocked]]` is refused, of the images of one
    with `[[some]]` every second fails, and all of one with `[[none]]`.
    """

    base_path = "/api/v3"

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.method == "GET" and received.path.startswith("/files/"):
            return web.Response(body=png(received.path), content_type="image/jpeg")
        if received.headers.get("authorization") != f"Bearer {KEY}":
            raise RefusedError("The API key doesn't exist.", code="AuthenticationError", status=401)
        if (received.method, received.path) != ("POST", "/api/v3/images/generations"):
            raise RefusedError("The resource does not exist.", code="ResourceNotFound", status=404)
        body = received.json
        self._check(body)
        if "[[blocked]]" in body["prompt"]:
            raise RefusedError(
                "The input text may contain sensitive information.", code="InputTextSensitiveContentDetected"
            )
        if "[[limited]]" in body["prompt"]:
            raise RefusedError("Rate limit.", code="ModelAccountRpmRateLimitExceeded", status=429)
        items = list(self._items(body))
        made = sum("error" not in item for item in items)
        usage = {"generated_images": made, "output_tokens": 16384 * made, "total_tokens": 16384 * made}
        if not body.get("stream"):
            return web.json_response({"model": body["model"], "created": 1767323045, "data": items, "usage": usage})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for at, item in enumerate(items):
            kind = "partial_failed" if "error" in item else "partial_succeeded"
            head = {"type": f"image_generation.{kind}", "model": body["model"], "created": 1767323045}
            await response.write(event({**head, "image_index": at, **item}))
        await response.write(event({"type": "image_generation.completed", "created": 1767323045, "usage": usage}))
        await response.write(b"data: [DONE]\n\n")
        return response

    def _check(self, body: Json) -> None:
        if problem := ark_sdk.image_problem(ark_sdk.IMAGES, body):
            raise RefusedError(problem, code="InvalidParameter")
        grouped = "-4-" in body["model"]
        if grouped and {"seed", "guidance_scale"} & set(body):
            raise RefusedError("The parameter `seed` is not supported by the model.", "seed", "InvalidParameter")
        if not grouped and set(GROUPS) & set(body):
            raise RefusedError("Groups are not supported by the model.", GROUPS[0], "InvalidParameter")
        if body.get("sequential_image_generation") == "auto":
            if not 1 <= body["sequential_image_generation_options"]["max_images"] <= 15:
                raise RefusedError("Invalid `max_images`.", GROUPS[1], "InvalidParameter")
        elif GROUPS[1] in body:
            raise RefusedError("Options without a group.", GROUPS[1], "InvalidParameter")

    def _items(self, body: Json) -> Any:
        count = 1
        if body.get("sequential_image_generation") == "auto":
            count = body["sequential_image_generation_options"]["max_images"]
        found = SIZE.fullmatch(body.get("size", SMALLEST)) or SIZE.fullmatch(SMALLEST)  # a class of sizes: 2K
        assert found is not None
        refused = {"code": "OutputImageSensitiveContentDetected", "message": "The image may be sensitive."}
        for at in range(count):
            layer = {"z_index": at, "output_format": "png"} if body.get("layer_decomposition") else {}
            if "[[none]]" in body["prompt"] or ("[[some]]" in body["prompt"] and at % 2):
                yield {"error": refused}
            elif body.get("response_format") == "b64_json":
                data = png(f"{body['prompt']} #{at}", int(found[1]), int(found[2]))
                yield {"b64_json": base64.b64encode(data).decode(), "size": found[0], **layer}
            else:
                yield {"url": f"{self.url}/files/{at}.jpeg", "size": found[0], **layer}

    def refuse(self, refused: RefusedError) -> web.StreamResponse:
        error = {"code": refused.code, "message": refused.message, "param": refused.at or "", "type": "BadRequest"}
        return web.json_response({"error": error}, status=refused.status)
