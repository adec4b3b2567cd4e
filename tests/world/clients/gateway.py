"""Gateway of the scenarios in `clients/scenarios.json`: the built-in config, and models that fail in each way.

`python -m tests.world.clients.gateway` runs it until Ctrl-C and prints the environment of the `scenarios` programs.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web
from umg_client import Client, connect, user, v1

from tests.support.processes import serve
from tests.support.serving import serving
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.config.built_in_config import BUILT_IN
from umg_grpc.store import open_store
from umg_grpc.store.database_constants import SQLITE_KIND

SCENARIOS = Path(__file__).parents[3] / "clients" / "scenarios.json"
ADMIN_KEY = "sk-umg-administrator-of-scenarios"

CHANNELS = """\
  - name: paced
    protocols: [sandbox]
    pace: 20
    models: [{{id: paced, upstream: famO-5}}]
  - name: impatient
    protocols: [sandbox]
    timeout: {{first_byte: 0.2}}
    models: [{{id: impatient, upstream: famO-5}}]
  - name: full
    protocols: [sandbox]
    concurrency: 1
    timeout: {{first_byte: 7200, total: 7200}}
    models: [{{id: full, upstream: famO-5}}]
  - name: down
    protocols: [chat]
    base_url: http://127.0.0.1:9/v1
    api_key: unused
    models: [down]
  - name: flaky
    protocols: [chat]
    base_url: {provider}/v1
    api_key: unused
    models: [flaky, narrow, rejecting, blocking]
"""
"""`full` has no room left, `down` is not there, `flaky` refuses every other call, `rejecting` and `blocking` each one."""
REFUSALS = {
    "rejecting": {"message": "the tone of this prompt is not supported", "param": "messages", "code": "bad_tone"},
    "blocking": {"message": "the prompt triggered the content filter", "code": "content_filter"},
}
LIMITS = "overload: {queue: 1, wait: 0.1}\nbreaker: {failures: 1000, share: 1}\nretries: {repeats: 0}\n"


@dataclass(frozen=True)
class Prepared:
    address: str
    key: str
    scenarios: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a `scenarios` program."""
        return {
            "UMG_ADDRESS": self.address,
            "UMG_API_KEY": self.key,
            "UMG_ADMIN_KEY": ADMIN_KEY,
            "UMG_SCENARIOS": str(self.scenarios),
        }


@asynccontextmanager
async def prepared(data: Path) -> AsyncGenerator[Prepared, None]:
    """Run the gateway, with a key that is no administrator's, an expired one, and a call that occupies the
    channel `full`.
    """
    async with serving(provider()) as url:
        channels = CHANNELS.format(provider=url) + BUILT_IN.removeprefix("channels:\n")
        config = data / "scenarios.yaml"
        config.write_text(f"{LIMITS}channels:\n{channels}")
        environment = {"UMG_API_KEY": ADMIN_KEY}
        async with (
            serve(data, "--config", str(config), environment=environment) as gateway,
            connect(gateway.grpc, ADMIN_KEY) as client,
        ):
            created = await client.admin.create_key(v1.CreateKeyRequest(settings=v1.KeySettings(name="scenarios")))
            store = await open_store(SQLITE_KIND, data, create=False)
            past = datetime.now(UTC) - timedelta(seconds=1)
            _, expired = await ApiKeys(store, now=lambda: past).create("expired", expire_time=past)
            await store.aclose()
            scenarios = data / "scenarios.json"
            scenarios.write_text(SCENARIOS.read_text().replace("EXPIRED_KEY", expired))
            occupying = asyncio.create_task(_occupy(client))
            try:
                yield Prepared(gateway.grpc, created.secret, scenarios)
            finally:
                occupying.cancel()
                with suppress(asyncio.CancelledError):
                    await occupying


async def _occupy(client: Client) -> None:
    request = v1.GenerateRequest(model="full", messages=[user("[[slow]]")])
    await client.generation.generate(request)


def provider() -> web.Application:
    """Return a provider that refuses every other call of the model `flaky`, and each call of `REFUSALS`."""
    calls = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal calls
        model = (await request.json())["model"]
        if model in REFUSALS:
            return web.json_response({"error": REFUSALS[model]}, status=400)
        if model == "flaky":
            calls += 1
            if calls % 2:
                busy = {"message": "slow down", "code": "rate_limit_exceeded"}
                return web.json_response({"error": busy}, status=429, headers={"retry-after": "1"})
        choice = {"index": 0, "message": {"role": "assistant", "content": "At last."}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
        return web.json_response(
            {"id": "c", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage}
        )

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    return app


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with prepared(Path(folder)) as gateway:
            for name, value in gateway.environment.items():
                print(f"export {name}={value}", flush=True)  # noqa: T201
            await asyncio.Event().wait()


if __name__ == "__main__":
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    asyncio.run(main())
