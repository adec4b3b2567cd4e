"""A caller of the image paths over plain HTTP."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import aiohttp
from PIL import Image

from tests.documents.spec.callers import Frame, frames_of
from tests.support.callers.api import ApiClient, Reply
from tests.support.images import picture
from umg_grpc.knowledge.families.image_model_rules import IMAGE_MODELS

G, G3 = "famG-2.5-flash-image", "famG-3-pro-image-preview"
A3, A40, A45 = "imgA-3-0-t2i-250415", "imgA-4-0-250828", "imgA-4-5-251128"
B, C, MINI = "imgB-3-0-i2i-250628", "imgC-1", "imgC-1-mini"
D, D_EDIT_PLUS, D_EDIT = "imgD-plus", "imgD-edit-plus", "imgD-edit"

CHANNEL = f"""
  - name: images
    protocols: [sandbox]
    pace: 0
    models: [{", ".join(IMAGE_MODELS)}]
"""
"""Channel of the config with the simulated image models."""

GENERATIONS, EDITS, VARIATIONS = "/v1/images/generations", "/v1/images/edits", "/v1/images/variations"
PROMPT = "a red kite over a lake"
WIDE = picture("PNG", (320, 160))
TALL = picture("JPEG", (160, 320), (30, 30, 200))
ADDRESS = "https://example.com/cat.png"


def data_url(data: bytes = WIDE, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def pixels_of(data: bytes) -> tuple[int, int]:
    with Image.open(BytesIO(data)) as image:
        return image.size


def kind_of(data: bytes) -> str:
    with Image.open(BytesIO(data)) as image:
        return image.format or ""


def structured(*content: dict[str, str], text: str = PROMPT, **parameters: object) -> dict[str, Any]:
    """Return the fields of a body of family D; images come before the text."""
    body: dict[str, Any] = {"input": {"messages": [{"role": "user", "content": [*content, {"text": text}]}]}}
    return body | ({"parameters": parameters} if parameters else {})


@dataclass(frozen=True)
class Images:
    """Caller of `POST /v1/images/generations`."""

    gateway: ApiClient

    def body(self, model: str, fields: Mapping[str, object]) -> dict[str, Any]:
        """Return a body; without a prompt where the fields have an `input`, or a prompt of their own."""
        prompt = {} if "input" in fields or "parameters" in fields else {"prompt": PROMPT}
        merged = {"model": model, **prompt, **fields}
        return {name: value for name, value in merged.items() if value is not ...}

    async def post(
        self, model: str, *, path: str = GENERATIONS, headers: Mapping[str, str] | None = None, **fields: object
    ) -> Reply:
        sent = {**self.gateway.server.headers, **(headers or {})}
        return await self.gateway.post(path, self.body(model, fields), sent)

    async def items(self, model: str, **fields: object) -> list[dict[str, str]]:
        """Return `data.data` of a successful answer in the documented shape."""
        reply = await self.post(model, **fields)
        assert reply.status == 200, reply.text[:500]
        body = reply.body
        assert body.keys() == {"code", "msg", "data"}
        assert (body["code"], type(body["msg"])) == (200, str)
        assert body["data"].keys() == {"data", "created"}
        for item in body["data"]["data"]:
            assert len(item.keys() & {"url", "b64_json"}) == 1
            assert item.keys() <= {"url", "b64_json", "revised_prompt"}
        items: list[dict[str, str]] = body["data"]["data"]
        return items

    async def files(self, model: str, **fields: object) -> list[bytes]:
        """Return the image files of a successful answer."""
        return [await self.file(item) for item in await self.items(model, **fields)]

    async def one(self, model: str, **fields: object) -> bytes:
        """Return the only image file of a successful answer."""
        [file] = await self.files(model, **fields)
        return file

    async def file(self, item: Mapping[str, str]) -> bytes:
        """Return the file of an item; an address is read without credentials."""
        if "b64_json" in item:
            return base64.b64decode(item["b64_json"], validate=True)
        async with aiohttp.ClientSession() as session, session.get(item["url"]) as response:
            assert response.status == 200
            return await response.read()

    async def refuses(self, field: str, model: str, **fields: object) -> None:
        """Check that a request is a 400 that names the field."""
        self.names(await self.post(model, **fields), field)

    def names(self, reply: Reply, field: str) -> None:
        error = self.error(reply, 400)
        assert error["param"] == field, reply.text[:500]
        assert field in error["message"]

    def error(self, reply: Reply, status: int) -> Any:
        """Return the member `error` of a failed answer, after checks of its form (readings, 3)."""
        assert reply.status == status, reply.text[:500]
        body = reply.body
        assert body.keys() == {"code", "msg", "error"}
        assert (body["code"], body["msg"]) == (status, body["error"]["message"])
        assert body["error"].keys() == {"message", "type", "param", "code"}
        return body["error"]

    async def events(self, model: str, *, path: str = GENERATIONS, **fields: object) -> list[Frame]:
        """Return the events of a stream."""
        return frames_of(await self.post(model, path=path, stream=True, **fields))

    async def form(self, path: str, *parts: tuple[str, str] | tuple[str, bytes, str]) -> Reply:
        """Send a form: fields as (name, text), files as (name, bytes, file name)."""
        form = aiohttp.FormData(default_to_multipart=True)
        for part in parts:
            if len(part) == 3:
                form.add_field(part[0], part[1], filename=part[2], content_type="image/png")
            else:
                form.add_field(part[0], part[1])
        writer = form()
        server = self.gateway.server
        async with self.gateway.session.post(server.url + path, data=writer, headers=server.headers) as response:
            return Reply(response.status, response.headers, (await response.read()).decode())
