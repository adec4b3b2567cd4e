"""Gateway in front of a hostile provider, whose failures neither are repeated nor open a circuit breaker."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import ClientSession

from tests.support.gateways import Running, running

OPTIONS = "retries: {repeats: 0}\nbreaker: {failures: 100000}\negress: {allow: [127.0.0.1], http: true}\n"


@asynccontextmanager
async def gateway_of(
    protocols: Mapping[str, str], base_url: str, key: str, data: Path
) -> AsyncGenerator[tuple[Running, ClientSession], None]:
    """Run a gateway with a channel for each name, of its protocol, with the model `m-NAME`. Yield it and a session with
    its key.
    """
    channels = "".join(
        f"- {{name: {name}, protocols: [{protocol}], base_url: '{base_url}', api_key: {key}, models: [m-{name}]}}\n"
        for name, protocol in protocols.items()
    )
    async with (
        running(f"{OPTIONS}channels:\n{channels}", data) as gateway,
        ClientSession(headers=gateway.headers) as session,
    ):
        yield gateway, session
