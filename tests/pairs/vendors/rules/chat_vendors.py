"""Rules of the vendors that follow chat with members and limits of their own."""

from collections.abc import Callable
from typing import Any

from tests.pairs.vendors.refusal import Json, Rules, VendorCall

USER_LENGTHS = (6, 128)
GROQ_TIERS = ("auto", "on_demand", "flex", "performance")
GROQ_UNKNOWN = ("prompt_cache_key",)
XAI_ARGUMENTS = {"stop": "stop", "presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty"}
KIMI_FIXED: dict[str, float] = {"top_p": 0.95, "n": 1, "presence_penalty": 0, "frequency_penalty": 0}
DASHSCOPE_ROLES = ("system", "assistant", "user", "tool", "function")
DEEPSEEK_ROLES = ("system", "user", "assistant", "tool", "latest_reminder")
ZAI_LIMIT = 131_072
ZAI_OLD_LIMIT = 32_000


def deepseek(call: VendorCall) -> Rules:
    """Yield the refusals of DeepSeek's chat."""
    body = call.body
    for index, message in enumerate(call.messages):
        if message.get("role") not in DEEPSEEK_ROLES:
            yield call.refuse("deepseek.shape", at=index, value=message.get("role"))
        if message.get("tool_calls") and is_thinking(call) and message.get("reasoning_content") is None:
            yield call.refuse("deepseek.reasoning-content")
        if _has_part(message, "image_url") and not call.flags.get("supports_vision"):
            yield call.refuse("deepseek.content", at=index)
    if is_forced(body) and is_thinking(call):
        yield call.refuse("deepseek.tool-choice")
    if (body.get("response_format") or {}).get("type") == "json_schema":
        yield call.refuse("deepseek.schema")
    yield from judge_limit(call, "deepseek.limit", call.limit)


def xai_chat(call: VendorCall) -> Rules:
    """Yield the refusals of xAI's chat."""
    for name, member in XAI_ARGUMENTS.items():
        if call.body.get(name) is not None:
            yield call.refuse("xai.arguments", at=name, member=member)
    yield from judge_xai_effort(call, call.body.get("reasoning_effort"))


def judge_xai_effort(call: VendorCall, effort: Any) -> Rules:
    """Yield the refusals of an effort by xAI, in any of its formats."""
    if effort is None:
        return
    if not call.efforts:
        yield call.refuse("xai.no-effort")
    elif effort not in call.efforts:
        yield call.refuse("xai.effort", value=effort)


def judge_sampling(call: VendorCall) -> Rules:
    """Yield the refusals of sampling options by Moonshot, in any of its formats."""
    if call.body.get("temperature") not in (None, 1):
        yield call.refuse("moonshot.temperature")
    for name, only in KIMI_FIXED.items():
        if call.body.get(name) not in (None, only):
            yield call.refuse("moonshot.fixed", at=name, value=f"{only:g}")


def moonshot(call: VendorCall) -> Rules:
    """Yield the refusals of Moonshot's chat."""
    body = call.body
    yield from judge_sampling(call)
    effort = body.get("reasoning_effort")
    if effort is not None and call.efforts and effort not in call.efforts:
        yield call.refuse("moonshot.effort", value=effort, values=", ".join(call.efforts))
    if is_thinking(call):
        choice = body.get("tool_choice")
        if isinstance(choice, dict):
            yield call.refuse("moonshot.tool-choice", value="specified")
        if choice == "required" and not call.model.startswith("kimi-k3"):
            yield call.refuse("moonshot.tool-choice", value="required")
        for index, message in enumerate(call.messages):
            if message.get("tool_calls") and not message.get("reasoning_content"):
                yield call.refuse("moonshot.reasoning-content", at=index)
    if (body.get("thinking") or {}).get("type") == "disabled" and call.fact.default == "always":
        yield call.refuse("moonshot.disabled")


def zai(call: VendorCall) -> Rules:
    """Yield the refusals of Z.ai's chat."""
    for message in call.messages:
        if message.get("role") not in ("system", "user", "assistant", "tool"):
            yield call.refuse("zai.role")
        if _has_part(message, "image_url") and not call.flags.get("supports_vision"):
            yield call.refuse("zai.content")
    if is_forced(call.body):
        yield call.refuse("zai.tool-choice")
    yield from judge_limit(call, "zai.limit", ZAI_OLD_LIMIT if call.limit == ZAI_OLD_LIMIT else ZAI_LIMIT)
    yield from _judge_user(call, "zai.user", "user_id")


