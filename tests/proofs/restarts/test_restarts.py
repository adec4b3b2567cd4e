"""A short run of the restarts, for which `make restarts` is the long one, and objects that an outage leaves unwritten."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from tests.proofs.restarts.run import CONFIG, FIRST, KINDS, MODEL, Plan, run
from tests.support.databases import Postgres
from tests.support.processes import serve

HEADERS = {"authorization": f"Bearer {FIRST}"}
SECONDS = 60.0
BETA = {"anthropic-beta": "message-threads-2026-08-12", "anthropic-version": "2023-06-01"}
QUESTION = [{"role": "user", "content": "Hi"}]
THREAD = {"model": MODEL, "max_tokens": 64, "messages": QUESTION}
OTHER = "  - {name: other, protocols: [responses], base_url: 'https://provider.invalid/v1', api_key: k, models: [m]}\n"
NAMED_OBJECT = {"model": "m", "input": "Hi", "conversation": "conv_123"}
"""Request with an object of the provider's account, which no response of this key has named."""
FOREIGN_RESPONSE, FOREIGN_TASK = f"resp_{'0' * 32}", "00000000-0000-4000-8000-000000000000"


async def test_no_call_fails_while_the_database_restarts(tmp_path: Path, postgres: Postgres) -> None:
    tally = await run(Plan(restarts=1, callers=1, calls=5, patient=True), postgres, tmp_path)
    assert dict(tally.failed) == {kind: [] for kind in KINDS}


@dataclass
class Pair:
    session: aiohttp.ClientSession
    urls: tuple[str, str]
    database: Postgres

    async def call(self, replica: int, method: str, path: str, body: object = None) -> tuple[int, Mapping[str, object]]:
        url, headers = f"{self.urls[replica]}{path}", {**HEADERS, **BETA}
        async with self.session.request(method, url, json=body, headers=headers) as answer:
            found: Mapping[str, object] = await answer.json()
            assert answer.status != 503 or answer.headers["retry-after"] == "1"
            return answer.status, found

    async def statuses_until(self, wanted: int, method: str, path: str, body: object = None) -> set[int]:
        """Repeat a call of the second gateway until it has this status. Return the statuses of all."""
        seen = set[int]()
        async with asyncio.timeout(SECONDS):
            while wanted not in seen:
                seen.add((await self.call(1, method, path, body))[0])
        return seen


@pytest.fixture
async def pair(tmp_path: Path, postgres: Postgres) -> AsyncGenerator[Pair, None]:
    config = tmp_path / "umg.yaml"
    config.write_text(CONFIG.format(database=postgres.create(tmp_path.name.replace("-", "_"))) + OTHER)
    async with AsyncExitStack() as stack:
        urls = [
            (
                await stack.enter_async_context(
                    serve(tmp_path / f"data-{number}", "--config", str(config), environment={"UMG_API_KEY": FIRST})
                )
            ).http
            for number in range(2)
        ]
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Pair(session, (urls[0], urls[1]), postgres)


async def test_objects_of_an_outage_are_found_or_may_be_tried_again_and_are_never_unknown(pair: Pair) -> None:
    foreign_thread = {**THREAD, "thread": {"type": "continue", "previous_message_id": "msg_unknown"}}
    unknown = [
        ("GET", f"/v1/responses/{FOREIGN_RESPONSE}", None),
        ("GET", f"/v1/videos/{FOREIGN_TASK}", None),
        ("POST", "/v1/responses", NAMED_OBJECT),
        ("POST", "/v1/messages", foreign_thread),
    ]
    for call in unknown:
        assert (await pair.call(1, *call))[0] == 404, call
    await asyncio.to_thread(pair.database.stop)
    try:
        status, response = await pair.call(0, "POST", "/v1/responses", {"model": MODEL, "input": "Hi"})
        assert status == 200
        status, message = await pair.call(0, "POST", "/v1/messages", {**THREAD, "thread": {"type": "create"}})
        assert status == 200
        stored = f"/v1/responses/{response['id']}"
        continued = {**THREAD, "thread": {"type": "continue", "previous_message_id": message["id"]}}
        assert (await pair.call(1, "GET", stored))[0] == 503
        assert (await pair.call(1, "POST", "/v1/messages", continued))[0] == 503
    finally:
        await asyncio.to_thread(pair.database.start)
    for call in unknown:
        assert (await pair.call(1, *call))[0] == 503, call  # another process might still hold it
    assert await pair.statuses_until(200, "GET", stored) <= {200, 503}
    assert await pair.statuses_until(200, "POST", "/v1/messages", continued) <= {200, 503}
