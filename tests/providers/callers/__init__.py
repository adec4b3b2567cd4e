"""What callers do with the official SDKs, alike for the four formats: a wish becomes a request in the SDK's own words,
and what its objects and accumulators show is read back.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anthropic
import openai
from google import genai
from google.genai import types as native_types

from tests.providers.callers.chat import ChatCaller
from tests.providers.callers.messages import MessagesCaller
from tests.providers.callers.native import NativeCaller
from tests.providers.callers.responses import ResponsesCaller
from tests.providers.callers.wish import Caller, Shown, Wish


@asynccontextmanager
async def caller(
    name: str, root_url: str, key: str, model: str = "m", *, keeps: bool = False
) -> AsyncGenerator[Caller, None]:
    """The SDK of a format, for the server at `root_url` (without a path), without retries."""
    match name:
        case "chat" | "responses":
            async with openai.AsyncOpenAI(base_url=f"{root_url}/v1", api_key=key, max_retries=0) as sdk:
                yield ChatCaller(sdk, model) if name == "chat" else ResponsesCaller(sdk, model, keeps)
        case "messages":
            async with anthropic.AsyncAnthropic(base_url=root_url, api_key=key, max_retries=0) as messages:
                yield MessagesCaller(messages, model)
        case "native":
            options = native_types.HttpOptions(base_url=root_url, api_version="v1beta")
            client = genai.Client(api_key=key, http_options=options)
            try:
                yield NativeCaller(client, model)
            finally:
                await client.aio.aclose()
                client.close()


__all__ = ["Caller", "Shown", "Wish", "caller"]
