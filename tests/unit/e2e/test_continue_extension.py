"""Bodies that Continue's extension of editors sends to a provider `ollama` (`core/llm/llms/Ollama.ts` of the repository
continuedev/continue at 0108be5), whose command calls chat completions instead: the description of the model, a chat
with tools that is not streamed, and the stream after their results, which name no call.
"""

import json
from pathlib import Path
from typing import Any

import aiohttp

from tests.support import gateways
from tests.support.callers.requests import Json
from tests.support.gateways import channel, running
from tests.support.providers.scenarios import TOOLS
from tests.support.providers.strict_providers import KEY, provider

QUESTION = {"role": "user", "content": "scenario: tools"}
OPTIONS = {"num_predict": 4096, "num_ctx": 200_000, "num_thread": 4, "use_mmap": True, "stop": ["END"]}


def body(*messages: Json, **members: Any) -> Json:
    return {"model": "m", "messages": messages, "options": OPTIONS, "keep_alive": 1800, **members}


async def test_a_chat_with_tools_of_the_extension(tmp_path: Path) -> None:
    functions = [{"name": name, "description": name, "parameters": schema} for name, schema in TOOLS.items()]
    tools = [{"type": "function", "function": function} for function in functions]
    async with provider("messages") as server:
        config = channel("main", "messages", server.base_url, "m", "m").replace(gateways.KEY, KEY)
        async with (
            running(f"channels:\n{config}", tmp_path) as gateway,
            aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session,
        ):
            async with session.post("/api/show", json={"name": "m"}) as answer:
                shown = await answer.json()
                assert (answer.status, type(shown["parameters"]), type(shown["template"])) == (200, str, str)
            async with session.post("/api/chat", json=body(QUESTION, tools=tools, stream=False)) as answer:
                called = (await answer.json())["message"]
            result = {"role": "tool", "content": "21 degrees"}
            async with session.post("/api/chat", json=body(QUESTION, called, result, stream=True)) as answer:
                lines = [json.loads(line) async for line in answer.content]
    assert [call["function"]["name"] for call in called["tool_calls"]] == ["get_weather"]
    assert "".join(line["message"]["content"] for line in lines) == "The tools said: get_weather gave 21 degrees."
    assert lines[-1]["done"]
    assert server.refusals == []
