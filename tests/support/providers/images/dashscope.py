"""Strict fake provider of the DashScope format of images (reference, 12): synchronous calls and tasks."""

import re
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.providers.ark_sdk import IMAGE
from tests.support.providers.images.image_file_texts import png
from tests.support.providers.server import KEY, FakeProvider, Json, ReceivedRequest, RefusedError

SIZE = re.compile(r"\d{3,4}\*\d{3,4}")
PARAMETERS: dict[str, type] = {
    "n": int,
    "size": str,
    "negative_prompt": str,
    "prompt_extend": bool,
    "watermark": bool,
    "seed": int,
}
SYNC = "/api/v1/services/aigc/multimodal-generation/generation"
ASYNC = "/api/v1/services/aigc/text2image/image-synthesis"
ASYNC_MESSAGES = "/api/v1/services/aigc/image-generation/generation"
TASKS = "/api/v1/tasks/"
ONLY_PROMPTS = re.compile(r"wan(?:x2\.1|2\.[25])-t2i.*")
ONLY_MESSAGES = re.compile(r"wan2\.[67]-.*")
"""Models of each protocol: dashscope 2.0.2, v2/resources/images.py, read on 2026-11-29."""
KEYS = (KEY, f"{KEY}-2")


@dataclass(kw_only=True)
class DashscopeImages(FakeProvider):
    """Strict provider of the DashScope format (see the module). Models whose id ends in `-task` take tasks only. A prompt
    with `[[blocked]]` is refused, one with `[[200]]` is refused with status 200, and the second image of a task with
    `[[some]]` fails.
    """

    base_path = ""
    states: tuple[str, ...] = ("PENDING", "RUNNING", "SUCCEEDED")
    tasks: dict[str, tuple[str, Json, int]] = field(default_factory=dict)  # id -> its key, its body, its queries

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.method == "GET" and received.path.startswith("/files/"):
            return web.Response(body=png(received.path), content_type="image/png")
        key = received.headers.get("authorization", "").removeprefix("Bearer ")
        if key not in KEYS:
            raise RefusedError("Invalid API-key provided.", code="InvalidApiKey", status=401)
        if received.method == "GET" and received.path.startswith(TASKS):
            return web.json_response(self._queried(received.path.removeprefix(TASKS), key))
        if received.method != "POST" or received.path not in (SYNC, ASYNC, ASYNC_MESSAGES):
            raise RefusedError("Not found.", code="NotFound", status=404)
        body = received.json
        if set(body) != {"model", "input", "parameters"}:
            raise RefusedError("Unknown field.", code="InvalidParameter")
        self._check_parameters(body)
        others = ONLY_MESSAGES if received.path == ASYNC else ONLY_PROMPTS
        if others.fullmatch(body["model"]):
            raise RefusedError("url error, please check url!", code="InvalidParameter")
        if received.path == SYNC:
            return self._synchronous(body)
        if received.headers.get("x-dashscope-async") != "enable":
            raise RefusedError("current user api does not support synchronous calls.", code="AccessDenied", status=403)
        if received.path == ASYNC_MESSAGES:
            self._check_messages(body)
        elif set(body["input"]) - {"prompt", "negative_prompt"} or not body["input"]["prompt"]:
            raise RefusedError("Unknown field in input.", code="InvalidParameter")
        task_id = f"t-{len(self.tasks)}"
        self.tasks[task_id] = (key, body, 0)
        output = {"task_id": task_id, "task_status": "PENDING"}
        return web.json_response({"output": output, "request_id": "r-1"})

    def _check_parameters(self, body: Json) -> None:
        for name, value in body["parameters"].items():
            if name not in PARAMETERS or not isinstance(value, PARAMETERS[name]):
                raise RefusedError(f"Wrong parameter: {name}", code="InvalidParameter")
        if "size" in body["parameters"] and not SIZE.fullmatch(body["parameters"]["size"]):
            raise RefusedError("Wrong size.", code="InvalidParameter")

    def _synchronous(self, body: Json) -> web.StreamResponse:
        if body["model"].endswith("-task"):
            raise RefusedError("current user api does not support synchronous calls.", code="AccessDenied", status=403)
        text = self._check_messages(body)
        self._moderate(text)
        if "[[200]]" in text:
            return web.json_response({"code": "DataInspectionFailed", "message": "Refused.", "request_id": "r-1"})
        choices = self._choices(body)
        usage = {"image_count": body["parameters"].get("n", 1), "width": 1328, "height": 1328}
        return web.json_response({"output": {"choices": choices}, "usage": usage, "request_id": "r-1"})

    def _choices(self, body: Json) -> list[Json]:
        content = [{"image": self._url(at)} for at in range(body["parameters"].get("n", 1))]
        return [{"finish_reason": "stop", "message": {"role": "assistant", "content": content}}]

    def _check_messages(self, body: Json) -> str:
        """Return the text of a body with messages."""
        messages = body["input"].get("messages", [])
        if set(body["input"]) != {"messages"} or len(messages) != 1 or messages[0]["role"] != "user":
            raise RefusedError("Wrong messages.", code="InvalidParameter")
        texts = [piece["text"] for piece in messages[0]["content"] if set(piece) == {"text"}]
        images = [piece["image"] for piece in messages[0]["content"] if set(piece) == {"image"}]
        if len(texts) != 1 or len(texts) + len(images) != len(messages[0]["content"]) or len(images) > 3:
            raise RefusedError("Wrong content.", code="InvalidParameter")
        if not all(IMAGE.fullmatch(image) for image in images):
            raise RefusedError("Wrong image.", code="InvalidImage")
        return str(texts[0])

    def _moderate(self, text: str) -> None:
        if "[[blocked]]" in text:
            raise RefusedError("Input data may contain inappropriate content.", code="DataInspectionFailed")
        if "[[limited]]" in text:
            raise RefusedError("Requests rate limit exceeded.", code="Throttling.RateQuota", status=429)

    def _queried(self, task_id: str, key: str) -> Json:
        """Return the state of a task: the next of `states` at each query. A task of another key is unknown."""
        if task_id not in self.tasks or self.tasks[task_id][0] != key:
            return {"output": {"task_id": task_id, "task_status": "UNKNOWN"}, "request_id": "r-1"}
        _, body, queries = self.tasks[task_id]
        self.tasks[task_id] = (key, body, queries + 1)
        state = self.states[min(queries, len(self.states) - 1)]
        output: dict[str, Any] = {"task_id": task_id, "task_status": state}
        prompt = body["input"].get("prompt", "")
        if state == "SUCCEEDED" and "messages" in body["input"]:
            output |= {"finished": True, "choices": self._choices(body)}
        elif state == "SUCCEEDED":
            results: list[Json] = [{"url": self._url(at)} for at in range(body["parameters"].get("n", 1))]
            if "[[some]]" in prompt:
                results[1:2] = [{"code": "DataInspectionFailed", "message": "Refused."}]
            output["results"] = results
        elif state == "FAILED":
            output |= {"code": "DataInspectionFailed", "message": "Refused."}
        return {"output": output, "request_id": "r-1"}

    def _url(self, at: int) -> str:
        return f"{self.url}/files/{at}.png?Expires=1767323045"

    def refuse(self, refused: RefusedError) -> web.StreamResponse:
        body = {"code": refused.code, "message": refused.message, "request_id": "r-1"}
        return web.json_response(body, status=refused.status)
