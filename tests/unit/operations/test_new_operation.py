"""An operation is its messages, its format and its row: with a few edited lines a copy of the product serves another one
on both faces, simulated and by a provider, with its price, its limits, its permission and its documentation.
"""

import asyncio
import secrets
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from difflib import ndiff
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.processes import Served, serve
from tests.support.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[3]
GIVEN = Path(__file__).parent / "new_operation"
MOST_EDITED_LINES = 5
PACKAGES = ("umg_grpc", "umg_sandbox", "http_facade", "proto")
FILES = {
    "shout.proto": "proto/umg/v1/shout.proto",
    "row.py.txt": "umg_grpc/operations/shout.py",
    "codec.py.txt": "umg_grpc/wire/shout.py",
}
"""File of this directory -> new file of the product."""
PRICE = 500_000
"""Micro-credits of a call."""


@dataclass(frozen=True)
class Edit:
    """Text of a file of the product that is replaced."""

    path: str
    old: str
    new: str


MODEL_ENUM, KEY_ENUM = "MODEL_OPERATION_UNSPECIFIED", "KEY_OPERATION_UNSPECIFIED"
ROWS = "OPERATION_ROWS: tuple[Operation[Message, Message], ...]"
EDITS = (
    Edit("proto/umg/v1/model.proto", f"{MODEL_ENUM} = 0;\n", f"{MODEL_ENUM} = 0;\n  MODEL_OPERATION_SHOUT = 99;\n"),
    Edit("proto/umg/v1/admin.proto", f"{KEY_ENUM} = 0;\n", f"{KEY_ENUM} = 0;\n  KEY_OPERATION_SHOUT = 99;\n"),
    Edit(
        "umg_grpc/operations/__init__.py",
        "from umg_grpc.operations.video_operation",
        "from umg_grpc.operations.shout import SHOUTING\nfrom umg_grpc.operations.video_operation",
    ),
    Edit("umg_grpc/operations/__init__.py", f"{ROWS} = (\n", f"{ROWS} = (\n    SHOUTING,\n"),
)
"""Edits that are possible with any other operations."""


def edited_lines(old: str, new: str) -> int:
    return sum(line.startswith("+ ") for line in ndiff(old.splitlines(), new.splitlines()))


