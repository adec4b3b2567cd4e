"""Credentials of a cloud in a gateway with several worker processes: each reads its own, also across a reload."""

import asyncio
import signal
from pathlib import Path

import aiohttp

from tests.support.processes import Served, serve
from tests.support.providers.aws_issuer import LONG_LIVED, REGION, ROLE, SERVICE, AwsIssuer
from tests.support.providers.server import serve_provider

KEY = "sk-umg-of-the-tests-of-credentials"


def config(issuer: AwsIssuer, weight: int) -> str:
    return f"""
channels:
  - name: bedrock
    protocols: [chat]
    base_url: {issuer.url}/openai/v1
    auth: {{kind: aws, role_arn: '{ROLE}', region: {REGION}, service: {SERVICE}}}
    weight: {weight}
    models: [m]
"""


async def call(served: Served) -> int:
    """Call on a connection of its own, so that every worker gets some calls. Return the status."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    headers = {"authorization": f"Bearer {KEY}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers) as response,
    ):
        await response.read()
        return response.status


async def test_each_worker_reads_credentials_once_and_keeps_them_at_a_reload(tmp_path: Path) -> None:
    issuer, file = AwsIssuer(), tmp_path / "config.yaml"
    async with serve_provider(issuer):
        environment = {
            "UMG_API_KEY": KEY,
            "AWS_ACCESS_KEY_ID": LONG_LIVED[0],
            "AWS_SECRET_ACCESS_KEY": LONG_LIVED[1],
            "AWS_CONFIG_FILE": str(tmp_path / "none"),
            "AWS_ENDPOINT_URL_STS": issuer.url,
        }
        file.write_text(config(issuer, 1))
        arguments = ("--config", str(file), "--workers", "2")
        async with serve(tmp_path / "data", *arguments, environment=environment) as served:
            async with asyncio.timeout(60):
                while len(issuer.reads) < 2:
                    assert set(await asyncio.gather(*(call(served) for _ in range(8)))) == {200}
            file.write_text(config(issuer, 2))
            served.process.send_signal(signal.SIGHUP)
            for _ in range(2):
                served.log.remove(await served.until_logged("the config was reloaded"))
            assert set(await asyncio.gather(*(call(served) for _ in range(24)))) == {200}
            assert issuer.reads == ["AssumeRole umg-bedrock"] * 2
            assert await served.stop() == 0
