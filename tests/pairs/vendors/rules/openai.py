"""Rules of OpenAI and Azure, in chat and responses."""

import re
from typing import Any, get_type_hints

from openai.types import EmbeddingCreateParams

from tests.pairs.vendors.refusal import Json, Rules, VendorCall, text_of
from tests.support.providers.chat import Chat
from tests.support.providers.responses import Responses
from tests.support.providers.server import ReceivedRequest, RefusedError

LONGEST_USER = 64
VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
REFUSED_IN_CHAT = ("stop", "presence_penalty", "frequency_penalty", "logit_bias", "modalities", "prediction", "audio")
SAMPLING = ("temperature", "top_p")
LOGPROBS = ("logprobs", "top_logprobs")


def chat(call: VendorCall) -> Rules:
    """Yield the refusals of a body of chat."""
    body = call.body
    if _is_for_responses(call):
        yield call.refuse("openai.responses-only")
    effort = body.get("reasoning_effort")
    yield from _judge_effort(call, "reasoning_effort", effort)
    if reasons(call):
        if "max_tokens" in body:
            yield call.refuse("openai.max-tokens")
        for name in REFUSED_IN_CHAT:
            if body.get(name) is not None:
                yield call.refuse("openai.parameter", at=name)
        if body.get("tools") and _refuses_tools(call, effort):
            yield call.refuse("openai.chat-tools")
    yield from _judge_sampling(call, effort, (*SAMPLING, *LOGPROBS))
    yield from _judge_limit(call, "max_completion_tokens", "max_tokens")
    yield from _judge_format(call, body.get("response_format"), call.messages)
    for index, message in enumerate(call.messages):
        if "reasoning_content" in message:
            yield call.refuse("openai.reasoning-content", at=index)
    yield from _judge_rest(call, Chat().read)


def responses(call: VendorCall) -> Rules:
    """Yield the refusals of a body of responses."""
    body = call.body
    effort = (body.get("reasoning") or {}).get("effort")
    yield from _judge_effort(call, "reasoning.effort", effort)
    yield from _judge_sampling(call, effort, (*SAMPLING, "top_logprobs"))
    yield from _judge_limit(call, "max_output_tokens")
    given = body.get("input")
    items = given if isinstance(given, list) else [{"content": given}]
    yield from _judge_format(call, (body.get("text") or {}).get("format"), items)
    yield from _judge_rest(call, Responses().read)


def embeddings(call: VendorCall) -> Rules:
    """Yield the refusals of a body of embeddings."""
    known = get_type_hints(EmbeddingCreateParams)
    for name in call.body:
        if name not in known:
            yield call.refuse("openai.embed-member", at=name)


def reasons(call: VendorCall) -> bool:
    """Return whether the model reasons: its limit of tokens has another name, and chat refuses more members."""
    return bool(call.flags.get("supports_reasoning"))


def _is_for_responses(call: VendorCall) -> bool:
    endpoints = call.flags.get("supported_endpoints") or ()
    return bool(endpoints) and not any("chat/completions" in each for each in endpoints)


def _version(call: VendorCall) -> tuple[int, int]:
    found = VERSION.match(call.model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _refuses_tools(call: VendorCall, effort: str | None) -> bool:
    version = _version(call)
    return (version >= (5, 6) and effort != "none") or (version >= (5, 2) and effort not in (None, "none"))


def _judge_effort(call: VendorCall, at: str, effort: Any) -> Rules:
    if effort is None:
        return
    if not call.efforts:
        yield call.refuse("openai.no-effort", at=at)
    elif effort not in call.efforts:
        yield call.refuse("openai.effort", at=at, value=effort, values=list(call.efforts))


def _judge_sampling(call: VendorCall, effort: str | None, names: tuple[str, ...]) -> Rules:
    if not reasons(call):
        return
    if (effort or call.flags.get("default_reasoning_effort")) == "none" and "none" in call.efforts:
        return
    for name in names:
        if call.body.get(name) not in (None, False, *((1,) if name == "temperature" else ())):
            yield call.refuse("openai.logprobs" if name in LOGPROBS else "openai.sampling", at=name)


def _judge_limit(call: VendorCall, *names: str) -> Rules:
    for name in names:
        value = call.body.get(name)
        if value is not None and call.limit is not None and value > call.limit:
            yield call.refuse("openai.limit", at=name, value=value)


def _judge_format(call: VendorCall, wanted: Json | None, turns: list[Json]) -> Rules:
    if wanted and wanted.get("type") == "json_object":
        prompt = "\n".join(text_of(turn.get("content")) for turn in turns) + str(call.body.get("instructions") or "")
        if "json" not in prompt.lower():
            yield call.refuse("openai.json-word")


def _judge_rest(call: VendorCall, read: Any) -> Rules:
    """Yield the refusals by the SDK's own types, and by the length of the user's id."""
    user = call.body.get("user")
    if isinstance(user, str) and len(user) > LONGEST_USER:
        yield call.refuse("openai.user", value=len(user))
    try:
        read(ReceivedRequest("POST", "", {}, call.headers, call.raw))
    except RefusedError as refused:
        yield call.refuse("openai.shape", at=refused.at or "", value=refused.message)
