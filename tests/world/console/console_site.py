"""Gateway of a team with two days of calls, a provider that is not paid, and its operator in a browser."""

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

from tests.support.chromium import Page
from tests.support.gateways import KEY, Running, running
from tests.support.serving import serving
from tests.support.usage_records import lines, record
from tests.world.console.person import Person
from umg_grpc.access.account_levels import PROJECT_KIND
from umg_grpc.access.accounts import Accounts
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.budget_settings import Budget, budget_account
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.users import SERVICE_ACCOUNT, Users
from umg_grpc.base.time_units import micros_of
from umg_grpc.store import Store
from umg_grpc.store.budget_accounts import Charge, LeaseId, lock_accounts, period_start, settle
from umg_grpc.store.usage_record_table import UsageRecords

CONFIG = """
channels:
  - {{name: openai, protocols: [sandbox], pace: 0, models: [{{id: gpt-5, upstream: famO-5}}, {{id: gpt-5-mini, upstream: famO-5-mini}}]}}
  - {{name: gemini, protocols: [sandbox], pace: 0, models: [famG-2.5-flash]}}
  - {{name: videos, protocols: [sandbox], pace: 0, models: [vidA-2]}}
  - {{name: azure-eu, protocols: [chat], base_url: "{url}/v1", api_key: {key}, models: [gpt-5-eu, lab-1, lab-2]}}
models:
  gpt-5: {{price: {{input: 1.25, output: 10}}}}
  gpt-5-mini: {{price: {{input: 0.25, output: 2}}}}
  gpt-5-eu: {{price: {{input: 1.25, output: 10}}}}
shipped_prices: false
egress: {{allow: ["{place}"], http: true}}
{database}
"""
MODELS = (("gpt-5", "openai", 31_000), ("gpt-5-mini", "openai", 4_000), ("famG-2.5-flash", "gemini", 9_000))
"""Model, its channel, and the micro-credits of a usual call."""
FAILED_MODEL = "gpt-5-eu"
FAILED_REQUEST, PROVIDER_REQUEST = "req_0661c2f4a9b84e7d", "7f3c9e"
PROVIDER_WORDS = "Your credit balance is too low to access the API."
SECRET_START = 11
HOURS = 48
MICRO = 1_000_000


@dataclass
class Outside:
    """Provider that is not paid, and the server of a caller, which refuses all notifications until it is repaired."""

    is_repaired: bool = False

    async def complete(self, _: web.Request) -> web.Response:
        error = {"error": {"message": PROVIDER_WORDS, "type": "insufficient_quota", "code": "insufficient_quota"}}
        return web.json_response(error, status=402, headers={"x-request-id": PROVIDER_REQUEST})

    async def receive(self, _: web.Request) -> web.Response:
        return web.Response(status=204 if self.is_repaired else 410)


@dataclass(frozen=True)
class Site:
    gateway: Running
    person: Person
    session: aiohttp.ClientSession
    outside: Outside
    outside_url: str
    downloads: Path
    projects: Mapping[str, str]
    _numbers: Iterator[int] = field(default_factory=count)

    async def prepared(self, prompt: str = "a red kite [[fail]]") -> dict[str, str]:
        """Make the objects that the tasks of one person change. Return the names by which its steps find them. `prompt`:
        of a video, which is not made.
        """
        number = next(self._numbers)
        names = {name: f"{name}-{number}" for name in ("indexer", "leaked", "raised")}
        keys = ApiKeys(self.gateway.service.store)
        _, secret = await keys.create(names["leaked"])
        await keys.create(
            names["raised"], budget_micro_credits=5 * MICRO, budget_period="month", project_id=self.projects["search"]
        )
        self.outside.is_repaired = False
        body = {"model": "vidA-2", "prompt": prompt, "callback_url": f"{self.outside_url}/hook"}
        async with self.session.post("/v1/video/generations", json=body, headers=self.gateway.headers) as response:
            assert response.status == 200, await response.text()
        callbacks = self.gateway.service.tasks.context.callbacks
        async with asyncio.timeout(60):  # no event reports that a notification was given up
            while (await callbacks.backlog()).given_up == 0:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        self.outside.is_repaired = True
        return {
            **names,
            "secret": secret,
            "start": secret[:SECRET_START],
            "request": FAILED_REQUEST,
            "person": f"ada{number}@example.com",
        }

    async def status(self, secret: str) -> int:
        """Return the status of a call with a key."""
        async with self.session.get("/v1/models", headers={"authorization": f"Bearer {secret}"}) as response:
            return response.status

    async def key_of(self, role: Role) -> str:
        """Return the key of a service account with a role in the whole gateway."""
        store = self.gateway.service.store
        made = {"name": f"the {role}", "memberships": [Membership(WHOLE_GATEWAY, role)]}
        user = await Users(store).create(SERVICE_ACCOUNT, made)  # type: ignore[arg-type]
        _, secret = await ApiKeys(store).create(f"key of the {role}", user_id=user.user_id)
        return secret


