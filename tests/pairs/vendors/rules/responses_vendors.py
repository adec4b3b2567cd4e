"""Rules of the vendors that offer responses beside their chat."""

from collections.abc import Callable

from tests.pairs.vendors.refusal import Rules, VendorCall
from tests.pairs.vendors.rules.chat_vendors import GROQ_UNKNOWN, judge_sampling, judge_xai_effort

PATCH_TOOL = "apply_patch"
"""The only custom tool of DeepSeek and Moonshot."""
MOONSHOT_TOOLS = ("function", "namespace", "custom", "web_search")
GROQ_UNSUPPORTED = ("safety_identifier", "include")
XAI_TOOLS = (
    "function",
    "web_search",
    "x_search",
    "image_generation",
    "collections_search",
    "file_search",
    "code_execution",
    "code_interpreter",
    "mcp",
    "shell",
)


def deepseek(call: VendorCall) -> Rules:
    """Yield the refusals of DeepSeek's responses, which ignore the members that they do not have."""
    yield from _judge_custom_tools(call, "deepseek.custom-tool")


def moonshot(call: VendorCall) -> Rules:
    """Yield the refusals of Moonshot's responses, which serve one series."""
    if not call.model.startswith("kimi-k3"):
        yield call.refuse("moonshot.responses-model")
    yield from judge_sampling(call)
    effort = _effort(call)
    if effort is not None and effort not in call.efforts:
        yield call.refuse("moonshot.responses-effort", value=effort, values=", ".join(call.efforts))
    for index, tool in enumerate(call.body.get("tools") or ()):
        if tool.get("type") not in MOONSHOT_TOOLS:
            yield call.refuse("moonshot.tool-type", at=index, value=tool.get("type"))
    yield from _judge_custom_tools(call, "moonshot.custom-tool")


def groq(call: VendorCall) -> Rules:
    """Yield the refusals of Groq's responses."""
    effort = _effort(call)
    if effort is not None and call.efforts and effort not in call.efforts:
        yield call.refuse("groq.responses-effort", values=" or ".join(f"`{each}`" for each in call.efforts))
    for name in (*GROQ_UNKNOWN, *GROQ_UNSUPPORTED):
        if name in call.body:
            yield call.refuse("groq.unknown-member", at=name)


def ark(call: VendorCall) -> Rules:
    """Yield the refusals of Ark's responses."""
    effort = _effort(call)
    if effort is not None and effort not in call.efforts:
        yield call.refuse("ark.responses-effort", value=effort)


def xai(call: VendorCall) -> Rules:
    """Yield the refusals of xAI's responses."""
    yield from judge_xai_effort(call, _effort(call))
    for index, tool in enumerate(call.body.get("tools") or ()):
        if tool.get("type") not in XAI_TOOLS:
            yield call.refuse("xai.tool-type", at=index, value=tool.get("type"))
        if "external_web_access" in tool:
            yield call.refuse("xai.search-option")
    if call.body.get("instructions") and call.body.get("previous_response_id"):
        yield call.refuse("xai.instructions")


def _judge_custom_tools(call: VendorCall, rule: str) -> Rules:
    for index, tool in enumerate(call.body.get("tools") or ()):
        if tool.get("type") == "custom" and tool.get("name") != PATCH_TOOL:
            yield call.refuse(rule, at=index, value=tool.get("name"))


def _effort(call: VendorCall) -> str | None:
    effort = (call.body.get("reasoning") or {}).get("effort")
    return None if effort is None else str(effort)


RESPONSES: dict[str, Callable[[VendorCall], Rules]] = {
    "deepseek": deepseek,
    "moonshot": moonshot,
    "groq": groq,
    "ark": ark,
    "xai": xai,
}
"""Vendor -> rules of its responses."""
