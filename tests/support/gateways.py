"""Complete gateways for tests, run in the test's process on free ports, and called as callers do."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.support.databases import create_database
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.errors import UmgError
from umg_grpc.config import Address, Config, parse
from umg_grpc.process.serve_options import Options
from umg_grpc.process.serve_process import gateway
from umg_grpc.process.service_factory import Service
from umg_grpc.store.database_constants import SQLITE_KIND

KEY = "sk-umg-end-to-end"
ANY = Address("127.0.0.1", 0)

SANDBOX = """
channels:
  - name: sandbox
    protocols: [sandbox]
    pace: 0
    models: [famG-2.5-flash, famG-2.5-pro, famG-3-pro, famO-5-mini, famO-5, famC-sonnet-4-5, famQ-3-max, famR-1, famX-4,
      famG-2.5-flash-image]
"""
"""Config of the simulated provider, without its pauses."""


@dataclass(frozen=True)
class Running:
    url: str  # of its HTTP face
    grpc: str  # host:port
    service: Service
    key: str = KEY

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}


@asynccontextmanager
async def running(
    config: str | Config, data: Path, environment: Mapping[str, str] = MappingProxyType({})
) -> AsyncGenerator[Running, None]:
    """Run the gateway of a config, until the context ends. `environment`: more variables."""
    parsed = parse(config, "test.yaml", {}) if isinstance(config, str) else config
    if parsed.database == SQLITE_KIND:
        await create_database(data)
    async with gateway(Options(None, ANY, ANY, data), parsed, {"UMG_API_KEY": KEY, **environment}, None) as state:
        assert state.service is not None
        assert state.http is not None
        scheme = "https" if parsed.tls is not None else "http"
        yield Running(f"{scheme}://{state.http}", str(state.grpc), state.service)


async def refresh_model_lists(service: Service) -> None:
    """Read the model lists of all channels, and wait until they are used."""
    discovery = service._discovery
    await discovery._read(discovery._lists.values())
    async with service._routing:  # the read of the start may have built the router of the same list
        pass


async def revoke(service: Service, reference: str, secret: str) -> None:
    """Revoke a key, and wait until the gateway rejects it: a load of all keys may have read it just before."""
    await ApiKeys(service.store).revoke(reference)
    async with asyncio.timeout(60):
        with suppress(UmgError):
            while await service.authenticator.authenticate(secret):  # noqa: ASYNC110  # no event reports it
                await asyncio.sleep(0.05)  # leaves the processor to the gateway, which looks the key up again


def channel(name: str, protocol: str, base_url: str, model: str, upstream: str = "", family: str = "") -> str:
    """Return the config of one channel as YAML, to be joined with others below `channels:`."""
    entry = f"{{id: {model}, upstream: {upstream or model}{f', family: {family}' if family else ''}}}"
    return (
        f"  - name: {name}\n    protocols: [{protocol}]\n    base_url: {base_url}\n"
        f"    api_key: {KEY}\n    models: [{entry}]\n"
    )


SEARCHES_AND_REASONS = (
    "    quirks: {web_search: true, reasoning_content: true, custom_tools: true, developer: true, rejects: []}\n"
)
"""Config lines of a channel whose provider supports web search, custom tools, and reasoning content in chat requests.
"""


def takes_all(protocol: str) -> str:
    """Return the config lines of a channel whose provider supports everything that its format can express, and to which
    the gateway adds nothing of its own.
    """
    quirks = "{web_search: true, reasoning_content: true, custom_tools: true, developer: true, rejects: [], max_user_characters: 4096}"
    written = f"    quirks: {quirks}\n"
    return written + ("    prompt_caching: off\n" if protocol == "messages" else "")
