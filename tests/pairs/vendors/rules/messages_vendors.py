"""Rules of the vendors that offer messages beside their chat."""

import re
from collections.abc import Callable

from tests.pairs.vendors.refusal import Json, Rules, VendorCall
from tests.pairs.vendors.rules.chat_vendors import judge_limit, judge_sampling

TURN_ROLES = ("user", "assistant")
DEEPSEEK_SERVER_TOOLS = ("web_search_20250305", "web_search_20260209")
DEEPSEEK_USER = re.compile(r"[a-zA-Z0-9_-]+")
MINIMAX_THINKING = ("adaptive", "disabled")


def deepseek(call: VendorCall) -> Rules:
    """Yield the refusals of DeepSeek's messages."""
    yield from _judge_roles(call, "deepseek.turn-role")
    for index, tool in enumerate(call.body.get("tools") or ()):
        kind = tool.get("type")
        if kind is not None and kind not in DEEPSEEK_SERVER_TOOLS:
            yield call.refuse("deepseek.tool-type", at=index, value=kind)
    for index, turn in enumerate(call.messages):
        if is_thinking(call) and _has(turn, "tool_use") and not _has(turn, "thinking"):
            yield call.refuse("deepseek.thinking-block")
        if _has(turn, "document") or (_has(turn, "image") and not call.flags.get("supports_vision")):
            yield call.refuse("deepseek.block", at=index)
    if _choice(call.body) == "tool" and is_thinking(call):
        yield call.refuse("deepseek.tool-choice")
    user = (call.body.get("metadata") or {}).get("user_id")
    if user is not None and DEEPSEEK_USER.fullmatch(user) is None:
        yield call.refuse("deepseek.user")
    yield from judge_limit(call, "deepseek.limit", call.limit)


def moonshot(call: VendorCall) -> Rules:
    """Yield the refusals of Moonshot's messages."""
    body = call.body
    yield from judge_sampling(call)
    effort = (body.get("output_config") or {}).get("effort")
    if effort is not None and call.efforts and effort not in call.efforts:
        yield call.refuse("moonshot.messages-effort", value=effort, values=", ".join(call.efforts))
    if _choice(body) == "tool" and is_thinking(call):
        yield call.refuse("moonshot.tool-choice", value="specified")
    kind = _thinking(body)
    if kind not in (None, "enabled") and call.model.startswith("kimi-k2.7-code"):
        yield call.refuse("moonshot.disabled")


def zai(call: VendorCall) -> Rules:
    """Yield the refusals of Z.ai's messages."""
    yield from _judge_roles(call, "zai.turn-role")


def minimax(call: VendorCall) -> Rules:
    """Yield the refusals of MiniMax's messages."""
    yield from _judge_roles(call, "minimax.turn-role")
    kind = _thinking(call.body)
    if kind not in (None, *MINIMAX_THINKING) and call.model == "MiniMax-M3":
        yield call.refuse("minimax.thinking", value=kind)


def dashscope(call: VendorCall) -> Rules:
    """Yield the refusals of DashScope's messages."""
    yield from _judge_roles(call, "dashscope.turn-role")


def is_thinking(call: VendorCall) -> bool:
    """Return whether the model reasons in answer to a body of messages."""
    if call.fact.default == "always" or (kind := _thinking(call.body)) is None:
        return call.fact.default in ("on", "always")
    return kind != "disabled"


def _judge_roles(call: VendorCall, rule: str) -> Rules:
    for index, turn in enumerate(call.messages):
        if turn.get("role") not in TURN_ROLES:
            yield call.refuse(rule, at=index, value=turn.get("role"))


def _thinking(body: Json) -> str | None:
    kind = (body.get("thinking") or {}).get("type")
    return None if kind is None else str(kind)


def _choice(body: Json) -> str:
    return str((body.get("tool_choice") or {}).get("type"))


def _has(turn: Json, kind: str) -> bool:
    content = turn.get("content")
    return isinstance(content, list) and any(isinstance(block, dict) and block.get("type") == kind for block in content)


MESSAGES: dict[str, Callable[[VendorCall], Rules]] = {
    "deepseek": deepseek,
    "moonshot": moonshot,
    "zai": zai,
    "minimax": minimax,
    "dashscope": dashscope,
}
"""Vendor -> rules of its messages."""
