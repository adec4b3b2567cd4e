"""Tools that are Python functions, run for the tool calls of a model."""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping

from umg_client import v1
from umg_client.messages import text_part

Tools = Mapping[str, Callable[..., object]]
"""Function by the name of its tool. Its parameters are the arguments of the tool; it returns text or awaits it."""


async def result_of(call: v1.ToolCall, tools: Tools) -> v1.Part:
    """Return the result of a tool call. A failure of the tool is a result too, which the model can react to.

    A coroutine function runs on the event loop, any other function in a thread.
    """
    function = tools.get(call.name)
    if function is None:
        return _result(call, f"there is no tool {call.name!r}", is_error=True)
    try:
        arguments = json.loads(call.arguments_json or "{}")
        if inspect.iscoroutinefunction(function):
            value = await function(**arguments)
        else:
            value = await asyncio.to_thread(function, **arguments)
    except Exception as error:  # a tool may raise anything
        return _result(call, f"{type(error).__name__}: {error}", is_error=True)
    return _result(call, str(value))


def _result(call: v1.ToolCall, text: str, *, is_error: bool | None = None) -> v1.Part:
    parts = [text_part(text)]
    return v1.Part(tool_result=v1.ToolResult(call_id=call.call_id, name=call.name, parts=parts, is_error=is_error))
