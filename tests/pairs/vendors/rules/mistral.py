"""Rules of Mistral, whose request types have no room for anything else."""

import re
from itertools import pairwise

from tests.pairs.vendors import sources
from tests.pairs.vendors.refusal import Rules, VendorCall

CALL_ID = re.compile(r"[a-zA-Z0-9]{9}")


def chat(call: VendorCall) -> Rules:
    """Yield the refusals of a body of chat."""
    body = call.body
    if body.get("tools") == []:
        yield call.refuse("mistral.tools")
    yield from _judge_types(call)
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in call.efforts:
        yield call.refuse("mistral.effort", value=effort)
    yield from _judge_order(call)
    for message in call.messages:
        ids = [each.get("id") for each in message.get("tool_calls") or ()]
        if message.get("role") == "tool":
            ids.append(message.get("tool_call_id"))
        for each in ids:
            if not CALL_ID.fullmatch(str(each)):
                yield call.refuse("mistral.call-id", value=each)


def embeddings(call: VendorCall) -> Rules:
    """Yield the refusals of a body of embeddings."""
    known = sources.mistral_types().fields("EmbeddingRequestTypedDict")
    for name in call.body:
        if name not in known:
            yield call.refuse("mistral.embed-member", at=name, loc=f"'{name}'")
    if call.model == "mistral-embed" and call.body.get("output_dimension") is not None:
        yield call.refuse("mistral.embed-dimension")


def _judge_types(call: VendorCall) -> Rules:
    problem = sources.mistral_types().check(call.body, "ChatCompletionRequestTypedDict")
    if problem is None:
        return
    at, loc = ".".join(problem.path), ", ".join(f"'{step}'" for step in problem.path)
    values = ", ".join(f"'{each}'" for each in problem.known)
    if problem.kind == "unknown":
        if problem.path[:2] == ("messages", "content"):
            kind = "file" if problem.path[-1] == "file" else problem.path[-1]
            at, loc = (
                f"messages.content.{kind}.{problem.path[-1]}",
                f"'messages', 'content', '{kind}', '{problem.path[-1]}'",
            )
            yield call.refuse("mistral.content", at=at, loc=loc)
        else:
            yield call.refuse("mistral.unknown-member", at=at, loc=loc)
    elif problem.path == ("messages", "role"):
        yield call.refuse("mistral.role", value=problem.value, values=values)
    elif problem.path == ("service_tier",):
        yield call.refuse("mistral.tier", values=" or ".join(f"'{each}'" for each in problem.known))
    else:
        yield call.refuse("mistral.content", at=at, loc=loc)


def _judge_order(call: VendorCall) -> Rules:
    roles = [message.get("role") for message in call.messages]
    for before, role in pairwise(roles):
        if role == "system" and before != "system":
            yield call.refuse("mistral.system-order", value=before)
    if roles and roles[-1] == "assistant" and not call.messages[-1].get("prefix"):
        yield call.refuse("mistral.order")
