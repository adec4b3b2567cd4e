"""A gateway that serves loads the libraries that its config needs: each other one would take megabytes of its memory."""

import sys
from pathlib import Path

import aiohttp

from tests.support.processes import serve
from tests.support.providers.chat_faults import provider

KEY = "sk-umg-of-the-tests-of-imports"
CONFIG = """
channels:
  - {{name: main, protocols: [chat], base_url: "{base_url}", api_key: sk-provider, models: [plain]}}
"""
SHOWS_IMPORTS = (sys.executable, "-X", "importtime", "-m", "umg_grpc.cli")
UNUSED = {
    *("PIL", "numpy", "tokenizers", "jsonschema", "umg_sandbox"),
    *("cryptography", "jwt", "protovalidate", "limits", "rich.console", "redis", "alembic", "psycopg"),
    *("opentelemetry.sdk", "botocore", "azure", "google.auth"),
}
"""Modules that a config of one channel with a key does not need for calls over HTTP."""


async def test_a_gateway_loads_no_more_libraries_than_its_config_needs(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    arguments = (tmp_path / "data", "--config", str(config))
    async with provider() as upstream, aiohttp.ClientSession() as session:
        config.write_text(CONFIG.format(base_url=upstream.base_url))
        async with serve(*arguments, environment={"UMG_API_KEY": KEY}, program=SHOWS_IMPORTS) as served:
            body = {"model": "plain", "messages": [{"role": "user", "content": "Hi"}]}
            headers = {"authorization": f"Bearer {KEY}"}
            async with session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers) as response:
                assert response.status == 200
            assert await served.stop() == 0
    loaded = {line.rpartition("|")[2].strip() for line in served.log if line.startswith("import time:")}
    assert "aiohttp" in loaded
    assert sorted(loaded & UNUSED) == []
