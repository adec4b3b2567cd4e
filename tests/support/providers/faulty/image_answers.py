"""Right answers of faulty image providers. Each image repeats the nonce of its prompt, in its description or its
address.
"""

import base64
import json
from typing import Any

from tests.pairs.table import Kind, protocols_of
from tests.support.providers.common import compact
from tests.support.providers.images.image_file_texts import png, text_of

Json = dict[str, Any]
IMAGE_FORMATS = protocols_of(Kind.IMAGE)
STREAMED_FORMATS = ("images", "umg_images", "ark_images")
COUNT = 4
"""Images of a stream."""


def label(nonce: str, at: int = 0) -> str:
    return f"{nonce} #{at}"


def label_of(data: bytes, url: str = "") -> str:
    """Return the description of an image, or the end of its address."""
    return text_of(data) if data else url.rpartition("/")[2].replace("%20", " ").replace("%23", "#")


def format_of(path: str, request: Json) -> str | None:
    """Return the format of a request by the fields that only its encoder sends; None for no image request."""
    if path.endswith("/images/generations"):
        if "watermark" in request or "sequential_image_generation" in request:
            return "ark_images"
        return "umg_images" if "response_format" in request else "images"
    if path.endswith(":generateContent") and "IMAGE" in request.get("generationConfig", {}).get(
        "responseModalities", ()
    ):
        return "native_images"
    return "dashscope_images" if path.endswith("/multimodal-generation/generation") else None


def whole(name: str, nonce: str, request: Json) -> Json:
    count = images_of(name, request)
    files = [base64.b64encode(png(label(nonce, at))).decode() for at in range(count)]
    match name:
        case "native_images":
            parts = [{"inlineData": {"mimeType": "image/png", "data": files[0]}}]
            usage = {"promptTokenCount": 3, "candidatesTokenCount": 1290, "totalTokenCount": 1293}
            return {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage}
        case "dashscope_images":
            content = [{"image": f"https://files.example/{nonce}%20%230"}]
            choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": content}}
            return {"output": {"choices": [choice]}, "usage": {"image_count": 1}, "request_id": "r-1"}
        case "umg_images":
            data = {"data": [{"b64_json": each} for each in files], "created": 1767323045}
            return {"code": 200, "msg": "success", "data": data}
        case _:
            usage = {"input_tokens": 3, "output_tokens": 100, "total_tokens": 103}
            return {"created": 1767323045, "data": [{"b64_json": each} for each in files], "usage": usage}


def images_of(name: str, request: Json) -> int:
    if name == "ark_images":
        options = request.get("sequential_image_generation_options", {"max_images": 1})
        return int(options["max_images"])
    return int(request.get("n", 1))


def frames(name: str, nonce: str) -> list[bytes]:
    """Return the events of the right stream, one for each image and those of the end."""
    files = [base64.b64encode(png(label(nonce, at))).decode() for at in range(COUNT)]
    if name != "ark_images":
        return [
            _event({"type": "image_generation.completed", "b64_json": each, "created_at": 1767323045}) for each in files
        ]
    kind = {"type": "image_generation.partial_succeeded", "created": 1767323045}
    usage = {"generated_images": COUNT, "output_tokens": 100, "total_tokens": 100}
    return [
        *(_event({**kind, "image_index": at, "b64_json": each}) for at, each in enumerate(files)),
        _event({"type": "image_generation.completed", "usage": usage}),
        b"data: [DONE]\n\n",
    ]


def _event(value: Json) -> bytes:
    return f"event: {value['type']}\ndata: {compact(value)}\n\n".encode()


ARK_CODES = {400: "InvalidParameter", 429: "RateLimitExceeded"}
DASHSCOPE_CODES = {400: "InvalidParameter", 429: "Throttling"}


def ark_error(status: int, message: str) -> Json:
    return {
        "error": {"code": ARK_CODES.get(status, "InternalServiceError"), "message": message, "param": "", "type": ""}
    }


def dashscope_error(status: int, message: str) -> Json:
    return {"code": DASHSCOPE_CODES.get(status, "InternalError"), "message": message, "request_id": "r-1"}


def umg_error(status: int, message: str) -> Json:
    code, kind = ("rate_limit_exceeded", "rate_limit_error") if status == 429 else (None, "server_error")
    error = {"message": message, "type": kind, "param": None, "code": code}
    return {"code": status, "msg": message, "error": error}


def error_frame(error: Json) -> bytes:
    return f"event: error\ndata: {json.dumps(error)}\n\n".encode()