def dashscope(call: VendorCall) -> Rules:
    """Yield the refusals of DashScope's chat."""
    for index, message in enumerate(call.messages):
        if message.get("role") not in DASHSCOPE_ROLES:
            yield call.refuse("dashscope.role", at=index, value=message.get("role"))
    if is_forced(call.body) and is_thinking(call):
        yield call.refuse("dashscope.tool-choice")
    yield from judge_limit(call, "dashscope.limit", call.limit)


def ark(call: VendorCall) -> Rules:
    """Yield the refusals of Ark's chat."""
    yield from _judge_user(call, "ark.user", "user")
    effort = call.body.get("reasoning_effort")
    if effort is not None and effort not in call.efforts:
        yield call.refuse("ark.effort", value=effort)


def groq(call: VendorCall) -> Rules:
    """Yield the refusals of Groq's chat."""
    body = call.body
    effort = body.get("reasoning_effort")
    if effort is not None and call.efforts and effort not in call.efforts:
        yield call.refuse("groq.effort", value=effort, values=" or ".join(f"`{each}`" for each in call.efforts))
    if body.get("service_tier") not in (None, *GROQ_TIERS):
        yield call.refuse("groq.tier")
    yield from judge_limit(call, "groq.limit", call.limit)
    if (body.get("n") or 1) > 1:
        yield call.refuse("groq.n")
    if body.get("logprobs") or body.get("top_logprobs"):
        yield call.refuse("groq.logprobs")
    for name in GROQ_UNKNOWN:
        if name in body:
            yield call.refuse("groq.unknown-member", at=name)
    for index, message in enumerate(call.messages):
        if "reasoning_content" in message:
            yield call.refuse("groq.reasoning-content", at=index)


def openrouter(call: VendorCall) -> Rules:
    """Yield the refusals of OpenRouter's chat."""
    if len(str(call.body.get("user") or "")) > USER_LENGTHS[1]:
        yield call.refuse("openrouter.user")


def local(call: VendorCall) -> Rules:
    """Yield the refusals of a local server whose template has one system message, first (Qwen, Llama, Gemma)."""
    for index, message in enumerate(call.messages):
        if message.get("role") == "system" and index > 0:
            yield call.refuse("local.system-order")
        if message.get("role") == "developer":
            yield call.refuse("local.role")


def voyage(call: VendorCall) -> Rules:
    """Yield the refusals of Voyage's embeddings."""
    known = {"input", "model", "input_type", "truncation", "output_dimension", "output_dtype", "encoding_format"}
    for name in call.body:
        if name not in known:
            yield call.refuse("voyage.unknown-member", at=name)
    encoding = call.body.get("encoding_format")
    if encoding not in (None, "base64"):
        yield call.refuse("voyage.encoding", value=encoding)


def jina(call: VendorCall) -> Rules:
    """Yield the refusals of Jina's embeddings."""
    for name in ("encoding_format", "user"):
        if name in call.body:
            yield call.refuse("jina.embed-member", at=name)


def is_forced(body: Json) -> bool:
    """Return whether the body forces the call of a tool."""
    choice = body.get("tool_choice")
    return isinstance(choice, dict) or choice in ("required", "any")


def is_thinking(call: VendorCall) -> bool:
    """Return whether the model reasons in answer to the body."""
    body = call.body
    match call.fact.switch:
        case "enable_thinking" if "enable_thinking" in body:
            return bool(body["enable_thinking"])
        case "thinking" if body.get("thinking"):
            return bool(body["thinking"].get("type") != "disabled")
    return call.fact.default in ("on", "always")


def _has_part(message: Json, kind: str) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(isinstance(part, dict) and part.get("type") == kind for part in content)


def judge_limit(call: VendorCall, rule: str, limit: int | None) -> Rules:
    """Yield the refusal of an output limit above that of the model."""
    value = call.body.get("max_tokens") or call.body.get("max_completion_tokens")
    if value is not None and limit is not None and value > limit:
        yield call.refuse(rule, limit=limit)


def _judge_user(call: VendorCall, rule: str, name: str) -> Rules:
    user = call.body.get(name)
    if user is not None and not USER_LENGTHS[0] <= len(user) <= USER_LENGTHS[1]:
        yield call.refuse(rule)


CHAT: dict[str, Callable[[VendorCall], Rules]] = {
    "deepseek": deepseek,
    "xai": xai_chat,
    "moonshot": moonshot,
    "zai": zai,
    "dashscope": dashscope,
    "ark": ark,
    "groq": groq,
    "openrouter": openrouter,
    "ollama": local,
    "vllm": local,
    "llama.cpp": local,
    "lmstudio": local,
}
"""Vendor -> rules of its chat; a vendor without a row refuses nothing that is known."""
