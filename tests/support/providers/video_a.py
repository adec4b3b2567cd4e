"""Strict fake provider of the video-object API (`vidA`): multipart submissions, content by key."""

import re
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.providers.common import MAGIC
from tests.support.providers.server import Json, ReceivedRequest, RefusedError
from tests.support.providers.video_server import FILE, Task, VideoProvider, only, require

WORDS = {"queued": "queued", "running": "in_progress", "succeeded": "completed", "failed": "failed"}
SIZES = ("720x1280", "1280x720", "1024x1792", "1792x1024")
DISPOSITION = re.compile(r'form-data; name="(?P<name>[^"]*)"(?:; filename="(?P<file>[^"]*)")?')


@dataclass
class FormPart:
    content: bytes
    file_name: str | None
    content_type: str


def read_form(received: ReceivedRequest) -> dict[str, FormPart]:
    """Return the parts of a received form. Raise RefusedError for another body."""
    found = re.fullmatch(r"multipart/form-data; boundary=([\w-]{1,70})", received.headers.get("content-type", ""))
    if found is None:
        raise RefusedError("expected multipart/form-data")
    boundary = b"--" + found[1].encode()
    require(received.body.endswith(boundary + b"--\r\n"), "the form has no end")
    parts: dict[str, FormPart] = {}
    for piece in received.body.removesuffix(b"--\r\n").split(boundary)[1:-1]:
        head, _, content = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        disposition = DISPOSITION.fullmatch(lines["Content-Disposition"])
        assert disposition is not None
        assert content.endswith(b"\r\n")
        require(disposition["name"] not in parts, f"{disposition['name']} is given twice")
        parts[disposition["name"]] = FormPart(content[:-2], disposition["file"], lines.get("Content-Type", ""))
    return parts


@dataclass(kw_only=True)
class VideoObjectProvider(VideoProvider):
    forms: list[dict[str, FormPart]] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    """`range` of each download."""
    moved_to: str = ""
    """Address to which downloads are redirected."""

    def is_submission(self, received: ReceivedRequest) -> bool:
        path = received.path
        return received.method == "POST" and (path == "/v1/videos" or path.endswith("/remix"))

    def is_query(self, received: ReceivedRequest) -> bool:
        return received.method == "GET" and not received.path.endswith("/content")

    def new_id(self, number: int, model: str) -> str:
        return f"video_{number:032x}"

    def read(self, received: ReceivedRequest) -> tuple[str, str]:
        if received.path.endswith("/remix"):
            source = self.tasks.get(received.path.split("/")[-2])
            require(source is not None, "Video not found")
            assert source is not None
            only(received.json, "prompt")
            require(received.json.get("prompt"), "Missing required parameter: 'prompt'.", "prompt")
            return source.model, ""
        form = read_form(received)
        self.forms.append(form)
        only(dict(form.items()), "model", "prompt", "seconds", "size", "input_reference")
        require("prompt" in form, "Missing required parameter: 'prompt'.", "prompt")
        if "seconds" in form:
            require(form["seconds"].content in (b"4", b"8", b"12"), "Invalid value: 'seconds'", "seconds")
        if "size" in form:
            require(form["size"].content.decode() in SIZES, "Invalid value: 'size'", "size")
        if "input_reference" in form:
            image = form["input_reference"]
            require(image.file_name, "input_reference is a file", "input_reference")
            require(image.content.startswith(MAGIC[image.content_type]), "no image", "input_reference")
        return form["model"].content.decode(), ""

    def created(self, task: Task) -> Json:
        return self._object(task, "queued")

    def _object(self, task: Task, step: str) -> Json:
        word = WORDS.get(step, step)
        error = {"code": self.failure[0] or None, "message": self.failure[1]} if word == "failed" else None
        return {
            "id": task.id,
            "object": "video",
            "model": task.model,
            "status": word,
            "progress": {"queued": 0, "completed": 100}.get(word, 35),
            "created_at": 1767323045,
            "completed_at": 1767323145 if word == "completed" else None,
            "expires_at": 1767409545 if word == "completed" else None,
            "seconds": "4",
            "size": "720x1280",
            "error": error,
        }

    def other(self, received: ReceivedRequest, key: str) -> web.StreamResponse:
        _, _, videos, task_id, *rest = received.path.split("/")
        require(videos == "videos", "unknown path")
        if received.method == "DELETE":
            require(task_id in self.tasks, "Video not found")
            self.cancelled.append(task_id)
            return web.json_response({"id": task_id, "object": "video.deleted", "deleted": True})
        if rest == ["content"]:
            self.ranges.append(received.headers.get("range", ""))
            if self.tasks[task_id].key != key:
                raise RefusedError("Video not found", status=404)
            return self._content(received)
        if (found := self.task_of(task_id, key)) is None:
            raise RefusedError("Video not found", status=404)
        return web.json_response(self._object(*found))

    def _content(self, received: ReceivedRequest) -> web.StreamResponse:
        if self.moved_to:
            raise web.HTTPFound(self.moved_to)
        headers = {"etag": '"1"', "set-cookie": "a=b", "cache-control": "no-store"}
        if wanted := re.fullmatch(r"bytes=(\d+)-(\d+)", received.headers.get("range", "")):
            first, last = int(wanted[1]), int(wanted[2])
            headers["content-range"] = f"bytes {first}-{last}/{len(FILE)}"
            return web.Response(status=206, body=FILE[first : last + 1], content_type="video/mp4", headers=headers)
        return web.Response(body=FILE, content_type="video/mp4", headers=headers)

    def refuse(self, refused: RefusedError) -> web.Response:
        error = {"message": refused.message, "type": "invalid_request_error", "param": refused.at, "code": refused.code}
        return web.json_response({"error": error}, status=refused.status)
