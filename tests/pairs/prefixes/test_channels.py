"""A conversation stays at its channel when a turn appears of which the channel's format loses a part: another provider
has nothing of the conversation in its prompt cache.
"""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.pairs.table import strict_fake
from tests.support.callers.http_caller import HttpCaller
from tests.support.gateways import running
from tests.support.providers.strict_providers import KEY, text_provider

CHANNEL = """\
  - {{name: {name}, protocols: [{name}], base_url: "{base_url}", api_key: {key}, priority: {priority}, models: [m]}}
"""
QUESTION = {"role": "user", "parts": [{"text": "scenario: plain"}]}
CALLED = {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "look", "args": {}}}]}
TOOLS = [{"functionDeclarations": [{"name": "look"}]}]


def answered(**response: str) -> dict[str, Any]:
    """Return a turn of the user with the result of the call."""
    return {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "look", "response": response}}]}


@pytest.mark.asyncio
async def test_a_failed_tool_does_not_change_the_channel_of_its_conversation(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        config = "channels:\n"
        for priority, name in enumerate(("chat", "messages")):
            provider = await stack.enter_async_context(text_provider(strict_fake(name)()))
            config += CHANNEL.format(name=name, base_url=provider.base_url, key=KEY, priority=priority)
        gateway = await stack.enter_async_context(running(config, tmp_path))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        caller = HttpCaller(session, gateway.url, gateway.key)
        for contents in ([QUESTION], [QUESTION, CALLED, answered(output="x")], [QUESTION, CALLED, answered(error="x")]):
            answer = await caller.send("native", "m", {"contents": contents, "tools": TOOLS})
            assert (answer.status, answer.headers["x-umg-route"].partition(";")[0]) == (200, "channel=chat")
        assert "is_error" in answer.headers["x-umg-dropped"]
