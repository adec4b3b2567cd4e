"""Delivery of images in the requested form: bytes of a provider as a link, its addresses as bytes."""

import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web
from PIL import Image

from tests.support.gateways import Running, channel, running
from tests.support.serving import serving
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc

URL, B64 = pb.IMAGE_RESPONSE_FORMAT_URL, pb.IMAGE_RESPONSE_FORMAT_B64_JSON


def picture() -> bytes:
    file = BytesIO()
    Image.new("RGB", (40, 30), "teal").save(file, "PNG")
    return file.getvalue()


class Painter:
    """Provider of the images format. `items`: images of a response, in which `HERE` stands for the provider's address."""

    def __init__(self, items: list[dict[str, Any]]) -> None:
        self.items = items
        self.calls = 0
        self.headers: list[dict[str, str]] = []

    async def make(self, request: web.Request) -> web.Response:
        self.calls += 1
        place = f"http://{request.host}"
        return web.json_response(
            {
                "created": 1,
                "data": [{name: value.replace("HERE", place) for name, value in item.items()} for item in self.items],
            }
        )

    async def file(self, request: web.Request) -> web.Response:
        self.headers.append(dict(request.headers))
        if request.match_info["name"] == "missing":
            return web.Response(status=404)
        return web.Response(body=picture() if request.match_info["name"] == "image" else b"<html>")


FILE, MISSING, PAGE = {"url": "HERE/file/image"}, {"url": "HERE/file/missing"}, {"url": "HERE/file/page"}
ELSEWHERE = {"url": "http://127.0.0.1:1/image"}
BYTES = {"b64_json": base64.b64encode(picture()).decode()}


@asynccontextmanager
async def painting(
    data: Path, *items: dict[str, Any], more: str = "", channels: int = 1
) -> AsyncGenerator[tuple[Painter, Running, "rpc.ImageServiceAsyncStub"], None]:
    painter, app = Painter([*items]), web.Application()
    app.router.add_post("/images/generations", painter.make)
    app.router.add_get("/file/{name}", painter.file)
    async with serving(app) as url:
        rows = "".join(channel(f"painter-{number}", "images", url, "paint") for number in range(channels))
        async with (
            running(f"{more}channels:\n{rows}", data) as gateway,
            grpc.aio.insecure_channel(gateway.grpc) as made,
        ):
            yield painter, gateway, rpc.ImageServiceStub(made)


async def make(
    stub: "rpc.ImageServiceAsyncStub", gateway: Running, form: "pb.ImageResponseFormat.ValueType"
) -> list[pb.Image]:
    request = pb.GenerateImageRequest(model="paint", prompt="a lake", response_format=form)
    metadata = (("authorization", f"Bearer {gateway.key}"),)
    return list((await stub.GenerateImage(request, metadata=metadata)).result.images)


async def failure(stub: "rpc.ImageServiceAsyncStub", gateway: Running) -> str:
    try:
        await make(stub, gateway, B64)
    except grpc.aio.AioRpcError as error:
        return from_rpc(error).name
    raise AssertionError("it succeeded")


async def test_an_address_on_the_providers_own_host_is_fetched_without_the_key(tmp_path: Path) -> None:
    async with painting(tmp_path, FILE) as (painter, gateway, stub):
        [image] = await make(stub, gateway, B64)
        assert (image.data, image.mime_type, image.width, image.height) == (picture(), "image/png", 40, 30)
        assert "Authorization" not in painter.headers[0]
        [image] = await make(stub, gateway, URL)
        assert image.url.endswith("/file/image")
        assert len(painter.headers) == 1, "an address that was requested is not fetched"


async def test_bytes_are_stored_where_an_address_is_due(tmp_path: Path) -> None:
    async with painting(tmp_path, BYTES) as (_, gateway, stub):
        [image] = await make(stub, gateway, URL)
        assert image.url.startswith(f"{gateway.url}/files/")
        async with aiohttp.ClientSession() as session, session.get(image.url) as response:
            assert (response.status, await response.read()) == (200, picture())
        [image] = await make(stub, gateway, B64)
        assert image.data == picture()
        [image] = await make(stub, gateway, pb.IMAGE_RESPONSE_FORMAT_UNSPECIFIED)
        assert image.data == picture(), "a model without a family has the form of its provider"


async def test_bytes_stay_bytes_where_nothing_is_stored(tmp_path: Path) -> None:
    async with painting(tmp_path, BYTES, more="blobs: {enabled: false}\n") as (_, gateway, stub):
        [image] = await make(stub, gateway, URL)
        assert image.data == picture()


@pytest.mark.parametrize("cache", [{}, {"x-umg-cache": "60"}], ids=["", "with a cache"])
async def test_a_large_file_is_the_same_in_every_form(tmp_path: Path, cache: dict[str, str]) -> None:
    large = BytesIO()
    Image.frombytes("RGB", (200, 200), Random(1).randbytes(120_000)).save(large, "PNG")
    item = {"b64_json": base64.b64encode(large.getvalue()).decode()}
    async with painting(tmp_path, item, item) as (painter, gateway, stub), aiohttp.ClientSession() as session:

        async def post(form: str) -> list[dict[str, str]]:
            body = {"model": "paint", "prompt": "a lake", "seed": 1, "response_format": form}
            headers = {"authorization": f"Bearer {gateway.key}", **cache}
            async with session.post(f"{gateway.url}/v1/images/generations", json=body, headers=headers) as response:
                assert response.status == 200
                data: list[dict[str, str]] = (await response.json())["data"]["data"]
                return data

        assert [await post("b64_json"), await post("b64_json")] == [[item, item]] * 2
        assert painter.calls == 2, "a response without the seed is not cached"
        for link in await post("url"):
            async with session.get(link["url"]) as response:
                assert await response.read() == large.getvalue()
        for image in await make(stub, gateway, B64):
            assert (image.data, image.mime_type, image.width, image.height) == (large.getvalue(), "image/png", 200, 200)


async def test_an_image_that_cannot_be_fetched_is_left_out(tmp_path: Path) -> None:
    async with painting(tmp_path, MISSING, FILE) as (_, gateway, stub):
        assert [image.data for image in await make(stub, gateway, B64)] == [picture()]


async def test_no_other_channel_makes_images_that_cannot_be_fetched(tmp_path: Path) -> None:
    for number, item in enumerate((MISSING, PAGE, ELSEWHERE)):
        async with painting(tmp_path / str(number), item, channels=2) as (painter, gateway, stub):
            assert await failure(stub, gateway) == "UPSTREAM_FAILED"
            assert painter.calls == 1
