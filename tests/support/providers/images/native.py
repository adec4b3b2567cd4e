"""Strict fake provider of native images (reference, 9): one image for each call, and input files only inline."""

import base64
import re
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.support.providers.images.image_file_texts import TYPES, png
from tests.support.providers.server import KEY, FakeProvider, Json, ReceivedRequest, RefusedError

PATH = re.compile(r"/v1beta/models/([^/:]+):generateContent")
RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")
TIERS = {"1K": 1, "2K": 2, "4K": 4}
CONFIG = {"responseModalities", "imageConfig", "topP", "temperature", "maxOutputTokens"}
MAX_BODY_BYTES = 20_000_000


@dataclass(kw_only=True)
class NativeImages(FakeProvider):
    """Strict provider of native images (see the module). A prompt with `[[blocked]]` is refused with status 200, one
    with `[[no image]]` is answered with a text; every third call of one with `[[some]]` fails.
    """

    base_path = "/v1beta"
    calls: int = 0

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.headers.get("x-goog-api-key") != KEY:
            raise RefusedError("API key not valid. Please pass a valid API key.", code="INVALID_ARGUMENT")
        found = PATH.fullmatch(received.path)
        if received.method != "POST" or found is None:
            raise RefusedError("Not found.", code="NOT_FOUND", status=404)
        if len(received.body) > MAX_BODY_BYTES:
            raise RefusedError("Request payload size exceeds the limit.", code="INVALID_ARGUMENT")
        body = received.json
        _only(body, {"contents", "generationConfig"}, "")
        config = body.get("generationConfig", {})
        self._check_config(config, found[1])
        texts, images = self._read_contents(body["contents"])
        return web.json_response(self._made(texts, images, config))

    def _check_config(self, config: Json, model: str) -> None:
        _only(config, CONFIG, "generation_config.")
        if config["responseModalities"] not in (["IMAGE"], ["TEXT", "IMAGE"]):
            raise RefusedError("Invalid response modalities.", code="INVALID_ARGUMENT")
        image = config.get("imageConfig", {})
        _only(image, {"aspectRatio", "imageSize"}, "generation_config.image_config.")
        if image.get("aspectRatio", "1:1") not in RATIOS or image.get("imageSize", "1K") not in TIERS:
            raise RefusedError("Invalid image config.", code="INVALID_ARGUMENT")
        if "2.5-flash" in model and "imageSize" in image:
            raise RefusedError("Image size is not supported by this model.", code="INVALID_ARGUMENT")

    def _read_contents(self, contents: Any) -> tuple[list[str], list[bytes]]:
        texts, images = list[str](), list[bytes]()
        for content in contents:
            _only(content, {"role", "parts"}, "contents.")
            if content["role"] not in ("user", "model") or not content["parts"]:
                raise RefusedError("Please use a valid role: user, model.", code="INVALID_ARGUMENT")
            for part in content["parts"]:
                if set(part) == {"text"} and part["text"]:
                    texts.append(part["text"])
                    continue
                _only(part, {"inlineData"}, "contents.parts.")
                _only(part["inlineData"], {"mimeType", "data"}, "contents.parts.inline_data.")
                data = base64.b64decode(part["inlineData"]["data"], validate=True)
                found = next((mime for mime, start in TYPES if data.startswith(start)), None)
                if found is None or part["inlineData"]["mimeType"] != found:
                    raise RefusedError("Unable to process input image.", code="INVALID_ARGUMENT")
                images.append(data)
        if not contents or contents[-1]["role"] != "user":
            raise RefusedError("The last content is not the user's.", code="INVALID_ARGUMENT")
        return texts, images

    def _made(self, texts: list[str], images: list[bytes], config: Json) -> Json:
        self.calls += 1
        prompt = "\n".join(texts)
        if "[[blocked]]" in prompt:
            return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}}
        if "[[some]]" in prompt and self.calls % 3 == 0:
            raise RefusedError("The model is overloaded.", code="UNAVAILABLE", status=503)
        if "[[no image]]" in prompt:
            return {"candidates": [{"content": {"parts": [{"text": "No."}]}, "finishReason": "NO_IMAGE", "index": 0}]}
        edge = 256 * TIERS[config.get("imageConfig", {}).get("imageSize", "1K")]
        label = f"{prompt} + {len(images)}" if images else prompt
        data = base64.b64encode(png(label, edge, edge)).decode()
        parts: list[Json] = [{"inlineData": {"mimeType": "image/png", "data": data}}]
        if "TEXT" in config["responseModalities"]:
            parts.insert(0, {"text": "Here it is."})
        usage = {"promptTokenCount": 7, "candidatesTokenCount": 1290, "totalTokenCount": 1297}
        return {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage,
            "modelVersion": "m",
            "responseId": f"r-{self.calls}",
        }

    def refuse(self, refused: RefusedError) -> web.StreamResponse:
        error = {"code": refused.status, "message": refused.message, "status": refused.code}
        return web.json_response({"error": error}, status=refused.status)


def _only(value: Any, known: set[str], at: str) -> None:
    if not isinstance(value, dict) or set(value) - known:
        name = next(iter(set(value) - known), "")
        raise RefusedError(f"Invalid JSON payload received. Unknown name '{at}{name}'.", code="INVALID_ARGUMENT")