def make_product(root: Path) -> int:
    """Copy the product to a directory, and add the operation. Return the number of edited lines."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, path in FILES.items():
        shutil.copy(GIVEN / name, root / path)
    count = 0
    for edit in EDITS:
        file = root / edit.path
        before = file.read_text(encoding="utf-8")
        assert before.count(edit.old) == 1, edit
        file.write_text(before.replace(edit.old, edit.new), encoding="utf-8")
        count += edited_lines(before, file.read_text(encoding="utf-8"))
    generated = root / "gen"
    shutil.copytree(ROOT / "gen", generated, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    protos = ("model", "admin", "shout")
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", f"-I{root / 'proto'}", f"-I{ROOT / 'third_party'}"),
            f"--python_out={generated}",
            *(f"umg/v1/{name}.proto" for name in protos),
        ],
        check=True,
    )
    return count


@dataclass(frozen=True)
class World:
    served: Served
    session: aiohttp.ClientSession
    edited: int

    async def create_key(self, **settings: object) -> str:
        body = {"settings": {"name": secrets.token_hex(4), **settings}}
        async with self.session.post("/admin/v1/keys", json=body, headers=self.served.headers) as response:
            created = await response.json()
            assert response.status == 200, created
            return str(created["secret"])

    async def shout(self, key: str, model: str, **members: str) -> tuple[int, Any]:
        headers, body = {"authorization": f"Bearer {key}"}, {"model": model, **(members or {"text": "hello"})}
        async with self.session.post("/v1/shouts", json=body, headers=headers) as response:
            return response.status, await response.json()

    async def records(self) -> list[dict[str, Any]]:
        """Return the records of admitted calls once there are some: they are written in the background."""
        async with asyncio.timeout(60):
            while True:
                async with self.session.get("/admin/v1/requests", headers=self.served.headers) as response:
                    records = (await response.json())["records"]
                if admitted := [record for record in records if not record["refused_calls"]]:
                    return admitted
                await asyncio.sleep(0.05)


async def answer(request: web.Request) -> web.Response:
    """Answer as a provider, which shouts indeed."""
    sent = await request.json()
    return web.json_response({"text": f"{sent['model']}: {sent['text'].upper()}"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    root, data = tmp_path_factory.mktemp("product"), tmp_path_factory.mktemp("data")
    edited = make_product(root)
    app = web.Application()
    app.router.add_post("/v1/shout", answer)
    async with serving(app) as url:
        config = root / "config.yaml"
        config.write_text(
            "channels:\n  - {name: sandbox, protocols: [sandbox], models: [shout-1]}\n"
            f"  - {{name: real, protocols: [shout], base_url: '{url}/v1', api_key: k, models: [loud-1]}}\n"
            "models:\n  shout-1: {capabilities: {operations: [shout]}, price: {request: 0.5}}\n"
            "  loud-1: {price: {request: 0.5}}\n"
        )
        paths = {"PYTHONPATH": f"{root}:{root / 'gen'}"}
        async with (
            serve(data, "--config", str(config), environment=paths) as served,
            aiohttp.ClientSession(served.url) as session,
        ):
            yield World(served, session, edited)


async def test_an_operation_takes_few_edited_lines(world: World) -> None:
    assert world.edited <= MOST_EDITED_LINES


async def test_a_new_operation_is_served_over_http_by_the_simulated_provider_and_a_real_one(world: World) -> None:
    key = await world.create_key()
    assert await world.shout(key, "shout-1") == (200, {"text": "SIMULATED"})
    assert await world.shout(key, "loud-1") == (200, {"text": "loud-1: HELLO"})
    status, body = await world.shout(key, "loud-1", word="hello")
    assert (status, body["error"]["param"]) == (400, "text")


async def test_a_format_may_take_forms_and_bytes_and_answer_with_bytes(world: World) -> None:
    headers = {"authorization": f"Bearer {await world.create_key()}"}
    form = aiohttp.FormData({"model": "loud-1", "text": "hello"}, default_to_multipart=True)
    async with world.session.post("/v1/shouts", data=form, headers=headers) as response:
        assert (response.status, await response.json()) == (200, {"text": "loud-1: HELLO"})
    plain = {**headers, "content-type": "text/plain"}
    async with world.session.post("/v1/plain_shouts", data=b"hello", headers=plain) as response:
        assert (response.status, response.content_type) == (200, "text/plain")
        assert await response.read() == b"loud-1: HELLO"
    async with world.session.post("/v1/plain_shouts", json={"text": "hello"}, headers=headers) as response:
        assert response.status == 415


def member(number: int, text: str) -> bytes:
    return bytes([number << 3 | 2, len(text)]) + text.encode()


async def test_a_new_operation_is_served_over_grpc(world: World) -> None:
    metadata = (("authorization", f"Bearer {await world.create_key()}"),)
    async with grpc.aio.insecure_channel(world.served.grpc) as channel:
        call = channel.unary_unary("/umg.v1.ShoutService/Shout")
        response = await call(member(1, "loud-1") + member(2, "hello"), metadata=metadata)
        assert response == member(1, "loud-1") + member(2, "loud-1: HELLO")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(member(1, "loud-1"), metadata=metadata)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_new_operation_is_charged_and_limited(world: World) -> None:
    key = await world.create_key(budget_micro_credits=2 * PRICE)
    assert [(await world.shout(key, model))[0] for model in ("shout-1", "loud-1", "loud-1")] == [200, 200, 429]
    key = await world.create_key(requests_per_minute=1)
    assert [(await world.shout(key, "loud-1"))[0] for _ in range(2)] == [200, 429]


async def test_a_new_operation_has_a_permission(world: World) -> None:
    assert (await world.shout(await world.create_key(operations=["shout"]), "loud-1"))[0] == 200
    assert (await world.shout(await world.create_key(operations=["embed"]), "loud-1"))[0] == 403


async def test_a_new_operation_is_listed_recorded_and_documented(world: World) -> None:
    async with world.session.get("/openapi.json") as response:
        paths = (await response.json())["paths"]
    described, plain = paths["/v1/shouts"]["post"], paths["/v1/plain_shouts"]["post"]
    assert list(described["requestBody"]["content"]) == ["application/json", "multipart/form-data"]
    assert list(plain["requestBody"]["content"]) == ["text/plain"]
    assert list(plain["responses"]["200"]["content"]) == ["*/*"]
    assert (described["tags"], described["summary"]) == (["Shouting"], "Shout a text")
    assert (await world.shout(await world.create_key(), "loud-1"))[0] == 200
    records = await world.records()
    assert {record["operation"] for record in records} == {"shout"}
    assert {record["micro_credits"] for record in records if record["status"] == "OK"} == {PRICE}
