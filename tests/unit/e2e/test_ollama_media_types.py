"""Bodies for Ollama's paths are JSON under any media type: curl of its documents states that of forms."""

from pathlib import Path

import aiohttp
import pytest

from tests.support.gateways import running

CONFIG = """
channels:
  - {name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5, text-embedding-3-small]}
"""
BODIES = {
    "/api/chat": '{"model": "famO-5", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}',
    "/api/generate": '{"model": "famO-5", "prompt": "Why is the sky blue?", "stream": false}',
    "/api/embed": '{"model": "text-embedding-3-small", "input": "Why is the sky blue?"}',
    "/api/embeddings": '{"model": "text-embedding-3-small", "prompt": "Why is the sky blue?"}',
    "/api/show": '{"model": "famO-5"}',
}
KINDS = ("application/x-www-form-urlencoded", "text/plain;charset=UTF-8", "application/octet-stream")


@pytest.mark.parametrize("path", BODIES)
async def test_a_body_is_read_as_json_under_any_media_type(path: str, tmp_path: Path) -> None:
    async with running(CONFIG, tmp_path) as gateway, aiohttp.ClientSession(headers=gateway.headers) as session:
        for kind in KINDS:
            headers = {"content-type": kind}
            async with session.post(gateway.url + path, data=BODIES[path], headers=headers) as got:
                assert got.status == 200, await got.text()
            async with session.post(gateway.url + path, data="model=famO-5", headers=headers) as got:
                assert got.status == 400, await got.text()
