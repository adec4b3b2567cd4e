"""One run: two gateways on one PostgreSQL, callers of each kind, and restarts of the database meanwhile."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.databases import Postgres
from tests.support.load import FailedError, Tally, repeating
from tests.support.processes import Served, serve

FIRST = "sk-umg-of-the-test-of-restarts-0123456789"
MODEL, VIDEO_MODEL = "famO-5", "vidA-2"
CONFIG = f"""
database: {{database}}
overload: {{{{lag: 10}}}}
channels:
  - {{{{name: sandbox, protocols: [sandbox], pace: 0, models: [{MODEL}, {VIDEO_MODEL}]}}}}
"""


class Callers:
    """Calls of each kind, which take turns between the gateways."""

    def __init__(self, session: aiohttp.ClientSession, urls: Sequence[str], budgeted: str) -> None:
        self._session = session
        self._urls = itertools.cycle(urls)
        self._budgeted = budgeted
        self._names = itertools.count()

    async def chat(self) -> None:
        """Call with a key in memory."""
        await self._send("POST", "/v1/chat/completions", self._chat_body())

    async def budget(self) -> None:
        """Call with a key whose budget is small, so that the process leases often."""
        await self._send("POST", "/v1/chat/completions", self._chat_body(), self._budgeted)

    async def new_key(self) -> None:
        made = await self._send("POST", "/admin/v1/keys", {"settings": {"name": f"key-{next(self._names)}"}})
        await self._send("POST", "/v1/chat/completions", self._chat_body(), made["secret"])

    async def responses(self) -> None:
        """Create a response, read it from the other gateway, and continue it at the first."""
        made = await self._send("POST", "/v1/responses", {"model": MODEL, "input": "Hi"})
        await self._send("GET", f"/v1/responses/{made['id']}")
        body = {"model": MODEL, "input": "And?", "previous_response_id": made["id"]}
        await self._send("POST", "/v1/responses", body)

    async def video(self) -> None:
        """Create a video task, and read it from the other gateway."""
        body = {"model": VIDEO_MODEL, "prompt": "a cat", "seconds": "4"}
        made = await self._send("POST", "/v1/videos", body)
        await self._send("GET", f"/v1/videos/{made['id']}")

    async def usage(self) -> None:
        await self._send("GET", "/admin/v1/usage")

    def _chat_body(self) -> dict[str, Any]:
        return {"model": MODEL, "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}]}

    async def _send(self, method: str, path: str, body: object = None, key: str = FIRST) -> Any:
        url = f"{next(self._urls)}{path}"
        headers = {"authorization": f"Bearer {key}"}
        async with self._session.request(method, url, json=body, headers=headers) as answer:
            if answer.status >= 300:
                raise FailedError(f"{method} {path.partition('/resp_')[0]}: {answer.status} {await answer.text()}")
            return await answer.json()


KINDS: dict[str, Callable[[Callers], Awaitable[None]]] = {
    "chat": Callers.chat,
    "chat with a budget": Callers.budget,
    "new key": Callers.new_key,
    "stored responses": Callers.responses,
    "video task": Callers.video,
    "usage report": Callers.usage,
}


@dataclass(frozen=True)
class Plan:
    restarts: int
    away_seconds: float = 0.0
    """Pause between the end of the server and its next start."""
    callers: int = 2
    """Callers of each kind."""
    calls: int = 20
    """Calls of each kind before and after each restart."""
    patient: bool = False
    """Whether calls wait for the database as long as the restart lasts, as on a machine whose load varies."""
    immediate: bool = False
    """Whether the server ends without a word to its clients, as in a crash."""


async def run(plan: Plan, postgres: Postgres, folder: Path, database: str = "") -> Tally:
    """Run the calls and restarts of a plan. Return the calls. `database`: URL of the database, by another way than
    directly; "" creates one.
    """
    database, tally = database or postgres.create(folder.name.replace("-", "_")), Tally()
    config = folder / "umg.yaml"
    config.write_text(CONFIG.format(database=database))
    prepared_by = "tests.proofs.restarts.long_waits" if plan.patient else ""
    flags, environment = ("--config", str(config)), {"UMG_API_KEY": FIRST}
    async with AsyncExitStack() as stack:
        gateways = [
            serve(folder / f"data-{number}", *flags, environment=environment, prepared_by=prepared_by)
            for number in range(2)
        ]
        served = [await stack.enter_async_context(gateway) for gateway in gateways]
        session = await stack.enter_async_context(aiohttp.ClientSession())
        callers = Callers(session, [each.http for each in served], await _budgeted_key(session, served[0]))
        calls = [partial(tally.count, kind, partial(call, callers)) for kind, call in KINDS.items()]
        async with repeating(plan.callers * calls):
            await tally.until_more(KINDS, plan.calls)
            for _ in range(plan.restarts):
                await asyncio.to_thread(postgres.stop, immediate=plan.immediate)
                await asyncio.sleep(plan.away_seconds)
                await asyncio.to_thread(postgres.start)
                await tally.until_more(KINDS, plan.calls)
    return tally


async def _budgeted_key(session: aiohttp.ClientSession, gateway: Served) -> str:
    settings = {"name": "budgeted", "budget_micro_credits": 2 * 10**9}
    url, headers = f"{gateway.http}/admin/v1/keys", {"authorization": f"Bearer {FIRST}"}
    async with session.post(url, json={"settings": settings}, headers=headers) as answer:
        made = await answer.json()
        assert "secret" in made, made
        secret: str = made["secret"]
        return secret
