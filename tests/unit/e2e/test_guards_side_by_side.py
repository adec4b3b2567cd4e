"""Guards that only decide: they run at the same time, and none of them replaces a text."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.support.serving import serving
from tests.unit.e2e.test_guards import Gateway, gateway, responding

BODY = {"messages": [{"role": "user", "content": "hi"}]}
ALLOW: dict[str, Any] = {"allow": {}}
REPLACE = {"replace": {"texts": [{"path": "messages[0].parts[0].text.text", "text": "bye"}]}}
SECONDS = 60
"""Time limit of the guards, which no test reaches."""


@dataclass
class Meeting:
    """Webhook of two guards, which decides once both have called."""

    decisions: dict[str, dict[str, Any]]
    barrier: asyncio.Barrier = field(default_factory=lambda: asyncio.Barrier(2))
    texts: list[str] = field(default_factory=list)

    async def decide(self, request: web.Request) -> web.Response:
        check = await request.json()
        self.texts.append(check["texts"][0]["text"])
        if check["guard"] in ("first", "second"):
            await self.barrier.wait()
        return web.json_response(self.decisions.get(check["guard"], ALLOW))


def guard(name: str, **more: object) -> str:
    keys = ", ".join(f"{key}: {value}" for key, value in more.items())
    return f"  - {{name: {name}, kind: webhook, url: 'HOOK', on: [request], timeout: {SECONDS}, {keys}}}\n"


TOGETHER = guard("first", replaces="false") + guard("second", replaces="false")


@asynccontextmanager
async def meeting(
    tmp_path: Path, guards: str, **decisions: dict[str, Any]
) -> AsyncGenerator[tuple[Gateway, Meeting], None]:
    made = Meeting(decisions)
    app = web.Application()
    app.router.add_post("/", made.decide)
    async with (
        serving(app, handler_cancellation=True) as url,
        gateway(tmp_path, responding("ok"), guards.replace("HOOK", f"{url}/")) as here,
    ):
        yield here, made


async def test_guards_that_only_decide_run_at_the_same_time(tmp_path: Path) -> None:
    async with meeting(tmp_path, TOGETHER) as (here, _):
        status, headers, _ = await here.post("/v1/chat/completions", BODY)
    decisions = sorted(headers["x-umg-guards"].split(", "))
    assert (status, decisions) == (200, ["request:first=allow", "request:second=allow"])


async def test_each_of_them_gets_the_texts_as_an_earlier_guard_has_left_them(tmp_path: Path) -> None:
    async with meeting(tmp_path, guard("before") + TOGETHER + guard("after"), before=REPLACE) as (here, hook):
        status, _, _ = await here.post("/v1/chat/completions", BODY)
    assert (status, hook.texts) == (200, ["hi", "bye", "bye", "bye"])


@pytest.mark.parametrize("refusing", ["first", "second"])
async def test_a_refusal_of_one_ends_the_call(refusing: str, tmp_path: Path) -> None:
    refuse = {refusing: {"refuse": {"reason": "not this"}}}
    async with meeting(tmp_path, TOGETHER, **refuse) as (here, _):
        status, headers, got = await here.post("/v1/chat/completions", BODY)
        assert (status, here.provider.requests) == (400, []), got
    assert f"the guard `{refusing}` refuses the request: not this" in got["error"]["message"]
    assert f"request:{refusing}=refused" in headers["x-umg-guards"]


async def test_a_replacement_by_a_guard_that_only_decides_is_its_failure(tmp_path: Path) -> None:
    async with meeting(tmp_path, TOGETHER, second=REPLACE) as (here, _):
        status, headers, _ = await here.post("/v1/chat/completions", BODY)
    assert status == 503
    assert "request:second=failed-closed" in headers["x-umg-guards"]