@asynccontextmanager
async def running_site(folder: Path, page: Page, database: str) -> AsyncGenerator[Site, None]:
    """Run the gateway and the servers around it, and sign in. `database`: line of the config, "" for SQLite."""
    outside, app = Outside(), web.Application()
    app.router.add_post("/v1/chat/completions", outside.complete)
    app.router.add_post("/hook", outside.receive)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(app))
        config = CONFIG.format(url=url, key=KEY, place=urlsplit(url).netloc, database=database)
        gateway = await stack.enter_async_context(running(config, folder / "gateway"))
        session = await stack.enter_async_context(aiohttp.ClientSession(gateway.url))
        await call(session, FAILED_MODEL, FAILED_REQUEST)
        projects = await _calls(gateway.service.store)
        downloads = folder / "downloads"
        await page.call("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
        await page.permit_clipboard(gateway.url)
        person = Person(page, gateway.url)
        await person.sign_in(KEY)
        async with asyncio.timeout(60):  # the record is written in the background, which no event reports
            while PROVIDER_REQUEST not in await person.text():
                await asyncio.sleep(0.1)
                await person.open(f"/console/requests/{FAILED_REQUEST}")
        yield Site(gateway, person, session, outside, url, downloads, projects)


async def call(session: aiohttp.ClientSession, model: str, request_id: str, secret: str = KEY) -> None:
    """Call a model, with an id of the caller."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "top_k": 5}
    headers = {"authorization": f"Bearer {secret}", "x-request-id": request_id}
    async with session.post("/v1/chat/completions", json=body, headers=headers) as response:
        await response.read()


async def _calls(store: Store) -> dict[str, str]:
    """Store projects, keys and the calls of two days, some of which failed. Return the ids of the projects by name."""
    now = datetime.now(UTC)
    keys, projects = list[str](), dict[str, str]()
    for project, key, spent in (("search", "app", 0), ("nightly", "batch", 20 * MICRO - 1)):
        settings = {"name": project, "budgets": (Budget("month", 20 * MICRO),)}
        projects[project] = (await Accounts(store).create(PROJECT_KIND, settings)).account_id  # type: ignore[arg-type]
        budget = {"budget_micro_credits": 100 * MICRO, "budget_period": "month"}
        made, _ = await ApiKeys(store).create(key, project_id=projects[project], **budget)  # type: ignore[arg-type]
        keys.append(made.key_id)
        if spent:
            await _spend(store, budget_account(projects[project], "month"), spent, now)
    await _spend(store, keys[0], 61 * MICRO, now)
    chance, numbers = random.Random(1), count()  # the same calls in each run
    made_calls = [
        _record(chance, next(numbers), now - timedelta(hours=hour, minutes=chance.uniform(1, 59)), chance.choice(keys))
        for hour in range(HOURS)
        for _ in range(12 if hour < HOURS // 2 else 9)
    ]
    await UsageRecords(store).insert(lines(*made_calls))
    return projects


def _record(chance: random.Random, number: int, time: datetime, key_id: str) -> object:
    model, channel, cost = chance.choice(MODELS)
    failed = chance.random() < 0.05
    duration = int(chance.lognormvariate(14.3, 0.5))
    return record(
        number, key_id=key_id, model=model, channel=channel, start_micros=micros_of(time), duration_micros=duration,
        first_byte_micros=duration // 4, input_tokens=1800, cache_read_tokens=600, output_tokens=90,
        micro_credits=0 if failed else int(cost * chance.uniform(0.5, 2)), status="UNAVAILABLE" if failed else "OK",
        reason="UPSTREAM_FAILED" if failed else "", failure_kind="slow" if failed else "",
    )  # fmt: skip


async def _spend(store: Store, account: str, micro_credits: int, now: datetime) -> None:
    start = period_start("month", now)
    async with store.write() as session:
        await lock_accounts(session, [(account, start)])
        await settle(session, [Charge(LeaseId(account, start, "none"), micro_credits)])
