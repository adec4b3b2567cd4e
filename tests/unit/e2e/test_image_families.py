"""The family of an image model: the one in the config counts more than the one that its id suggests."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from aiohttp import ClientSession

from tests.support.gateways import running

CONFIG = """
channels:
  - name: drawing
    protocols: [sandbox]
    models:
      - famG-3-pro-image-preview
      - imgC-1
      - {id: paint, upstream: famG-3-pro-image-preview, family: famG}
      - {id: famG-paint, upstream: imgC-1, family: imgC}
      - {id: draw, upstream: imgC-1}
"""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ClientSession, None]:
    async with (
        running(CONFIG, tmp_path_factory.mktemp("gateway")) as gateway,
        ClientSession(gateway.url, headers=gateway.headers) as session,
    ):
        yield session


@dataclass(frozen=True)
class Case:
    id: str
    model: str
    status: int


CASES = [
    Case(id="family G by the id", model="famG-3-pro-image-preview", status=200),
    Case(id="family G by the config", model="paint", status=200),
    Case(id="family C by the id", model="imgC-1", status=400),
    Case(id="family C by the config", model="famG-paint", status=400),
    Case(id="family C by the provider's id", model="draw", status=400),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_only_family_g_ignores_an_unknown_response_format(session: ClientSession, case: Case) -> None:
    body = {"model": case.model, "prompt": "a lake", "response_format": "png"}
    async with session.post("/v1/images/generations", json=body) as response:
        answer = await response.json()
        assert response.status == case.status, answer
    if case.status == 400:
        assert answer["error"]["param"] == "response_format"
